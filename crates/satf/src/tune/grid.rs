//! The valid points of a space on a log, gathered into trainings.

use std::collections::HashMap;

use rayon::prelude::*;
use serde_json::Map;
use toml::{Table, Value};

use super::constraint::Scalar;
use super::sampler::{Axis, Candidates};
use super::space::{Dimension, Space};
use super::{SpaceFault, TuneError};
use crate::models::{ConfigError, Configured, ModelEntry, ModelError};
use crate::monitor::{Monitor, check_cancelled};
use crate::prepare::Histories;

/// Most points a space may have before constraints.
const MOST_POINTS: usize = 2_000_000;

/// Every training that a space asks for on a log, with the configurations each of them serves.
pub struct Grid {
    entry: ModelEntry,
    base: Table,
    /// The key that says how many iterations there are at most.
    iterations_key: Option<&'static str>,
    /// Keys that are trained with.
    trained: Vec<Dimension>,
    /// Keys that one training serves for every value.
    served: Vec<Dimension>,
    /// Points of `trained` that are valid, as places among all of its points.
    trainings: Vec<Training>,
    /// Distinct sets of points of `served`.
    sets: Vec<Vec<usize>>,
    num_points: usize,
}

#[derive(Clone, Copy)]
struct Training {
    place: usize,
    set: usize,
}

/// A value of every key, as constraints see it.
struct Values<'a> {
    constant: HashMap<&'a str, Scalar>,
    varied: HashMap<&'a str, (usize, Vec<Scalar>)>,
}

impl Grid {
    /// The valid points of `space` for a model whose other keys are those of `base`.
    ///
    /// A point is invalid if it breaks a constraint or if the model refuses it on these histories. A key that the model
    /// does not have, or a value of the wrong type, is an error. The monitor may stop it: there may be two million points.
    pub fn new(
        entry: &ModelEntry,
        base: &Table,
        space: &Space,
        histories: &Histories,
        monitor: &dyn Monitor,
    ) -> Result<Grid, TuneError> {
        space.check(entry)?;
        entry.check_keys(base)?;
        for dimension in &space.dimensions {
            for value in &dimension.values {
                entry.check_keys(&Table::from_iter([(dimension.key.clone(), value.clone())]))?;
            }
        }
        let defaults = entry.defaults();
        let (served_keys, iterations_key) = (entry.variant_keys(), entry.iterations_key());
        let (served, trained): (Vec<Dimension>, Vec<Dimension>) =
            space.dimensions.iter().cloned().partition(|dimension| served_keys.contains(&dimension.key));
        let (num_trained, num_served) = (num_points(&trained), num_points(&served));
        let num_points = num_trained.saturating_mul(num_served);
        if num_points > MOST_POINTS {
            let fault = SpaceFault::NumPoints { points: num_points, most: MOST_POINTS };
            return Err(TuneError::Space { name: space.name.clone(), faults: vec![fault] });
        }
        let mut grid = Grid {
            entry: *entry,
            base: base.clone(),
            iterations_key,
            trained,
            served,
            trainings: vec![],
            sets: vec![],
            num_points,
        };

        let values = grid.values(&defaults);
        monitor.begin("looking for valid points", num_trained as u64);
        let valid_served = |place: usize| -> Result<Vec<usize>, TuneError> {
            check_cancelled(monitor)?;
            let mut valid = Vec::new();
            for served in 0..num_served {
                if grid.is_valid(space, &values, place, served, histories)?.is_none() {
                    valid.push(served);
                }
            }
            monitor.advance(1);
            Ok(valid)
        };
        let valid: Vec<Vec<usize>> =
            (0..num_trained).into_par_iter().map(valid_served).collect::<Result<_, _>>()?;
        let first_fault = grid.is_valid(space, &values, 0, 0, histories)?;
        drop(values);

        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        for (place, set) in valid.into_iter().enumerate().filter(|(_, set)| !set.is_empty()) {
            let next = grid.sets.len();
            let set = *known.entry(set).or_insert_with_key(|set| {
                grid.sets.push(set.clone());
                next
            });
            grid.trainings.push(Training { place, set });
        }
        if grid.trainings.is_empty() {
            let reason = first_fault.unwrap_or_default();
            return Err(TuneError::NoValidPoint { space: space.name.clone(), points: num_points, reason });
        }
        Ok(grid)
    }

    /// Number of trainings.
    pub fn num_trainings(&self) -> usize {
        self.trainings.len()
    }

    /// Number of valid points of the space: what the trainings serve together, numbers of iterations not counted.
    pub fn num_configurations(&self) -> usize {
        self.trainings.iter().map(|training| self.sets[training.set].len()).sum()
    }

    /// Number of points of the space before constraints and checks.
    pub fn num_points(&self) -> usize {
        self.num_points
    }

