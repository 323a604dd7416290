//! The training loop: epochs of batches of random users.

use std::sync::Arc;
use std::time::Instant;

use satf::models::{Iteration, ModelError, Recommender, Snapshot, Table, TrainingMonitor, variant};
use satf::monitor::{Monitor, check_cancelled};
use satf::prepare::Histories;
use serde::{Deserialize, Serialize};

use crate::SasRecConfig;
use crate::adam::{Adam, norm};
use crate::batch::Sequences;
use crate::checkpoint::Kept;
use crate::gradient::Gradient;
use crate::model::SasRec;
use crate::noise::Noise;
use crate::parameters::Parameters;
use crate::products::Meter;

/// Everything that changes while a network learns.
///
/// Random numbers are not part of it: they follow from seed, epoch and place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Progress {
    pub(crate) parameters: Parameters<f32>,
    pub(crate) adam: Adam,
    /// Epochs done, one after the other.
    pub(crate) epochs: Vec<Epoch>,
    /// Whether the monitor wanted no more.
    pub(crate) stopped: bool,
}

/// What was measured of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Epoch {
    seconds: f64,
    /// The mean over all rows.
    loss: f64,
    /// Share of the time of all threads that went into matrix products.
    product_share: f64,
    /// Floating point operations of these.
    operations: f64,
}

impl Epoch {
    /// What a monitor is told of the epoch of this number.
    fn report(&self, epoch: usize) -> Iteration {
        let Epoch { seconds, loss, product_share, operations } = *self;
        let measures = vec![
            ("loss", loss),
            ("product_share", product_share),
            ("operations", operations),
            ("gflops", operations / seconds / 1e9),
        ];
        Iteration { iteration: epoch, seconds, measures }
    }
}

impl Progress {
    /// Reports of all epochs done.
    pub(crate) fn reports(&self) -> Vec<Iteration> {
        (1..).zip(&self.epochs).map(|(number, epoch)| epoch.report(number)).collect()
    }

    fn start(config: &SasRecConfig, num_items: usize) -> Self {
        let parameters = Parameters::start(config.sizes(num_items), config.seed);
        let adam = Adam::new(parameters.values.len());
        Progress { parameters, adam, epochs: Vec::new(), stopped: false }
    }
}

/// A network in the middle of its training.
pub(crate) struct State<'a>(pub(crate) &'a Parameters<f32>);

impl Snapshot for State<'_> {
    fn variant(&self, keys: &Table) -> Result<Box<dyn Recommender>, ModelError> {
        variant::refuse(SasRecConfig::NAME, keys)?;
        Ok(Box::new(SasRec::new(self.0.clone())?))
    }
}

/// Learns, from a checkpoint if there is one.
pub(crate) fn train(
    config: &SasRecConfig,
    histories: &Histories,
    monitor: &dyn TrainingMonitor,
) -> Result<SasRec, ModelError> {
    check_cancelled(monitor)?;
    let sequences = Sequences::of(histories, config.max_len);
    let mut kept = monitor.checkpoints().map(|checkpoints| Kept::new(checkpoints, config, histories));
    let resumed = match &mut kept {
        Some(kept) => kept.resume()?,
        None => None,
    };
    let mut progress = resumed.unwrap_or_else(|| Progress::start(config, histories.num_items()));
    let meter = Arc::default();
    let mut gradient = Gradient::new(config.objective(), config.dropout, &meter);

    let epochs_left = config.epochs.saturating_sub(progress.epochs.len());
    monitor.begin("training", (sequences.num_rows() * epochs_left) as u64);
    while progress.epochs.len() < config.epochs && !progress.stopped {
        let epoch = learn_epoch(config, &sequences, &mut progress, &mut gradient, &meter, monitor)?;
        progress.epochs.push(epoch);
        let number = progress.epochs.len();
        let report = epoch.report(number);
        if number.is_multiple_of(config.evaluate_every) || number == config.epochs {
            progress.stopped = monitor.iteration(&report, &State(&progress.parameters)).is_break();
            check_cancelled(monitor)?;
        } else {
            monitor.progressed(&report);
        }
        if let Some(kept) = &mut kept {
            kept.keep(&progress)?;
        }
    }
    SasRec::new(progress.parameters)
}

fn learn_epoch(
    config: &SasRecConfig,
    sequences: &Sequences<'_>,
    progress: &mut Progress,
    gradient: &mut Gradient<f32>,
    meter: &Meter,
    monitor: &dyn Monitor,
) -> Result<Epoch, ModelError> {
    let epoch = progress.epochs.len() + 1;
    let noise = Noise::new(config.seed).at(epoch as u64);
    let order = sequences.order(config.seed, epoch);
    let (start, mut loss, mut rows) = (Instant::now(), 0.0, 0);
    meter.take();
    for (number, chosen) in (0..).zip(order.chunks(config.batch_size)) {
        check_cancelled(monitor)?;
        let batch = sequences.batch(chosen);
        let mean = gradient.evaluate(&progress.parameters, &batch, noise.at(number));
        if !mean.is_finite() {
            let reason =
                format!("the loss is {mean} in epoch {epoch}; hint: lower learning_rate, or set clip_norm");
            return Err(ModelError::Numerics { model: SasRecConfig::NAME, reason });
        }
        let scale = config.clip_norm.map_or(1.0, |most| (most / norm(&gradient.values)).min(1.0));
        let rate = config.learning_rate_at(progress.adam.steps);
        progress.adam.step(&mut progress.parameters.values, &gradient.values, scale as f32, rate);
        loss += mean * batch.num_rows() as f64;
        rows += batch.num_rows();
        monitor.advance(batch.num_rows() as u64);
    }
    let seconds = start.elapsed().as_secs_f64();
    let products = meter.take();
    let product_share = products.seconds / (seconds * rayon::current_num_threads() as f64);
    Ok(Epoch { seconds, loss: loss / rows as f64, product_share, operations: products.operations })
}
