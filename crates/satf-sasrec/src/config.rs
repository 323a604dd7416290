//! The configuration of the model.

use serde::{Deserialize, Serialize};

use satf::models::{
    Fault, Learner, ModelError, Recommender, StoredTensors, TensorError, TrainingMonitor, positions_on,
};
use satf::prepare::Histories;

use crate::loss::{Loss, Objective};
use crate::memory;
use crate::model::{NEVER_QUANTIZED, SasRec};
use crate::parameters::{Array, Sizes};
use crate::training;

/// The model `sasrec`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SasRecConfig {
    /// What training minimises: `ce` (default), `sampled-ce` for very large catalogues, or `bce` as in the paper.
    pub loss: Loss,
    /// Items drawn for every batch with `sampled-ce`: 1 to 1,000,000 (default 1024).
    pub negatives: usize,
    /// Blocks of attention and feed-forward: 1 to 64 (default 2).
    pub blocks: usize,
    /// Heads of the attention; they divide `hidden` (default 1).
    pub heads: usize,
    /// Width of embeddings and hidden states: 1 to 8192 (default 128).
    pub hidden: usize,
    /// Share of values dropped in training, of embeddings, attention weights and feed-forward: 0 to 0.95 (default 0.4).
    pub dropout: f64,
    /// Step size of Adam: above 0, at most 1 (default 0.001).
    pub learning_rate: f64,
    /// Steps over which the step size grows to `learning_rate`, in a line (default 0).
    pub warmup_steps: usize,
    /// Users of a batch: at least 1 (default 256).
    pub batch_size: usize,
    /// Passes over all users: at least 1 (default 20).
    pub epochs: usize,
    /// Early stopping looks at the model after every so many epochs, and after the last: at least 1 (default 1).
    pub evaluate_every: usize,
    /// A gradient longer than this is scaled to it: above 0 (default: none is).
    pub clip_norm: Option<f64>,
    /// Newest items of a history that are read: at least 1 (default 50). More than 256 counts at most as one more than the longest
    /// history has.
    pub max_len: usize,
    /// Seed of the start, the batches, dropout and negatives (default 0).
    pub seed: u64,
    /// Most bytes training may take at its peak (default: 8 GiB).
    pub memory_bytes: Option<u64>,
}

/// What [`SasRecConfig::memory_bytes`] means if it is not given.
const DEFAULT_MEMORY_BYTES: u64 = 8 << 30;

impl Default for SasRecConfig {
    fn default() -> Self {
        SasRecConfig {
            loss: Loss::Ce,
            negatives: 1024,
            blocks: 2,
            heads: 1,
            hidden: 128,
            dropout: 0.4,
            learning_rate: 1e-3,
            warmup_steps: 0,
            batch_size: 256,
            epochs: 20,
            evaluate_every: 1,
            clip_norm: None,
            max_len: 50,
            seed: 0,
            memory_bytes: None,
        }
    }
}

impl SasRecConfig {
    /// The model's name.
    pub const NAME: &'static str = "sasrec";

    pub(crate) fn sizes(&self, items: usize) -> Sizes {
        let &SasRecConfig { max_len, hidden, blocks, heads, .. } = self;
        Sizes { items, max_len, hidden, blocks, heads }
    }

    /// The same with as many positions as these histories can use.
    fn on(&self, histories: &Histories) -> Self {
        SasRecConfig { max_len: positions_on(histories, self.max_len), ..self.clone() }
    }

    pub(crate) fn objective(&self) -> Objective {
        Objective { loss: self.loss, negatives: self.negatives }
    }

    /// The step size of a step, counted from 0.
    pub(crate) fn learning_rate_at(&self, step: u64) -> f64 {
        let warm = (step + 1) as f64 / self.warmup_steps.max(1) as f64;
        self.learning_rate * warm.min(1.0)
    }
}

