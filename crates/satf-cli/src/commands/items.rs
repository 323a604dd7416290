//! Items as people write and read them.

use std::path::Path;

use anyhow::{Context, bail};
use satf::data::{Boost, Titles, parse_history, read_boosts, read_text, read_titles};
use satf::fault::excerpt;
use satf::interactions::{Id, Ids, ItemIndex, OwnedHistory, OwnedId};
use satf::models::nearest;
use satf::recommend::{Model, Request};
use serde_json::{Value, json};

use crate::args::Listed;
use crate::misuse::{Misuse, OnCommandLine, misuse};
use crate::signals::StopRequests;
use crate::{escape, table};

/// Unknown items that are named in a message; the rest is counted.
const NAMED: usize = 5;

/// A catalogue with titles where there are some.
pub(crate) struct Items<'a> {
    catalog: &'a Ids,
    titles: Option<Titles>,
}

impl<'a> Items<'a> {
    /// The items of a model, with the titles of a file.
    pub(crate) fn new(model: &'a Model, titles: Option<&Path>) -> anyhow::Result<Self> {
        let catalog = model.catalog();
        let titles = titles.map(|path| read_titles(path, catalog, &StopRequests)).transpose()?;
        if titles.as_ref().is_some_and(Titles::is_empty) {
            tracing::warn!("no item of the model has a title in that file: are its ids those of the log?");
        }
        Ok(Items { catalog, titles })
    }

    /// What people read: the title with the id, or the id alone.
    pub(crate) fn show(&self, id: Id<'_>) -> String {
        let shown = match self.title(id) {
            Some(title) => format!("{title} ({id})"),
            None => id.to_string(),
        };
        escape::value(&shown).into_owned()
    }

    /// What programs read.
    pub(crate) fn to_json(&self, id: Id<'_>) -> Value {
        let mut value = json!({ "item_id": id });
        if let Some(title) = self.title(id) {
            value["title"] = json!(title);
        }
        value
    }

    /// The titles of the file.
    pub(crate) fn titles(&self) -> Option<&Titles> {
        self.titles.as_ref()
    }

    fn title(&self, id: Id<'_>) -> Option<&str> {
        let titles = self.titles.as_ref()?;
        titles.get(ItemIndex(self.catalog.find(id)? as u32))
    }

    /// The id of an item of a history.
    pub(crate) fn id(&self, item: ItemIndex) -> Id<'a> {
        self.catalog.get(item.get())
    }

    /// The item called `id`, or an error with the nearest one.
    pub(crate) fn find(&self, option: &str, id: &str) -> anyhow::Result<Id<'a>> {
        match self.get(id) {
            Some(item) => Ok(item),
            None => bail!("{option}: the model does not know the item '{}'{}", excerpt(id), self.hint(id)),
        }
    }

    /// The item called so, with the spaces around it or without.
    fn get(&self, id: &str) -> Option<Id<'a>> {
        let found = self.catalog.find(Id::Text(id)).or_else(|| self.catalog.find(Id::Text(id.trim())));
        found.map(|index| self.catalog.get(index))
    }

    fn hint(&self, id: &str) -> String {
        let near = match self.catalog {
            Ids::Texts(ids) => nearest(id, ids.iter().map(|id| &**id)),
            Ids::Integers(_) => None,
        };
        near.map(|near| format!(", did you mean '{near}'?")).unwrap_or_default()
    }

    /// A few of these ids with their hints, and how many more there are.
    fn name_some(&self, unknown: &[String]) -> String {
        let named: Vec<String> =
            unknown.iter().take(NAMED).map(|id| format!("'{}'{}", excerpt(id), self.hint(id))).collect();
        let rest = unknown.len().saturating_sub(NAMED);
        named.join(", ") + &if rest > 0 { format!(" and {} more", table::count(rest)) } else { String::new() }
    }

    /// A history; warns of items that are unknown.
    pub(crate) fn history(&self, option: &str, list: &Listed) -> anyhow::Result<OwnedHistory> {
        // An id per line holds commas as they are, as a JSON list does.
        let list = match list {
            Listed::File(_) => {
                // Spaces around ids are left out if only then they are known, as for every other list.
                let known = |id: String| self.get(&id).map_or(id, |id| id.to_string());
                let ids: Vec<String> = split(option, list)?.into_iter().map(known).collect();
                serde_json::to_string(&ids)?
            }
            Listed::Here(list) => list.clone(),
        };
        let mut unknown = Vec::new();
        let history = parse_history(&list, self.catalog, |id| unknown.push(id.to_owned()))
            .with_context(|| option.to_owned())
            .on_command_line()?;
        if !unknown.is_empty() {
            tracing::warn!(
                "{} of {} {} unknown and skipped: {}",
                table::count(unknown.len()),
                table::counted(unknown.len() + history.len(), "item"),
                table::agreeing(unknown.len(), "is", "are"),
                self.name_some(&unknown)
            );
        }
        Ok(history)
    }
}

