//! A trained model, from a file or not, judged on a holdout like any other.

use super::Model;
use crate::data::time::micros_of_date;
use crate::evaluate::{CatalogReport, EvaluateError, EvaluateOptions, Evaluation, evaluate_with_catalog};
use crate::experiment::Warning;
use crate::interactions::{Clock, Timestamp};
use crate::model_file::content_hash;
use crate::monitor::Monitor;
use crate::prepare::{Offset, Partition, iso};

/// Scores of a model that was not trained for them, and what to know about them.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedModel {
    /// The scores, event by event. They pair up with those of other models on the same holdout.
    pub evaluation: Evaluation,
    /// How its items and those of the training set go together.
    pub catalog: CatalogReport,
    /// What it learned from, as far as that matters here.
    pub exposure: Exposure,
}

/// Whether a model may have learned from the events that it predicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// It learned from the very training set of the holdout.
    SameTrainingSet,
    /// All it learned from happened before the first event.
    Earlier,
    /// The log it learned from went on after the first event.
    MayHaveSeen {
        /// Until when its log went.
        until: String,
        /// When the first event happened.
        first_event: String,
    },
    /// It does not say until when its log went.
    Unknown,
}

impl Exposure {
    /// What may mislead, of a model that is called so.
    pub fn warning(&self, label: &str) -> Option<Warning> {
        let label = label.to_owned();
        match self {
            Exposure::SameTrainingSet | Exposure::Earlier => None,
            Exposure::MayHaveSeen { until, first_event } => {
                let (until, first_event) = (until.clone(), first_event.clone());
                Some(Warning::MayHaveSeen { label, until, first_event })
            }
            Exposure::Unknown => Some(Warning::TrainingUnknown { label }),
        }
    }
}

impl Model {
    /// Scores the model as it is on a holdout; nothing is trained. It ranks the items of its own catalogue
    /// ([`evaluate_with_catalog`] has the rules), and may have learned from the events that it predicts: [`JudgedModel::exposure`] says what
    /// is known of that.
    pub fn evaluate(
        &self,
        partition: &Partition,
        options: &EvaluateOptions,
        monitor: &dyn Monitor,
    ) -> Result<JudgedModel, EvaluateError> {
        let (evaluation, catalog) =
            evaluate_with_catalog(self.recommender(), self.catalog(), partition, options, monitor)?;
        Ok(JudgedModel { evaluation, catalog, exposure: self.exposure(partition) })
    }

    fn exposure(&self, partition: &Partition) -> Exposure {
        if self.manifest().dataset.content_hash == content_hash(&partition.train) {
            return Exposure::SameTrainingSet;
        }
        let first = partition.holdout.events.iter().map(|event| event.time).min();
        let clock = partition.holdout.clock;
        match (self.learned_until(), first.filter(|_| clock == Clock::Calendar)) {
            (Some(until), Some(first)) if until < first => Exposure::Earlier,
            (Some(until), Some(first)) => {
                Exposure::MayHaveSeen { until: iso(until), first_event: iso(first) }
            }
            _ => Exposure::Unknown,
        }
    }

    /// The end of what it learned from: of its log, but for the newest part that was left out.
    fn learned_until(&self) -> Option<Timestamp> {
        let dataset = &self.manifest().dataset;
        let last = Timestamp(micros_of_date(dataset.statistics.as_ref()?.last_time.as_deref()?)?);
        match &dataset.left_out {
            None => Some(last),
            Some(offset) => offset.parse::<Offset>().ok()?.before(last),
        }
    }
}
