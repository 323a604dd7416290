//! Counts of a whole log, row by row on all threads: the same as event by event, to the bit.

use rayon::prelude::*;

use super::{Counts, CountsError, CountsOptions, check_room};
use crate::counts::distance::{CLASSES, DistanceSums};
use crate::counts::kept_row::KeptRow;
use crate::counts::pair_rows::PairRows;
use crate::counts::row_counter::{PairCounter, RowCounter};
use crate::counts::vocabulary::Vocabulary;
use crate::interactions::{Interactions, ItemIndex, UserIndex};
use crate::monitor::{Cancelled, Monitor};
use crate::prepare::{Histories, TiePolicy};

/// What is counted of some items.
#[derive(Default)]
struct Chunk {
    rows: Vec<KeptRow>,
    squares: [u128; CLASSES],
}

impl Chunk {
    fn push(&mut self, row: &mut RowCounter) {
        for (sum, squares) in self.squares.iter_mut().zip(row.squares()) {
            *sum += squares;
        }
        let mut kept = KeptRow::with_capacity(row.num_sums());
        row.drain(|target, sums| {
            for (place, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0) {
                kept.push_settled(target.0, place, sum as i64);
            }
        });
        self.rows.push(kept);
    }
}

impl Counts {
    /// The counts of a whole log, whose clock takes the place of that of the options.
    pub fn of(log: &Interactions, options: CountsOptions) -> Result<Self, CountsError> {
        Counts::of_with(log, options, &())
    }

    /// The same with a monitor of the work.
    pub fn of_with(
        log: &Interactions,
        options: CountsOptions,
        monitor: &dyn Monitor,
    ) -> Result<Self, CountsError> {
        check_room(log.len(), options.window)?;
        let (histories, _) = Histories::of_log(log, TiePolicy::Shuffle, options.seed);
        Counts::of_histories(&histories, options, monitor)
    }

    /// The same of histories whose ties stand in the order of the options' seed.
    pub(crate) fn of_histories(
        histories: &Histories,
        options: CountsOptions,
        monitor: &dyn Monitor,
    ) -> Result<Self, CountsError> {
        check_room(histories.num_rows(), options.window)?;
        let options = CountsOptions { clock: histories.clock(), ..options };
        let popularity = histories.popularity();
        let counter = PairCounter::new(&options.counting(), histories, &popularity);
        monitor.begin("counting pairs", popularity.len() as u64);
        let mut chunks: Vec<Chunk> = Vec::new();
        counter.each_item_in_order(
            monitor,
            |row, _, chunk: &mut Chunk| chunk.push(row),
            |chunk| -> Result<(), Cancelled> {
                chunks.push(chunk);
                Ok(())
            },
        )?;
        let mut counts = Counts::new(options);
        counts.distances = DistanceSums::new(options.window).merge(&counter.distances());
        counts.takers = (0..popularity.len() as u32).map(|item| takers(&counter, ItemIndex(item))).collect();
        drop(counter);
        for chunk in chunks {
            counts.rows.extend(chunk.rows);
            counts.squares.iter_mut().zip(chunk.squares).for_each(|(sum, squares)| *sum += squares);
        }
        let history = |user: u32| {
            let (items, times) = (histories.items_of(UserIndex(user)), histories.times_of(UserIndex(user)));
            times.iter().zip(items).map(|(&time, item)| (time, item.0)).collect::<Vec<_>>()
        };
        counts.histories = (0..histories.num_users() as u32).into_par_iter().map(history).collect();
        counts.users = Vocabulary::of(histories.users());
        counts.items = Vocabulary::of(histories.catalog());
        counts.popularity = popularity;
        counts.num_events = histories.num_rows();
        counts.reach(histories.lengths().last().map_or(0, |&(longest, _)| longest));
        Ok(counts)
    }
}

/// The users who took an item.
fn takers(counter: &PairCounter<'_>, item: ItemIndex) -> Vec<u32> {
    let mut takers: Vec<u32> = counter.users_of(item).map(|user| user.0).collect();
    takers.dedup();
    takers
}