    /// The key that says how many iterations there are at most, if the model learns iteratively.
    pub fn iterations_key(&self) -> Option<&'static str> {
        self.iterations_key
    }

    /// The trainings as a sampler sees them.
    pub fn candidates(&self) -> Candidates {
        let axes = self.trained.iter().map(|dimension| Axis {
            len: dimension.values.len(),
            ordered: dimension.values.iter().all(|value| value.is_integer() || value.is_float()),
        });
        let points = self.trainings.iter().map(|training| coordinates(&self.trained, training.place));
        // Values count by their place in ascending order, in whatever order they were written.
        let ranks: Vec<Vec<usize>> = self.trained.iter().map(ranks).collect();
        let points = points.map(|point| point.iter().zip(&ranks).map(|(&at, ranks)| ranks[at]).collect());
        Candidates::new(axes.collect(), points.collect())
    }

    /// The keys that tell a training from the others.
    pub fn keys(&self, training: usize) -> Map<String, serde_json::Value> {
        point(&self.trained, self.trainings[training].place)
            .filter(|(key, _)| self.iterations_key.is_none_or(|iterations| key != iterations))
            .filter_map(|(key, value)| Some((key, serde_json::to_value(value).ok()?)))
            .collect()
    }

    /// What to train so that every configuration of a training can be had.
    pub fn configure(&self, training: usize) -> Result<Configured, ConfigError> {
        let Training { place, set } = self.trainings[training];
        let configure = |at: usize| self.entry.configure(&self.settings(place, self.sets[set][at]));
        let first = configure(0)?;
        match first.learner.variant_to_train(&self.variants(training))? {
            0 => Ok(first),
            at => configure(at),
        }
    }

    /// The configurations that a training serves, as the keys to have them of a snapshot with.
    pub fn variants(&self, training: usize) -> Vec<Table> {
        let set = &self.sets[self.trainings[training].set];
        set.iter().map(|&served| point(&self.served, served).collect()).collect()
    }

    fn settings(&self, place: usize, served: usize) -> Table {
        let mut settings = self.base.clone();
        settings.extend(point(&self.trained, place));
        settings.extend(point(&self.served, served));
        settings
    }

    /// What is wrong with a point, if anything.
    fn is_valid(
        &self,
        space: &Space,
        values: &Values<'_>,
        place: usize,
        served: usize,
        histories: &Histories,
    ) -> Result<Option<String>, TuneError> {
        let mut at = coordinates(&self.trained, place);
        at.extend(coordinates(&self.served, served));
        let value = |key: &str| match values.varied.get(key) {
            Some((dimension, scalars)) => scalars.get(at[*dimension]),
            None => values.constant.get(key),
        };
        for constraint in &space.constraints {
            let holds = constraint.holds(&value);
            match holds {
                Ok(true) => {}
                Ok(false) => return Ok(Some(format!("it breaks '{}'", constraint.text))),
                Err(fault) => return Err(TuneError::Space { name: space.name.clone(), faults: vec![fault] }),
            }
        }
        match self.entry.configure_known(self.settings(place, served)) {
            Ok(configured) => match configured.learner.check_on(histories) {
                Ok(()) => Ok(None),
                Err(error @ ModelError::Data { .. }) => Err(error.into()),
                Err(error) => Ok(Some(error.to_string())),
            },
            Err(ConfigError::Values(error)) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn values<'a>(&'a self, defaults: &'a Map<String, serde_json::Value>) -> Values<'a> {
        let mut constant = HashMap::new();
        for (key, value) in defaults {
            let value = Value::try_from(value).ok().and_then(|value| Scalar::of(&value));
            constant.extend(value.map(|value| (key.as_str(), value)));
        }
        for (key, value) in &self.base {
            constant.extend(Scalar::of(value).map(|value| (key.as_str(), value)));
        }
        let dimensions = self.trained.iter().chain(&self.served).enumerate();
        let varied = dimensions
            .map(|(at, dimension)| {
                let scalars = dimension.values.iter().filter_map(Scalar::of).collect();
                (dimension.key.as_str(), (at, scalars))
            })
            .collect();
        Values { constant, varied }
    }
}

fn num_points(dimensions: &[Dimension]) -> usize {
    dimensions.iter().fold(1usize, |product, dimension| product.saturating_mul(dimension.values.len()))
}

/// Which value every dimension has at a place; the last dimension runs fastest.
fn coordinates(dimensions: &[Dimension], mut place: usize) -> Vec<usize> {
    let mut at = vec![0; dimensions.len()];
    for (at, dimension) in at.iter_mut().zip(dimensions).rev() {
        *at = place % dimension.values.len();
        place /= dimension.values.len();
    }
    at
}

fn point(dimensions: &[Dimension], place: usize) -> impl Iterator<Item = (String, Value)> {
    let at = coordinates(dimensions, place);
    dimensions.iter().zip(at).map(|(dimension, at)| (dimension.key.clone(), dimension.values[at].clone()))
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or(value.as_integer().map(|number| number as f64))
}

/// The place of every value among all in ascending order; places as written where they have no order.
fn ranks(dimension: &Dimension) -> Vec<usize> {
    let numbers: Option<Vec<f64>> = dimension.values.iter().map(number).collect();
    let Some(numbers) = numbers else { return (0..dimension.values.len()).collect() };
    let rank = |value: &f64| numbers.iter().filter(|other| *other < value).count();
    numbers.iter().map(rank).collect()
}