/// Items of filters, most of which come from lists that are newer than the model.
pub(crate) struct FilterItems<'a> {
    pub(crate) items: &'a Items<'a>,
    /// Whether an item that is unknown is an error.
    pub(crate) is_strict: bool,
}

impl FilterItems<'_> {
    /// The items of a list that are known; warns of the others.
    pub(crate) fn find_all(&self, option: &str, list: &Listed) -> anyhow::Result<Vec<OwnedId>> {
        let named = split(option, list)?.into_iter().map(|id| (id, ()));
        Ok(self.find_named(option, named.collect())?.into_iter().map(|(item, ())| item).collect())
    }

    /// The same for a list of which at least one item has to be known.
    pub(crate) fn find_some(&self, option: &str, list: &Listed) -> anyhow::Result<Vec<OwnedId>> {
        if matches!(list, Listed::Here(_)) && split(option, list)?.is_empty() {
            misuse!("{option}: the list is empty, and nothing else may be recommended; hint: leave it out");
        }
        let found = self.find_all(option, list)?;
        if found.is_empty() {
            bail!("{option}: the model knows none of these items, and nothing else may be recommended");
        }
        Ok(found)
    }

    /// Adds a boost as it stands on the command line: `tent=0.5`, `tent=*1.5` or `@FILE`.
    pub(crate) fn add_boosts(
        &self,
        option: &str,
        listed: &Listed,
        request: &mut Request,
    ) -> anyhow::Result<()> {
        let boosts = match listed {
            Listed::File(path) => read_boosts(path, &StopRequests).with_context(|| option.to_owned())?,
            Listed::Here(text) => self.boosts_of(option, text)?,
        };
        for (item, boost) in self.find_named(option, boosts)? {
            match boost {
                Boost::Add(number) => request.boosts.push((item, number)),
                Boost::Multiply(factor) => request.factors.push((item, factor)),
            }
        }
        Ok(())
    }

    /// The boost that a text says, or several between commas. An id that the model knows is not split.
    fn boosts_of(&self, option: &str, text: &str) -> anyhow::Result<Vec<(String, Boost)>> {
        let boost = |text: &str| {
            let (item, boost) = text.rsplit_once('=')?;
            Some((item.to_owned(), Boost::parse(boost)?)).filter(|(item, _)| !item.trim().is_empty())
        };
        let whole = boost(text);
        let is_several =
            |item: &str| item.contains('=') && item.contains(',') && self.items.get(item).is_none();
        if let Some((item, _)) = &whole
            && !is_several(item)
        {
            return Ok(whole.into_iter().collect());
        }
        let parts = text.split(',').map(|part| (part, boost(part)));
        let found = parts.map(|(part, boost)| {
            boost.ok_or_else(|| {
                Misuse::because(anyhow::anyhow!(
                    "{option} {}: expected ITEM=NUMBER such as tent=0.5, ITEM=*NUMBER such as tent=*1.5, or @FILE, found '{}'; \
                     numbers are finite, and factors above 0; hint: ids with commas go in @FILE",
                    excerpt(text),
                    excerpt(part)
                ))
            })
        });
        found.collect()
    }

    /// Finds items and keeps what belongs to them.
    fn find_named<T>(&self, option: &str, named: Vec<(String, T)>) -> anyhow::Result<Vec<(OwnedId, T)>> {
        if named.is_empty() {
            tracing::warn!("{option}: the list is empty");
        }
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        for (id, value) in named {
            match self.items.get(&id) {
                Some(item) => found.push((item.to_owned(), value)),
                None if self.is_strict => self.items.find(option, &id).map(drop)?,
                None => unknown.push(id),
            }
        }
        if !unknown.is_empty() {
            tracing::warn!(
                "{option}: {} of {} {} unknown to the model and left out: {} (--strict makes that an error)",
                table::count(unknown.len()),
                table::counted(unknown.len() + found.len(), "item"),
                table::agreeing(unknown.len(), "is", "are"),
                self.items.name_some(&unknown)
            );
        }
        Ok(found)
    }
}

