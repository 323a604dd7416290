//! Offsets that suit a log, for callers who give none.

use super::offset::{Offset, Unit};
use super::split::{Split, SplitScheme};
use super::ties::Timeline;
use crate::interactions::{Clock, Interaction, Timestamp};

/// Offsets tried by [`suggest_offset`], shortest first.
const USUAL_OFFSETS: [&str; 12] = [
    "1day", "3days", "1week", "2weeks", "3weeks", "1month", "6weeks", "2months", "3months", "4months",
    "6months", "1year",
];

/// The shortest usual offset, for validation and test sets alike, that leaves either of them at least `rows` rows
/// and training the larger half of the log; `None` if there is no such offset or the log has no times.
pub fn suggest_offset(timeline: &Timeline<'_>, rows: usize) -> Option<Offset> {
    USUAL_OFFSETS.iter().filter_map(|text| text.parse::<Offset>().ok()).find(|&offset| {
        let Ok(split) = Split::new(timeline.clone(), SplitScheme::Calendar { valid: offset, test: offset })
        else {
            return false;
        };
        let [train, valid, test] = split.rows();
        valid >= rows && test >= rows && train > valid + test
    })
}

/// Units tried by [`suggest_offsets_by_share`], longest first.
const UNITS_TRIED: [Unit; 4] = [Unit::Day, Unit::Hour, Unit::Minute, Unit::Second];

/// Offsets of the validation set and of the test set that leave either of them about this share of the rows: for logs that
/// no usual offset suits, because they thin out towards their end, say. In days where that is fine enough, else in hours,
/// minutes or seconds. `None` if training would not be left the larger half, or if the log has no times.
pub fn suggest_offsets_by_share(timeline: &Timeline<'_>, share: f64) -> Option<(Offset, Offset)> {
    if timeline.log.clock() == Clock::RowOrder {
        return None;
    }
    let rows = &timeline.rows;
    let wanted = ((rows.len() as f64 * share).ceil() as usize).max(1);
    UNITS_TRIED.into_iter().find_map(|unit| {
        let last = rows.last()?.time;
        let (test, test_from) = cut_off(rows, last, wanted, unit)?;
        let (before_test, test_rows) = rows.split_at(up_to(rows, test_from));
        let (valid, valid_from) = cut_off(before_test, test_from, wanted, unit)?;
        let (train, valid_rows) = before_test.split_at(up_to(before_test, valid_from));
        let held_back = valid_rows.len() + test_rows.len();
        (train.len() > held_back && held_back <= 4 * wanted).then_some((valid, test))
    })
}

/// The shortest offset back from `end` behind which so many rows lie, and where it cuts.
fn cut_off(rows: &[Interaction], end: Timestamp, wanted: usize, unit: Unit) -> Option<(Offset, Timestamp)> {
    let oldest_held_back = rows.len().checked_sub(wanted)?;
    let offset = Offset::longer_than(end.0.checked_sub(rows.get(oldest_held_back)?.time.0)?, unit)?;
    Some((offset, offset.before(end)?))
}

/// How many rows happened at this time or before.
fn up_to(rows: &[Interaction], time: Timestamp) -> usize {
    rows.partition_point(|row| row.time <= time)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::interactions::Interactions;
    use crate::prepare::TiePolicy;
    use crate::prepare::testing::log;

    const DAY: i64 = 86_400;

    fn parts(log: &Interactions, offsets: (Offset, Offset)) -> [usize; 3] {
        let scheme = SplitScheme::Calendar { valid: offsets.0, test: offsets.1 };
        Split::new(Timeline::new(log, TiePolicy::File, 0), scheme).unwrap().rows()
    }

    fn suggested(log: &Interactions) -> Option<(Offset, Offset)> {
        suggest_offsets_by_share(&Timeline::new(log, TiePolicy::File, 0), 0.1)
    }

    /// 20,000 rows over 18 years, most of them early: the square of what is left goes by.
    fn thinning() -> Interactions {
        let years = |at: f64| (1.0 - (1.0 - at / 20_000.0).sqrt()) * 18.0 * 365.0 * DAY as f64;
        let rows: Vec<(i64, i64, i64)> =
            (0..20_000).map(|at| (at % 97, (at * at) % 83, years(at as f64) as i64)).collect();
        log(&rows)
    }

    #[test]
    fn a_log_that_thins_out_is_cut_by_its_rows() {
        let log = thinning();
        assert_eq!(suggest_offset(&Timeline::new(&log, TiePolicy::File, 0), 400), None);
        let offsets = suggested(&log).unwrap();
        let [train, valid, test] = parts(&log, offsets);
        assert!((2000..2100).contains(&valid) && (2000..2100).contains(&test), "{valid} {test}");
        assert!(train > 15_500);
        assert!(offsets.0.to_string().ends_with("days"), "{offsets:?}");
    }

    #[test]
    fn a_short_log_is_cut_in_finer_units() {
        let rows: Vec<(i64, i64, i64)> = (0..1000).map(|at| (at % 7, at % 11, at * 10)).collect();
        let log = log(&rows);
        let offsets = suggested(&log).unwrap();
        assert_eq!(parts(&log, offsets), [796, 102, 102]);
        assert_eq!((offsets.0.to_string(), offsets.1.to_string()), ("17minutes".into(), "17minutes".into()));
    }

    #[test]
    fn what_cannot_be_cut_gets_no_suggestion() {
        let at_once: Vec<(i64, i64, i64)> = (0..100).map(|at| (at % 7, at % 11, 5)).collect();
        assert_eq!(suggested(&log(&at_once)), None);
        let timed = thinning();
        let (users, items) = (Arc::clone(timed.users()), Arc::clone(timed.items()));
        let ordered = Interactions::from_indexed(users, items, timed.rows().to_vec(), Clock::RowOrder);
        assert_eq!(suggested(&ordered), None);
        assert_eq!(suggested(&log(&[(1, 1, 1)])), None);
    }
}
