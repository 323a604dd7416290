//! The customers of the made-up shop: who comes when, and what they take.
//!
//! A customer joins at some day, likes a few departments, and comes back in sessions with days or weeks between
//! them. Every product taken is *reached* from the last one (a little further on its shelf: interests deepen from
//! the beginner's goods to the specialist's), or *followed* to (one of the last few leads to it, the newest
//! counting most), or *started* (from a liked department, whatever came before), or *explored* (from the whole
//! shop). Nobody takes a product twice.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::GenerateError;
use super::catalog::Catalog;
use super::draw::{DAY, log_normal, stream, weighted};
use crate::fault::Fault;
use crate::interactions::{Clock, Ids, Interaction, Interactions, ItemIndex, Timestamp, UserIndex, compact};
use crate::monitor::{Cancelled, Monitor, check_cancelled};
use crate::numbers::Count;

/// What the log of the made-up shop looks like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShopOptions {
    /// Number of customers, from 1 to 5,000,000. Default 4000; each has 5 to 60 rows, half of them 10 or fewer.
    pub users: usize,
    /// The same seed gives the same log. Default 1.
    pub seed: u64,
    /// Days the log spans from 2024-01-01 UTC, from 7 to 3650. Default 365.
    pub days: u32,
    /// The part of the products taken out of curiosity, from anywhere in the shop, from 0 to 1. Default 0.18.
    pub exploration: f64,
}

impl Default for ShopOptions {
    fn default() -> Self {
        ShopOptions { users: 4000, seed: 1, days: 365, exploration: 0.18 }
    }
}

impl ShopOptions {
    /// `Ok` if every value lies in its range.
    pub fn check(&self) -> Result<(), GenerateError> {
        let mut faults = Vec::new();
        if !(1..=MAX_USERS).contains(&self.users) {
            let expected =
                format!("1 to {}: the shop is made in memory, a shape of rows is not", Count::of(MAX_USERS));
            faults.push(Fault::new("users", self.users, expected));
        }
        if !(7..=3650).contains(&self.days) {
            faults.push(Fault::new("days", self.days, "7 to 3,650, from a week to ten years"));
        }
        if !(0.0..=1.0).contains(&self.exploration) {
            faults.push(Fault::new("exploration", self.exploration, "0 to 1"));
        }
        GenerateError::from_faults(faults)
    }
}

/// About a gigabyte of rows.
const MAX_USERS: usize = 5_000_000;

/// 2024-01-01 00:00:00 UTC, in seconds.
const OPENING: i64 = 1_704_067_200;

/// Shortest and longest history.
const HISTORY: (usize, usize) = (5, 60);

/// The most products of one session. With [`LONGEST_PAUSE`] it keeps a session within its day.
const LARGEST_SESSION: usize = 6;

/// The longest time between two products of a session, in seconds.
const LONGEST_PAUSE: f64 = 600.0;

/// How likely a session begins at 7, 8, ... 22 o'clock.
const HOURS: [f64; 16] = [2., 3., 3., 4., 4., 5., 6., 4., 4., 4., 5., 6., 8., 9., 8., 5.];

/// How much a product counts as the origin of the next, by how many others were taken since.
const LAGS: [f64; 4] = [0.7, 0.17, 0.09, 0.04];

/// How fast the leads of a product lose weight from the likeliest to the last: a power of the rank.
const LEAD_DECAY: f64 = 1.2;

/// How often a journey goes on rather than a new one being started, within a session and at its beginning.
const FOLLOW: (f64, f64) = (0.8, 0.5);

/// How often the next product is reached along the shelf, and how many places away at most.
const REACH: (f64, usize) = (0.42, 12);

/// What remains of a product's appeal for somebody who took what it leads to: they have the like of it already.
const OWNED: f64 = 0.3;

/// Makes the log of the made-up shop: rows in time order, products' names as item ids, `user-00042` as user ids.
///
/// Products are left out if nobody took them, which only happens with few customers.
pub fn shop(options: &ShopOptions) -> Result<Interactions, GenerateError> {
    shop_with(options, &())
}

