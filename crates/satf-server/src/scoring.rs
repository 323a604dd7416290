//! Where answers are computed.
//!
//! What takes microseconds is computed on the thread that read the request. Everything else goes to computing threads through a queue that
//! is bounded in length and in time: by what such work took before ([`Cost`]), the queue knows how long whoever comes now would wait. If
//! that is too long, the answer is "503, try again" at once, and nothing is queued. A computing thread takes all requests that wait for
//! the same model together: for a model with dense factors, many histories cost little more than one.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use satf::models::Workspace;
use tokio::sync::oneshot;

use crate::error::ApiError;
use crate::query::Query;

/// Histories that are scored together at most.
const TOGETHER: usize = 32;

/// An answer in JSON.
pub(crate) type Written = Result<Vec<u8>, ApiError>;

/// The computing threads.
pub(crate) struct Scorer {
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<State>,
    is_work: Condvar,
    most: usize,
    longest_wait: Duration,
}

struct State {
    work: VecDeque<Work>,
    /// What all of that will take, on one thread.
    waiting: Duration,
    /// What each thread does: since when, and how long it will take.
    running: Vec<Option<(Instant, Duration)>>,
    is_closed: bool,
}

impl State {
    /// How long whoever comes now would wait for a thread.
    fn wait(&self) -> Duration {
        let rest = |running: &Option<(Instant, Duration)>| {
            running.map_or(Duration::ZERO, |(since, whole)| whole.saturating_sub(since.elapsed()))
        };
        let first = self.running.iter().map(rest).min().unwrap_or_default();
        let threads = self.running.len().max(1) as u32;
        first + self.waiting.checked_div(threads).unwrap_or_default()
    }
}

/// What a kind of work takes, by what it took before: a mean in which the last eight count most.
#[derive(Debug, Default)]
pub(crate) struct Cost(AtomicU64);

impl Cost {
    /// So many pieces took so long together.
    pub(crate) fn record(&self, time: Duration, pieces: usize) {
        let each = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / pieces.max(1) as u64;
        let before = self.0.load(Ordering::Relaxed);
        let mean = if before == 0 { each } else { before - before / 8 + each / 8 };
        self.0.store(mean, Ordering::Relaxed);
    }

    /// What so many pieces will take; nothing as long as nobody knows.
    pub(crate) fn of(&self, pieces: usize) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed).saturating_mul(pieces as u64))
    }
}

/// A request and who waits for its answer.
type Asked = (Box<Query>, oneshot::Sender<Written>);

/// Work, with what it will take.
struct Work {
    cost: Duration,
    kind: WorkKind,
}

enum WorkKind {
    /// One request, which may be scored together with others.
    One(Box<Query>, oneshot::Sender<Written>),
    /// Anything else.
    Task(Box<dyn FnOnce(&mut Workspace) + Send>),
}

impl Scorer {
    /// Starts the threads. At most so many requests wait, and none that would wait longer than this. An error if the system gives no thread.
    pub(crate) fn start(threads: usize, most: usize, longest_wait: Duration) -> std::io::Result<Self> {
        let state = State {
            work: VecDeque::new(),
            waiting: Duration::ZERO,
            running: vec![None; threads],
            is_closed: false,
        };
        let queue = Arc::new(Queue { state: Mutex::new(state), is_work: Condvar::new(), most, longest_wait });
        for number in 0..threads {
            let queue = Arc::clone(&queue);
            // A pool of one thread: what the library would share out among threads stays on this one, since others have work of their own.
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(1)
                .thread_name(move |_| format!("satf-score-{number}"))
                .build()
                .map_err(std::io::Error::other)?;
            pool.spawn(move || queue.run(number));
        }
        Ok(Scorer { queue })
    }

    /// How much is waiting.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.lock().work.len()
    }

    /// Computes an answer, alone or together with others that wait.
    pub(crate) async fn answer(&self, query: Query) -> Written {
        let (sender, receiver) = oneshot::channel();
        let cost = query.served.costs.history.of(1);
        self.queue.push(Work { cost, kind: WorkKind::One(Box::new(query), sender) })?;
        receiver.await.unwrap_or_else(|_| Err(broken()))
    }

    /// Computes anything that yields an answer and will take about so long.
    pub(crate) async fn compute(
        &self,
        cost: Duration,
        compute: impl FnOnce(&mut Workspace) -> Written + Send + 'static,
    ) -> Written {
        let (sender, receiver) = oneshot::channel();
        let task = Box::new(move |workspace: &mut Workspace| {
            // Whoever asked may be gone.
            if !sender.is_closed() {
                let _ = sender.send(compute(workspace));
            }
        });
        self.queue.push(Work { cost, kind: WorkKind::Task(task) })?;
        receiver.await.unwrap_or_else(|_| Err(broken()))
    }
}

impl Drop for Scorer {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.is_work.notify_all();
    }
}

fn broken() -> ApiError {
    ApiError::internal("the answer could not be computed: the model gave up; the log says why")
}

