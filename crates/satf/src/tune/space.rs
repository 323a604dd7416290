//! What may be tried: values for every key, and constraints between them.
//!
//! ```toml
//! keys.rank = [{ from = 100, to = 900, step = 100 }, 1500]      # a list of values and ranges
//! keys.scaling = { from = 0.0, to = 1.0, step = 0.2 }           # a range with a step, both ends included
//! keys.regularization = { from = 1.0, to = 1e5, log = 11 }      # so many values, evenly spaced in the logarithm
//! keys.num_iters = 6                                            # the most iterations: each up to it is scored
//! constraints = ["rank < 1000 or scaling <= 0.6"]
//! ```

use std::path::Path;

use hashbrown::HashSet;
use serde_json::{Map, json};
use toml::{Table, Value};

use super::constraint::Constraint;
use super::{Damage, RangeFault, SpaceFault, TuneError};
use crate::data::read_configuration;
use crate::fault::picture;
use crate::models::{KeyFault, ModelEntry, nearest};
use crate::monitor::Monitor;

/// Most values a key may have.
const MOST_VALUES: usize = 10_000;
/// Farthest from zero that a range may go: up to here whole numbers and steps are exact.
const FARTHEST: f64 = 1e15;

/// A grid of configurations.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// Its name, or the file it is from.
    pub name: String,
    /// What it is for.
    pub summary: String,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) constraints: Vec<Constraint>,
}

/// A key and the values it may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// The key.
    pub key: String,
    /// Its values, each once, in the order written.
    pub values: Vec<Value>,
}

impl Space {
    /// A model's space by name; without one its `default`, or the `paper`'s.
    pub fn named(model: &ModelEntry, name: Option<&str>) -> Result<Space, TuneError> {
        let spaces = Space::all(model);
        let known: Vec<String> = spaces.iter().map(|space| space.name.clone()).collect();
        let usual = |name: &str| name == "default" || name == "paper";
        let wanted = |space: &Space| name.map_or(usual(&space.name), |name| space.name == name);
        let found = spaces.into_iter().find(wanted);
        found.ok_or_else(|| {
            let name = name.unwrap_or("default");
            TuneError::UnknownSpace {
                model: model.name.to_owned(),
                name: name.to_owned(),
                nearest: nearest(name, known.iter().map(String::as_str)).map(str::to_owned),
                known,
            }
        })
    }

    /// The spaces of a model.
    ///
    /// # Panics
    /// If the spaces of a model of another crate cannot be read: they are part of a program, not of its input.
    pub fn all(model: &ModelEntry) -> Vec<Space> {
        let text = if model.spaces.is_empty() { include_str!("spaces.toml") } else { model.spaces };
        let shipped: Table = text.parse().expect("invariant: a test reads the spaces");
        let spaces = shipped.get(model.name).and_then(Value::as_table).cloned().unwrap_or_default();
        let parse = |(name, space): (&String, &Value)| {
            let table = space.as_table().cloned().unwrap_or_default();
            Space::from_table(name, &table).expect("invariant: a test reads the spaces")
        };
        spaces.iter().map(parse).collect()
    }

    /// A space of one's own, from a TOML file or a pipe. The monitor may stop the reading.
    pub fn read(path: &Path, monitor: &dyn Monitor) -> Result<Space, TuneError> {
        let text = read_configuration(path, monitor)?;
        // The name of a pipe says nothing, and is another one next time.
        let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
        let name = if is_file { path.display().to_string() } else { "pipe".to_owned() };
        let table = text
            .parse::<Table>()
            .map_err(|error| TuneError::damaged(path, Damage::NotToml(picture(&error))))?;
        Space::from_table(&name, &table)
    }

    /// A space from a table with `keys`, and perhaps `constraints` and a `summary`. All faults come at once.
    pub fn from_table(name: &str, table: &Table) -> Result<Space, TuneError> {
        let mut faults = Vec::new();
        for key in table.keys().filter(|key| !["keys", "constraints", "summary"].contains(&key.as_str())) {
            faults.push(SpaceFault::UnknownEntry(key.clone()));
        }
        let summary = match table.get("summary") {
            None => String::new(),
            Some(Value::String(summary)) => summary.clone(),
            Some(other) => {
                let value = other.to_string();
                faults.push(SpaceFault::Entry { entry: "summary", value, expected: "a text" });
                String::new()
            }
        };
        let mut dimensions = Vec::new();
        match table.get("keys") {
            Some(Value::Table(keys)) if !keys.is_empty() => {
                for (key, given) in keys {
                    match Dimension::parse(key, given) {
                        Ok(dimension) => dimensions.push(dimension),
                        Err(fault) => faults.push(fault),
                    }
                }
            }
            _ => faults.push(SpaceFault::NoKeys),
        }
        let constraints = parse_constraints(table.get("constraints"), &mut faults);
        if faults.is_empty() {
            Ok(Space { name: name.to_owned(), summary, dimensions, constraints })
        } else {
            Err(TuneError::Space { name: name.to_owned(), faults })
        }
    }

