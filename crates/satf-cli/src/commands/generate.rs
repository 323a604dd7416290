//! `satf generate`: a made-up shop log.

use satf::data::write_log;
use satf::generate::{ShopOptions, shop_with};
use satf::prepare::Statistics;

use super::files::Files;
use crate::args::GenerateArguments;
use crate::misuse::OnCommandLine;
use crate::terminal::Terminal;
use crate::{escape, table};

pub(crate) fn run(arguments: &GenerateArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let options = ShopOptions {
        users: arguments.users,
        days: arguments.days,
        seed: arguments.seed,
        ..ShopOptions::default()
    };
    options.check().on_command_line()?;
    Files::default().writing("--output", Some(&arguments.output)).check()?;
    let log = shop_with(&options, terminal)?;
    write_log(&log, &arguments.output, super::log_format(&arguments.output), terminal)?;
    terminal.wrote(&arguments.output);
    terminal.finish();
    let description = super::stats::describe(&Statistics::of(&log));
    table::print(&format!("{description}\n\nwritten to {}", escape::path(&arguments.output)))
}