/// The same as [`shop`], with a monitor that sees the customers one by one and may stop it.
pub fn shop_with(options: &ShopOptions, monitor: &dyn Monitor) -> Result<Interactions, GenerateError> {
    options.check()?;
    let catalog = Catalog::get();
    monitor.begin("generating", options.users as u64);
    let histories: Vec<Vec<Taken>> = (0..options.users)
        .into_par_iter()
        .map(|user| {
            check_cancelled(monitor)?;
            monitor.advance(1);
            Ok(Customer::new(catalog, options, user).play())
        })
        .collect::<Result<_, Cancelled>>()?;

    let mut order: Vec<usize> = (0..catalog.products.len()).collect();
    order.sort_unstable_by_key(|&product| catalog.products[product].name);
    let mut by_name = vec![0u32; order.len()];
    for (rank, &product) in order.iter().enumerate() {
        by_name[product] = rank as u32;
    }
    let taken = histories.iter().flatten().map(|taken| by_name[taken.product]);
    let (kept, ranks) = compact(order.len(), taken);
    let names = kept.iter().map(|&rank| catalog.products[order[rank as usize]].name.into()).collect();

    let mut rows: Vec<Interaction> = Vec::with_capacity(histories.iter().map(Vec::len).sum());
    for (user, history) in histories.iter().enumerate() {
        rows.extend(history.iter().map(|taken| Interaction {
            user: UserIndex(user as u32),
            item: ItemIndex(ranks[by_name[taken.product] as usize]),
            time: Timestamp::from_seconds(OPENING + taken.seconds),
        }));
    }
    // No user has two rows at one time: the key has no ties, so an unstable sort has one outcome.
    rows.par_sort_unstable_by_key(|row| (row.time, row.user));

    let width = options.users.to_string().len().max(5);
    let users = (1..=options.users).map(|number| format!("user-{number:0width$}").into()).collect();
    Ok(Interactions::from_ranked(Ids::Texts(users), Ids::Texts(names), rows, Clock::Calendar))
}

/// One row of a customer's history.
struct Taken {
    /// A position in [`Catalog::products`].
    product: usize,
    /// Seconds since [`OPENING`].
    seconds: i64,
}

/// One customer in the middle of its history.
struct Customer<'a> {
    catalog: &'a Catalog,
    options: &'a ShopOptions,
    rng: ChaCha8Rng,
    /// The day of the first session; users are numbered in the order in which they join.
    joined: u32,
    /// Liked departments, each with how much.
    tastes: Vec<(usize, f64)>,
    /// Whether a product was taken already.
    has: Vec<bool>,
    history: Vec<Taken>,
}

impl<'a> Customer<'a> {
    fn new(catalog: &'a Catalog, options: &'a ShopOptions, user: usize) -> Self {
        let mut rng = stream(options.seed, user as u64);
        let place = (user as f64 + rng.random::<f64>()) / options.users as f64;
        let joined = (0.97 * place.powf(1.3) * f64::from(options.days)) as u32;
        let mut weights: Vec<f64> = catalog.departments.iter().map(|department| department.weight).collect();
        let mut tastes = Vec::new();
        for rank in 1..=rng.random_range(1..=4) {
            if let Some(department) = weighted(&mut rng, weights.iter().copied().enumerate()) {
                weights[department] = 0.0;
                tastes.push((department, f64::from(rank).powf(-1.5)));
            }
        }
        let has = vec![false; catalog.products.len()];
        Customer { catalog, options, rng, joined, tastes, has, history: Vec::new() }
    }

    /// The whole history, oldest first.
    fn play(mut self) -> Vec<Taken> {
        for (day, size) in self.sessions() {
            let hour = weighted(&mut self.rng, HOURS.iter().copied().enumerate()).unwrap_or(0) as i64 + 7;
            let mut seconds = i64::from(day) * DAY + hour * 3600 + self.rng.random_range(0..3600);
            for at in 0..size {
                let follow = if at == 0 { FOLLOW.1 } else { FOLLOW.0 };
                let Some(product) = self.next_product(seconds, follow) else { break };
                self.has[product] = true;
                self.history.push(Taken { product, seconds });
                seconds += log_normal(&mut self.rng, 100.0, 1.0).clamp(5.0, LONGEST_PAUSE) as i64;
            }
        }
        self.history
    }

