//! Times as files have them, into microseconds since 1970 in UTC.

use std::path::Path;

use jiff::civil::{Date, DateTime};

use super::error::{Fault, Place, Position};
use super::field::Field;
use super::ledger::Rejection;
use super::{DataError, TimeKind, TimeUnit};

/// 0000-01-01T00:00:00 and 9999-12-31T23:59:59.999999, in microseconds since 1970.
pub(crate) const EARLIEST: i64 = -62_167_219_200_000_000;
pub(crate) const LATEST: i64 = 253_402_300_799_999_999;

const EPOCH: Date = Date::constant(1970, 1, 1);

/// Seconds from here on would be read as milliseconds by [`TimeUnit::Auto`].
pub(super) const AUTO_SECONDS_END: u64 = 100_000_000_000;

/// Turns times into microseconds and sees to it that they go together.
pub(super) struct TimeReader {
    unit: TimeUnit,
    /// The unit found out from the first time that is not zero, and where that stands.
    found: Option<(TimeUnit, Place)>,
    /// Whether the file's times are numbers, once one is known.
    numbers: Option<bool>,
    /// Whether the file has times of a type that says what they are.
    has_moments: bool,
    doubt: Doubt,
    /// Times finer than a microsecond, which were rounded to it.
    finer: u64,
}

/// The numbers of a file whose unit is found out: how many of them look like dates.
#[derive(Clone, Copy, Default)]
struct Doubt {
    /// The first that does.
    first: Option<i64>,
    dates: u64,
    /// Those that do not. Zero stands for no time in many files, and tells nothing.
    others: u64,
}

/// A time as it stands in the file.
enum Given {
    Integer(i64),
    Float(f64),
    /// In microseconds, and whether it was finer.
    Date(i64, bool),
}

impl TimeReader {
    pub(super) fn new(unit: TimeUnit) -> Self {
        TimeReader { unit, found: None, numbers: None, has_moments: false, doubt: Doubt::default(), finer: 0 }
    }

    /// What the times of the file are, as far as it is read.
    pub(super) fn kind(&self) -> TimeKind {
        match self.numbers {
            Some(true) => TimeKind::Numbers,
            Some(false) => TimeKind::Dates,
            None if self.has_moments => TimeKind::Dates,
            None => TimeKind::None,
        }
    }

    /// The first time of the file that looks like a date such as 20240517, if most of them do and were taken for seconds.
    ///
    /// Of counts of seconds in the range of dates, fewer than one in twenty has digits that are a month and a day.
    pub(super) fn doubtful_dates(&self) -> Option<i64> {
        self.doubt.first.filter(|_| self.doubt.dates > self.doubt.others)
    }

    /// Looks at a number whose unit is to be found out.
    fn look_for_date(&mut self, number: f64) {
        // What is too large for an integer saturates, and is no date either.
        let whole = (number.fract() == 0.0).then_some(number as i64);
        match whole {
            Some(0) => {}
            Some(date) if LIKELY_DATES.contains(&date) && from_date(date).is_some() => {
                self.doubt.first.get_or_insert(date);
                self.doubt.dates += 1;
            }
            _ => self.doubt.others += 1,
        }
    }

    /// How many times so far were finer than a microsecond, and were rounded to it.
    pub(super) fn finer(&self) -> u64 {
        self.finer
    }

    /// Another file may have dates where this one has numbers.
    pub(super) fn begin_file(&mut self) {
        (self.numbers, self.has_moments, self.doubt) = (None, false, Doubt::default());
    }

