//! Numbers as people read them.

use satf::evaluate::ResampleUnit;
use satf::numbers::Count;

/// A count with its digits in groups: `1,000,209`.
pub fn count(number: usize) -> String {
    Count::of(number).to_string()
}

/// A duration in a fitting unit: `40 ms`, `4.2 s`, `12 min`, `3 h 05 min`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.995 => format!("{:.0} ms", 1000.0 * seconds),
        seconds if seconds < 99.95 => format!("{seconds:.1} s"),
        seconds if seconds < 5970.0 => format!("{:.0} min", seconds / 60.0),
        seconds => {
            let minutes = (seconds / 60.0).round() as u64;
            format!("{} h {:02} min", minutes / 60, minutes % 60)
        }
    }
}

/// What a standard error takes for one observation, in words. Releases that did not say it took events.
pub fn unit_words(unit: Option<ResampleUnit>) -> &'static str {
    match unit {
        Some(ResampleUnit::User) => "clustered by user",
        Some(ResampleUnit::Event) | None => "as if all events were independent",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn durations_have_fitting_units() {
        let shown: Vec<String> = [0.04, 99.9, 100.0, 1500.0, 5969.0, 11_100.0].map(super::duration).to_vec();
        assert_eq!(shown, ["40 ms", "99.9 s", "2 min", "25 min", "99 min", "3 h 05 min"]);
    }

    #[test]
    fn counts_are_grouped() {
        let shown: Vec<String> = [0, 12, 999, 1000, 1_000_209].map(super::count).to_vec();
        assert_eq!(shown, ["0", "12", "999", "1,000", "1,000,209"]);
    }
}
