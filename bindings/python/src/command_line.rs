//! The program `satf`, in the process of an interpreter.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs a command line, its first word the name of the program, and gives its exit code. `again` is what starts the program without
/// arguments. It takes over the process: signals, threads, standard output.
#[pyfunction]
pub(crate) fn run_command_line(py: Python<'_>, words: Vec<OsString>, again: Vec<OsString>) -> u8 {
    py.detach(|| satf_cli::main_with(words, again))
}
