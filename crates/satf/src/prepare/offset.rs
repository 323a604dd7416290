//! Calendar offsets such as `3weeks` or `4months`, counted back from a point in time.

use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::{SignedDuration, Span};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::interactions::Timestamp;

/// Where times are counted from.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// A length of calendar time. Months and years follow the calendar in UTC: one month before 31 March is the
/// last day of February.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offset {
    count: u32,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    const ALL: [(Unit, &'static str); 7] = [
        (Unit::Second, "second"),
        (Unit::Minute, "minute"),
        (Unit::Hour, "hour"),
        (Unit::Day, "day"),
        (Unit::Week, "week"),
        (Unit::Month, "month"),
        (Unit::Year, "year"),
    ];

    /// Microseconds of a unit that is always equally long.
    fn micros(self) -> Option<i64> {
        let seconds = match self {
            Unit::Second => 1,
            Unit::Minute => 60,
            Unit::Hour => 3_600,
            Unit::Day => 86_400,
            Unit::Week => 7 * 86_400,
            Unit::Month | Unit::Year => return None,
        };
        Some(seconds * 1_000_000)
    }
}

/// An offset that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offset '{0}': expected a whole number and a unit, such as 3weeks, 4months, 1day or 12hours")]
pub struct OffsetError(String);

impl Offset {
    /// The shortest offset in whole units that is longer than so many microseconds; `None` for units without a fixed
    /// length, or if it would be too long.
    pub(super) fn longer_than(micros: i64, unit: Unit) -> Option<Self> {
        let count = micros.max(0) / unit.micros()? + 1;
        Some(Offset { count: u32::try_from(count).ok()?, unit })
    }

    /// The point in time this much earlier, or `None` before the calendar begins.
    pub fn before(self, time: Timestamp) -> Option<Timestamp> {
        // Dates of a calendar without zones: the last day of the year 9999 is one of them, and no moment of every zone.
        let moment = EPOCH.checked_add(SignedDuration::from_micros(time.0)).ok()?;
        let earlier = moment.checked_sub(self.span()?).ok()?;
        i64::try_from(earlier.duration_since(EPOCH).as_micros()).ok().map(Timestamp)
    }

    fn span(self) -> Option<Span> {
        let count = i64::from(self.count);
        match self.unit {
            Unit::Second => Span::new().try_seconds(count),
            Unit::Minute => Span::new().try_minutes(count),
            Unit::Hour => Span::new().try_hours(count),
            Unit::Day => Span::new().try_days(count),
            Unit::Week => Span::new().try_weeks(count),
            Unit::Month => Span::new().try_months(count),
            Unit::Year => Span::new().try_years(count),
        }
        .ok()
    }
}

/// As text, such as `3weeks`.
impl Serialize for Offset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl FromStr for Offset {
    type Err = OffsetError;

    fn from_str(text: &str) -> Result<Self, OffsetError> {
        let error = || OffsetError(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).ok_or_else(error)?;
        let (count, unit) = trimmed.split_at(digits);
        let count = count.parse::<u32>().map_err(|_| error())?;
        let unit = unit.trim_start_matches([' ', '_', '-']).to_ascii_lowercase();
        let singular = unit.strip_suffix('s').unwrap_or(&unit);
        let (unit, _) = Unit::ALL.into_iter().find(|(_, name)| *name == singular).ok_or_else(error)?;
        if count == 0 {
            return Err(error());
        }
        Ok(Offset { count, unit })
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = Unit::ALL[self.unit as usize];
        write!(f, "{}{name}{}", self.count, if self.count == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
    }

    #[test]
    fn months_clamp_to_the_last_day() {
        let one: Offset = "1months".parse().unwrap();
        assert_eq!(one.before(at("2014-03-31T12:00:00Z")), Some(at("2014-02-28T12:00:00Z")));
        assert_eq!(one.before(at("2012-03-31T00:00:00Z")), Some(at("2012-02-29T00:00:00Z")));
        let four: Offset = "4 months".parse().unwrap();
        assert_eq!(four.before(at("2003-02-28T17:49:50Z")), Some(at("2002-10-28T17:49:50Z")));
    }

    #[test]
    fn weeks_and_days_are_plain_time() {
        let weeks: Offset = "3weeks".parse().unwrap();
        assert_eq!(weeks.before(at("2014-07-23T00:00:00Z")), Some(at("2014-07-02T00:00:00Z")));
        let day: Offset = "1day".parse().unwrap();
        assert_eq!(day.before(Timestamp(0)), Some(Timestamp(-86_400_000_000)));
        // 9999-12-31T00:00:00Z, which people write for "never".
        assert_eq!(day.before(Timestamp(253_402_214_400_000_000)), Some(Timestamp(253_402_128_000_000_000)));
    }

    #[test]
    fn offsets_read_back_as_they_print() {
        for text in ["3weeks", "1day", "4months", "12hours", "2years", "90seconds", "5minutes"] {
            let offset: Offset = text.parse().unwrap();
            assert_eq!(offset.to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_and_too_far_back_is_none() {
        for text in ["", "weeks", "3", "-3weeks", "3lightyears", "0days", "1.5days", "99999999999days"] {
            assert!(text.parse::<Offset>().is_err(), "{text}");
        }
        assert_eq!("20000years".parse::<Offset>().unwrap().before(Timestamp(0)), None);
        assert_eq!("4000000000years".parse::<Offset>().unwrap().before(Timestamp(0)), None);
    }
}
