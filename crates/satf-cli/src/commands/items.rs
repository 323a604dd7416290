//! Items as people write and read them.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use satf::data::{Titles, read_titles};
use satf::interactions::{Id, Ids, ItemIndex};
use satf::models::nearest;
use satf::recommend::Model;
use serde_json::{Value, json};

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
        let titles = titles.map(|path| read_titles(path, catalog)).transpose()?;
        if titles.as_ref().is_some_and(Titles::is_empty) {
            tracing::warn!("no item of the model has a title in that file: are its ids those of the log?");
        }
        Ok(Items { catalog, titles })
    }

    /// What people read: the title with the id, or the id alone.
    pub(crate) fn show(&self, item: ItemIndex) -> String {
        let id = self.catalog.get(item.get());
        match self.title(item) {
            Some(title) => format!("{title} ({id})"),
            None => id.to_string(),
        }
    }

    /// What programs read.
    pub(crate) fn to_json(&self, item: ItemIndex) -> Value {
        let mut value = json!({ "item_id": self.catalog.get(item.get()) });
        if let Some(title) = self.title(item) {
            value["title"] = json!(title);
        }
        value
    }

    fn title(&self, item: ItemIndex) -> Option<&str> {
        self.titles.as_ref()?.get(item)
    }

    /// The item called `id`, or an error with the nearest one.
    pub(crate) fn find(&self, option: &str, id: &str) -> anyhow::Result<ItemIndex> {
        match self.catalog.find(Id::Text(id)) {
            Some(index) => Ok(ItemIndex(index as u32)),
            None => bail!("{option}: the model does not know the item '{id}'{}", self.hint(id)),
        }
    }

    fn hint(&self, id: &str) -> String {
        let near = match self.catalog {
            Ids::Texts(ids) => nearest(id, ids.iter().map(|id| &**id)),
            Ids::Integers(_) => None,
        };
        near.map(|near| format!(", did you mean '{near}'?")).unwrap_or_default()
    }

    /// All items of a list, each of them known.
    pub(crate) fn find_all(&self, option: &str, list: &str) -> anyhow::Result<Vec<ItemIndex>> {
        split(option, list)?.iter().map(|id| self.find(option, id)).collect()
    }

    /// The known items of a history, and how many are not; warns of those.
    pub(crate) fn history(&self, option: &str, list: &str) -> anyhow::Result<(Vec<ItemIndex>, usize)> {
        let ids = split(option, list)?;
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for id in &ids {
            match self.catalog.find(Id::Text(id)) {
                Some(index) => known.push(ItemIndex(index as u32)),
                None => unknown.push(format!("'{id}'{}", self.hint(id))),
            }
        }
        if !unknown.is_empty() {
            let rest = unknown.len().saturating_sub(NAMED);
            let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            let named = unknown[..unknown.len().min(NAMED)].join(", ");
            tracing::warn!("{} of {} items are unknown and skipped: {named}{rest}", unknown.len(), ids.len());
        }
        Ok((known, unknown.len()))
    }
}

/// Ids between commas, in a JSON list, or in the lines of `@FILE`.
fn split(option: &str, list: &str) -> anyhow::Result<Vec<String>> {
    let plain = |ids: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        ids.map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect()
    };
    if let Some(path) = list.strip_prefix('@') {
        let text = fs::read_to_string(path).with_context(|| format!("{option} @{path}"))?;
        return Ok(plain(&mut text.lines()));
    }
    if list.trim_start().starts_with('[') {
        let ids: Vec<Value> = serde_json::from_str(list)
            .with_context(|| format!("{option} {list}: expected a JSON list of ids"))?;
        let id = |id: Value| match id {
            Value::String(id) => Ok(id),
            Value::Number(id) => Ok(id.to_string()),
            other => bail!("{option}: {other}: expected an id, a string or an integer"),
        };
        return ids.into_iter().map(id).collect();
    }
    Ok(plain(&mut list.split(',')))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn lists_come_in_three_ways() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ids");
        std::fs::write(&path, "a b\n\n c,d \n").unwrap();
        assert_eq!(split("--only", "a b, c,,7").unwrap(), ["a b", "c", "7"]);
        assert_eq!(split("--only", "[\"a, b\", 7]").unwrap(), ["a, b", "7"]);
        assert_eq!(split("--only", &format!("@{}", path.display())).unwrap(), ["a b", "c,d"]);
        assert!(split("--only", "[1.5, {}]").unwrap_err().to_string().contains("--only"));
        assert!(split("--only", "@nowhere").unwrap_err().to_string().contains("@nowhere"));
    }
}