    /// An error with all faults if the space asks for what the model does not have: keys of its own or of its constraints, or several
    /// numbers of iterations, which one training scores up to the largest.
    pub fn check(&self, model: &ModelEntry) -> Result<(), TuneError> {
        let known = model.defaults();
        let keys = self.dimensions.iter().map(|dimension| dimension.key.as_str());
        let in_constraints = self.constraints.iter().flat_map(|constraint| constraint.keys());
        let mut faults: Vec<SpaceFault> = Vec::new();
        for key in keys.chain(in_constraints).filter(|key| !known.contains_key(*key)) {
            faults.push(KeyFault::unknown(key, &known).into());
        }
        faults.dedup();
        let iterations =
            self.dimensions.iter().find(|found| Some(found.key.as_str()) == model.iterations_key());
        if let Some(Dimension { key, values }) = iterations.filter(|found| found.values.len() > 1) {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            faults.push(SpaceFault::Iterations { key: key.clone(), values: values.join(", ") });
        }
        if faults.is_empty() { Ok(()) } else { Err(TuneError::Space { name: self.name.clone(), faults }) }
    }

    /// Holds a key to one value, whether the space has it or not.
    pub fn pin(&mut self, key: &str, value: Value) {
        match self.dimensions.iter_mut().find(|dimension| dimension.key == key) {
            Some(dimension) => dimension.values = vec![value],
            None => self.dimensions.push(Dimension { key: key.to_owned(), values: vec![value] }),
        }
    }

    /// The keys with their values.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// Every key with its values, and the constraints: what a study remembers of its space.
    pub fn to_json(&self) -> serde_json::Value {
        let keys: Map<String, serde_json::Value> = self
            .dimensions
            .iter()
            .map(|dimension| (dimension.key.clone(), json!(dimension.values)))
            .collect();
        let constraints: Vec<&str> =
            self.constraints.iter().map(|constraint| constraint.text.as_str()).collect();
        json!({ "name": self.name, "keys": keys, "constraints": constraints })
    }
}

fn parse_constraints(given: Option<&Value>, faults: &mut Vec<SpaceFault>) -> Vec<Constraint> {
    let texts = match given {
        None => return Vec::new(),
        Some(Value::Array(texts)) => texts.as_slice(),
        Some(other) => {
            let value = other.to_string();
            faults.push(SpaceFault::Entry { entry: "constraints", value, expected: "a list of texts" });
            return Vec::new();
        }
    };
    let mut constraints = Vec::new();
    for text in texts {
        let parsed =
            text.as_str().ok_or_else(|| SpaceFault::NotText(text.to_string())).and_then(Constraint::parse);
        match parsed {
            Ok(constraint) => constraints.push(constraint),
            Err(fault) => faults.push(fault),
        }
    }
    constraints
}

impl Dimension {
    fn parse(key: &str, given: &Value) -> Result<Dimension, SpaceFault> {
        let parts = match given {
            Value::Array(parts) => parts.as_slice(),
            single => std::slice::from_ref(single),
        };
        let mut values: Vec<Value> = Vec::new();
        let mut seen = HashSet::new();
        for part in parts {
            let more = match part {
                Value::Table(range) => expand(range).map_err(|fault| SpaceFault::Range {
                    key: key.to_owned(),
                    range: part.to_string(),
                    fault,
                })?,
                Value::Integer(_) | Value::Float(_) | Value::String(_) | Value::Boolean(_) => {
                    vec![part.clone()]
                }
                other => {
                    return Err(SpaceFault::NoValue { key: key.to_owned(), value: other.to_string() });
                }
            };
            values.extend(more.into_iter().filter(|value| seen.insert(Identity::of(value))));
        }
        if values.is_empty() || values.len() > MOST_VALUES {
            let (key, values) = (key.to_owned(), values.len());
            return Err(SpaceFault::NumValues { key, values, most: MOST_VALUES });
        }
        Ok(Dimension { key: key.to_owned(), values })
    }
}

