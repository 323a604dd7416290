//! What is known of items besides their ids: titles, categories, prices, whatever a file has.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use satf::data::{ItemTable, read_item_table};
use satf::interactions::{Id, Ids, ItemIndex};

use crate::filter::{Comparison, Filter};

/// Names of columns that hold what people call an item, the surest first.
const TITLE_NAMES: [&str; 4] = ["title", "name", "item_title", "item_name"];

/// The values of one attribute, one per item of a catalogue.
#[derive(Clone, Debug)]
enum Column {
    /// NaN where there is none.
    Numbers(Vec<f64>),
    Flags(Vec<Option<bool>>),
    /// Places in the list of distinct texts; the last place of all where there is none.
    Texts {
        distinct: Vec<Box<str>>,
        codes: Vec<u32>,
    },
}

const NO_TEXT: u32 = u32::MAX;

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Number(f64),
    Flag(bool),
    Text(&'a str),
}

impl serde::Serialize for Value<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // Numbers that are whole are written as such.
            Value::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                serializer.serialize_i64(*number as i64)
            }
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// The attributes of a catalogue's items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    names: Vec<Box<str>>,
    columns: Vec<Column>,
    title: Option<usize>,
    /// How many items of the catalogue the file has.
    known: usize,
}

/// What a filter becomes for a catalogue.
pub(crate) type Rule = Box<dyn Fn(ItemIndex) -> bool + Send + Sync>;

/// A file of attributes, for any catalogue.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttributeFile(Arc<ItemTable>);

impl AttributeFile {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let table = read_item_table(path, &()).map_err(|error| format!("items: {error}"))?;
        Ok(AttributeFile(Arc::new(table)))
    }

    /// The attributes of a catalogue's items.
    pub(crate) fn of(&self, catalog: &Ids) -> Attributes {
        let table = &*self.0;
        let mut row_of: Vec<Option<u32>> = vec![None; catalog.len()];
        for (row, item) in (0..).zip(&table.items) {
            if let Some(place) = catalog.find(Id::Text(item)).and_then(|at| row_of.get_mut(at)) {
                *place = Some(row);
            }
        }
        let known = row_of.iter().flatten().count();
        let columns = table.columns.iter().map(|values| Column::new(values, &row_of)).collect();
        let title = TITLE_NAMES
            .iter()
            .find_map(|name| table.names.iter().position(|other| other.eq_ignore_ascii_case(name)));
        Attributes {
            names: table.names.iter().map(|name| name.as_str().into()).collect(),
            columns,
            title,
            known,
        }
    }
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" | "yes" => Some(true),
        "false" | "False" | "FALSE" | "no" => Some(false),
        _ => None,
    }
}

fn number(text: &str) -> Option<f64> {
    // The sum makes 0 of -0: they are equal.
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number + 0.0)
}

impl Column {
    /// Numbers if all values of the file are, flags if all are, texts otherwise.
    fn new(values: &[Option<String>], row_of: &[Option<u32>]) -> Self {
        let of = |row: &Option<u32>| row.and_then(|row| values.get(row as usize)?.as_deref());
        let all = |is: &dyn Fn(&str) -> bool| values.iter().flatten().all(|value| is(value));
        if all(&|value| number(value).is_some()) {
            return Column::Numbers(
                row_of.iter().map(|row| of(row).and_then(number).unwrap_or(f64::NAN)).collect(),
            );
        }
        if all(&|value| flag(value).is_some()) {
            return Column::Flags(row_of.iter().map(|row| of(row).and_then(flag)).collect());
        }
        let mut codes_by_text: HashMap<&str, u32> = HashMap::new();
        let mut distinct: Vec<Box<str>> = Vec::new();
        let codes = row_of.iter().map(|row| match of(row) {
            None => NO_TEXT,
            Some(text) => *codes_by_text.entry(text).or_insert_with(|| {
                distinct.push(text.into());
                distinct.len() as u32 - 1
            }),
        });
        let codes = codes.collect();
        Column::Texts { distinct, codes }
    }

    fn get(&self, item: ItemIndex) -> Option<Value<'_>> {
        match self {
            Column::Numbers(numbers) => {
                numbers.get(item.get()).copied().filter(|number| !number.is_nan()).map(Value::Number)
            }
            Column::Flags(flags) => flags.get(item.get()).copied().flatten().map(Value::Flag),
            Column::Texts { distinct, codes } => {
                let code = *codes.get(item.get())?;
                distinct.get(code as usize).map(|text| Value::Text(text))
            }
        }
    }
}

