//! As many threads as there are cores, or as there is room for.
//!
//! The kernel of dense products reserves two buffers per thread, each as large as the last-level cache it finds: from some tens to
//! some hundreds of megabytes, of which it touches a few. Address space costs nothing, until it is limited (`ulimit -v`, strict
//! overcommitment): then a thread without room for its buffers would end the program in the middle of its work. So a limit decides
//! how many threads there are. Results do not depend on it.
//!
//! How much a thread takes is measured where it can do no harm: in a process of its own.

use std::fs;
use std::io::ErrorKind;
use std::process::Stdio;

use anyhow::{Context, bail};

use crate::args::Command;
use crate::{program, table};

/// The name of the command that measures, which is for this program alone.
pub(crate) const MEASURE: &str = "measure-thread";

/// Starts as many threads as asked for, all cores if nothing is, and fewer where there is no room for them.
pub(crate) fn start(asked: Option<usize>, command: &Command) -> anyhow::Result<()> {
    let threads = match address_space_left() {
        Some(left) => threads_within(left, asked, makes_products(command))?,
        None => asked.unwrap_or(0),
    };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().with_context(|| {
        "no threads can be started; hint: raise the limits of this program (ulimit -v for address space, ulimit -u for threads)"
    })
}

/// How many threads there are where so many bytes of address space are left. An error if products are made and there is no room.
fn threads_within(left: u64, asked: Option<usize>, makes_products: bool) -> anyhow::Result<usize> {
    let wanted = asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let room = match measure_in_a_process() {
        Measured::Unknown => return Ok(wanted),
        Measured::NoRoom => None,
        Measured::Buffers(bytes) => threads_with_room(left, bytes),
    };
    if room.is_none() && makes_products {
        bail!(
            "there is no room for dense products: {} of address space are left for this program; \
             hint: raise its limit (ulimit -v), or see whether memory may be overcommitted",
            table::bytes(left)
        );
    }
    let threads = room.unwrap_or(1).min(wanted);
    if threads < wanted {
        tracing::warn!(
            "the address space is limited, {} are left: there is room for {threads} of {wanted} threads",
            table::bytes(left)
        );
    }
    Ok(threads)
}

/// What a thread takes besides: its stack, and the heap that the C library sets aside for it.
const STACK_AND_HEAP: u64 = 66 << 20;

/// How many threads have room with buffers of this size, if any has. Half of what is left is for the data; the main thread makes
/// products too.
fn threads_with_room(left: u64, buffers: u64) -> Option<usize> {
    let a_thread = buffers.saturating_add(STACK_AND_HEAP);
    let room = left / 2 / a_thread;
    (room > 0).then(|| usize::try_from(room - 1).unwrap_or(usize::MAX).max(1))
}

/// Whether a command may multiply dense matrices.
fn makes_products(command: &Command) -> bool {
    match command {
        Command::Stats(options) => options.order_matters,
        Command::Prepare(_)
        | Command::Similar(_)
        | Command::Inspect(_)
        | Command::Compare(_)
        | Command::Models(_)
        | Command::Generate(_)
        | Command::MeasureThread => false,
        _ => true,
    }
}

/// Bytes that this process may still reserve, if that is limited.
pub(crate) fn address_space_left() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"));
    let limit: Option<u64> = limit.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let of_process = limit.map(|limit| limit.saturating_sub(address_space().unwrap_or(0)));
    of_process.into_iter().chain(commitment_left()).min()
}

/// Bytes that all processes together may still reserve, where the system promises no more memory than it has.
fn commitment_left() -> Option<u64> {
    const NEVER_OVERCOMMITTED: &str = "2";
    if fs::read_to_string("/proc/sys/vm/overcommit_memory").ok()?.trim() != NEVER_OVERCOMMITTED {
        return None;
    }
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    Some(kilobytes(&memory, "CommitLimit:")?.saturating_sub(kilobytes(&memory, "Committed_AS:")?))
}

/// Bytes of address space that this process has reserved.
fn address_space() -> Option<u64> {
    kilobytes(&fs::read_to_string("/proc/self/status").ok()?, "VmSize:")
}

/// A line `name 123 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// What the process that measures found.
enum Measured {
    /// Bytes of the buffers of a thread.
    Buffers(u64),
    /// It ended for want of room.
    NoRoom,
    /// There is no such process to be had.
    Unknown,
}

fn measure_in_a_process() -> Measured {
    let Some(mut program) = program::again() else { return Measured::Unknown };
    let process = program.arg(MEASURE).stdin(Stdio::null()).stderr(Stdio::null()).output();
    match process {
        Ok(output) if output.status.success() => {
            let bytes = String::from_utf8(output.stdout).ok().and_then(|text| text.trim().parse().ok());
            bytes.map_or(Measured::Unknown, Measured::Buffers)
        }
        Ok(_) => Measured::NoRoom,
        Err(error) if error.kind() == ErrorKind::OutOfMemory => Measured::NoRoom,
        Err(_) => Measured::Unknown,
    }
}

/// Prints how many bytes of address space a thread takes for its first product.
pub(crate) fn measure() -> anyhow::Result<()> {
    let grown_by = || {
        // The thread's own heap is there before anything is measured.
        drop(std::hint::black_box(vec![0u8; 1 << 16]));
        let before = address_space()?;
        satf::linalg::dense::warm_up();
        Some(address_space()?.saturating_sub(before))
    };
    let grown_by = std::thread::Builder::new().spawn(grown_by)?.join().ok().flatten();
    table::print(&grown_by.context("the size of this process is not known")?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_is_left_is_for_threads_and_one_of_them_is_the_main_one() {
        let a_thread = STACK_AND_HEAP + 1000;
        let threads = |left| threads_with_room(left, 1000);
        assert_eq!(threads(2 * a_thread - 1), None);
        assert_eq!(threads(2 * a_thread), Some(1));
        assert_eq!(threads(4 * a_thread), Some(1));
        assert_eq!(threads(10 * a_thread), Some(4));
        assert_eq!(threads_with_room(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn lines_of_the_system_are_read() {
        let status = "Name:\tsatf\nVmPeak:\t  9 kB\nVmSize:\t   12345 kB\n";
        assert_eq!(kilobytes(status, "VmSize:"), Some(12_345 * 1024));
        assert_eq!(kilobytes(status, "VmNone:"), None);
    }
}