/// What tells two values apart. A whole number and a fraction are never the same value, even if they are equal.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Integer(i64),
    /// The bits of the number; 0 and -0 are one.
    Float(u64),
    Boolean(bool),
    Text(String),
}

impl Identity {
    fn of(value: &Value) -> Self {
        match value {
            Value::Integer(number) => Identity::Integer(*number),
            Value::Float(number) => Identity::Float((number + 0.0).to_bits()),
            Value::Boolean(flag) => Identity::Boolean(*flag),
            Value::String(text) => Identity::Text(text.clone()),
            other => Identity::Text(other.to_string()),
        }
    }
}

/// The values of `{ from, to, step }` or `{ from, to, log }`, both ends included.
fn expand(range: &Table) -> Result<Vec<Value>, RangeFault> {
    if let Some(key) = range.keys().find(|key| !["from", "to", "step", "log"].contains(&key.as_str())) {
        return Err(RangeFault::Unknown(key.clone()));
    }
    let bound = |field: &'static str| {
        let value = range.get(field).ok_or(RangeFault::Missing(field))?;
        let number = value.as_float().or(value.as_integer().map(|number| number as f64));
        let number = number.ok_or_else(|| RangeFault::NotNumber { field, value: value.to_string() })?;
        // Not a number fails the comparison too.
        if number.abs() <= FARTHEST {
            return Ok::<_, RangeFault>((number, value.is_integer()));
        }
        Err(RangeFault::TooFar { field, value: value.to_string(), most: FARTHEST })
    };
    let ((from, whole_from), (to, whole_to)) = (bound("from")?, bound("to")?);
    if from > to {
        return Err(RangeFault::Order { from, to });
    }
    match (range.get("step"), range.get("log")) {
        (Some(_), None) => {
            let (step, whole_step) = bound("step")?;
            let count = (to - from) / step;
            if !(step > 0.0 && count < MOST_VALUES as f64) {
                return Err(RangeFault::Step { step, most: MOST_VALUES });
            }
            let whole = whole_from && whole_to && whole_step;
            // A last value that rounding alone puts beyond the end still counts.
            let count = (count + 1e-9).floor() as usize;
            Ok((0..=count).map(|at| number(from + at as f64 * step, whole)).collect())
        }
        (None, Some(count)) => {
            let most = MOST_VALUES as i64;
            let count = count
                .as_integer()
                .filter(|count| (2..=most).contains(count))
                .ok_or_else(|| RangeFault::Count { given: count.to_string(), most: MOST_VALUES })?;
            if from <= 0.0 {
                return Err(RangeFault::NoLogarithm(from));
            }
            let ratio = (to / from).ln() / (count - 1) as f64;
            let value = |at: i64| match at {
                0 => from,
                at if at == count - 1 => to,
                at => rounded(from * (ratio * at as f64).exp()),
            };
            Ok((0..count).map(|at| number(value(at), whole_from && whole_to)).collect())
        }
        _ => Err(RangeFault::StepOrLog),
    }
}

/// A whole number, or one without the dust of binary fractions: 0.6, not 0.6000000000000001.
fn number(value: f64, whole: bool) -> Value {
    if whole {
        Value::Integer(value.round() as i64)
    } else {
        Value::Float(format!("{value:.12}").parse().unwrap_or(value))
    }
}

