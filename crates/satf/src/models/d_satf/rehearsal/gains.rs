//! How well events are predicted, with several candidates at once.

use rayon::prelude::*;

use super::pair_table::PairTable;
use super::stage::Stage;
use crate::interactions::{ItemIndex, UserIndex};
use crate::prepare::History;
use crate::ranking::ndcg;

/// Length of the lists that are judged.
pub(super) const CUTOFF: usize = 10;

/// Items that are ranked between two looks whether the target is in a list at all.
pub(super) const ITEMS_A_LOOK: usize = 32;

/// Sums of one event by item, several lanes beside each other, and which of them are in use.
struct Lanes<const N: usize> {
    sums: Vec<[f32; N]>,
    /// The event that touched an item last, and the one that has seen it.
    touched_by: Vec<u32>,
    seen_by: Vec<u32>,
    touched: Vec<ItemIndex>,
    event: u32,
}

impl<const N: usize> Lanes<N> {
    fn new(num_items: usize) -> Self {
        Lanes {
            sums: vec![[0.0; N]; num_items],
            touched_by: vec![0; num_items],
            seen_by: vec![0; num_items],
            touched: Vec::new(),
            event: 0,
        }
    }

    /// The next event: nothing is touched or seen.
    fn begin(&mut self, seen: &[ItemIndex]) {
        self.event += 1;
        self.touched.clear();
        for item in seen {
            self.seen_by[item.get()] = self.event;
        }
    }

    /// Adds a row, whose evidence is one for all lanes or one for each.
    #[expect(
        clippy::inline_always,
        reason = "only inlined it is compiled for the widest registers there are"
    )]
    #[inline(always)]
    fn add<const M: usize>(&mut self, targets: &[ItemIndex], evidence: &[[f32; M]], weights: [f32; N]) {
        for (&target, evidence) in targets.iter().zip(evidence) {
            let evidence: [f32; N] = std::array::from_fn(|lane| evidence[lane.min(M - 1)]);
            let at = target.get();
            if self.touched_by[at] == self.event {
                for ((sum, weight), value) in self.sums[at].iter_mut().zip(weights).zip(evidence) {
                    *sum += weight * value;
                }
            } else {
                self.touched_by[at] = self.event;
                self.touched.push(target);
                self.sums[at] = std::array::from_fn(|lane| weights[lane] * evidence[lane]);
            }
        }
    }

    /// The ranks of the target among all items but those seen, lane by lane; beyond the cutoff where nothing speaks for it. A rank beyond
    /// the cutoff may be too low.
    fn ranks(&self, scale: &[f32], target: ItemIndex) -> [u32; N] {
        let at = target.get();
        if self.touched_by[at] != self.event {
            return [CUTOFF as u32; N];
        }
        let of_target = self.sums[at].map(|sum| sum * scale[at]);
        let mut ranks = of_target.map(|score| if score > 0.0 { 0 } else { CUTOFF as u32 });
        for some in self.touched.chunks(ITEMS_A_LOOK) {
            for &item in some {
                let at = item.get();
                if self.seen_by[at] == self.event {
                    continue;
                }
                let (scale, is_lower) = (scale[at], item < target);
                for lane in 0..N {
                    let score = self.sums[at][lane] * scale;
                    let is_before = if is_lower { score >= of_target[lane] } else { score > of_target[lane] };
                    ranks[lane] += u32::from(is_before);
                }
            }
            if ranks.iter().all(|&rank| rank >= CUTOFF as u32) {
                break;
            }
        }
        ranks
    }
}

/// Items of a history with what each of them counts, lane by lane.
pub(super) type Weighted<const N: usize> = Vec<(ItemIndex, [f32; N])>;