    /// The time in microseconds, or what is wrong with it in the given column.
    pub(super) fn read(
        &mut self,
        field: &Field<'_>,
        column: Option<&str>,
        path: &Path,
        position: Position,
    ) -> Result<i64, Rejection> {
        let fault = |expected: &str, found: String| {
            Rejection::Row(Box::new(Fault {
                column: column.map(Into::into),
                found: found.into(),
                expected: expected.into(),
                hint: None,
            }))
        };
        let given = match field {
            Field::Micros(micros) => {
                self.has_moments = true;
                return in_range(*micros).ok_or_else(|| fault(RANGE, field.shown()));
            }
            Field::Nanos(nanos) => {
                self.has_moments = true;
                let micros = in_range(nanos.div_euclid(1_000)).ok_or_else(|| fault(RANGE, field.shown()))?;
                self.finer += u64::from(nanos % 1_000 != 0);
                return Ok(micros);
            }
            Field::Integer(number) => Given::Integer(*number),
            Field::Unsigned(number) => Given::Float(*number as f64),
            Field::Float(number) => Given::Float(*number),
            Field::Plain(text) | Field::Text(text) => {
                parse(text).ok_or_else(|| fault("a time (a number, a date or a date-time)", field.shown()))?
            }
            Field::Other(_) | Field::List(_) | Field::Missing => {
                return Err(fault("a time", field.shown()));
            }
        };
        let is_number = !matches!(given, Given::Date(..));
        if self.numbers.is_some_and(|numbers| numbers != is_number) {
            let expected =
                if is_number { "a date like those above it" } else { "a number like the times above it" };
            return Err(fault(expected, field.shown()));
        }
        let number = match given {
            Given::Integer(number) => Some(number as f64),
            Given::Float(number) => Some(number),
            Given::Date(..) => None,
        };
        let micros = match given {
            Given::Date(micros, is_finer) => {
                self.finer += u64::from(is_finer);
                in_range(micros)
            }
            Given::Integer(0) if self.unit != TimeUnit::Yyyymmdd => Some(0),
            Given::Integer(number) => {
                let unit = self.unit_of(number.unsigned_abs() as f64);
                let micros = from_integer(number, unit);
                if micros.is_some() {
                    self.agree(unit, || field.shown(), path, position)?;
                }
                self.finer += u64::from(unit == TimeUnit::Nanoseconds && number % 1_000 != 0);
                micros
            }
            Given::Float(number) => {
                let unit = self.unit_of(number.abs());
                let micros = from_float(number, unit);
                if micros.is_some() && number != 0.0 {
                    self.agree(unit, || field.shown(), path, position)?;
                }
                if let Field::Plain(text) | Field::Text(text) = field {
                    self.finer += u64::from(has_finer_digits(text, unit));
                }
                micros
            }
        };
        let range = if self.unit == TimeUnit::Yyyymmdd { "a date such as 20240517" } else { RANGE };
        let micros = micros.ok_or_else(|| fault(range, field.shown()))?;
        self.numbers = Some(is_number);
        if let Some(number) = number.filter(|_| self.unit == TimeUnit::Auto) {
            self.look_for_date(number);
        }
        Ok(micros)
    }

    fn unit_of(&self, magnitude: f64) -> TimeUnit {
        match self.unit {
            TimeUnit::Auto => unit_by_magnitude(magnitude),
            told => told,
        }
    }

    fn agree(
        &mut self,
        unit: TimeUnit,
        value: impl FnOnce() -> String,
        path: &Path,
        position: Position,
    ) -> Result<(), Rejection> {
        if self.found.as_ref().is_some_and(|(first, _)| *first == unit) {
            return Ok(());
        }
        let place = Place { path: path.to_owned(), position, value: value(), looks_like: unit.name() };
        if let Some((_, first)) = &self.found {
            let (first, second) = (Box::new(first.clone()), Box::new(place));
            return Err(Rejection::Log(DataError::MixedTimeUnits { first, second }));
        }
        self.found = Some((unit, place));
        Ok(())
    }
}

/// The unit in which a number so large is a time of our days.
fn unit_by_magnitude(magnitude: f64) -> TimeUnit {
    match magnitude {
        seconds if seconds < AUTO_SECONDS_END as f64 => TimeUnit::Seconds,
        milliseconds if milliseconds < 1e14 => TimeUnit::Milliseconds,
        microseconds if microseconds < 1e17 => TimeUnit::Microseconds,
        _ => TimeUnit::Nanoseconds,
    }
}

const RANGE: &str = "a time in the years 0 to 9999";

fn in_range(micros: i64) -> Option<i64> {
    (EARLIEST..=LATEST).contains(&micros).then_some(micros)
}

fn from_integer(number: i64, unit: TimeUnit) -> Option<i64> {
    in_range(match unit {
        TimeUnit::Auto | TimeUnit::Seconds => number.checked_mul(1_000_000)?,
        TimeUnit::Milliseconds => number.checked_mul(1_000)?,
        TimeUnit::Microseconds => number,
        TimeUnit::Nanoseconds => number.div_euclid(1_000),
        TimeUnit::Yyyymmdd => from_date(number)?,
    })
}

