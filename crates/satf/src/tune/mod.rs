//! The search for a model's best configuration, and a folder that survives whatever ends it.
//!
//! * A [`Space`] is a finite grid: values for each key, and constraints. The paper's grids are named spaces.
//! * A [`Grid`] is what is left of it on a log: points that break a constraint or that the model refuses are gone before
//!   anything is counted. Its points are *trainings*: keys that play no part in training (`rescaled`, the rank of a
//!   PureSVD) and the number of iterations are not searched one by one, a training scores all of them.
//! * A [`Sampler`] says which trainings to try: all, at random without replacement, or by TPE.
//! * A [`Study`] is the folder: what was asked, and one line per trial, safely on disk before the next trial begins.
//! * [`search`] brings them together. What is tried next depends on the seed and on finished trials by their number,
//!   never on the clock, the number of threads or the number of jobs; so a search that was killed and started
//!   again ends where an undisturbed one does.

mod conclusion;
mod constraint;
mod error;
mod grid;
mod runner;
mod sampler;
mod space;
mod space_fault;
mod study;
mod tpe;
mod trial;

pub use conclusion::{Ending, StudyResult, TrialCounts};
pub use error::{Damage, TuneError, TuneHint};
pub use grid::Grid;
pub use runner::{Progress, Refit, SearchOptions, refit, search};
pub use sampler::{Axis, Candidates, Observation, Proposals, Sampler};
pub use space::{Dimension, Space};
pub use space_fault::{ConstraintFault, RangeFault, SpaceFault};
pub use study::{Limits, State, Status, Study};
pub use trial::{Best, Score, Scoring, Trial, best_of};
