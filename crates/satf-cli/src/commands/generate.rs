//! `satf generate`: a made-up log, of the shop or of a given shape.

use std::time::Instant;

use satf::data::write_log;
use satf::generate::{ShapeOptions, ShopOptions, shop_with, write_like};
use satf::prepare::Statistics;
use serde_json::json;

use super::files::Files;
use crate::args::GenerateArguments;
use crate::misuse::OnCommandLine;
use crate::terminal::Terminal;
use crate::{escape, table};

pub(crate) fn run(arguments: &GenerateArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let start = Instant::now();
    let statistics = match (arguments.users, arguments.items, arguments.rows) {
        (Some(users), Some(items), Some(rows)) => {
            write_shape(arguments, &ShapeOptions { users, items, rows, seed: arguments.seed }, terminal)?
        }
        _ => write_shop(arguments, terminal)?,
    };
    terminal.wrote(&arguments.output);
    terminal.finish();
    let seconds = start.elapsed().as_secs_f64();
    if arguments.json {
        return table::print_json(&json!({
            "output": super::path_to_json(&arguments.output),
            "seed": arguments.seed,
            "statistics": statistics,
            "seconds": seconds,
        }));
    }
    let description = super::stats::describe(&statistics);
    let path = escape::path(&arguments.output);
    table::print(&format!("{description}\n\nwritten to {path}"))
}

fn write_shape(
    arguments: &GenerateArguments,
    options: &ShapeOptions,
    terminal: &Terminal,
) -> anyhow::Result<Statistics> {
    options.check().on_command_line()?;
    Files::default().writing("--output", Some(&arguments.output)).check()?;
    Ok(write_like(options, &arguments.output, super::log_format(&arguments.output), terminal)?)
}

fn write_shop(arguments: &GenerateArguments, terminal: &Terminal) -> anyhow::Result<Statistics> {
    let usual = ShopOptions::default();
    let options = ShopOptions {
        users: arguments.users.unwrap_or(usual.users),
        days: arguments.days.unwrap_or(usual.days),
        seed: arguments.seed,
        ..usual
    };
    options.check().on_command_line()?;
    Files::default().writing("--output", Some(&arguments.output)).check()?;
    let log = shop_with(&options, terminal)?;
    write_log(&log, &arguments.output, super::log_format(&arguments.output), terminal)?;
    Ok(Statistics::of(&log))
}