/// Ids between commas, in a JSON list, or in the lines of `@FILE`, of which blank ones do not count. Spaces around ids are for the
/// catalogue to judge.
pub(super) fn split(option: &str, list: &Listed) -> anyhow::Result<Vec<String>> {
    let list = match list {
        Listed::Here(list) => list,
        Listed::File(path) => {
            let text =
                read_text(path, &StopRequests).with_context(|| format!("{option} @{}", path.display()))?;
            if let Some(kind) = json_kind(&text) {
                bail!(
                    "{option} @{}: the file holds {kind}, and every line would be taken for an id; hint: write one id per line, without \
                     brackets and quotation marks",
                    escape::path(path)
                );
            }
            return Ok(text.lines().filter(|id| !id.trim().is_empty()).map(str::to_owned).collect());
        }
    };
    if list.trim_start().starts_with('[') {
        let ids: Vec<Value> = serde_json::from_str(list)
            .with_context(|| format!("{option} {}: expected a JSON list of ids", excerpt(list)))
            .on_command_line()?;
        let id = |id: Value| match id {
            Value::String(id) => Ok(id),
            Value::Number(id) if !id.is_f64() => Ok(id.to_string()),
            other => misuse!("{option}: {other}: expected an id, a string or an integer"),
        };
        return ids.into_iter().map(id).collect();
    }
    if list.trim().is_empty() {
        return Ok(Vec::new());
    }
    if let Some(at) = list.split(',').position(|id| id.trim().is_empty()) {
        misuse!("{option} {}: the id at place {} is empty; hint: remove a comma", excerpt(list), at + 1);
    }
    Ok(list.split(',').map(str::to_owned).collect())
}

/// What a text is called that is JSON as a whole, and not ids.
fn json_kind(text: &str) -> Option<&'static str> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let kind = match text.chars().next()? {
        '[' => "a JSON list",
        '{' => "a JSON object",
        _ => return None,
    };
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok().then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_in_three_ways() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ids");
        // A mark of Windows programs, and their ends of lines, are no part of ids.
        std::fs::write(&path, "\u{feff}a b\r\n\n c,d \n").unwrap();
        let here = |list: &str| split("--only", &Listed::Here(list.to_owned()));
        assert_eq!(here("a b, c,7").unwrap(), ["a b", " c", "7"]);
        assert!(here("a,,7").unwrap_err().to_string().contains("place 2 is empty"));
        assert_eq!(here(" ").unwrap(), [""; 0]);
        assert_eq!(here("[\"a, b\", 7]").unwrap(), ["a, b", "7"]);
        assert_eq!(split("--only", &Listed::File(path.clone())).unwrap(), ["a b", " c,d "]);
        for (text, found) in [
            ("[\"a\", 7]", Some("a JSON list")),
            (" [\n  \"a\"\n]\n", Some("a JSON list")),
            ("{\"a\": 1}", Some("a JSON object")),
            ("[a]\nb\n", None),
            ("[1]\n[2]\n", None),
            ("\"a\"\n", None),
        ] {
            std::fs::write(&path, text).unwrap();
            let outcome = split("--only", &Listed::File(path.clone())).map_err(|error| error.to_string());
            match found {
                Some(kind) => assert!(outcome.unwrap_err().contains(kind), "{text}"),
                None => assert_eq!(outcome.unwrap().len(), text.lines().count(), "{text}"),
            }
        }
        assert!(here("[1.5, {}]").unwrap_err().to_string().contains("--only"));
        let missing = split("--only", &Listed::File("nowhere".into())).unwrap_err();
        assert!(missing.to_string().contains("@nowhere"));
    }
}
