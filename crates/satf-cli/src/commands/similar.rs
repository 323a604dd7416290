//! `satf similar`: items like an item, which is not what comes after it.

use satf::models::Registry;
use serde_json::{Value, json};

use super::files::Files;
use super::items::Items;
use crate::args::SimilarArguments;
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(
    arguments: &SimilarArguments,
    registry: &Registry,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    Files::default().reading("--titles", arguments.titles.as_ref()).check_distinct()?;
    let model = super::load(&arguments.model, registry)?;
    let items = Items::new(&model, arguments.titles.as_deref())?;
    let item = items.find("ITEM", &arguments.item)?;
    let similar = model.similar_items(item, arguments.n)?;
    terminal.finish();
    if similar.items.is_empty() {
        tracing::warn!("nothing in this model is like {}", items.show(item));
    }
    if arguments.json {
        let list: Vec<Value> = (1..)
            .zip(&similar.items)
            .map(|(rank, other)| {
                let mut entry = items.to_json(other.item.as_id());
                entry["similarity"] = table::single(other.similarity);
                entry["rank"] = json!(rank);
                entry
            })
            .collect();
        let report = json!({ "item": items.to_json(item), "measure": similar.measure, "similar": list });
        return table::print_json(&report);
    }
    let mut shown = table::with_header(&["item", "similarity"]);
    for other in &similar.items {
        shown.add_row([items.show(other.item.as_id()), format!("{:.4}", other.similarity)]);
    }
    table::print(&format!("like {}, by the {}\n{shown}", items.show(item), similar.measure))
}