impl Learner for SasRecConfig {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn check(&self) -> Result<(), ModelError> {
        let mut faults = Vec::new();
        let counts = [
            ("negatives", self.negatives, 1_000_000),
            ("blocks", self.blocks, 64),
            ("hidden", self.hidden, 8192),
            ("batch_size", self.batch_size, 1_000_000),
            ("epochs", self.epochs, 1_000_000),
            ("evaluate_every", self.evaluate_every, 1_000_000),
        ];
        for (field, value, most) in counts {
            if !(1..=most).contains(&value) {
                faults.push(Fault::new(field, value, format!("1 to {most}")));
            }
        }
        if self.max_len == 0 {
            faults.push(Fault::new("max_len", 0, "at least 1"));
        }
        if self.heads == 0 || !self.hidden.is_multiple_of(self.heads) {
            let expected = format!("a number that divides hidden, which is {}", self.hidden);
            faults.push(Fault::new("heads", self.heads, expected));
        }
        if !(0.0..=0.95).contains(&self.dropout) {
            faults.push(Fault::new("dropout", self.dropout, "0 to 0.95"));
        }
        if !(self.learning_rate > 0.0 && self.learning_rate <= 1.0) {
            faults.push(Fault::new("learning_rate", self.learning_rate, "above 0, at most 1"));
        }
        if let Some(norm) = self.clip_norm.filter(|norm| !(*norm > 0.0 && norm.is_finite())) {
            faults.push(Fault::new("clip_norm", norm, "above 0, or nothing to leave gradients as they are"));
        }
        ModelError::from_faults(Self::NAME, faults)
    }

    fn check_on(&self, histories: &Histories) -> Result<(), ModelError> {
        self.check()?;
        if histories.iter().all(|history| history.len() < 2) {
            let reason = "no user has two items, so there is nothing to predict".to_owned();
            return Err(ModelError::Data { model: Self::NAME, reason });
        }
        let items = histories.num_items();
        if self.loss == Loss::SampledCe && self.negatives >= items {
            let expected =
                format!("fewer than the {items} items of the log, or loss = ce, which costs less then");
            let faults = vec![Fault::new("negatives", self.negatives, expected)];
            return ModelError::from_faults(Self::NAME, faults);
        }
        let (needed, allowed) = (
            memory::needed(&self.on(histories), histories),
            self.memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES),
        );
        if needed <= allowed {
            return Ok(());
        }
        Err(ModelError::Memory {
            model: Self::NAME,
            what: format!(
                "{items} items, {} blocks {} wide and batches of {}",
                self.blocks, self.hidden, self.batch_size
            ),
            needed,
            allowed,
            hint: "lower hidden, blocks or batch_size, or raise memory_bytes",
        })
    }

    fn never_quantized(&self) -> Option<&'static str> {
        Some(NEVER_QUANTIZED)
    }

    fn iterations_key(&self) -> Option<&'static str> {
        Some("epochs")
    }

    fn fit(
        &self,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        self.check_on(histories)?;
        Ok(Box::new(training::train(&self.on(histories), histories, monitor)?))
    }

    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        // A network has as many positions as its log could use, which may be fewer than were asked for.
        let stored = tensors.find(Array::PositionEmbeddings.name()).and_then(|array| array.shape.first());
        let max_len = stored.map_or(self.max_len, |&positions| positions.clamp(1, self.max_len.max(1)));
        let sizes = Sizes { max_len, ..self.sizes(tensors.num_items()) };
        Ok(Box::new(SasRec::restore(sizes, tensors)?))
    }
}