impl Attributes {
    /// What people call an item.
    pub(crate) fn title(&self, item: ItemIndex) -> Option<&str> {
        match self.columns.get(self.title?)?.get(item)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// All that is known of an item.
    pub(crate) fn of(&self, item: ItemIndex) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.names
            .iter()
            .zip(&self.columns)
            .filter_map(move |(name, column)| Some((&**name, column.get(item)?)))
    }

    /// The names of all attributes and what kind of values they have.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.names.iter().zip(&self.columns).map(|(name, column)| {
            let kind = match column {
                Column::Numbers(_) => "number",
                Column::Flags(_) => "flag",
                Column::Texts { .. } => "text",
            };
            (&**name, kind)
        })
    }

    /// How many items have any.
    pub(crate) fn known(&self) -> usize {
        self.known
    }

    /// A filter made ready, or why it cannot be. The rule keeps the attributes it needs.
    pub(crate) fn rule(self: &Arc<Self>, filter: &Filter) -> Result<Rule, String> {
        Ok(match filter {
            Filter::Any(parts) => {
                let rules: Vec<Rule> = parts.iter().map(|part| self.rule(part)).collect::<Result<_, _>>()?;
                Box::new(move |item| rules.iter().any(|rule| rule(item)))
            }
            Filter::All(parts) => {
                let rules: Vec<Rule> = parts.iter().map(|part| self.rule(part)).collect::<Result<_, _>>()?;
                Box::new(move |item| rules.iter().all(|rule| rule(item)))
            }
            Filter::Not(part) => {
                let rule = self.rule(part)?;
                Box::new(move |item| !rule(item))
            }
            Filter::In { name, values } => {
                let equal = |value: &String| self.comparison(name, Comparison::Equal, value);
                let rules: Vec<Rule> = values.iter().map(equal).collect::<Result<_, _>>()?;
                Box::new(move |item| rules.iter().any(|rule| rule(item)))
            }
            Filter::Compare { name, comparison, value } => self.comparison(name, *comparison, value)?,
        })
    }

    fn comparison(self: &Arc<Self>, name: &str, comparison: Comparison, value: &str) -> Result<Rule, String> {
        let Some(at) = self.names.iter().position(|other| other.eq_ignore_ascii_case(name)) else {
            let known: Vec<&str> = self.names.iter().map(|name| &**name).collect();
            let known = if known.is_empty() {
                "no file of items was given".to_owned()
            } else {
                format!("there are {}", known.join(", "))
            };
            return Err(format!("items have no attribute '{name}': {known}"));
        };
        let wrong_kind =
            |kind: &str| format!("{name}: '{value}' is not a {kind}, which this attribute holds");
        let unordered = || format!("{name}: only numbers are larger or smaller; expected = or !=");
        let is_ordered = !matches!(comparison, Comparison::Equal | Comparison::Unequal);
        let attributes = Arc::clone(self);
        let wants = comparison == Comparison::Equal;
        Ok(match self.columns.get(at) {
            Some(Column::Numbers(_)) => {
                let bound = number(value).ok_or_else(|| wrong_kind("number"))?;
                Box::new(move |item| match attributes.columns.get(at).and_then(|column| column.get(item)) {
                    Some(Value::Number(number)) => match comparison {
                        Comparison::Equal => number.total_cmp(&bound).is_eq(),
                        Comparison::Unequal => number.total_cmp(&bound).is_ne(),
                        Comparison::Less => number < bound,
                        Comparison::AtMost => number <= bound,
                        Comparison::Greater => number > bound,
                        Comparison::AtLeast => number >= bound,
                    },
                    _ => comparison == Comparison::Unequal,
                })
            }
            _ if is_ordered => return Err(unordered()),
            Some(Column::Flags(_)) => {
                let wanted = flag(value).ok_or_else(|| wrong_kind("flag, true or false"))?;
                Box::new(move |item| match attributes.columns.get(at).and_then(|column| column.get(item)) {
                    Some(Value::Flag(flag)) => (flag == wanted) == wants,
                    _ => !wants,
                })
            }
            Some(Column::Texts { distinct, .. }) => {
                // A text that no item has is a code that no item has.
                let wanted = distinct.iter().position(|text| **text == *value).map(|code| code as u32);
                Box::new(move |item| match attributes.columns.get(at) {
                    Some(Column::Texts { codes, .. }) => {
                        let code = codes.get(item.get()).copied().filter(|code| *code != NO_TEXT);
                        (code.is_some() && code == wanted) == wants
                    }
                    _ => !wants,
                })
            }
            None => return Err(format!("items have no attribute '{name}'")),
        })
    }
}