/// Four significant digits: nobody wants 3.1622776601683795.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Registry;

    fn space(text: &str) -> Result<Space, String> {
        Space::from_table("test", &text.parse().unwrap()).map_err(|error| error.to_string())
    }

    fn values(text: &str) -> Vec<f64> {
        let space = space(&format!("keys.x = {text}")).unwrap();
        let number = |value: &Value| value.as_float().or(value.as_integer().map(|n| n as f64)).unwrap();
        space.dimensions[0].values.iter().map(number).collect()
    }

    #[test]
    fn ranges_include_both_ends_and_have_no_dust() {
        assert_eq!(values("{ from = 0.0, to = 1.0, step = 0.2 }"), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(values("{ from = 100, to = 950, step = 200 }"), [100.0, 300.0, 500.0, 700.0, 900.0]);
        assert_eq!(values("{ from = 1, to = 1000, log = 4 }"), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(values("{ from = 0.5, to = 8.0, log = 5 }"), [0.5, 1.0, 2.0, 4.0, 8.0]);
        assert_eq!(
            values("{ from = 1, to = 3, log = 9 }"),
            [1.0, 2.0, 3.0],
            "whole numbers are not repeated"
        );
        assert_eq!(values("[7, { from = 1, to = 3, step = 1 }, 3]"), [7.0, 1.0, 2.0, 3.0]);
        assert_eq!(values("4"), [4.0]);
    }

    #[test]
    fn all_faults_come_at_once_and_name_key_and_value() {
        let text = "summery = 'x'\nconstraints = ['a <', 7]\n[keys]\na = { from = 1, to = 2 }\nb = []\nc = { from = 3, \
                    to = 1, step = 1 }\nd = { from = 0, to = 1, step = 0 }\ne = { from = 0, to = 1, log = 3 }\nf = \
                    2020-01-01\ng = { from = 'x', to = 2, step = 1 }\nh = { from = 1, to = 2, stp = 1 }\ni = { from = 1, to = 1e18, \
                    step = 1e17 }";
        let message = space(text).unwrap_err();
        for part in [
            "summery",
            "'a <'",
            "constraint 7",
            "a = {",
            "b has 0 values",
            "lower end first",
            "step = 0",
            "above 0 for a logarithm",
            "f = 2020-01-01",
            "from = \"x\"",
            "'stp'",
            "to = 1000000000000000000.0: expected a number from -1e15 to 1e15",
        ] {
            assert!(message.contains(part), "no '{part}' in: {message}");
        }
        assert!(space("").unwrap_err().contains("no keys"));
    }

    #[test]
    fn a_long_list_is_read_in_no_time() {
        let list = (0..300_000).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
        let start = std::time::Instant::now();
        let message = space(&format!("keys.x = [{list}]")).unwrap_err();
        assert!(message.contains("x has 300000 values: expected 1 to 10000"), "{message}");
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
        assert_eq!(values("[1, 1, 0.0, -0.0, 1.0, 2]"), [1.0, 0.0, 1.0, 2.0]);
    }

    #[test]
    fn every_model_that_can_be_tuned_has_spaces_of_its_own_keys() {
        let registry = Registry::default();
        let entry = |model: &str| registry.find(model).unwrap();
        for model in ["pure-svd", "ga-satf", "la-satf", "ease", "vmis-knn", "transitions"] {
            let known = entry(model).defaults();
            let spaces = Space::all(&entry(model));
            assert!(!spaces.is_empty(), "{model}");
            for space in spaces {
                assert!(!space.summary.is_empty(), "{model} {}", space.name);
                for dimension in &space.dimensions {
                    assert!(known.contains_key(&dimension.key), "{model} {}: {}", space.name, dimension.key);
                }
            }
            assert!(Space::named(&entry(model), None).is_ok(), "{model}");
        }
        let shipped: Table = include_str!("spaces.toml").parse().unwrap();
        assert!(shipped.keys().all(|model| registry.find(model).is_ok()));
        let unknown = Space::named(&entry("la-satf"), Some("papre")).unwrap_err().to_string();
        assert!(unknown.contains("did you mean 'paper'?"), "{unknown}");
        assert!(Space::named(&entry("mp"), None).unwrap_err().to_string().contains("TOML file"));
    }

    #[test]
    fn a_space_is_checked_against_its_model() {
        let space =
            space("keys.num_iters = [1, 2]\nkeys.scalling = 1.0\nconstraints = ['width > 3']").unwrap();
        let fault =
            |model: &str| space.check(&Registry::default().find(model).unwrap()).unwrap_err().to_string();
        let message = fault("la-satf");
        for part in
            ["3 faults", "did you mean 'scaling'?", "'width'", "num_iters = [1, 2]: expected one number"]
        {
            assert!(message.contains(part), "no '{part}' in: {message}");
        }
        // Where it is not the number of iterations it is a key like any other.
        assert!(fault("pure-svd").contains("unknown key 'num_iters'"));
    }

    #[test]
    fn a_pinned_key_has_one_value() {
        let mut space = space("keys.rank = [1, 2]").unwrap();
        space.pin("rank", Value::Integer(5));
        space.pin("seed", Value::Integer(1));
        assert_eq!(space.to_json()["keys"], json!({ "rank": [5], "seed": [1] }));
    }
}
