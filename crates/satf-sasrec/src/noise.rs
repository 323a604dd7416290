//! Random numbers that depend on where they are used and on nothing else.
//!
//! A number is a hash of a key (seed, step, place in the network) and of an index. Nothing is drawn one after the other, so
//! there is no state to keep: threads may come in any order, the backward pass makes the masks of the forward pass again, and
//! a training that goes on from a checkpoint sees what an unbroken one sees.

// Code that is not inlined is not compiled for the vector registers that its caller was dispatched to.
#![allow(clippy::inline_always)]

use crate::number::Number;

/// The finaliser of SplitMix64: every bit of the input changes half of the output.
#[inline(always)]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Steps of SplitMix64's counter.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where random numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Noise(u64);

impl Noise {
    /// The source of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Noise(mix(seed.wrapping_add(STEP)))
    }

    /// One of its sources, by number.
    pub(crate) fn at(self, number: u64) -> Self {
        Noise(mix(self.0 ^ mix(number.wrapping_mul(STEP).wrapping_add(STEP))))
    }

    /// The number at an index: 64 random bits.
    #[inline(always)]
    pub(crate) fn bits(self, index: u64) -> u64 {
        mix(self.0.wrapping_add(index.wrapping_mul(STEP)))
    }

    /// A number below `bound`, which is at least 1; all are equally likely but for one part in $2^{32}$.
    pub(crate) fn below(self, index: u64, bound: u32) -> u32 {
        (((self.bits(index) >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// Which values dropout keeps; those are scaled so that the mean stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mask {
    noise: Noise,
    /// Of $2^{16}$ random numbers the lowest ones drop a value.
    dropped: u16,
}

/// Values that share the bits of one random number.
const SHARING: usize = 4;

impl Mask {
    /// Drops a share of `rate` of all values, 0 to below 1, to the nearest $2^{-16}$.
    pub(crate) fn new(noise: Noise, rate: f64) -> Self {
        Mask { noise, dropped: (rate * 65_536.0).round() as u16 }
    }

    /// What the values that are kept are multiplied with.
    pub(crate) fn scale(&self) -> f64 {
        65_536.0 / (65_536.0 - f64::from(self.dropped))
    }

    /// What the values of a row are multiplied with: calls `apply(place, factor)` for each.
    #[inline(always)]
    pub(crate) fn for_row<T: Number>(&self, first: u64, len: usize, mut apply: impl FnMut(usize, T)) {
        let factors = [T::of(0.0), T::of(self.scale())];
        let factor =
            |bits: u64, place: usize| factors[usize::from((bits >> (16 * place)) as u16 >= self.dropped)];
        let sharing = SHARING as u64;
        let before = ((sharing - first % sharing) % sharing).min(len as u64) as usize;
        let whole = before + (len - before) / SHARING * SHARING;
        let bits_at = |at: usize| self.noise.bits((first + at as u64) / sharing);
        for at in (0..before).chain(whole..len) {
            apply(at, factor(bits_at(at), ((first + at as u64) % sharing) as usize));
        }
        for at in (before..whole).step_by(SHARING) {
            let bits = bits_at(at);
            (0..SHARING).for_each(|place| apply(at + place, factor(bits, place)));
        }
    }
}

#[cfg(test)]
// Values are equal to the last bit or the test fails.
#[allow(clippy::float_cmp)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_keeps_its_share_and_does_not_depend_on_how_it_is_read() {
        let mask = Mask::new(Noise::new(7).at(3), 0.3);
        let mut whole = vec![f64::NAN; 100_001];
        mask.for_row(0, whole.len(), |at, factor| whole[at] = factor);
        let mean = whole.iter().sum::<f64>() / whole.len() as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!(whole.iter().all(|&factor| factor == 0.0 || factor == mask.scale()));
        assert!((mask.scale() - 1.0 / 0.7).abs() < 1e-4);
        let mut parts = vec![f64::NAN; whole.len()];
        let mut first = 0;
        for len in [1, 2, 3, 5, 8, 13].into_iter().cycle() {
            let len = len.min(whole.len() - first);
            mask.for_row(first as u64, len, |at, factor| parts[first + at] = factor);
            first += len;
            if first == whole.len() {
                break;
            }
        }
        assert_eq!(whole, parts);
    }

    #[test]
    fn sources_differ_and_numbers_fill_their_range() {
        let mut counts = [0; 10];
        (0..100_000).for_each(|index| counts[Noise::new(1).at(2).below(index, 10) as usize] += 1);
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
        let bits = |noise: Noise| (0..4).map(|index| noise.bits(index)).collect::<Vec<_>>();
        let sources = [Noise::new(1), Noise::new(2), Noise::new(1).at(0), Noise::new(1).at(1), Noise::new(0)];
        for (at, a) in sources.iter().enumerate() {
            assert!(sources[at + 1..].iter().all(|b| bits(*a) != bits(*b)));
        }
    }
}
