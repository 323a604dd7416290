//! Any number of histories in, their recommendations out: in order, on all cores, in memory that does not grow.

use serde::Serialize;

use super::{Answer, Explanation, Fallback, Prepared, RecommendError};
use crate::data::{DataError, ExplanationRow, RecommendationRow, RecommendationWriter, UserHistory};
use crate::evaluate::histories_at_once;
use crate::interactions::ItemIndex;
use crate::monitor::{Cancelled, Monitor, check_cancelled};
use crate::prepare::History;

/// Items of the histories that are scored at once: with marks and lists a few megabytes, however long a history is.
const ITEMS_AT_ONCE: usize = 1 << 20;

/// What came of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// Histories read.
    pub histories: u64,
    /// Recommendations written.
    pub recommendations: u64,
    /// Items of histories that the model does not know, and that were skipped.
    pub unknown_items: u64,
    /// Histories without any known item.
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
    #[error("{0}")]
    Cancelled(#[from] Cancelled),
}

/// Recommends for every history what was prepared, and writes the lists in the order of the histories.
///
/// While a batch is scored on all cores, the lists of the one before are written and the next one is read: at most
/// three batches exist at a time. A batch ends with so many histories, or with so many items of histories.
pub fn recommend_stream(
    prepared: &Prepared<'_>,
    histories: &mut (dyn Iterator<Item = Result<UserHistory, DataError>> + Send),
    writer: &mut RecommendationWriter<'_>,
    monitor: &dyn Monitor,
) -> Result<StreamReport, StreamError> {
    // Every item of a history is explained once per item that is recommended.
    let items = if prepared.explains() { ITEMS_AT_ONCE / prepared.n().max(1) } else { ITEMS_AT_ONCE };
    let limits = (histories_at_once(prepared.model().num_items()), items.max(1));
    let mut report = StreamReport::default();
    let mut answered: Option<(Vec<UserHistory>, Vec<Answer<ItemIndex>>)> = None;
    let mut batch = read_batch(histories, limits)?;
    while !batch.is_empty() {
        check_cancelled(monitor)?;
        let (answer, next) = rayon::join(
            || {
                let views: Vec<History<'_>> = batch.iter().map(|user| (&user.history).into()).collect();
                prepared.answer_batch_indexed(&views)
            },
            || {
                if let Some((batch, answers)) = answered.take() {
                    write_batch(&batch, &answers, prepared.fallback(), writer, &mut report)?;
                }
                read_batch(histories, limits)
            },
        );
        let next = next?;
        answered = Some((std::mem::replace(&mut batch, next), answer?));
    }
    if let Some((batch, answers)) = answered.take() {
        write_batch(&batch, &answers, prepared.fallback(), writer, &mut report)?;
    }
    Ok(report)
}

/// Reads histories up to so many, or to so many items of them.
fn read_batch(
    histories: &mut (dyn Iterator<Item = Result<UserHistory, DataError>> + Send),
    (most_histories, most_items): (usize, usize),
) -> Result<Vec<UserHistory>, DataError> {
    let mut batch = Vec::new();
    let mut items = 0;
    while batch.len() < most_histories && items < most_items {
        let Some(history) = histories.next().transpose()? else { break };
        items += history.history.len();
        batch.push(history);
    }
    Ok(batch)
}

fn write_batch(
    batch: &[UserHistory],
    answers: &[Answer<ItemIndex>],
    fallback: Fallback,
    writer: &mut RecommendationWriter<'_>,
    report: &mut StreamReport,
) -> Result<(), DataError> {
    let fallback = match fallback {
        Fallback::Empty => None,
        Fallback::Popular => Some("popular"),
    };
    for (user, answer) in batch.iter().zip(answers) {
        report.histories += 1;
        report.recommendations += answer.items.len() as u64;
        report.unknown_items += answer.unknown_items as u64;
        report.without_known_items += u64::from(answer.is_fallback);
        for (rank, recommendation) in (1..).zip(&answer.items) {
            let shares: Vec<(ItemIndex, f64)> = recommendation.explanation.iter().flat_map(shares).collect();
            let explanation = recommendation.explanation.as_ref().map(|explanation| ExplanationRow {
                shares: &shares,
                base: explanation.base,
                boost: explanation.boost,
            });
            writer.write(&RecommendationRow {
                user: user.user.as_id(),
                item: recommendation.item,
                score: recommendation.score,
                rank,
                fallback: fallback.filter(|_| answer.is_fallback),
                explanation,
            })?;
        }
    }
    Ok(())
}

fn shares(explanation: &Explanation<ItemIndex>) -> impl Iterator<Item = (ItemIndex, f64)> {
    explanation.shares.iter().map(|share| (share.item, share.share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interactions::{OwnedHistory, OwnedId};

    #[test]
    fn a_batch_is_bounded_by_its_items_too() {
        let history = |items: usize| {
            let mut history = OwnedHistory::new();
            for _ in 0..items {
                history.push(Some(ItemIndex(0)), false);
            }
            Ok(UserHistory { user: OwnedId::Integer(0), history })
        };
        let mut long = (0..100).map(|_| history(400));
        assert_eq!(read_batch(&mut long, (50, 1000)).unwrap().len(), 3);
        assert_eq!(read_batch(&mut long, (50, 100_000)).unwrap().len(), 50);
        let mut empty = (0..100).map(|_| history(0));
        assert_eq!(read_batch(&mut empty, (70, 1000)).unwrap().len(), 70);
        assert_eq!(read_batch(&mut empty, (70, 1000)).unwrap().len(), 30);
    }
}
