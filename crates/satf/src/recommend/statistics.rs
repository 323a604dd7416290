//! A model that keeps what it learned from.

use super::Model;
use crate::counts::{Counts, CountsOptions};
use crate::interactions::{Clock, Interactions};
use crate::model_file::{Events, StatisticsError};
use crate::models::UserData;
use crate::monitor::Monitor;
use crate::prepare::{Histories, TiePolicy};

/// # Statistics
///
/// A model that was fitted with [`FitOptions::with_statistics`](super::FitOptions) keeps the events of its log, ids of users and times
/// included, and so does its file. They are all it takes to learn on: events are added and forgotten, and the model is made anew,
/// to the bit as if it had been trained on what is left.
///
/// ```
/// use satf::{Counts, FitOptions, Interactions, Model};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (path, other) = (folder.path().join("shop.satf"), folder.path().join("other.satf"));
/// let options = FitOptions { with_statistics: true, ..FitOptions::default() };
/// let old = [("ann", "tent", 1), ("ann", "stove", 2), ("bob", "tent", 3), ("bob", "mug", 4)];
/// Model::fit_with(&Interactions::from_events(old)?, &options, &())?.save(&path)?;
///
/// let mut counts = Model::load(&path)?.counts()?;
/// counts.add("cleo", "tent", satf::Timestamp::from_seconds(5))?;
/// counts.forget_user("bob");
/// Model::of_counts_with(&counts, &options, &())?.save(&path)?;
///
/// let without_bob = [("ann", "tent", 1), ("ann", "stove", 2), ("cleo", "tent", 5)];
/// Model::fit_with(&Interactions::from_events(without_bob)?, &options, &())?.save(&other)?;
/// assert_eq!(std::fs::read(&path)?, std::fs::read(&other)?);
/// # Ok(())
/// # }
/// ```
impl Model {
    /// What the model, and with it its file, holds of single users.
    pub fn user_data(&self) -> UserData {
        match &self.manifest.statistics {
            Some(kept) => UserData::Events { users: kept.users, events: kept.events },
            None => self.recommender().user_data(),
        }
    }

    /// Keeps the histories that the model learned from, to be stored with it.
    ///
    /// # Panics
    /// If they have other items.
    pub fn keep_statistics(&mut self, histories: Histories) {
        assert_eq!(self.catalog(), histories.catalog(), "items of the model and of its histories");
        self.manifest.statistics = Some(Events::describe(&histories));
        self.events = Some(Events::Here(Box::new(histories)));
    }

    /// Whether the events it learned from are kept.
    pub fn has_statistics(&self) -> bool {
        self.manifest.statistics.is_some()
    }

    /// The events that it learned from, user by user.
    pub fn log(&self) -> Result<Interactions, StatisticsError> {
        match (&self.events, &self.manifest.statistics) {
            (Some(events), Some(kept)) => events.log(kept, self.catalog(), self.item_counts()),
            _ => Err(StatisticsError::None),
        }
    }

    /// An error if it holds the events that it learned from, and they are not what was written, or contradict the rest of its file.
    /// [`Model::load`] does not look at them: who only recommends has no use for them.
    pub fn check_statistics(&self) -> Result<(), StatisticsError> {
        match (&self.events, &self.manifest.statistics) {
            (Some(events), Some(kept)) => events.check(kept, self.item_counts()),
            _ => Ok(()),
        }
    }

    /// What is counted of the events that it learned from. Nothing of that is stored but the events: pairs are counted now.
    pub fn counts(&self) -> Result<Counts, StatisticsError> {
        self.counts_with(&())
    }

    /// The same with a monitor of the work.
    pub fn counts_with(&self, monitor: &dyn Monitor) -> Result<Counts, StatisticsError> {
        let options = self.counts_options();
        let log = self.log()?;
        let (histories, _) = Histories::of_log(&log, TiePolicy::Shuffle, options.seed);
        drop(log);
        Ok(Counts::of_histories(&histories, options, monitor)?)
    }

    /// How the pairs of its model are counted; as D-SATF does by default if it counts none.
    fn counts_options(&self) -> CountsOptions {
        let default = CountsOptions::default();
        let key = |name: &str| self.manifest.configuration.get(name);
        let window = key("window").and_then(serde_json::Value::as_u64).map(|window| window as usize);
        let user_power = key("user_power").and_then(serde_json::Value::as_f64);
        CountsOptions {
            window: window.unwrap_or(default.window),
            user_power: user_power.unwrap_or(default.user_power),
            seed: self.manifest.seed.unwrap_or(default.seed),
            clock: Clock::Calendar,
        }
    }
}