/// Numbers that are more likely dates of our days than seconds of 1970: 1900-01-01 to 2100-12-31.
const LIKELY_DATES: std::ops::RangeInclusive<i64> = 19_000_101..=21_001_231;

/// A date whose digits are year, month and day.
fn from_date(number: i64) -> Option<i64> {
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    let date =
        Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    Some(date.duration_since(EPOCH).as_secs() * 1_000_000)
}

fn from_float(number: f64, unit: TimeUnit) -> Option<i64> {
    let micros = match unit {
        // What is not whole, or too large to be exact, is no date.
        TimeUnit::Yyyymmdd if number.fract() == 0.0 && number.abs() < 1e9 => return from_date(number as i64),
        TimeUnit::Yyyymmdd => return None,
        TimeUnit::Auto | TimeUnit::Seconds => number * 1e6,
        TimeUnit::Milliseconds => number * 1e3,
        TimeUnit::Microseconds => number,
        TimeUnit::Nanoseconds => number / 1e3,
    }
    .round();
    // NaN and infinities fail the comparison; the conversion of what is left is exact or saturates.
    if micros.abs() <= 2.0 * LATEST as f64 { in_range(micros as i64) } else { None }
}

/// Whether a text could be a time.
pub(super) fn looks_like_time(text: &[u8]) -> bool {
    parse(text).is_some()
}

fn parse(text: &[u8]) -> Option<Given> {
    let text = text.trim_ascii();
    if let Some(number) = parse_integer(text) {
        return Some(Given::Integer(number));
    }
    if let Some(micros) = parse_date(text) {
        return Some(Given::Date(micros, false));
    }
    // No time is longer, and neither parser need see a novel.
    if text.len() > 64 {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(number) = text.parse::<f64>() {
        return Some(Given::Float(number));
    }
    let nanos = parse_date_time(text)?;
    let micros = i64::try_from(nanos.div_euclid(1_000)).ok()?;
    Some(Given::Date(micros, nanos % 1_000 != 0))
}

fn parse_integer(text: &[u8]) -> Option<i64> {
    let (digits, is_negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    // 18 digits always fit, and nanoseconds of our days have 19.
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut number = 0i64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
    }
    Some(if is_negative { -number } else { number })
}

/// `2017-12-17`, the fast way.
fn parse_date(text: &[u8]) -> Option<i64> {
    let &[y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = text else { return None };
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0i16, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i16::from(digit - b'0'))
        })
    };
    let date =
        Date::new(number(&[y0, y1, y2, y3])?, number(&[m0, m1])? as i8, number(&[d0, d1])? as i8).ok()?;
    Some(date.duration_since(EPOCH).as_secs() * 1_000_000)
}

/// Whether a number has digits after the point that stand for less than a microsecond. One with an exponent is not looked into.
fn has_finer_digits(text: &[u8], unit: TimeUnit) -> bool {
    let kept = match unit {
        TimeUnit::Auto | TimeUnit::Seconds => 6,
        TimeUnit::Milliseconds => 3,
        TimeUnit::Microseconds | TimeUnit::Nanoseconds | TimeUnit::Yyyymmdd => 0,
    };
    let fraction = text.trim_ascii().split(|byte| *byte == b'.').nth(1).unwrap_or_default();
    let is_plain = fraction.iter().all(u8::is_ascii_digit);
    is_plain && fraction.iter().skip(kept).any(|digit| *digit != b'0')
}

/// Any other date or date-time of ISO 8601, in nanoseconds since 1970, with `T` or a space, with or without a zone; also ` UTC` for a
/// zone.
fn parse_date_time(text: &str) -> Option<i128> {
    let in_utc = ["Z", "z", "UTC", "GMT"].iter().find_map(|zone| text.strip_suffix(zone));
    if let Some(local) = in_utc {
        return parse_local(local.trim_end());
    }
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => Some(time.as_nanosecond()),
        // No zone, or a moment so early or late that some zone has no date for it.
        Err(_) => match split_offset(text) {
            Some((local, seconds)) => Some(parse_local(local)? - i128::from(seconds) * 1_000_000_000),
            None => parse_local(text),
        },
    }
}

