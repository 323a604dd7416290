//! How long the rest will take.

use std::collections::HashMap;
use std::mem::Discriminant;

use satf::models::gemm_rate;
use satf::prepare::TiePolicy;

use super::ReproduceError;
use super::cell::Task;
use super::plan::Planned;
use super::run::Filled;

/// What is known of cells before they are done.
pub(super) struct Pace {
    /// Seconds that models which plan ahead expect, by the place of the cell.
    expected: Vec<Option<f64>>,
}

/// Seconds and how many cells took them.
#[derive(Clone, Copy, Default)]
struct Taken {
    seconds: f64,
    cells: f64,
}

impl Taken {
    fn add(&mut self, seconds: f64) {
        self.seconds += seconds;
        self.cells += 1.0;
    }

    fn mean(self) -> Option<f64> {
        (self.cells > 0.0).then(|| self.seconds / self.cells)
    }
}

type Kind = (usize, usize, Discriminant<Task>);

fn kind(planned: &Planned<'_>) -> Kind {
    (planned.dataset, planned.model, std::mem::discriminant(&planned.question.task))
}

impl Pace {
    /// Asks the models that plan ahead what their empty cells will cost.
    pub(super) fn new(cells: &Filled<'_>) -> Result<Self, ReproduceError> {
        let mut expected = vec![None; cells.len()];
        let mut rate = None;
        let mut cut = None;
        for (at, (planned, _)) in
            cells.iter().enumerate().filter(|(_, (planned, cell))| planned.wanted && cell.is_none())
        {
            let question = &planned.question;
            let configured = &question.choice.configured;
            let Some(iterations) = configured.configuration["num_iters"].as_f64() else { continue };
            if cut.as_ref().is_none_or(|(dataset, _)| *dataset != planned.dataset) {
                let partition = question.log.cut(question.dataset, TiePolicy::File, 0, false)?;
                cut = Some((planned.dataset, partition));
            }
            let Some((_, partition)) = &cut else { continue };
            // A model that cannot be run on this log says so when its turn comes.
            if let Some(plan) = configured.learner.plan(&partition.train).ok().flatten() {
                let rate = rate.get_or_insert_with(gemm_rate);
                let gflops =
                    if configured.configuration["precision"] == "double" { rate.double } else { rate.single };
                expected[at] = Some(iterations * plan.expected_seconds(gflops));
            }
        }
        Ok(Pace { expected })
    }

    /// A guess: cells like it took so long; else as its model plans, at the pace so far; else as long as other cells of the
    /// model, or as all.
    pub(super) fn seconds_left(&self, cells: &Filled<'_>) -> f64 {
        let mut like: HashMap<Kind, Taken> = HashMap::new();
        let mut of_model: HashMap<usize, Taken> = HashMap::new();
        let (mut all, mut planned_ahead, mut as_expected) = (Taken::default(), 0.0, 0.0);
        for ((planned, cell), expected) in cells.iter().zip(&self.expected) {
            let Some(cell) = cell else { continue };
            like.entry(kind(planned)).or_default().add(cell.seconds);
            of_model.entry(planned.model).or_default().add(cell.seconds);
            all.add(cell.seconds);
            if let Some(expected) = expected {
                planned_ahead += cell.seconds;
                as_expected += expected;
            }
        }
        let slowness = if as_expected > 0.0 { planned_ahead / as_expected } else { 1.0 };
        let empty =
            cells.iter().zip(&self.expected).filter(|((planned, cell), _)| planned.wanted && cell.is_none());
        empty
            .map(|((planned, _), expected)| {
                let mean = |taken: Option<&Taken>| taken.and_then(|taken| taken.mean());
                // Training time grows with the rank: one rank does not tell another.
                let alike = mean(like.get(&kind(planned)))
                    .filter(|_| expected.is_none() || !matches!(planned.question.task, Task::Time { .. }));
                alike
                    .or(expected.map(|expected| expected * slowness))
                    .or(mean(of_model.get(&planned.model)))
                    .or(all.mean())
                    .unwrap_or_default()
            })
            .sum()
    }
}
