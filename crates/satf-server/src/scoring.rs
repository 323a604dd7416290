//! Where answers are computed.
//!
//! What takes microseconds is computed on the thread that read the request. Everything else goes to computing threads through a queue of
//! bounded length: when it is full, the answer is "503, try again" at once, and nothing is queued. A computing thread takes all requests
//! that wait for the same model together: for a model with dense factors, many histories cost little more than one.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

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
}

#[derive(Default)]
struct State {
    work: VecDeque<Work>,
    is_closed: bool,
}

/// A request and who waits for its answer.
type Asked = (Box<Query>, oneshot::Sender<Written>);

enum Work {
    /// One request, which may be scored together with others.
    One(Box<Query>, oneshot::Sender<Written>),
    /// Anything else.
    Task(Box<dyn FnOnce(&mut Workspace) + Send>),
}

impl Scorer {
    /// Starts the threads. An error if the system gives none.
    pub(crate) fn start(threads: usize, most: usize) -> std::io::Result<Self> {
        let queue = Arc::new(Queue { state: Mutex::default(), is_work: Condvar::new(), most });
        for number in 0..threads {
            let queue = Arc::clone(&queue);
            // A pool of one thread: what the library would share out among threads stays on this one, since others have work of their own.
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(1)
                .thread_name(move |_| format!("satf-score-{number}"))
                .build()
                .map_err(std::io::Error::other)?;
            pool.spawn(move || queue.run());
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
        self.queue.push(Work::One(Box::new(query), sender))?;
        receiver.await.unwrap_or_else(|_| Err(broken()))
    }

    /// Computes anything that yields an answer.
    pub(crate) async fn compute(
        &self,
        compute: impl FnOnce(&mut Workspace) -> Written + Send + 'static,
    ) -> Written {
        let (sender, receiver) = oneshot::channel();
        self.queue.push(Work::Task(Box::new(move |workspace| {
            // Whoever asked may be gone.
            if !sender.is_closed() {
                let _ = sender.send(compute(workspace));
            }
        })))?;
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
    serde_json::to_vec(response)
        .map_err(|error| ApiError::internal(format!("the answer cannot be written: {error}")))
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, work: Work) -> Result<(), ApiError> {
        let mut state = self.lock();
        if state.work.len() >= self.most {
            return Err(ApiError::overloaded("too many requests wait to be computed"));
        }
        state.work.push_back(work);
        drop(state);
        self.is_work.notify_one();
        Ok(())
    }

    fn run(&self) {
        let mut workspace = Workspace::new();
        while let Some((first, others)) = self.next() {
            // A panic of a model costs those who asked an answer, and nobody else anything.
            let outcome = catch_unwind(AssertUnwindSafe(|| match first {
                Work::Task(task) => task(&mut workspace),
                Work::One(query, sender) => answer(query, sender, others, &mut workspace),
            }));
            if outcome.is_err() {
                workspace = Workspace::new();
            }
        }
    }

    /// What to do next, and what can be done together with it.
    fn next(&self) -> Option<(Work, Vec<Asked>)> {
        let mut state = self.lock();
        let first = loop {
            match state.work.pop_front() {
                Some(work) => break work,
                None if state.is_closed => return None,
                None => state = self.is_work.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        let mut others = Vec::new();
        if let Work::One(query, _) = &first
            && !query.served.is_quick()
        {
            let fits = |work: &Work| matches!(work, Work::One(other, _) if Arc::ptr_eq(&other.served, &query.served));
            while others.len() + 1 < TOGETHER && state.work.front().is_some_and(fits) {
                if let Some(Work::One(query, sender)) = state.work.pop_front() {
                    others.push((query, sender));
                }
            }
        }
        Some((first, others))
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
