//! One row of scores per history, many histories at once: the part of [`Recommender::score_batch`] that is the same
//! for every model that scores histories one by one.
//!
//! [`Recommender::score_batch`]: super::Recommender::score_batch

use rayon::prelude::*;

use crate::prepare::History;

/// Calls `score` once for every history with its row of `scores`, in parallel over histories.
///
/// `workspace` makes what `score` needs besides; one workspace serves many histories, so `score` leaves it as
/// it found it.
///
/// # Panics
/// If `scores` is not `histories.len() * num_items` long, or an item is outside the catalogue.
pub(super) fn score_each<W>(
    num_items: usize,
    histories: &[History<'_>],
    scores: &mut [f32],
    workspace: impl Fn() -> W + Send + Sync,
    score: impl Fn(&mut W, History<'_>, &mut [f32]) + Send + Sync,
) {
    assert_eq!(
        scores.len(),
        histories.len() * num_items,
        "one score for each of {} histories and {num_items} items",
        histories.len()
    );
    for history in histories {
        check_history(num_items, *history);
    }
    if num_items == 0 {
        return;
    }
    scores
        .par_chunks_exact_mut(num_items)
        .zip(histories.par_iter())
        .for_each_init(workspace, |workspace, (row, history)| score(workspace, *history, row));
}

/// # Panics
/// If an item is outside the catalogue.
pub(super) fn check_history(num_items: usize, history: History<'_>) {
    if let Some(item) = history.iter().find(|item| item.get() >= num_items) {
        panic!("item {} is outside the catalogue of {num_items}", item.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interactions::ItemIndex;

    #[test]
    fn an_empty_catalogue_has_no_scores() {
        score_each(0, &[History::default(); 2], &mut [], || (), |(), _, _| unreachable!());
    }

    #[test]
    #[should_panic(expected = "item 3 is outside the catalogue of 3")]
    fn an_unknown_item_is_refused() {
        score_each(3, &[History::new(&[ItemIndex(3)])], &mut [0.0; 3], || (), |(), _, _| ());
    }
}
