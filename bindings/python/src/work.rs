//! Long work: without the interpreter, on threads of its own, watched by the thread that asked for it.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use satf::models::TrainingMonitor;
use satf::monitor::Monitor;

use crate::failure::{Failure, Kind, hear_panics};
use crate::talk::{hear_warnings, tell};

/// How long Ctrl-C waits to be heard, at most.
const TICK: Duration = Duration::from_millis(50);

/// How work is done, as the caller says.
#[derive(Default)]
#[pyclass(frozen, name = "Work", module = "satf._satf")]
pub(crate) struct Work {
    /// Number of threads; all cores if none.
    threads: Option<usize>,
    /// Called with stage, steps done and steps in all, every so often.
    progress: Option<Py<PyAny>>,
}

#[pymethods]
impl Work {
    #[new]
    #[pyo3(signature = (threads=None, progress=None))]
    fn new(threads: Option<usize>, progress: Option<Py<PyAny>>) -> PyResult<Self> {
        if threads.is_some_and(|threads| !(1..=1024).contains(&threads)) {
            let threads = threads.unwrap_or_default();
            let message = format!("threads = {threads}: expected 1 to 1024, or None for all cores");
            return Err(Failure::new(Kind::Config, message).into());
        }
        Ok(Work { threads, progress })
    }
}

/// What work tells of itself, and whether it is to stop.
#[derive(Default)]
pub(crate) struct Watch {
    is_cancelled: AtomicBool,
    stage: Mutex<(String, u64)>,
    done: AtomicU64,
}

impl Watch {
    /// The work is to stop.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn stage(&self) -> MutexGuard<'_, (String, u64)> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Monitor for Watch {
    fn begin(&self, stage: &str, total: u64) {
        *self.stage() = (stage.to_owned(), total);
        self.done.store(0, Ordering::Relaxed);
    }

    fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

impl TrainingMonitor for Watch {}

/// Does long work. The interpreter is free meanwhile; the calling thread hears signals (Ctrl-C ends the work as soon as it looks, and the
/// exception is raised here) and shows progress.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: Option<&Work>,
    task: impl FnOnce(&Watch) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    hear_panics();
    hear_warnings();
    let pool = Pools::of_process().take(work.and_then(|work| work.threads))?;
    let watch = Watch::default();
    let progress = work.and_then(|work| work.progress.as_ref());
    let outcome = py.detach(|| {
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(1);
            let (pool, watch) = (&pool, &watch);
            let worker = move || {
                let outcome = caught(|| pool.get().install(|| task(watch)));
                // The receiver waits for it.
                let _ = sender.send(outcome);
            };
            if let Err(error) = thread::Builder::new().name("satf".to_owned()).spawn_scoped(scope, worker) {
                return Err(Failure::new(Kind::Internal, format!("no thread can be started: {error}")));
            }
            let mut raised = None;
            loop {
                match receiver.recv_timeout(TICK) {
                    Ok(outcome) => return raised.map_or(outcome, |error| Err(Failure::Python(error))),
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(Failure::new(
                            Kind::Internal,
                            "the thread that worked ended without a word",
                        ));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
                if raised.is_none() {
                    raised = Python::attach(|py| look(py, watch, progress)).err();
                    if raised.is_some() {
                        watch.cancel();
                    }
                }
            }
        })
    });
    let outcome = outcome?;
    tell(py)?;
    Ok(outcome)
}

/// Hears signals and shows progress.
fn look(py: Python<'_>, watch: &Watch, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    py.check_signals()?;
    if let Some(progress) = progress {
        let (stage, total) = watch.stage().clone();
        progress.call1(py, (stage, watch.done.load(Ordering::Relaxed), total))?;
    }
    Ok(())
}

/// Does short work, which nobody needs to stop or watch: without the interpreter, and without a thread of its own to begin with.
pub(crate) fn run_short<T: Send>(
    py: Python<'_>,
    task: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    hear_panics();
    let pool = Pools::of_process().take(None)?;
    Ok(py.detach(|| caught(|| pool.get().install(task)))?)
}

/// Makes a failure of a panic.
fn caught<T>(task: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(task)).unwrap_or_else(|payload| Err(Failure::of_panic(&*payload)))
}

/// The pools of threads of one process. A child that was forked has none of its parent's threads, and gets pools of its own.
struct Pools {
    process: u32,
    /// All cores.
    usual: Mutex<Option<Arc<ThreadPool>>>,
    /// Pools of so many threads that nobody uses at the moment.
    free: Mutex<HashMap<usize, Vec<Arc<ThreadPool>>>>,
}

static POOLS: AtomicPtr<Pools> = AtomicPtr::new(std::ptr::null_mut());

impl Pools {
    #[allow(
        unsafe_code,
        reason = "a lock that another thread held when the process was forked would never open in the child"
    )]
    fn of_process() -> &'static Pools {
        let process = std::process::id();
        let current = POOLS.load(Ordering::Acquire);
        // SAFETY: it is null or comes from `Box::leak` below, and is never freed.
        if let Some(pools) = unsafe { current.as_ref() }.filter(|pools| pools.process == process) {
            return pools;
        }
        let own: &'static mut Pools =
            Box::leak(Box::new(Pools { process, usual: Mutex::default(), free: Mutex::default() }));
        let own: *mut Pools = own;
        let placed = POOLS.compare_exchange(current, own, Ordering::AcqRel, Ordering::Acquire);
        // SAFETY: both come from `Box::leak`. Whoever comes second uses what the first placed; that of the parent stays where it is.
        unsafe { &*placed.map_or_else(|first| first, |_| own) }
    }

    /// A pool of so many threads, or the one with all cores. Calls that name a number have a pool each, so that they run side by side.
    fn take(&'static self, threads: Option<usize>) -> Result<Taken, Failure> {
        let Some(threads) = threads else {
            let mut usual = self.usual.lock().unwrap_or_else(PoisonError::into_inner);
            let pool = match &*usual {
                Some(pool) => Arc::clone(pool),
                None => Arc::clone(usual.insert(new_pool(0)?)),
            };
            return Ok(Taken { pool, returned_to: None });
        };
        let kept = self.free().get_mut(&threads).and_then(Vec::pop);
        let pool = kept.map_or_else(|| new_pool(threads), Ok)?;
        Ok(Taken { pool, returned_to: Some((self, threads)) })
    }

    fn free(&self) -> MutexGuard<'_, HashMap<usize, Vec<Arc<ThreadPool>>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_pool(threads: usize) -> Result<Arc<ThreadPool>, Failure> {
    let built = ThreadPoolBuilder::new().num_threads(threads).build();
    built.map(Arc::new).map_err(|error| {
        let hint = "raise the limits of this process (ulimit -v for address space, ulimit -u for threads)";
        Failure::new(Kind::Internal, format!("no threads can be started: {error}; hint: {hint}"))
    })
}

/// A pool in use.
struct Taken {
    pool: Arc<ThreadPool>,
    returned_to: Option<(&'static Pools, usize)>,
}

impl Taken {
    fn get(&self) -> &ThreadPool {
        &self.pool
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some((pools, threads)) = self.returned_to {
            pools.free().entry(threads).or_default().push(Arc::clone(&self.pool));
        }
    }
}