/// A date-time without its distance from UTC, such as `+02:00`, and this distance in seconds.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    let time = text.get(10..)?;
    let (local, offset) = text.split_at(10 + time.rfind(['+', '-'])?);
    let digits: String = offset[1..].chars().filter(|&character| character != ':').collect();
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = digits.split_at(2);
    let seconds = hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().unwrap_or(0) * 60;
    Some((local.trim_end(), if offset.starts_with('-') { -seconds } else { seconds }))
}

fn parse_local(text: &str) -> Option<i128> {
    // A zone by name, which needs a database, would be passed over.
    if text.contains('[') {
        return None;
    }
    let local: DateTime = text.parse().ok()?;
    let since = local.duration_since(DateTime::from_parts(EPOCH, jiff::civil::Time::midnight()));
    Some(since.as_nanos())
}

/// The times of numbers that all have one unit, told by the largest of them; `None` if one is out of range.
pub(crate) fn micros_of_numbers(numbers: &[i64]) -> Option<Vec<i64>> {
    let largest = numbers.iter().map(|number| number.unsigned_abs()).max().unwrap_or(0);
    let unit = unit_by_magnitude(largest as f64);
    numbers.iter().map(|&number| from_integer(number, unit)).collect()
}

/// The time of a date or a date-time of ISO 8601; `None` for numbers and everything else.
pub(crate) fn micros_of_date(text: &str) -> Option<i64> {
    match parse(text.as_bytes())? {
        Given::Date(micros, _) => in_range(micros),
        Given::Integer(_) | Given::Float(_) => None,
    }
}

/// Whether times are whole seconds, and unmistakable as such: small enough that nobody takes them for milliseconds.
pub(crate) fn are_whole_seconds(mut micros: impl Iterator<Item = i64>) -> bool {
    micros.all(|micros| micros % 1_000_000 == 0 && (micros / 1_000_000).unsigned_abs() < AUTO_SECONDS_END)
}

