//! The end of a process for which there is no more memory.
//!
//! What is large and foreseeable is asked for in ways that may fail, and an error says what did not fit. But memory may run out
//! anywhere, and then the standard library aborts the process: no destructor runs, and temporary files stay behind. So the allocator
//! remembers that it was refused memory, and an abort that follows becomes an error like any other: a message, exit code 1, and nothing
//! half written. Nothing on this way asks for memory. An abort for any other reason stays one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The size of the last request that was refused; 0 if none was.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// The allocator of the system, which remembers what it refused: the binary's. Where another one allocates, an abort stays one.
#[derive(Debug)]
pub struct Remembering;

#[inline]
fn remember(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        REFUSED.store(size, Ordering::Relaxed);
    }
    block
}

#[allow(unsafe_code, reason = "an allocator cannot be written otherwise")]
// SAFETY: every call goes to the allocator of the system as it is, and every block comes from there.
unsafe impl GlobalAlloc for Remembering {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `alloc`.
        remember(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `alloc_zeroed`.
        remember(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the promises of `realloc`.
        remember(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Below so many bytes of address space, threads share one heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LITTLE_ROOM: u64 = 4 << 30;

/// Lets all threads share one heap where there is little room. The C library reserves 64 MiB per thread otherwise, even for one that only
/// waits for signals. Called before there is any other thread.
pub(crate) fn save_address_space() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if crate::threads::address_space_left().is_some_and(|left| left < LITTLE_ROOM) {
        #[allow(unsafe_code, reason = "the C library has no other way to be told")]
        // SAFETY: it sets a number, and no other thread is there to read it. Where it fails, nothing has changed.
        unsafe {
            nix::libc::mallopt(nix::libc::M_ARENA_MAX, 1);
        }
    }
}

/// Makes an error of an abort for want of memory, from now on.
#[cfg(unix)]
pub(crate) fn watch() -> std::io::Result<()> {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    let action = SigAction::new(SigHandler::Handler(end), SaFlags::SA_ONSTACK, SigSet::empty());
    #[allow(unsafe_code, reason = "there is no other way to hear of an abort")]
    // SAFETY: the handler runs on the thread that aborts, outside of the allocator, and takes neither memory nor a lock that this thread
    // may hold: see `end`.
    unsafe { sigaction(Signal::SIGABRT, &action) }?;
    Ok(())
}

/// Elsewhere an abort stays one, and the next run removes what it left.
#[cfg(not(unix))]
pub(crate) fn watch() -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
extern "C" fn end(_signal: std::ffi::c_int) {
    use std::io::{Cursor, Write};
    use std::sync::atomic::AtomicBool;

    use nix::libc;
    use satf::byte_size::ByteSize;

    static IS_ENDING: AtomicBool = AtomicBool::new(false);

    let bytes = REFUSED.load(Ordering::Relaxed);
    if bytes == 0 {
        // Another reason, or a signal from outside: as if nobody had listened, once this handler is over.
        #[allow(unsafe_code, reason = "signals have no other way to be set and sent")]
        // SAFETY: both may be called in a handler, and the process ends with what they do.
        unsafe {
            libc::signal(libc::SIGABRT, libc::SIG_DFL);
            libc::raise(libc::SIGABRT);
        }
        return;
    }
    if !IS_ENDING.swap(true, Ordering::Relaxed) {
        let is_clean = satf::data::discard_unfinished_if_free();
        let rest = if is_clean {
            "nothing half written is left"
        } else {
            "the next run removes what is half written"
        };
        let mut text = [0; 400];
        let mut line = Cursor::new(&mut text[..]);
        // A line that is too long is cut.
        let _ = writeln!(
            line,
            "\nerror: memory ran out, {} more were refused; {rest}; hint: give the program more memory (ulimit -v, the limit of \
             its container), or fewer --threads",
            ByteSize(bytes as u64)
        );
        let length = line.position() as usize;
        #[allow(unsafe_code, reason = "the usual ways to write take locks")]
        // SAFETY: the bytes are those of an array that lives on.
        unsafe {
            libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), length);
        }
    }
    #[allow(unsafe_code, reason = "the usual way to end runs code that may ask for memory")]
    // SAFETY: it ends the process and touches nothing of it.
    unsafe {
        libc::_exit(1)
    }
}
