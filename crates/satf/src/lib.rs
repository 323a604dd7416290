//! `satf` recommends the next item. It learns from ordered histories (events of a user, an item and a time) and says what comes next, on a
//! CPU and without deep learning.
//!
//! ```
#![doc = include_str!("../examples/recommend.rs")]
//! ```
//!
//! In short: [`Model::fit`] learns from a log, [`Model::history`] makes a history of a list of your ids, and [`Model::recommend`] says what
//! comes next. An [`Answer`] has items by your ids, best first.
//!
//! # Where to go
//!
//! | what you have or want | where it is |
//! |---|---|
//! | events in a list | [`Interactions::from_events`] |
//! | events one by one, in Arrow record batches, in files, in a stream | [`LogBuilder`]; for files alone [`data::read_log`] |
//! | a model | [`Model::fit`], with options [`Model::fit_with`]; the models are those of [`models`] |
//! | a model that follows events as they come, and forgets | [`Counts`], [`Model::of_counts`] |
//! | to keep it | [`Model::save`], [`Model::load`] |
//! | a history: a list of ids | [`Model::history`]; with times [`Model::history_with_times`]; from files [`data::UserHistories`] |
//! | what comes next | [`Model::recommend`]; filters, boosts and explanations are parts of the [`Request`] |
//! | the same for many histories | [`Model::recommend_batch`], [`recommend_stream`] |
//! | the same in a server | [`recommend`](mod@recommend), under "In a server": [`Model::prepare`] and one workspace per thread |
//! | items similar to another one | [`Model::similar_items`] |
//! | to know how good a model is | [`experiment`], and what it is made of: [`prepare`], [`evaluate`](mod@evaluate) |
//! | better settings | [`tune`] |
//! | a model of your own | [`models`] |
//! | a log to play with | [`generate`] |
//!
//! Users and items go by your own ids, integers or strings ([`AsId`]), in everything you pass in and get back. Inside, they are indices
//! ([`UserIndex`], [`ItemIndex`]) into a catalogue of ids ([`Ids`]).
//!
//! Every step has an error of its own: [`DataError`] for events that cannot be read, [`FitError`] for a model that cannot be trained,
//! [`ModelFileError`] for files of models, [`RecommendError`] for requests, [`ExperimentError`] and [`TuneError`] for experiments and
//! searches. All are listed below under "Re-exports".
//!
//! # How it fits together
//!
//! Data flows one way: files or memory ([`data`]) become a log ([`interactions`]), it is prepared and split ([`prepare`]), models learn
//! from histories ([`models`]), [`evaluate`](mod@evaluate) and [`experiment`] judge them, [`tune`] searches for their best configurations, and a model is
//! kept ([`model_file`]) and used ([`recommend`]).

pub mod byte_size;
pub mod choice;
pub mod counts;
pub mod data;
pub mod escape;
pub mod evaluate;
pub mod experiment;
#[doc(hidden)]
pub mod factorize;
pub mod fault;
pub mod generate;
pub mod interactions;
#[doc(hidden)]
pub mod linalg;
pub mod model_file;
pub mod models;
pub mod monitor;
pub mod numbers;
pub mod prepare;
pub mod ranking;
pub mod recommend;
#[doc(hidden)]
pub mod tensor;
pub mod tune;
mod unique_keys;

#[doc(inline)]
pub use counts::{Counts, CountsOptions};
#[doc(inline)]
pub use data::{EventTime, Lists, ListsBuilder, LogBuilder, ReadOptions, read_log};
#[doc(inline)]
pub use experiment::Protocol;
#[doc(inline)]
pub use interactions::{
    AsId, History, Id, Ids, Interactions, ItemIndex, OwnedHistory, OwnedId, Timestamp, UserIndex,
};
#[doc(inline)]
pub use models::{DEFAULT_MODEL, Registry};
#[doc(inline)]
pub use prepare::{Histories, TiePolicy};
#[doc(inline)]
pub use recommend::{
    Answer, Explanation, FitError, FitOptions, Model, Prepared, Recommendation, Request, recommend_stream,
};

// Every error that a function of this crate returns, for whoever tells them apart.
#[doc(no_inline)]
pub use {
    counts::CountsError,
    data::{DataError, HistoryTextError},
    evaluate::{EvaluateError, ListsError, MergeError, OrderError, PerEventError},
    experiment::{ExperimentError, SettingsError},
    generate::GenerateError,
    interactions::MixedClocks,
    model_file::{ModelFileError, StatisticsError},
    models::{ConfigError, ModelError, TensorError, UnknownPreset},
    monitor::Cancelled,
    prepare::{OffsetError, OtherHoldout, SplitError},
    recommend::{RecommendError, StreamError},
    tune::TuneError,
};
