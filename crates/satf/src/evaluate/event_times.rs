//! When events happened, as files of results have it.
//!
//! They are written as prepared logs have them: in Parquet as timestamps in UTC, in CSV as whole seconds or ISO date-times; the row
//! number in logs without times. They are read in any spelling that other programs make of that, and from files of earlier
//! releases, which had whole microseconds in either format.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray, TimestampMicrosecondArray};

use crate::data::time;
use crate::interactions::Clock;
use crate::prepare::Holdout;

/// The times of all events as a column for Parquet.
pub(super) fn column(holdout: &Holdout) -> ArrayRef {
    let times = holdout.events.iter().map(|event| event.time.0);
    match holdout.clock {
        Clock::Calendar => Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC")),
        Clock::RowOrder => Arc::new(Int64Array::from_iter_values(times)),
    }
}

/// The times of all events as a column for CSV; `None` if one is not in the years 0 to 9999.
pub(super) fn text_column(holdout: &Holdout) -> Option<ArrayRef> {
    let times = || holdout.events.iter().map(|event| event.time.0);
    let is_row_number = holdout.clock == Clock::RowOrder;
    let in_seconds = !is_row_number && time::are_whole_seconds(times());
    let text = |micros: i64| match micros {
        number if is_row_number => Some(number.to_string()),
        micros if in_seconds => Some((micros / 1_000_000).to_string()),
        micros => time::to_iso(micros),
    };
    Some(Arc::new(times().map(|micros| text(micros).map(Some)).collect::<Option<StringArray>>()?))
}

/// Times as they were read.
#[derive(Clone, Debug)]
pub(super) enum EventTimes {
    /// Microseconds since 1970, UTC.
    Moments(Vec<i64>),
    /// Numbers without a unit.
    Numbers(Vec<i64>),
}

/// What numbers without a unit are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The unit in which the largest of them is a time of our days.
    ByMagnitude,
    /// Microseconds, as earlier releases wrote them. It tells them from seconds where times are near 1970.
    Micros,
}

impl Reading {
    pub(super) const ALL: [Reading; 2] = [Reading::ByMagnitude, Reading::Micros];
}

impl EventTimes {
    /// The times of a column of texts: all of them numbers, or all dates and date-times.
    pub(super) fn parse(texts: &[String]) -> Result<Self, String> {
        let unlike = |text: &String| {
            format!(
                "timestamp '{text}': expected a whole number, a date or a date-time of ISO 8601, like the other times of the file"
            )
        };
        let is_moments = texts.first().is_some_and(|text| time::micros_of_date(text).is_some());
        let read = if is_moments { time::micros_of_date } else { whole_number };
        let values: Result<Vec<i64>, String> =
            texts.iter().map(|text| read(text).ok_or_else(|| unlike(text))).collect();
        values.map(if is_moments { EventTimes::Moments } else { EventTimes::Numbers })
    }

    /// Microseconds since 1970.
    pub(super) fn micros(&self, reading: Reading) -> Vec<i64> {
        match self {
            EventTimes::Moments(micros) => micros.clone(),
            EventTimes::Numbers(numbers) if reading == Reading::Micros => numbers.clone(),
            EventTimes::Numbers(numbers) => {
                time::micros_of_numbers(numbers).unwrap_or_else(|| numbers.clone())
            }
        }
    }
}

/// `7`, and `7.0`, which some programs make of it.
fn whole_number(text: &str) -> Option<i64> {
    /// Up to here every whole number has a double of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<Vec<i64>, String> {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        EventTimes::parse(&texts).map(|times| times.micros(Reading::ByMagnitude))
    }

    #[test]
    fn one_moment_has_many_spellings() {
        let micros = 1_400_000_000_000_000;
        for text in [
            "1400000000",
            "1400000000.0",
            "1400000000000",
            "1400000000000000",
            "1.4e15",
            "1400000000000000000",
            "2014-05-13T16:53:20Z",
            "2014-05-13 16:53:20+00:00",
            "2014-05-13 18:53:20+02:00",
            "2014-05-13 16:53:20",
            "2014-05-13T16:53:20.000000000Z",
        ] {
            assert_eq!(read(&[text]), Ok(vec![micros]), "{text}");
        }
        assert_eq!(read(&["2014-05-13"]), Ok(vec![1_399_939_200_000_000]));
        // The largest says what all are.
        assert_eq!(read(&["5", "1400000000000000"]), Ok(vec![5, micros]));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for texts in [&["noon"][..], &[""], &["1.5"], &["nan"], &["1", "2014-05-13"], &["2014-05-13", "1"]] {
            assert!(read(texts).unwrap_err().contains("timestamp '"), "{texts:?}");
        }
    }
}
