//! What a history gets: a list, or a fallback, and why.

use rayon::prelude::*;

use super::filters::Ranked;
use super::{Explanation, Filters, Model, RecommendError};
use crate::interactions::ItemIndex;
use crate::prepare::History;

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
    /// Items per history.
    pub n: usize,
    /// What may be recommended.
    pub filters: Filters,
    /// What a history gets of which no item is known.
    pub fallback: Fallback,
    /// Whether every score is explained.
    pub explain: bool,
}

/// An item that is recommended.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// The item.
    pub item: ItemIndex,
    /// Its score, with boosts.
    pub score: f32,
    /// Where the score comes from, if that was asked for.
    pub explanation: Option<Explanation>,
}

/// What one history gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Items, best first.
    pub list: Vec<Recommendation>,
    /// Whether no item of the history is known and the list does not follow from it.
    pub is_fallback: bool,
}

impl Model {
    /// What a history gets, with fallback and explanations: the list of [`Model::recommend`] if any item of the history is known.
    pub fn answer<'h>(
        &self,
        history: impl Into<History<'h>>,
        options: &StreamOptions,
    ) -> Result<Answer, RecommendError> {
        Ok(Answers::new(self, options)?.of(&[history.into()])?.pop().unwrap_or_default())
    }
}

/// Options made ready for many histories.
pub(super) struct Answers<'m> {
    model: &'m Model,
    options: &'m StreamOptions,
    fallback: Answer,
}

impl<'m> Answers<'m> {
    pub(super) fn new(model: &'m Model, options: &'m StreamOptions) -> Result<Self, RecommendError> {
        if options.explain {
            model.check_explains()?;
        }
        let list = match options.fallback {
            Fallback::Empty => Vec::new(),
            Fallback::Popular => model.rank_popular(options.n, &options.filters)?,
        };
        let explain = |ranked: &Ranked| {
            Ok(Explanation {
                score: ranked.scored.score,
                shares: Vec::new(),
                base: f64::from(ranked.plain),
                boost: ranked.boost(),
            })
        };
        let fallback = Answer { list: answer(list, options.explain.then_some(&explain))?, is_fallback: true };
        Ok(Answers { model, options, fallback })
    }

    /// What each history gets.
    pub(super) fn of(&self, histories: &[History<'_>]) -> Result<Vec<Answer>, RecommendError> {
        let known: Vec<History<'_>> =
            histories.iter().copied().filter(|history| !history.is_empty()).collect();
        let lists = self.model.rank(&known, self.options.n, &self.options.filters)?;
        let answers = lists.into_par_iter().zip(&known).map(|(list, &history)| {
            let explain = |ranked: &Ranked| self.model.explain_ranked(history, *ranked);
            let list = answer(list, self.options.explain.then_some(&explain))?;
            Ok(Answer { list, is_fallback: false })
        });
        let mut answers = answers.collect::<Result<Vec<_>, RecommendError>>()?.into_iter();
        let answer = |history: &History<'_>| {
            if history.is_empty() { self.fallback.clone() } else { answers.next().unwrap_or_default() }
        };
        Ok(histories.iter().map(answer).collect())
    }
}

type Explain<'a> = &'a dyn Fn(&Ranked) -> Result<Explanation, RecommendError>;

fn answer(list: Vec<Ranked>, explain: Option<Explain<'_>>) -> Result<Vec<Recommendation>, RecommendError> {
    let recommendation = |ranked: Ranked| {
        Ok(Recommendation {
            item: ranked.scored.item,
            score: ranked.scored.score,
            explanation: explain.map(|explain| explain(&ranked)).transpose()?,
        })
    };
    list.into_iter().map(recommendation).collect()
}
