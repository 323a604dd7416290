//! A model from a log, in one call.

use toml::{Table, Value};

use super::Model;
use crate::counts::Counts;
use crate::experiment::{SettingsError, SharedKeys};
use crate::interactions::Interactions;
use crate::models::{ConfigError, Configured, DEFAULT_MODEL, ModelError, Registry, TrainingMonitor};
use crate::prepare::{Histories, Statistics, TiePolicy};

/// Which model learns from a log, and how. The default is what [`Model::fit`] does.
///
/// ```
/// use satf::{FitOptions, Interactions, Model};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let log = Interactions::from_events([(1, 1, 10), (1, 2, 20), (2, 1, 30), (2, 2, 40)])?;
/// let options = FitOptions::new("transitions").set("window", 3).set("reverse", 0.2);
/// let model = Model::fit_with(&log, &options, &())?;
/// assert_eq!(model.manifest().configuration["window"], 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FitOptions {
    /// The name of the model (default [`DEFAULT_MODEL`]).
    pub model: String,
    /// Keys of the model and their values; others have their defaults.
    pub keys: Table,
    /// How events with equal times are ordered (default: shuffled).
    pub ties: TiePolicy,
    /// The seed of everything random (default 0): of ties, and of the model unless it has a `seed` among [`FitOptions::keys`].
    pub seed: u64,
    /// Where the model is found by its name (default: the models of this crate).
    pub registry: Registry,
    /// Whether the model keeps the events of the log, so that others can be added to them, or some forgotten (default: no). Its file then
    /// holds the ids of users and what each of them did.
    pub with_statistics: bool,
}

impl Default for FitOptions {
    fn default() -> Self {
        FitOptions {
            model: DEFAULT_MODEL.to_owned(),
            keys: Table::new(),
            ties: TiePolicy::default(),
            seed: 0,
            registry: Registry::default(),
            with_statistics: false,
        }
    }
}

impl FitOptions {
    /// A model with its defaults.
    pub fn new(model: impl Into<String>) -> Self {
        FitOptions { model: model.into(), ..FitOptions::default() }
    }

    /// The same with a value for one of the model's keys.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.keys.insert(key.into(), value.into());
        self
    }

    /// Whether a model can be had with these options, as far as that is known without a log: the model, configured and checked.
    pub fn configure(&self) -> Result<Configured, FitError> {
        if self.with_statistics && self.ties == TiePolicy::File {
            return Err(FitError::TiesOfFile);
        }
        let entry = self.registry.find(&self.model)?;
        let mut keys = self.keys.clone();
        SharedKeys { seed: self.seed, ..SharedKeys::default() }.add_to(&mut keys, &entry)?;
        Ok(entry.configure(&keys)?)
    }
}

/// Why no model could be trained on a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// The model is not known, or cannot be configured so.
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// A setting is not one that a model can have.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Statistics were asked for, and ties in the order of the file.
    #[error(
        "statistics cannot be kept of a log whose ties are in the order of its file: the order of events must follow from the events \
         themselves, or none could be added or forgotten; hint: order ties by {}", TiePolicy::Shuffle.name()
    )]
    TiesOfFile,
    /// It cannot learn from this log, or was asked to stop.
    #[error(transparent)]
    Training(#[from] ModelError),
}

impl Model {
    /// Learns from a whole log with the defaults: D-SATF, events with equal times shuffled, seed 0.
    ///
    /// It is the model that `satf train` makes of the same log, to the bit.
    ///
    /// ```
    /// use satf::{Interactions, Model, Request};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let log = Interactions::from_events([
    ///     ("ann", "tent", "2024-05-01"),
    ///     ("ann", "stove", "2024-05-02"),
    ///     ("bob", "tent", "2024-05-03"),
    ///     ("bob", "stove", "2024-05-05"),
    ///     ("cleo", "tent", "2024-05-06"),
    /// ])?;
    /// let model = Model::fit(&log)?;
    /// let next = model.recommend(&model.history(["tent"]), &Request::new(1))?;
    /// assert_eq!(next.items[0].item, "stove".into());
    /// # Ok(())
    /// # }
    /// ```
    pub fn fit(log: &Interactions) -> Result<Self, FitError> {
        Model::fit_with(log, &FitOptions::default(), &())
    }

    /// The same with another model, other keys, another order of ties, another seed, and a monitor of the work.
    ///
    /// [`Model::train`] learns from a part of a log.
    pub fn fit_with(
        log: &Interactions,
        options: &FitOptions,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Self, FitError> {
        let configured = options.configure()?;
        let (histories, _) = Histories::of_log(log, options.ties, options.seed);
        let mut model = Model::fit_configured(&configured, &histories, options, monitor)?;
        if options.with_statistics {
            model.keep_statistics(histories);
        }
        Ok(model)
    }

    /// The same from the histories of a whole log, in which ties were ordered as the options say ([`Histories::of_log`]): for those who need
    /// the histories besides. They are copied if the options want statistics.
    pub fn fit_histories(
        histories: &Histories,
        options: &FitOptions,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Self, FitError> {
        let mut model = Model::fit_configured(&options.configure()?, histories, options, monitor)?;
        if options.with_statistics {
            model.keep_statistics(histories.clone());
        }
        Ok(model)
    }

    fn fit_configured(
        configured: &Configured,
        histories: &Histories,
        options: &FitOptions,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Self, FitError> {
        let statistics = Statistics::of_histories(histories);
        let mut model = Model::train(configured, histories, monitor)?;
        model.set_dataset(options.seed, |dataset| {
            dataset.ties = Some(options.ties);
            dataset.statistics = Some(statistics);
        });
        Ok(model)
    }

    /// Learns with defaults from events that were counted: the model that [`Model::fit`] learns from the same events, to the bit of its
    /// file.
    pub fn of_counts(counts: &Counts) -> Result<Self, FitError> {
        Model::of_counts_with(counts, &FitOptions::default(), &())
    }

    /// The same with other options. The order of ties and its seed are those of the counts, whatever the options say.
    pub fn of_counts_with(
        counts: &Counts,
        options: &FitOptions,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Self, FitError> {
        let seed = counts.options().seed;
        let entry = options.registry.find(&options.model)?;
        let mut keys = options.keys.clone();
        SharedKeys { seed, ..SharedKeys::default() }.add_to(&mut keys, &entry)?;
        let configured = entry.configure(&keys)?;
        let histories = counts.histories();
        let recommender = configured.learner.fit_counted(counts, &histories, monitor)?;
        let mut model = Model::new(&configured, &histories, recommender);
        model.set_dataset(seed, |dataset| {
            dataset.ties = Some(TiePolicy::Shuffle);
            dataset.statistics = Some(Statistics::of_histories(&histories));
        });
        if options.with_statistics {
            model.keep_statistics(histories);
        }
        Ok(model)
    }
}