/// A time in microseconds as an ISO date-time in UTC, with as much of a fraction as it has.
pub(crate) fn to_iso(micros: i64) -> Option<String> {
    let epoch = DateTime::from_parts(EPOCH, jiff::civil::Time::midnight());
    let time = epoch.checked_add(jiff::SignedDuration::from_micros(micros)).ok()?;
    (time.year() >= 0).then(|| format!("{time}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_with(unit: TimeUnit, texts: &[&str]) -> Result<Vec<i64>, String> {
        let mut reader = TimeReader::new(unit);
        texts
            .iter()
            .enumerate()
            .map(|(at, text)| {
                let (field, position) = (Field::Plain(text.as_bytes()), Position::Line(at as u64 + 1));
                let read = reader.read(&field, Some("time"), Path::new("log"), position);
                read.map_err(|rejection| match rejection {
                    Rejection::Row(fault) => fault.at(Path::new("log"), position).to_string(),
                    Rejection::Log(error) => error.to_string(),
                })
            })
            .collect()
    }

    fn read(text: &str) -> Option<i64> {
        read_with(TimeUnit::Auto, &[text]).ok().map(|micros| micros[0])
    }

    #[test]
    fn units_go_by_magnitude() {
        let day = 1_500_000_000_000_000;
        for text in [
            "1500000000",
            "1500000000000",
            "1500000000000000",
            "1500000000000000000",
            "1.5e9",
            "1500000000.0",
        ] {
            assert_eq!(read(text), Some(day), "{text}");
        }
        // Exact to the last digit, which floating point is not.
        assert_eq!(read("1500000000000000999"), Some(day));
        assert_eq!(read("1500000000000001000"), Some(day + 1));
        assert_eq!(read("-1500000000000000001"), Some(-day - 1));
        assert_eq!(read("1500000000.123456"), Some(day + 123_456));
        assert_eq!(read("-86400"), Some(-86_400_000_000));
        assert_eq!(read("-86400.5"), Some(-86_400_500_000));
        assert_eq!(read_with(TimeUnit::Milliseconds, &["5"]), Ok(vec![5_000]));
        assert_eq!(read_with(TimeUnit::Nanoseconds, &["-1"]), Ok(vec![-1]));
    }

    #[test]
    fn dates_are_read_in_utc() {
        let midnight = 1_513_468_800_000_000;
        let time = midnight + (10 * 3600 + 11 * 60 + 12) * 1_000_000;
        assert_eq!(read("2017-12-17"), Some(midnight));
        for text in [
            "2017-12-17T10:11:12",
            "2017-12-17 10:11:12",
            " 2017-12-17T10:11:12Z ",
            "2017-12-17 12:11:12+02:00",
            "2017-12-17 10:11:12 UTC",
            "2017-12-17T10:11:12.000000999Z",
        ] {
            assert_eq!(read(text), Some(time), "{text}");
        }
        // The last day of the last year has no date in every zone, but its distance from UTC counts.
        assert_eq!(read("9999-12-31T10:00:00+02:00"), read("9999-12-31T08:00:00Z"));
        assert_eq!(read("9999-12-31T20:30:00-0200"), read("9999-12-31T22:30:00Z"));
        assert!(read_with(TimeUnit::Auto, &["9999-12-31T23:59:59-02:00"]).is_err());
        assert_eq!(read("2017-12-17T10:11:12.25"), Some(time + 250_000));
        assert_eq!(read("0000-01-01"), Some(EARLIEST));
        assert_eq!(read("9999-12-31T23:59:59.999999Z"), Some(LATEST));
        for text in [
            "2017-02-30",
            "2017-13-01",
            "17 Dec 2017",
            "",
            "soon",
            "2017-12-17T",
            "-000001-01-01",
            "2017-12-17T10:11:12[Europe/Paris]",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn times_finer_than_a_microsecond_are_counted() {
        let finer = |unit, texts: &[&str]| {
            let mut reader = TimeReader::new(unit);
            for text in texts {
                let field = Field::Plain(text.as_bytes());
                assert!(reader.read(&field, None, Path::new("log"), Position::Line(1)).is_ok(), "{text}");
            }
            reader.finer()
        };
        let auto = |texts: &[&str]| finer(TimeUnit::Auto, texts);
        assert_eq!(auto(&["1500000000000000001", "1500000000000000999", "1500000000000001000"]), 2);
        assert_eq!(
            auto(&["2017-12-17T10:11:12.000000001Z", "2017-12-17T10:11:12.000001000", "2017-12-17"]),
            1
        );
        assert_eq!(auto(&["2017-12-17 10:11:12.1234567+02:00"]), 1);
        assert_eq!(auto(&["1500000000.1234567", "1500000000.123456000", "1500000000", "1.5e9"]), 1);
        assert_eq!(finer(TimeUnit::Microseconds, &["7.5", "7.0", "7"]), 1);
        let mut reader = TimeReader::new(TimeUnit::Auto);
        for nanos in [1_500_000_000_000_000_001, 1_500_000_000_000_001_000] {
            assert!(reader.read(&Field::Nanos(nanos), None, Path::new("log"), Position::Row(1)).is_ok());
        }
        assert_eq!(reader.finer(), 1);
    }

    #[test]
    fn numbers_that_are_no_time_are_refused() {
        for text in ["nan", "inf", "-inf", "1e300", "-70000000000", "99999999999999999999999"] {
            assert!(read_with(TimeUnit::Auto, &[text]).unwrap_err().contains("years 0 to 9999"), "{text}");
        }
        assert!(read_with(TimeUnit::Seconds, &["999999999999"]).is_err());
        assert!(read_with(TimeUnit::Seconds, &["999999999999999999"]).is_err());
    }

    #[test]
    fn units_must_agree_but_zero_goes_with_all() {
        let fine = read_with(TimeUnit::Auto, &["0", "1500000000000", "0.0", "1500000000001"]);
        assert_eq!(fine, Ok(vec![0, 1_500_000_000_000_000, 0, 1_500_000_000_001_000]));
        let message = read_with(TimeUnit::Auto, &["1500000000", "1500000000000"]).unwrap_err();
        for part in
            ["1500000000\" (log, line 1) looks like seconds", "(log, line 2) like milliseconds", "time_unit"]
        {
            assert!(message.contains(part), "{message}");
        }
        assert!(read_with(TimeUnit::Auto, &["2017-12-17", "1500000000"]).is_err());
        assert!(read_with(TimeUnit::Auto, &["1500000000", "2017-12-17"]).is_err());
    }

    #[test]
    fn iso_spelling_reads_back() {
        for micros in [0, 1, -1, 1_513_468_800_250_000, EARLIEST, LATEST - 86_400_000_000, LATEST] {
            let text = to_iso(micros).unwrap();
            assert_eq!(read(&text), Some(micros), "{text}");
        }
    }
}
