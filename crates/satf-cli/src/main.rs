//! The binary `satf`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: satf_cli::Remembering = satf_cli::Remembering;

fn main() -> ExitCode {
    let itself = std::env::current_exe().map(Into::into).into_iter().collect();
    satf_cli::main_with(std::env::args_os().collect(), itself).into()
}
