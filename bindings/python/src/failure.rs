//! Errors of the library as exceptions of the package.

use std::any::Any;
use std::error::Error;
use std::io;
use std::sync::{Mutex, Once, PoisonError};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use satf::data::{DataError, DataHint, Format, Role};
use satf::evaluate::{EvaluateError, OrderError, PerEventError};
use satf::experiment::{ExperimentError, SettingsError};
use satf::generate::GenerateError;
use satf::model_file::{ModelFileError, StatisticsError};
use satf::models::{ConfigError, ModelError};
use satf::monitor::Cancelled;
use satf::prepare::SplitError;
use satf::recommend::{FitError, RecommendError};
use satf::tune::TuneError;

/// Which exception of `satf._errors` it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    MissingFile,
    Config,
    Fit,
    ModelFile,
    Recommend,
    UnknownItem,
    Experiment,
    Tune,
    Internal,
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Kind::Data => "DataError",
            Kind::MissingFile => "MissingFileError",
            Kind::Config => "ConfigError",
            Kind::Fit => "FitError",
            Kind::ModelFile => "ModelFileError",
            Kind::Recommend => "RecommendError",
            Kind::UnknownItem => "UnknownItemError",
            Kind::Experiment => "ExperimentError",
            Kind::Tune => "TuneError",
            Kind::Internal => "InternalError",
        }
    }
}

/// Why something was not done, while the interpreter is not held.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An exception of the package.
    Of(Kind, String),
    /// The caller asked to stop.
    Stopped,
    /// An exception that Python raised.
    Python(PyErr),
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Failure::Of(kind, message.into())
    }

    /// An error of the library, unless it is a request to stop.
    fn of(kind: Kind, error: &(dyn Error + 'static)) -> Self {
        if Cancelled::is_cause_of(error) { Failure::Stopped } else { Failure::Of(kind, error.to_string()) }
    }

    /// The same with a hint of the library, which its text ends with, in other words.
    fn with_hint(self, words: Option<(String, String)>) -> Self {
        match (self, words) {
            (Failure::Of(kind, message), Some((library, python))) => {
                Failure::Of(kind, message.replace(&library, &python))
            }
            (failure, _) => failure,
        }
    }

    /// What a panic said, and where.
    pub(crate) fn of_panic(payload: &(dyn Any + Send)) -> Self {
        let said = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| payload.downcast_ref::<String>().cloned());
        let place = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
        Failure::Of(
            Kind::Internal,
            format!(
                "satf failed in a way it never should: {}{}; please report it with the data and the call that led to it",
                said.unwrap_or_else(|| "a panic without a message".to_owned()),
                place.map(|place| format!(" (at {place})")).unwrap_or_default()
            ),
        )
    }
}

/// Where the last panic happened.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Panics become exceptions: they are remembered and not printed, from the first call on.
pub(crate) fn hear_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string);
            *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = place;
        }));
    });
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Python(error) => error,
            Failure::Stopped => PyKeyboardInterrupt::new_err("stopped on request"),
            Failure::Of(kind, message) => Python::attach(|py| exception(py, kind, &message)),
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Python(error)
    }
}

/// An exception of the package.
fn exception(py: Python<'_>, kind: Kind, message: &str) -> PyErr {
    let made = py.import("satf._errors").and_then(|errors| errors.getattr(kind.class())?.call1((message,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

impl From<DataError> for Failure {
    fn from(error: DataError) -> Self {
        let kind = match &error {
            DataError::Io { source, .. } if is_missing(source) => Kind::MissingFile,
            DataError::NoRows { path: None } => return Failure::new(Kind::Data, "the log has no rows"),
            _ => Kind::Data,
        };
        let hint = error.hint().map(|hint| (hint.to_string(), in_python(hint)));
        Failure::of(kind, &error).with_hint(hint)
    }
}

/// A hint in the words of the package.
fn in_python(hint: DataHint) -> String {
    match hint {
        DataHint::GiveColumn(Role::Time) => {
            "columns={\"time\": ..} names it; where the order of the rows is the time, read_log(.., order_is_time=True)".to_owned()
        }
        DataHint::GiveColumn(role) => format!("columns={{\"{role}\": ..}} names it"),
        DataHint::ReadIdsAsText(role) => format!("read_log(.., {role}_type=\"string\") reads all these ids as text"),
        DataHint::GiveFormat => format!("read_log(.., format=..) says it (one of {})", Format::names()),
        DataHint::GiveTimeUnit => "read_log(.., time_unit=..) says it, such as \"seconds\" or \"milliseconds\"".to_owned(),
        DataHint::OrderIsTime => "read_log(.., order_is_time=True) reads it without its times".to_owned(),
        DataHint::GiveHeader => "if it is an event, read_log(.., header=False)".to_owned(),
        other => other.to_string(),
    }
}

impl From<ModelFileError> for Failure {
    fn from(error: ModelFileError) -> Self {
        let kind = match &error {
            ModelFileError::Io { source, .. } if is_missing(source) => Kind::MissingFile,
            _ => Kind::ModelFile,
        };
        let hint = error.hint().map(|hint| (hint.to_string(), "Model.save writes one".to_owned()));
        Failure::of(kind, &error).with_hint(hint)
    }
}

impl From<RecommendError> for Failure {
    fn from(error: RecommendError) -> Self {
        let kind = match &error {
            RecommendError::UnknownItem { .. } | RecommendError::UnknownId { .. } => Kind::UnknownItem,
            _ => Kind::Recommend,
        };
        Failure::of(kind, &error)
    }
}

impl From<FitError> for Failure {
    fn from(error: FitError) -> Self {
        match &error {
            FitError::Training(training) => Failure::of(kind_of_model(training), &error),
            _ => Failure::of(Kind::Config, &error),
        }
    }
}

fn kind_of_model(error: &ModelError) -> Kind {
    match error {
        ModelError::Configuration { .. } | ModelError::Variant { .. } => Kind::Config,
        _ => Kind::Fit,
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Failure::of(kind_of_model(&error), &error)
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        let kind = match &error {
            ExperimentError::Settings(_) | ExperimentError::Configuration(_) => Kind::Config,
            ExperimentError::Model(model) => kind_of_model(model),
            _ => Kind::Experiment,
        };
        Failure::of(kind, &error)
    }
}

impl From<TuneError> for Failure {
    fn from(error: TuneError) -> Self {
        Failure::of(Kind::Tune, &error)
    }
}

macro_rules! failures {
    ($($error:ty => $kind:ident),* $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Failure::of(Kind::$kind, &error)
            }
        }
    )*};
}

impl From<PerEventError> for Failure {
    fn from(error: PerEventError) -> Self {
        let words = "Run.save_per_event writes them, and satf evaluate --per-event".to_owned();
        let hint = error.hint().map(|hint| (hint.to_string(), words));
        Failure::of(Kind::Experiment, &error).with_hint(hint)
    }
}

failures!(
    ConfigError => Config,
    SettingsError => Config,
    StatisticsError => Fit,
    SplitError => Experiment,
    EvaluateError => Experiment,
    OrderError => Experiment,
    GenerateError => Config,
);

impl From<Cancelled> for Failure {
    fn from(_: Cancelled) -> Self {
        Failure::Stopped
    }
}
