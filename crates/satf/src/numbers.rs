//! Numbers as people read them.

use std::fmt;

/// A count with its digits in groups: `1,000,209`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

impl Count {
    /// A count of something that is in memory.
    pub fn of(number: usize) -> Self {
        Count(number as u64)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No memory is asked for: it may have run out.
        let mut group = 1;
        while self.0 / group >= 1000 {
            group *= 1000;
        }
        write!(f, "{}", self.0 / group)?;
        while group > 1 {
            group /= 1000;
            write!(f, ",{:03}", self.0 / group % 1000)?;
        }
        Ok(())
    }
}

/// So many of something: `1 row`, `1,000 rows`.
///
/// ```
/// use satf::numbers::counted;
///
/// assert_eq!(counted(1, "history").to_string(), "1 history");
/// assert_eq!(counted(158_404, "pair").to_string(), "158,404 pairs");
/// ```
pub fn counted(number: usize, noun: &str) -> Counted<'_> {
    Counted { number: number as u64, noun }
}

/// The word that goes with a number: `is` with 1, `are` with any other.
pub fn agreeing<'w>(number: usize, one: &'w str, many: &'w str) -> &'w str {
    if number == 1 { one } else { many }
}

/// See [`counted`].
#[derive(Clone, Copy, Debug)]
pub struct Counted<'n> {
    number: u64,
    noun: &'n str,
}

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted { number, noun } = *self;
        write!(f, "{} ", Count(number))?;
        match noun.strip_suffix('y') {
            _ if number == 1 => f.write_str(noun),
            // A vowel before it keeps it: days, but histories.
            Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => write!(f, "{stem}ies"),
            _ => write!(f, "{noun}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups() {
        let shown = [0, 999, 1000, 10_203, 1_000_209, 4_000_000_000, u64::MAX].map(|n| Count(n).to_string());
        let expected =
            ["0", "999", "1,000", "10,203", "1,000,209", "4,000,000,000", "18,446,744,073,709,551,615"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn one_is_not_many() {
        let shown = [(0, "row"), (1, "row"), (2, "row"), (1, "history"), (1200, "history"), (2, "day")]
            .map(|(number, noun)| counted(number, noun).to_string());
        assert_eq!([0, 1, 2].map(|number| agreeing(number, "is", "are")), ["are", "is", "are"]);
        assert_eq!(shown, ["0 rows", "1 row", "2 rows", "1 history", "1,200 histories", "2 days"]);
    }
}
