//! `satf generate`: a made-up shop log.

use satf::data::write_log;
use satf::generate::{ShopOptions, shop};
use satf::prepare::Statistics;

use crate::args::GenerateArguments;
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(arguments: &GenerateArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let options = ShopOptions {
        users: arguments.users,
        days: arguments.days,
        seed: arguments.seed,
        ..ShopOptions::default()
    };
    let log = shop(&options)?;
    write_log(&log, &arguments.output, super::log_format(&arguments.output))?;
    terminal.finish();
    let description = super::stats::describe(&Statistics::of(&log));
    table::print(&format!("{description}\n\nwritten to {}", arguments.output.display()))
}