/// NDCG@10 of every event: for every scale of targets, and within it for every lane, a list of gains.
///
/// A score is the sum over `weighted` of weight times evidence, times the scale of the target.
pub(super) fn gains<const N: usize, const M: usize>(
    stage: &Stage<'_>,
    events: &[(UserIndex, usize)],
    table: &PairTable,
    evidence: &[[f32; M]],
    weighted: impl Fn(History<'_>) -> Weighted<N> + Sync,
    scales: &[Vec<f32>],
) -> Vec<Vec<f64>> {
    let by_event: Vec<Vec<f32>> = events
        .par_iter()
        .with_min_len(16)
        .map_init(
            || Lanes::<N>::new(stage.popularity.len()),
            |lanes, &event| {
                let (past, target) = stage.event(event);
                lanes.begin(past.items());
                pulp::Arch::new().dispatch(|| {
                    for (item, weights) in weighted(past) {
                        let row = table.row(item);
                        lanes.add(&table.targets()[row.clone()], &evidence[row], weights);
                    }
                });
                let gain = |rank: u32| ndcg(rank as usize, CUTOFF) as f32;
                scales.iter().flat_map(|scale| lanes.ranks(scale, target).map(gain)).collect()
            },
        )
        .collect();
    let candidates = scales.len() * N;
    (0..candidates).map(|at| by_event.iter().map(|gains| f64::from(gains[at])).collect()).collect()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Whether the gains are above others of the same events by more than the standard error of the mean difference, clustered by user as in
/// [`crate::evaluate`]: what may be chance changes nothing. Events are those of one user after those of another.
pub(super) fn is_better(events: &[(UserIndex, usize)], gains: &[f64], others: &[f64]) -> bool {
    let differences: Vec<f64> = gains.iter().zip(others).map(|(gain, other)| gain - other).collect();
    let difference = mean(&differences);
    let mut squares = 0.0;
    let mut rest = &differences[..];
    for of_user in events.chunk_by(|one, other| one.0 == other.0) {
        let (differences, later) = rest.split_at(of_user.len());
        squares += differences.iter().map(|value| value - difference).sum::<f64>().powi(2);
        rest = later;
    }
    difference > squares.sqrt() / differences.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_no_chance_is_better() {
        let events: Vec<(UserIndex, usize)> = (0..100).map(|user| (UserIndex(user), 1)).collect();
        let is_better = |gains: &[f64], others: &[f64]| is_better(&events, gains, others);
        let others: Vec<f64> = (0..100).map(|event| f64::from(event % 7) / 7.0).collect();
        assert!(!is_better(&others, &others));
        let every: Vec<f64> = others.iter().map(|gain| gain + 0.01).collect();
        assert!(is_better(&every, &others) && !is_better(&others, &every));
        // Higher on the whole, but by two events that contradict each other.
        let mut two = others.clone();
        two[0] += 1.0;
        two[1] -= 0.5;
        assert!(!is_better(&two, &others));
    }

    #[test]
    fn many_events_of_one_user_say_no_more_than_the_user() {
        let gains: Vec<f64> = (0..200).map(|event| if event < 100 { 1.0 } else { -0.8 }).collect();
        let others = vec![0.0; 200];
        let of_two: Vec<(UserIndex, usize)> = (0..200).map(|at| (UserIndex(at / 100), 1)).collect();
        let of_many: Vec<(UserIndex, usize)> = (0..200).map(|at| (UserIndex(at), 1)).collect();
        assert!(is_better(&of_many, &gains, &others));
        assert!(!is_better(&of_two, &gains, &others));
    }

    #[test]
    fn items_seen_take_no_place_and_ties_go_to_the_lower_index() {
        let cutoff = CUTOFF as u32;
        let mut lanes = Lanes::<2>::new(4);
        for (seen, target, ranks) in [
            (vec![0], 1, [0, 0]),
            (vec![0], 2, [1, 1]),
            (vec![0, 0, 1], 2, [0, 0]),
            (vec![], 3, [cutoff, cutoff]),
            (vec![3], 2, [2, 1]),
        ] {
            let seen: Vec<ItemIndex> = seen.into_iter().map(ItemIndex).collect();
            let targets: Vec<ItemIndex> = (0..3).map(ItemIndex).collect();
            lanes.begin(&seen);
            lanes.add(&targets, &[[1.5, 0.5], [1.0, 1.0], [1.0, 1.0]], [1.0, 1.0]);
            lanes.add(&targets[..1], &[[1.5, 0.0]], [1.0, 1.0]);
            lanes.add(&targets[1..], &[[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0]);
            assert_eq!(lanes.ranks(&[1.0; 4], ItemIndex(target)), ranks, "{target}");
        }
    }
}
