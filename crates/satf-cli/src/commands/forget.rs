//! `satf forget`: a model as if some users and items had never been in its log.

use std::collections::HashSet;

use anyhow::{Context, bail};
use satf::fault::excerpt;
use satf::interactions::{Id, Ids};
use satf::models::{Registry, nearest};
use serde_json::json;

use super::files::Files;
use super::items::split;
use super::statistics::{Output, load_with_statistics, plan_of};
use super::train::{Newest, Trained, learn};
use crate::args::{ForgetArguments, Listed};
use crate::misuse::misuse;
use crate::terminal::Terminal;
use crate::{escape, table};

/// Unknown ids that are named in a message; the rest is counted.
const NAMED: usize = 5;

pub(crate) fn run(
    arguments: &ForgetArguments,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    check_lists(arguments)?;
    let output = Output::new("MODEL", &arguments.model, arguments.output.as_deref())?;
    let lists = [("--user", &arguments.user), ("--item", &arguments.item)];
    let files = lists.iter().flat_map(|(option, lists)| lists.iter().map(|list| (*option, list.file())));
    let files = files.fold(Files::default(), |files, (option, file)| files.reading(option, file));
    output.add_to(files).check()?;
    let _lock = output.lock(terminal)?;
    let model = load_with_statistics(&arguments.model, registry)?;
    let log = model.log().with_context(|| escape::path(&arguments.model))?;
    let users =
        find(&Known { ids: log.users(), what: "user", is_strict: arguments.strict }, &arguments.user)?;
    let items =
        find(&Known { ids: log.items(), what: "item", is_strict: arguments.strict }, &arguments.item)?;
    let left = log.without(|row| users.contains(&row.user.get()) || items.contains(&row.item.get()));
    let events = log.len() - left.len();
    let is_written = events > 0 || !output.is_in_place();
    let words = match events {
        0 => "nothing to forget: the model knows none of these users and items\n".to_owned(),
        _ => format!(
            "forgot {} and {}: {}\n",
            table::counted(users.len(), "user"),
            table::counted(items.len(), "item"),
            table::counted(events, "event")
        ),
    };
    let told = json!({
        "forgotten_users": users.len(), "forgotten_items": items.len(), "forgotten_events": events,
        "written": is_written,
    });
    if left.is_empty() {
        bail!("nothing would be left to learn from; hint: delete the model, or train another one");
    }
    drop(log);
    if !is_written {
        terminal.finish();
        return Trained::unchanged(model).report(output.path(), arguments.json, told, &words);
    }
    let plan = plan_of(&model, None, registry)?;
    let trained = learn(left, plan, Newest::default(), terminal)?;
    let _lock = output.lock_to_write(terminal)?;
    output.check_unchanged(&model)?;
    let other_names = output.num_other_names();
    trained.write(output.path(), terminal)?;
    if other_names > 0 {
        tracing::warn!(
            "{}: the file had {other_names} other name(s) (hard links), which still hold what is forgotten here; hint: delete them too",
            escape::path(output.path())
        );
    }
    trained.report(output.path(), arguments.json, told, &words)
}

/// An error if a list says nothing, which no file is needed to tell: who asks to forget means somebody.
fn check_lists(arguments: &ForgetArguments) -> anyhow::Result<()> {
    for (option, lists) in [("--user", &arguments.user), ("--item", &arguments.item)] {
        for list in lists.iter().filter(|list| matches!(list, Listed::Here(_))) {
            if split(option, list)?.is_empty() {
                misuse!("{option}: the list is empty; hint: name at least one id, or leave the option out");
            }
        }
    }
    Ok(())
}

/// Ids that can be forgotten.
struct Known<'a> {
    ids: &'a Ids,
    what: &'a str,
    is_strict: bool,
}

impl Known<'_> {
    fn find(&self, id: &str) -> Option<usize> {
        self.ids.find(Id::Text(id)).or_else(|| self.ids.find(Id::Text(id.trim())))
    }

    /// An id that is not known, with the item that may be meant. Of users nobody else's id is proposed: to forget the wrong person is
    /// worse than to look again.
    fn name(&self, id: &str) -> String {
        let near = match self.ids {
            Ids::Texts(ids) if self.what == "item" => nearest(id, ids.iter().map(|id| &**id)),
            _ => None,
        };
        let near = near.map(|near| format!(", did you mean '{near}'?")).unwrap_or_default();
        format!("'{}'{near}", excerpt(id))
    }
}

/// The indices of all ids of these lists that are known; warns of the others.
fn find(known: &Known<'_>, lists: &[Listed]) -> anyhow::Result<HashSet<usize>> {
    let option = format!("--{}", known.what);
    let (mut found, mut unknown, mut asked) = (HashSet::new(), Vec::new(), 0);
    for list in lists {
        let ids = split(&option, list)?;
        if ids.is_empty() {
            tracing::warn!("{option}: the list is empty");
        }
        asked += ids.len();
        for id in ids {
            match known.find(&id) {
                Some(index) => drop(found.insert(index)),
                None => unknown.push(id),
            }
        }
    }
    let Some(first) = unknown.first() else { return Ok(found) };
    if known.is_strict {
        bail!("{option}: the model does not know the {} {}", known.what, known.name(first));
    }
    let named: Vec<String> = unknown.iter().take(NAMED).map(|id| known.name(id)).collect();
    let rest = unknown.len().saturating_sub(NAMED);
    let more = if rest > 0 { format!(" and {} more", table::count(rest)) } else { String::new() };
    tracing::warn!(
        "{option}: {} of {} {} unknown to the model: {}{more} (--strict makes that an error)",
        table::count(unknown.len()),
        table::counted(asked, known.what),
        table::agreeing(unknown.len(), "is", "are"),
        named.join(", ")
    );
    Ok(found)
}
