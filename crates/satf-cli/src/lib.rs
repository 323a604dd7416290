//! The `satf` command: from a raw log to honest scores and recommendations.
//!
//! This is the program and no interface: the binary and the Python package call [`main_with`], and nothing here is promised to anybody else.

mod args;
mod commands;
mod escape;
mod hints;
mod misuse;
mod options;
mod out_of_memory;
mod program;
mod progress;
mod signals;
mod table;
mod terminal;
mod threads;
mod worse;

use std::ffi::OsString;
use std::io::Write;

pub use out_of_memory::Remembering;

use args::{Arguments, Command};
use clap::{CommandFactory, FromArgMatches, Parser};
use options::Options;
use satf::fault::excerpt;
use satf::models::Registry;
use satf::monitor::Cancelled;

/// The exit code of a wrong command line, which is also that of the parser.
const WRONG_COMMAND_LINE: u8 = 2;

/// Runs a command line, whose first word is the name of the program, and gives its exit code. `again` is what starts this program without
/// any argument: itself, or an interpreter and what it is to run.
///
/// It sets up the whole process (signals, threads, what is said on stderr), so it is called once, before there is any other thread.
pub fn main_with(words: Vec<OsString>, again: Vec<OsString>) -> u8 {
    let arguments = match parse(&words) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(error, &words),
    };
    program::set(words, again);
    let registry = registry();
    silence_decoders();
    out_of_memory::save_address_space();
    // Where it cannot be, an abort stays one.
    let _ = out_of_memory::watch();
    let terminal =
        terminal::Terminal::install(arguments.quiet, arguments.verbose, !hears_signals(&arguments.command));
    if let Command::MeasureThread = arguments.command {
        return u8::from(threads::measure().is_err());
    }
    let started = threads::start(arguments.threads, &arguments.command);
    let outcome = started.and_then(|()| match &arguments.command {
        Command::Prepare(options) => commands::prepare::run(options, &terminal),
        Command::Stats(options) => commands::stats::run(options, &terminal),
        Command::Evaluate(options) => commands::evaluate::run(options, &registry, &terminal),
        Command::Train(options) => commands::train::run(options, &registry, &terminal),
        Command::Forget(options) => commands::forget::run(options, &registry, &terminal),
        Command::Recommend(options) => commands::recommend::run(options, &registry, &terminal),
        Command::Similar(options) => commands::similar::run(options, &registry, &terminal),
        Command::Inspect(options) => commands::inspect::run(options, &registry, &terminal),
        #[cfg(feature = "serve")]
        Command::Serve(options) => commands::serve::run(options, arguments.threads, registry.clone()),
        #[cfg(feature = "serve")]
        Command::Bench(options) => commands::bench::run(options, &terminal),
        Command::Tune(options) => commands::tune::run(options, &registry, &terminal),
        Command::Reproduce(options) => commands::reproduce::run(options, &registry, &terminal),
        Command::Plan(options) => commands::plan::run(options, &registry, &terminal),
        Command::Compare(options) => commands::compare::run(options, &terminal),
        Command::Models(options) => commands::models::run(options, &registry, &terminal),
        Command::Generate(options) => commands::generate::run(options, &terminal),
        Command::Demo(options) => commands::demo::run(options, &terminal),
        Command::MeasureThread => Ok(()),
    });
    terminal.finish();
    // Nobody else may do it: the process may be an interpreter's.
    let _ = std::io::stdout().flush();
    match outcome {
        Ok(()) => 0,
        Err(error) if is_closed_pipe(&error) => 0,
        Err(error) => {
            terminal.say(&format!("error: {}", hints::ending(&error, &terminal.written())));
            match error {
                error if is_cancelled(&error) => signals::exit_code(),
                error if misuse::is_misuse(&error) => WRONG_COMMAND_LINE,
                error if worse::is_worse(&error) => worse::EXIT_CODE,
                _ => 1,
            }
        }
    }
}

/// The command line, whose command is remembered with its options.
fn parse(words: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command();
    let mut matches = command.try_get_matches_from_mut(words)?;
    Options::remember(&command, &matches);
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Whether a command hears signals itself: a server finishes what is under way, and reads its files again on SIGHUP.
fn hears_signals(command: &Command) -> bool {
    #[cfg(feature = "serve")]
    return matches!(command, Command::Serve(_));
    #[cfg(not(feature = "serve"))]
    {
        let _ = command;
        false
    }
}

/// The models of this program.
fn registry() -> Registry {
    #[cfg(feature = "sasrec")]
    return satf_sasrec::registry();
    #[cfg(not(feature = "sasrec"))]
    Registry::default()
}

/// Says what is wrong with the words of a command line, or prints the help that was asked for.
fn refuse(error: clap::Error, words: &[OsString]) -> u8 {
    // The message repeats words, which may come from names of files: it is made again, of words that do no harm.
    let words = words.iter().map(|word| escape::value(&excerpt(&word.to_string_lossy())).into_owned());
    let error = Arguments::try_parse_from(words).err().unwrap_or(error);
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    if let Err(cause) = printed
        && !error.use_stderr()
        && cause.kind() != std::io::ErrorKind::BrokenPipe
    {
        // Nothing is left to tell it to if stderr is gone.
        let _ = writeln!(std::io::stderr(), "error: {}: {cause}", table::STANDARD_OUTPUT);
        return 1;
    }
    u8::try_from(error.exit_code()).unwrap_or(WRONG_COMMAND_LINE)
}

/// The Parquet decoder answers some damaged files with a panic. The library makes an error of it; what the panic itself would
/// print helps nobody.
fn silence_decoders() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !satf::data::is_decoding() {
            report(panic);
        }
    }));
}

/// `satf … | head` closes our output: that is not a failure.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Whether the work ended because it was asked to.
fn is_cancelled(error: &anyhow::Error) -> bool {
    Cancelled::is_cause_of(error.as_ref())
}