#[cfg(test)]
// Values are equal to the last bit or the test fails.
#[allow(clippy::float_cmp)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_are_named_at_once() {
        let config = SasRecConfig {
            negatives: 0,
            blocks: 0,
            heads: 3,
            hidden: 10_000,
            dropout: 1.0,
            learning_rate: f64::NAN,
            batch_size: 0,
            epochs: 0,
            evaluate_every: 0,
            clip_norm: Some(-1.0),
            max_len: 0,
            ..Default::default()
        };
        let Err(ModelError::Configuration { faults, .. }) = config.check() else { panic!("no fault found") };
        assert_eq!(faults.len(), 11);
        assert_eq!(faults[6].to_string(), "max_len = 0: expected at least 1");
        assert_eq!(faults[7].to_string(), "heads = 3: expected a number that divides hidden, which is 10000");
    }

    #[test]
    fn memory_is_bounded_before_anything_is_allocated() {
        let log = Histories::from_sequences(40, &[vec![0, 1, 2, 3], (0..30).collect(), vec![5; 12]]);
        let needed = |config: SasRecConfig| match config.check_on(&log) {
            Err(ModelError::Memory { needed, .. }) => needed,
            other => panic!("{other:?}"),
        };
        let tight = SasRecConfig { memory_bytes: Some(1000), ..Default::default() };
        let exact = needed(tight.clone());
        SasRecConfig { memory_bytes: Some(exact), ..Default::default() }.check_on(&log).unwrap();
        assert!(needed(SasRecConfig { memory_bytes: Some(exact - 1), ..Default::default() }) == exact);
        // Each of these takes more.
        for larger in [
            SasRecConfig { hidden: 129, ..tight.clone() },
            SasRecConfig { blocks: 3, ..tight.clone() },
            SasRecConfig { max_len: 500, ..tight.clone() },
        ] {
            assert!(needed(larger.clone()) > exact, "{larger:?}");
        }
        assert!(needed(SasRecConfig { batch_size: 1, ..tight }) < exact);
        let absurd = SasRecConfig { hidden: 8192, blocks: 64, max_len: 100_000, ..Default::default() };
        assert!(needed(absurd) > 1 << 40);
    }

    #[test]
    fn positions_that_no_history_reaches_take_no_memory() {
        let log = Histories::from_sequences(40, &[vec![0, 1, 2, 3], (0..30).collect()]);
        let long: Vec<u32> = (0..300).map(|at| at % 40).collect();
        let longer = Histories::from_sequences(40, &[vec![0, 1, 2, 3], long]);
        let on =
            |log: &Histories, max_len: usize| SasRecConfig { max_len, ..Default::default() }.on(log).max_len;
        for (asked, on_short, on_long) in [
            (1, 1, 1),
            (50, 50, 50),
            (256, 256, 256),
            (300, 256, 300),
            (100_000, 256, 301),
            (usize::MAX, 256, 301),
        ] {
            assert_eq!((on(&log, asked), on(&longer, asked)), (on_short, on_long), "{asked}");
        }
    }

    #[test]
    fn as_many_negatives_as_items_are_refused() {
        let log = Histories::from_sequences(4, &[vec![0, 1, 2, 3]]);
        let config = SasRecConfig { loss: Loss::SampledCe, negatives: 4, ..Default::default() };
        let error = config.check_on(&log).unwrap_err().to_string();
        assert!(error.contains("negatives = 4") && error.contains("loss = ce"), "{error}");
        SasRecConfig { negatives: 3, ..config }.check_on(&log).unwrap();
    }

    #[test]
    fn a_configuration_reads_as_it_is_written() {
        let config = SasRecConfig { loss: Loss::SampledCe, clip_norm: Some(2.0), ..Default::default() };
        let text = toml::to_string(&config).unwrap();
        assert!(text.contains("loss = \"sampled-ce\""), "{text}");
        assert_eq!(toml::from_str::<SasRecConfig>(&text).unwrap(), config);
        assert_eq!(toml::from_str::<SasRecConfig>("").unwrap(), SasRecConfig::default());
        assert!(toml::from_str::<SasRecConfig>("width = 3").is_err());
    }

    #[test]
    fn the_step_size_grows_in_a_line_and_then_stays() {
        let config = SasRecConfig { learning_rate: 0.4, warmup_steps: 4, ..Default::default() };
        let rates: Vec<f64> = (0..6).map(|step| config.learning_rate_at(step)).collect();
        let expected = [0.1, 0.2, 0.3, 0.4, 0.4, 0.4];
        assert!(
            rates.iter().zip(expected).all(|(rate, expected)| (rate - expected).abs() < 1e-12),
            "{rates:?}"
        );
        assert_eq!(SasRecConfig::default().learning_rate_at(0), 1e-3);
    }
}
