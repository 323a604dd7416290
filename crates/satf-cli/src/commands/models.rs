//! `satf models`: what can be asked for, and what can be set.

use satf::models::Registry;
use serde_json::{Map, Value, json};

use crate::args::ModelsArguments;
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(
    arguments: &ModelsArguments,
    registry: &Registry,
    _terminal: &Terminal,
) -> anyhow::Result<()> {
    if arguments.json {
        let entry = |entry: &satf::models::ModelEntry| {
            (entry.name.to_owned(), json!({ "summary": entry.summary, "defaults": entry.defaults() }))
        };
        return table::print_json(&Value::Object(registry.models().iter().map(entry).collect::<Map<_, _>>()));
    }
    let mut text = String::new();
    for entry in registry.models() {
        text.push_str(&format!("{}: {}\n", entry.name, entry.summary));
        for (key, value) in entry.defaults() {
            let value = if value.is_null() { "not set".to_owned() } else { value.to_string() };
            text.push_str(&format!("    {key} = {value}\n"));
        }
    }
    let presets: Vec<String> = registry.presets().into_iter().map(|preset| preset.name).collect();
    text.push_str(&format!("\npresets: {}", presets.join(", ")));
    table::print(&text)
}
