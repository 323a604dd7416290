//! Most popular: every history gets the same ranking, by how often items occur in the log.

use serde::{Deserialize, Serialize};

use super::array::Array;
use super::batch::{check_history, score_each};
use super::tensors::{Shares, StoredTensors, Tensor, TensorError};
use super::workspace::{Scores, Workspace};
use super::{Learner, ModelError, Recommender, TrainingMonitor, UserData};
use crate::interactions::ItemIndex;
use crate::prepare::{Histories, History};

/// The popularity baseline `mp`. It has nothing to set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PopularityConfig {}

impl PopularityConfig {
    /// The model's name.
    pub const NAME: &'static str = "mp";
}

impl Learner for PopularityConfig {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn never_quantized(&self) -> Option<&'static str> {
        Some(super::recommender::NO_ITEM_FACTORS)
    }

    fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }

    fn fit(
        &self,
        histories: &Histories,
        _monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        self.check()?;
        Ok(Box::new(Popularity::fit(histories)))
    }

    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        Ok(Box::new(Popularity { counts: tensors.per_item("counts")? }))
    }
}

/// The score of item `j` is `c_j`, its number of rows in the training log, whatever the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    counts: Array<f32>,
}

impl Popularity {
    /// Counts the rows of every item. Counts above 2^24 are rounded to single precision.
    pub fn fit(histories: &Histories) -> Self {
        Popularity { counts: histories.popularity().into_iter().map(|count| count as f32).collect() }
    }
}

impl Recommender for Popularity {
    fn num_items(&self) -> usize {
        self.counts.len()
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        score_each(
            self.num_items(),
            histories,
            scores,
            || (),
            |(), _, row| row.copy_from_slice(&self.counts),
        );
    }

    fn score_one<'w>(&self, history: History<'_>, workspace: &'w mut Workspace) -> Scores<'w> {
        check_history(self.num_items(), history);
        let scores = workspace.dense(self.num_items());
        scores.copy_from_slice(&self.counts);
        Scores::Dense(scores)
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.counts)
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        vec![Tensor::list("counts", &*self.counts)]
    }

    fn shares(&self, history: History<'_>, item: ItemIndex) -> Shares {
        Shares::of_none(&history, f64::from(self.counts[item.get()]))
    }

    fn user_data(&self) -> UserData {
        UserData::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_row_counts() {
        let model = Popularity::fit(&Histories::from_sequences(4, &[vec![1, 1, 0], vec![1, 3]]));
        let mut scores = [f32::NAN; 8];
        model.score_batch(&[History::default(), History::new(&[ItemIndex(1)])], &mut scores);
        assert_eq!(scores.map(|score| score as u32), [1, 3, 0, 1, 1, 3, 0, 1]);
    }

    #[test]
    fn unknown_fields_are_refused() {
        assert!(toml::from_str::<PopularityConfig>("").is_ok());
        assert!(toml::from_str::<PopularityConfig>("power = 2").is_err());
    }
}
