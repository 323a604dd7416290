//! Models with a catalogue of their own, such as those that come from a file, judged on a holdout of another one.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::evaluation::Evaluation;
use super::protocol::{
    EvaluateError, EvaluateOptions, SeenPolicy, Tally, first_event_that_saw, histories_at_once,
};
use crate::interactions::{Ids, ItemIndex, OwnedHistory};
use crate::models::Recommender;
use crate::monitor::{Monitor, check_cancelled};
use crate::prepare::{Event, History, Holdout, Partition};
use crate::ranking::{EXCLUDED, Scored, rank_unseen};

/// How the catalogue of a model and that of a training set go together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogReport {
    /// Items that the model knows.
    pub items: usize,
    /// Items of the training set that it does not know: it never recommends them.
    pub missing_items: usize,
    /// Items of its own that the training set does not know: recommended, they have their places and cannot be hit.
    pub other_items: usize,
    /// Events whose history has no item that it knows: nothing is recommended, which is a miss.
    pub unknown_histories: usize,
}

/// Scores a model whose items are those of `catalog` on a holdout, whose training set may have others: [`evaluate`](super::evaluate())
/// for models that were not fitted to that training set.
///
/// Items go together by their ids. The model sees of a history what it knows, and ranks its own items but for those of the history.
pub fn evaluate_with_catalog(
    model: &dyn Recommender,
    catalog: &Ids,
    partition: &Partition,
    options: &EvaluateOptions,
    monitor: &dyn Monitor,
) -> Result<(Evaluation, CatalogReport), EvaluateError> {
    let (cutoffs, longest) = options.checked_cutoffs()?;
    let holdout = &partition.holdout;
    let num_items = model.num_items();
    if num_items != catalog.len() {
        return Err(EvaluateError::Catalog { model: num_items, holdout: catalog.len() });
    }
    let names = Names::new(partition.train.catalog(), catalog);
    let mut report = names.report();
    let pooled = (options.seen == SeenPolicy::Pooled)
        .then(|| first_event_that_saw(holdout, partition.train.num_items()));
    let batch = options.batch.unwrap_or(histories_at_once(num_items)).max(1);
    monitor.begin("evaluating", holdout.events.len() as u64);
    let mut tally = Tally::new(holdout.events.len(), partition.train.num_items());
    let mut scores = vec![0f32; batch.min(holdout.events.len()) * num_items];
    for (number, events) in holdout.events.chunks(batch).enumerate() {
        check_cancelled(monitor)?;
        let histories: Vec<OwnedHistory> = events.iter().map(|event| names.history(holdout, event)).collect();
        let views: Vec<History<'_>> = histories.iter().map(History::from).collect();
        let scores = &mut scores[..events.len() * num_items];
        model.score_batch(&views, scores);
        let lists: Vec<Vec<Scored>> = scores
            .par_chunks_mut(num_items)
            .zip(&histories)
            .enumerate()
            .map(|(at, (scores, history))| {
                if history.is_empty() {
                    return Vec::new();
                }
                if let Some(first) = &pooled {
                    names.strike_out(scores, |item| first[item] < number * batch + at);
                }
                rank_unseen(scores, history.items(), longest)
            })
            .collect();
        for ((event, list), history) in events.iter().zip(&lists).zip(&histories) {
            report.unknown_histories += usize::from(history.is_empty());
            tally.take(event.target, list.iter().map(|scored| names.of_train(scored.item)));
        }
        monitor.advance(events.len() as u64);
    }
    let events = (0..holdout.events.len()).collect();
    Ok((tally.finish(holdout, events, cutoffs, options.unit), report))
}

/// What the items of a training set are called by a model, and the other way round.
struct Names {
    of_model: Vec<Option<ItemIndex>>,
    of_train: Vec<Option<ItemIndex>>,
}

impl Names {
    fn new(train: &Ids, model: &Ids) -> Self {
        let find = |all: &Ids, within: &Ids| {
            all.iter().map(|id| within.find(id).map(|index| ItemIndex(index as u32))).collect()
        };
        Names { of_model: find(train, model), of_train: find(model, train) }
    }

    fn report(&self) -> CatalogReport {
        let missing = |names: &[Option<ItemIndex>]| names.iter().filter(|name| name.is_none()).count();
        CatalogReport {
            items: self.of_train.len(),
            missing_items: missing(&self.of_model),
            other_items: missing(&self.of_train),
            unknown_histories: 0,
        }
    }

    /// The history of an event as the model knows it.
    fn history(&self, holdout: &Holdout, event: &Event) -> OwnedHistory {
        let known = holdout.history(event);
        let mut history = OwnedHistory::new();
        for (at, item) in known.items().iter().enumerate() {
            history.push(self.of_model[item.get()], known.is_with_previous(at));
        }
        history
    }

    fn of_train(&self, item: ItemIndex) -> Option<ItemIndex> {
        self.of_train[item.get()]
    }

    /// Takes items of the training set out of the ranking.
    fn strike_out(&self, scores: &mut [f32], is_out: impl Fn(usize) -> bool) {
        for (score, item) in scores.iter_mut().zip(&self.of_train) {
            if item.is_some_and(|item| is_out(item.get())) {
                *score = EXCLUDED;
            }
        }
    }
}