    /// Days with a session, ascending, and how many products each takes.
    fn sessions(&mut self) -> Vec<(u32, usize)> {
        let mut days_left = (self.options.days - self.joined) as usize;
        let wanted = HISTORY.0 + log_normal(&mut self.rng, 5.6, 0.85) as usize;
        // Who joins late has not bought much yet, but always the shortest history.
        let mut rows_left = wanted.min(HISTORY.1).min(HISTORY.0 - 1 + days_left);
        let mut sizes = Vec::new();
        while rows_left > 0 {
            let drawn = 1 + log_normal(&mut self.rng, 1.4, 0.7) as usize;
            // Never so few that the days left cannot hold the rest; never more than a session may have: the
            // history is at most `LARGEST_SESSION` times the days, and each step keeps it so.
            let size = drawn.min(LARGEST_SESSION).max(rows_left.div_ceil(days_left)).min(rows_left);
            sizes.push(size);
            rows_left -= size;
            days_left -= 1;
        }
        let pauses: Vec<f64> = sizes.iter().skip(1).map(|_| log_normal(&mut self.rng, 12.0, 1.1)).collect();
        // Each session has a day of its own; pauses share the days that remain, shortened if these are too few.
        let room = (self.options.days - self.joined) as usize - sizes.len();
        let scale = (room as f64 / pauses.iter().sum::<f64>()).min(1.0);
        let mut day = self.joined;
        let mut sessions = Vec::with_capacity(sizes.len());
        for (at, size) in sizes.into_iter().enumerate() {
            if at > 0 {
                day += 1 + (scale * pauses[at - 1]) as u32;
            }
            sessions.push((day, size));
        }
        sessions
    }

    /// What is taken at `seconds`, where a journey goes on with probability `follow`. `None` if nothing is left.
    fn next_product(&mut self, seconds: i64, follow: f64) -> Option<usize> {
        let now = seconds as f64 / (f64::from(self.options.days) * DAY as f64);
        let explores = self.rng.random::<f64>() < self.options.exploration;
        let reaches = self.rng.random::<f64>() < REACH.0;
        let follows = self.rng.random::<f64>() < follow;
        let mut product = None;
        if !explores {
            product = if reaches { self.reached(now) } else { None };
            product = product.or_else(|| if follows { self.followed(now) } else { None });
            product = product.or_else(|| self.started(now));
        }
        product.or_else(|| self.drawn_from(0..self.catalog.products.len(), now))
    }

    /// A product a little further on the shelf of the last one.
    fn reached(&mut self, now: f64) -> Option<usize> {
        let last = &self.catalog.products[self.history.last()?.product];
        let shelf = self.catalog.departments[last.department].shelf.iter().copied();
        self.drawn_from(shelf.skip(last.place + 1).take(REACH.1), now)
    }

    /// A product that one of the last few leads to.
    fn followed(&mut self, now: f64) -> Option<usize> {
        let (catalog, has) = (self.catalog, &self.has);
        let leads = self.history.iter().rev().zip(LAGS).flat_map(|(origin, lag)| {
            let next = catalog.products[origin.product].leads_to.iter().enumerate();
            next.map(move |(rank, &product)| (product, lag / (rank as f64 + 1.0).powf(LEAD_DECAY)))
        });
        let leads = leads.filter(|&(product, _)| !has[product] && catalog.products[product].launch <= now);
        weighted(&mut self.rng, leads)
    }

    /// A product of a liked department.
    fn started(&mut self, now: f64) -> Option<usize> {
        let department = weighted(&mut self.rng, self.tastes.iter().copied())?;
        self.drawn_from(self.catalog.departments[department].shelf.iter().copied(), now)
    }

    /// One of `products` by its own appeal.
    fn drawn_from(&mut self, products: impl Iterator<Item = usize> + Clone, now: f64) -> Option<usize> {
        let (catalog, has) = (self.catalog, &self.has);
        let on_sale = products.filter(|&product| !has[product] && catalog.products[product].launch <= now);
        let wanted = on_sale.map(|at| {
            let product = &catalog.products[at];
            let owned = product.leads_to.iter().any(|&next| has[next]);
            (at, if owned { OWNED * product.appeal } else { product.appeal })
        });
        weighted(&mut self.rng, wanted)
    }
}

#[cfg(test)]
mod tests;
