//! What was counted of the pairs of some items, kept so that the evidence of any key can be had of it.

use rayon::prelude::*;

use super::super::memory::{Evidence, Finisher};
use crate::counts::{PairCounter, PairRows, RowCounter, Sums};
use crate::interactions::ItemIndex;
use crate::models::ModelError;
use crate::monitor::{Monitor, check_cancelled};

/// Sources that are counted as one piece of parallel work.
const SOURCES_A_CHUNK: usize = 64;

/// Rows of pairs with those sums that are not 0: most pairs have few.
pub(super) struct PairTable {
    /// By item; empty for those without a row.
    ranges: Vec<(u32, u32)>,
    /// By pair.
    targets: Vec<ItemIndex>,
    ends: Vec<u32>,
    /// By sum: its place in [`Sums`] and its value.
    places: Vec<u8>,
    values: Vec<f32>,
}

#[derive(Default)]
struct Chunk {
    row_ends: Vec<usize>,
    targets: Vec<ItemIndex>,
    /// How many sums each pair has.
    lens: Vec<u8>,
    places: Vec<u8>,
    values: Vec<f32>,
}

impl Chunk {
    fn push(&mut self, target: ItemIndex, sums: &Sums) {
        let before = self.places.len();
        for (place, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0) {
            self.places.push(place as u8);
            self.values.push(sum as f32);
        }
        self.targets.push(target);
        self.lens.push((self.places.len() - before) as u8);
    }
}

impl PairTable {
    /// Counts the pairs of the sources, ascending, and what they tell of their direction. Of each row the `row_limit` strongest are kept, as
    /// the finisher sees them before a target's weight is multiplied with `scale`.
    pub(super) fn new(
        counter: &PairCounter<'_>,
        sources: &[ItemIndex],
        finisher: &Finisher,
        scale: &[f32],
        row_limit: usize,
        monitor: &dyn Monitor,
    ) -> Result<(Self, Evidence), ModelError> {
        let chunks: Vec<(Chunk, Evidence)> = sources
            .par_chunks(SOURCES_A_CHUNK)
            .map_init(
                || (RowCounter::new(counter.num_items()), Vec::new()),
                |(row, strengths), sources| {
                    check_cancelled(monitor)?;
                    let (mut chunk, mut evidence) = (Chunk::default(), Evidence::default());
                    for &source in sources {
                        counter.count(source, row);
                        evidence.add_kept_row(row);
                        if row.len() > row_limit {
                            let strength =
                                |item: ItemIndex, sums: &Sums| finisher.seen(sums) as f32 * scale[item.get()];
                            row.keep_strongest(row_limit, strengths, strength);
                        }
                        row.drain(|target, sums| chunk.push(target, sums));
                        chunk.row_ends.push(chunk.targets.len());
                    }
                    Ok((chunk, evidence))
                },
            )
            .collect::<Result<_, ModelError>>()?;
        let (chunks, evidence): (Vec<_>, Vec<_>) = chunks.into_iter().unzip();
        let none = Evidence::of_distances(counter.distances());
        let evidence = evidence.iter().fold(none, Evidence::add);
        Ok((PairTable::of_chunks(counter.num_items(), sources, chunks), evidence))
    }

    fn of_chunks(num_items: usize, sources: &[ItemIndex], chunks: Vec<Chunk>) -> Self {
        let mut table = PairTable {
            ranges: vec![(0, 0); num_items],
            targets: Vec::new(),
            ends: Vec::new(),
            places: Vec::new(),
            values: Vec::new(),
        };
        let mut sources = sources.iter();
        for chunk in chunks {
            let before = table.targets.len();
            let mut start = before;
            for (end, source) in chunk.row_ends.iter().zip(&mut sources) {
                table.ranges[source.get()] = (start as u32, (before + end) as u32);
                start = before + end;
            }
            let mut end = table.places.len() as u32;
            table.ends.extend(chunk.lens.iter().map(|&len| {
                end += u32::from(len);
                end
            }));
            table.targets.extend_from_slice(&chunk.targets);
            table.places.extend_from_slice(&chunk.places);
            table.values.extend_from_slice(&chunk.values);
        }
        table
    }

    /// The pairs of an item: where they stand among all pairs.
    pub(super) fn row(&self, item: ItemIndex) -> std::ops::Range<usize> {
        let (start, end) = self.ranges[item.get()];
        start as usize..end as usize
    }

    /// The other item of every pair.
    pub(super) fn targets(&self) -> &[ItemIndex] {
        &self.targets
    }

    /// The evidence of every pair, in as many ways as there are finishers.
    pub(super) fn evidence<const N: usize>(&self, finishers: &[Finisher; N]) -> Vec<[f32; N]> {
        let of_pair = |pair: usize| {
            let start = if pair == 0 { 0 } else { self.ends[pair - 1] } as usize;
            let range = start..self.ends[pair] as usize;
            let sums = self.places[range.clone()].iter().zip(&self.values[range]);
            let sums = sums.map(|(&place, &value)| (usize::from(place), f64::from(value)));
            std::array::from_fn(|at| finishers[at].evidence_of(sums.clone()) as f32)
        };
        (0..self.targets.len()).into_par_iter().with_min_len(1024).map(of_pair).collect()
    }
}