/// A response in JSON.
pub(crate) fn write(response: &impl serde::Serialize) -> Written {
    satf::escape::to_json(response)
        .map_err(|error| ApiError::internal(format!("the answer cannot be written: {error}")))
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, work: Work) -> Result<(), ApiError> {
        let mut state = self.lock();
        if state.work.len() >= self.most || state.wait() > self.longest_wait {
            return Err(ApiError::overloaded("too many requests wait to be computed"));
        }
        state.waiting += work.cost;
        state.work.push_back(work);
        drop(state);
        self.is_work.notify_one();
        Ok(())
    }

    fn run(&self, number: usize) {
        let mut workspace = Workspace::new();
        while let Some((first, others)) = self.next(number) {
            // A panic of a model costs those who asked an answer, and nobody else anything.
            let outcome = catch_unwind(AssertUnwindSafe(|| match first {
                WorkKind::Task(task) => task(&mut workspace),
                WorkKind::One(query, sender) => answer(query, sender, others, &mut workspace),
            }));
            if outcome.is_err() {
                workspace = Workspace::new();
            }
        }
    }

    /// What a thread does next, and what can be done together with it.
    fn next(&self, number: usize) -> Option<(WorkKind, Vec<Asked>)> {
        let mut state = self.lock();
        let set_running = |state: &mut State, running| {
            if let Some(own) = state.running.get_mut(number) {
                *own = running;
            }
        };
        set_running(&mut state, None);
        let first = loop {
            match state.work.pop_front() {
                Some(work) => break work,
                None if state.is_closed => return None,
                None => state = self.is_work.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        let (mut others, mut cost) = (Vec::new(), first.cost);
        if let WorkKind::One(query, _) = &first.kind
            && !query.served.is_quick()
        {
            let fits = |work: &Work| matches!(&work.kind, WorkKind::One(other, _) if Arc::ptr_eq(&other.served, &query.served));
            while others.len() + 1 < TOGETHER && state.work.front().is_some_and(fits) {
                if let Some(Work { cost: own, kind: WorkKind::One(query, sender) }) = state.work.pop_front() {
                    cost += own;
                    others.push((query, sender));
                }
            }
        }
        state.waiting = state.waiting.saturating_sub(cost);
        set_running(&mut state, Some((Instant::now(), cost)));
        Some((first.kind, others))
    }
}

fn answer(
    query: Box<Query>,
    sender: oneshot::Sender<Written>,
    others: Vec<Asked>,
    workspace: &mut Workspace,
) {
    let asked = std::iter::once((query, sender)).chain(others);
    // Whoever asked may be gone.
    let (queries, senders): (Vec<_>, Vec<_>) = asked.filter(|(_, sender)| !sender.is_closed()).unzip();
    let references: Vec<&Query> = queries.iter().map(|query| &**query).collect();
    let answers = Query::answer_together(&references, workspace);
    for (sender, answer) in senders.into_iter().zip(answers) {
        let _ = sender.send(answer.and_then(|response| write(&response)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_follow_what_was_measured() {
        let cost = Cost::default();
        assert_eq!(cost.of(7), Duration::ZERO, "nobody knows yet");
        cost.record(Duration::from_micros(3_200), 32);
        assert_eq!(cost.of(3), Duration::from_micros(300));
        for _ in 0..60 {
            cost.record(Duration::from_micros(200), 1);
        }
        let each = cost.of(1).as_secs_f64() * 1e6;
        assert!((190.0..=200.0).contains(&each), "{each}");
    }

    #[test]
    fn whoever_would_wait_too_long_is_refused_at_once() {
        let long = Duration::from_secs(3_600);
        let scorer = Scorer::start(2, 100, Duration::from_millis(20)).unwrap();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = Mutex::new(released);
        let hold = move |_: &mut Workspace| {
            let _ = released.lock().unwrap().recv();
        };
        let task = |cost, task| scorer.queue.push(Work { cost, kind: WorkKind::Task(task) });
        // One thread is held for an hour, as far as the queue knows: the other one is free.
        task(long, Box::new(hold)).unwrap();
        while scorer.waiting() > 0 {
            std::thread::yield_now();
        }
        let (sender, done) = std::sync::mpsc::channel::<()>();
        task(Duration::from_millis(5), Box::new(move |_: &mut Workspace| sender.send(()).unwrap())).unwrap();
        done.recv().unwrap();
        // Both are held: whoever comes would wait for an hour.
        let (other_release, other_released) = std::sync::mpsc::channel::<()>();
        task(
            long,
            Box::new(move |_: &mut Workspace| {
                let _ = other_released.recv();
            }),
        )
        .unwrap();
        while scorer.waiting() > 0 {
            std::thread::yield_now();
        }
        let refused = task(Duration::ZERO, Box::new(|_: &mut Workspace| ())).unwrap_err();
        assert_eq!(refused.code, "overloaded");
        // As soon as one is free again, work is taken, up to what may wait: two threads, 20 ms each.
        drop(other_release);
        let (sender, done) = std::sync::mpsc::channel::<()>();
        while task(
            Duration::ZERO,
            Box::new({
                let sender = sender.clone();
                move |_: &mut Workspace| sender.send(()).unwrap()
            }),
        )
        .is_err()
        {
            std::thread::yield_now();
        }
        done.recv().unwrap();
        drop(release);
    }
}
