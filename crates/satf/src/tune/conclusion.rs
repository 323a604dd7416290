//! The end of a study: its best configuration is fitted to all before the test set, and scored there.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toml::Table;

use super::{Best, Study, TuneError, best_of, refit};
use crate::evaluate::{Estimate, EvaluateOptions, Metric};
use crate::experiment::{Warning, metrics_by_name};
use crate::models::{ModelEntry, TrainingMonitor};
use crate::prepare::{EventCounts, Partition};

/// What a study ends with.
pub struct Ending<'a> {
    /// The model.
    pub entry: &'a ModelEntry,
    /// Its keys that were not searched.
    pub settings: &'a Table,
    /// What was to be high on the validation set.
    pub metric: Metric,
    /// The test set, and all before it.
    pub test: &'a Partition,
    /// What is measured there.
    pub evaluation: EvaluateOptions,
    /// How the best configuration is used, for the head of its file.
    pub usage: Option<String>,
}

/// The result of a study, as its folder keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResult {
    /// The best configuration on the validation set.
    pub best: Best,
    /// Every key of it with its value, defaults included.
    pub configuration: Value,
    /// What was to be high.
    pub metric: Metric,
    /// Its scores on the test set, by name, in the order of reports.
    #[serde(with = "metrics_by_name")]
    pub test: Vec<(String, Estimate)>,
    /// Counts of the test set.
    pub events: EventCounts,
    /// How often the test set was looked at: the more often, the less its score says.
    pub test_part_scored: u64,
    /// Wall-clock seconds of training.
    pub train_seconds: f64,
    /// Wall-clock seconds of scoring.
    pub evaluate_seconds: f64,
    /// The release that made it.
    pub satf_version: String,
    /// The trials it comes of.
    pub trials: TrialCounts,
}

/// How many trials there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialCounts {
    /// All that were done.
    pub done: usize,
    /// Those of them that could not be scored.
    pub failed: usize,
}

impl Ending<'_> {
    /// The result of a study: as it was if the best is still the best, else the new best is fitted and scored on the test set. Either
    /// way the study keeps it. A monitor that keeps unfinished training does so in [`Study::refit_checkpoints`].
    pub fn conclude(
        &self,
        study: &Study,
        monitor: &dyn TrainingMonitor,
        warnings: &mut Vec<Warning>,
    ) -> Result<StudyResult, TuneError> {
        let trials = TrialCounts {
            done: study.trials().len(),
            failed: study.trials().iter().filter(|trial| trial.error.is_some()).count(),
        };
        let kept = study.result()?;
        let times_scored = kept.as_ref().and_then(|kept| kept["test_part_scored"].as_u64()).unwrap_or(0);
        let kept: Option<StudyResult> = kept.and_then(|kept| serde_json::from_value(kept).ok());
        let best = best_of(study.trials());
        let result = match kept {
            Some(kept) if best.as_ref() == Some(&kept.best) => {
                if kept.trials == trials {
                    return Ok(kept);
                }
                StudyResult { trials, ..kept }
            }
            _ => {
                if times_scored > 0 {
                    warnings.push(Warning::TestPartScoredBefore { times: times_scored });
                }
                self.refit(study, times_scored + 1, trials, monitor)?
            }
        };
        let text = self.best_toml(&result, study)?;
        study.finish(&serde_json::to_value(&result).unwrap_or_default(), &text)?;
        study.forget_refit_checkpoints();
        Ok(result)
    }

    fn refit(
        &self,
        study: &Study,
        test_part_scored: u64,
        trials: TrialCounts,
        monitor: &dyn TrainingMonitor,
    ) -> Result<StudyResult, TuneError> {
        let outcome = refit(self.entry, self.settings, study, self.test, &self.evaluation, monitor)?;
        Ok(StudyResult {
            best: outcome.best,
            configuration: outcome.configuration,
            metric: self.metric,
            test: outcome.evaluation.report(),
            events: outcome.evaluation.counts,
            test_part_scored,
            train_seconds: outcome.train_seconds,
            evaluate_seconds: outcome.evaluate_seconds,
            satf_version: env!("CARGO_PKG_VERSION").to_owned(),
            trials,
        })
    }

    /// The best configuration as a file of keys.
    fn best_toml(&self, result: &StudyResult, study: &Study) -> Result<String, TuneError> {
        let settings = settings_with(self.settings, &result.best.keys, study)?;
        let settings =
            toml::to_string(&settings).map_err(|error| TuneError::content(study.folder(), &error))?;
        let usage = self.usage.as_ref().map(|usage| format!("; {usage}")).unwrap_or_default();
        let StudyResult { metric, best, .. } = result;
        Ok(format!("# {metric} {:.4} on the validation set{usage}\n{settings}", best.value))
    }
}

/// Settings with the keys that a study found best.
pub(super) fn settings_with(
    settings: &Table,
    best: &Map<String, Value>,
    study: &Study,
) -> Result<Table, TuneError> {
    let mut settings = settings.clone();
    for (key, value) in best {
        let value = toml::Value::try_from(value)
            .map_err(|error| TuneError::content(study.folder(), &format!("{key} = {value}: {error}")))?;
        settings.insert(key.clone(), value);
    }
    Ok(settings)
}
