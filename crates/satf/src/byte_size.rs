//! Sizes in bytes, as people read them.

use std::fmt;

/// A number of bytes, shown as `12 bytes`, `1.5 KiB` or `1.9 GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// The units and how many times two each is doubled, largest first.
const UNITS: [(u32, &str); 6] =
    [(60, "EiB"), (50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];

/// Decimals beyond which two sizes that still look alike are shown in bytes.
const MOST_DECIMALS: usize = 3;

impl ByteSize {
    /// The size beside another one that it is compared with: with as many decimals as it takes to tell them apart, or in
    /// bytes.
    #[must_use]
    pub fn beside(self, other: ByteSize) -> String {
        let told_apart = (1..=MOST_DECIMALS)
            .find(|&decimals| self == other || self.rounded(decimals) != other.rounded(decimals));
        told_apart.map_or_else(|| format!("{} bytes", self.0), |decimals| self.rounded(decimals))
    }

    fn rounded(self, decimals: usize) -> String {
        format!("{self:.decimals$}")
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No memory is asked for: it may have run out.
        let decimals = formatter.precision().unwrap_or(1);
        match UNITS.into_iter().find(|(power, _)| self.0 >> power > 0) {
            Some((power, unit)) => {
                write!(formatter, "{:.decimals$} {unit}", self.0 as f64 / (1u64 << power) as f64)
            }
            None if self.0 == 1 => formatter.write_str("1 byte"),
            None => write!(formatter, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let shown = [0, 1, 12, 1023, 1536, 30 << 20, 2_040_109_465, 3 << 40, u64::MAX]
            .map(|bytes| ByteSize(bytes).to_string());
        let expected = [
            "0 bytes",
            "1 byte",
            "12 bytes",
            "1023 bytes",
            "1.5 KiB",
            "30.0 MiB",
            "1.9 GiB",
            "3.0 TiB",
            "16.0 EiB",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn sizes_that_are_compared_never_look_alike() {
        let both = |a: u64, b: u64| (ByteSize(a).beside(ByteSize(b)), ByteSize(b).beside(ByteSize(a)));
        let texts = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(both(4 << 30, 1 << 30), texts("4.0 GiB", "1.0 GiB"));
        assert_eq!(both((1 << 30) + (1 << 23), 1 << 30), texts("1.01 GiB", "1.00 GiB"));
        assert_eq!(both((1 << 30) + 1, 1 << 30), texts("1073741825 bytes", "1073741824 bytes"));
        assert_eq!(both(1 << 30, 1 << 30), texts("1.0 GiB", "1.0 GiB"));
    }
}
