//! Any number of histories in, their recommendations out: in order, on all cores, in memory that does not grow.

use serde::Serialize;

use super::{Filters, Model, RecommendError};
use crate::data::{DataError, RecommendationWriter, UserHistory};
use crate::evaluate::{Scored, histories_at_once};
use crate::monitor::{Cancelled, Monitor, check_cancelled};

/// What a history gets of which no item is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// Nothing.
    #[default]
    Empty,
    /// The most popular items.
    Popular,
}

/// What to recommend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamOptions {
    /// Items a history.
    pub n: usize,
    /// What may be recommended.
    pub filters: Filters,
    /// What a history gets of which no item is known.
    pub fallback: Fallback,
}

/// What came of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// Histories read.
    pub histories: u64,
    /// Recommendations written.
    pub recommendations: u64,
    /// Items of histories that the model does not know, and that were skipped.
    pub unknown_items: u64,
    /// Histories of which no item is known.
    pub without_known_items: u64,
}

/// Why a stream ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// A history that cannot be read, or recommendations that cannot be written.
    #[error(transparent)]
    Data(#[from] DataError),
    /// What cannot be recommended.
    #[error(transparent)]
    Recommend(#[from] RecommendError),
    /// The caller asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Recommends for every history and writes the lists in the order of the histories.
///
/// While a batch is scored on all cores, the lists of the one before are written and the next one is read: at most
/// three batches exist at a time.
pub fn recommend_stream(
    model: &Model,
    histories: &mut (dyn Iterator<Item = Result<UserHistory, DataError>> + Send),
    writer: &mut RecommendationWriter<'_>,
    options: &StreamOptions,
    monitor: &dyn Monitor,
) -> Result<StreamReport, StreamError> {
    let at_once = histories_at_once(model.num_items());
    let fallback = match options.fallback {
        Fallback::Empty => Vec::new(),
        Fallback::Popular => model.popular(options.n, &options.filters)?,
    };
    let mut report = StreamReport::default();
    let mut scored: Option<(Vec<UserHistory>, Vec<Vec<Scored>>)> = None;
    let mut batch = read_batch(histories, at_once)?;
    while !batch.is_empty() {
        check_cancelled(monitor)?;
        let (lists, next) = rayon::join(
            || model.recommend_batch(&batch, options.n, &options.filters),
            || {
                if let Some((batch, lists)) = scored.take() {
                    write_batch(model, &batch, &lists, &fallback, writer, &mut report)?;
                }
                read_batch(histories, at_once)
            },
        );
        let next = next?;
        scored = Some((std::mem::replace(&mut batch, next), lists?));
    }
    if let Some((batch, lists)) = scored.take() {
        write_batch(model, &batch, &lists, &fallback, writer, &mut report)?;
    }
    Ok(report)
}

fn read_batch(
    histories: &mut (dyn Iterator<Item = Result<UserHistory, DataError>> + Send),
    at_once: usize,
) -> Result<Vec<UserHistory>, DataError> {
    histories.take(at_once).collect()
}

fn write_batch(
    model: &Model,
    batch: &[UserHistory],
    lists: &[Vec<Scored>],
    fallback: &[Scored],
    writer: &mut RecommendationWriter<'_>,
    report: &mut StreamReport,
) -> Result<(), DataError> {
    for (history, list) in batch.iter().zip(lists) {
        let list = if history.items.is_empty() { fallback } else { list };
        report.histories += 1;
        report.recommendations += list.len() as u64;
        report.unknown_items += history.unknown as u64;
        report.without_known_items += u64::from(history.items.is_empty());
        for (rank, scored) in (1..).zip(list) {
            let item = model.catalog().get(scored.item.get());
            writer.write(history.user.as_id(), item, scored.score, rank)?;
        }
    }
    Ok(())
}
