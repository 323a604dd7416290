//! D-SATF: a sparse directed memory and a low-rank directed core.
//!
//! A history $j_0, j_1, \dots$ (newest first) has the scores
//!
//! $$ s_b = \tau_b \sum_l w_l \Bigl( (1 - \beta) \frac{T[j_l, b]}{\sigma_T} + \beta \frac{(V R V^T)[j_l, b]}{\sigma_R} \Bigr), \qquad w_l = (l + 1)^{-\rho} . $$
//!
//! * The memory $T$ ([`memory`]) knows single pairs of items, and how surely they keep their order.
//! * The core $R$ ([`core`]) knows what is like what: pairs that nobody has taken yet.
//! * The trend $\tau_b$ is how much of what was ever taken of $b$ was taken of late, to the power `trend`.
//! * $\sigma_T$ and $\sigma_R$ are the root mean squares of the length of the score vector after a single item drawn from the log, trend
//!   aside, so that the balance $\beta$ means the same on every log.
//!
//! Everything is linear in the weights of a history: the share of an item in a score is its term of the sum.

mod core;
mod memory;
mod needs;
mod recommender;
mod rehearsal;
#[cfg(test)]
mod tests;
mod trend;

use faer::Mat;
use serde::{Deserialize, Serialize};
use toml::Table;

use self::core::{ItemSpace, NormalEquations, second_moments};
use self::memory::MemoryParams;
use self::needs::{Learned, Needs};
use self::recommender::DSatf;
use self::rehearsal::{LARGE_CATALOGUE, rehearse, rehearse_balance};
use self::trend::Trend;
use super::item_rows::ItemRows;
use super::pure_svd::{check_rank, default_rank, rough_item_space, warn_of_rank};
use super::tensors::{StoredTensors, TensorError};
use super::{Fault, LagWeights, Learner, ModelError, Recommender, Snapshot, TrainingMonitor, variant};
use crate::counts::{Counting, Counts, PairCounter, PairRows, most_events};
use crate::interactions::Clock;
use crate::monitor::{Monitor, OnlyCancels};
use crate::numbers::Count;
use crate::prepare::Histories;

/// The rank taken if none is given, where the log allows it.
const DEFAULT_RANK: usize = 500;

/// Rows of the log times columns of the item space, at most, if no rank is given; so the core's cost does not grow with the log.
const MOST_CORE_WORK: usize = 250_000_000;
const LEAST_RANK: usize = 16;

/// Entries of the item space, at most, if no rank is given; so its memory does not grow with the catalogue.
const MOST_FACTORS: usize = 50_000_000;

/// Most columns of the item space with which a rehearsal finds out what a core is worth.
const MOST_REHEARSED_RANK: usize = 200;

/// The model `d-satf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DSatfConfig {
    /// How far apart two positions of one history may be to be a pair: 1 to 100000 (default 50).
    pub window: usize,
    /// Exponent of the fall of a pair's weight with its distance: 0 to 10 (default: learned).
    pub distance_decay: Option<f64>,
    /// How many times a pair taken at one time counts: 0 to 100 (default: learned).
    pub together: Option<f64>,
    /// Exponent of the division of a pair's weight by the position of its later item in the history, from 1: 0 to 2 (default 0.1).
    pub user_power: f64,
    /// How many typical occurrences of a pair it takes until more of them count with their logarithm: 1e-6 to 1e12 (default 30).
    pub saturation: f64,
    /// Exponent of the division by the popularity of the earlier item: 0 to 2 (default 0.25).
    pub source_power: f64,
    /// Exponent of the division by the popularity of the item scored: 0 to 2 (default: learned).
    pub target_power: Option<f64>,
    /// Exponent of the fall of an item's weight with its lag in the history scored: 0 to 10 (default: learned).
    pub recency_decay: Option<f64>,
    /// How much the order of items taken at one time counts in the history scored: 0 (nothing) to 1 (as every other) (default: learned).
    pub basket_order: Option<f64>,
    /// Exponent of the share of an item's events that are recent: 0 (none) to 2 (default: learned; 0 on a log without times).
    pub trend: Option<f64>,
    /// Days after which an event counts 1/e as recent: above 0, at most 1e12 (default 60).
    pub trend_days: f64,
    /// Most pairs that are kept of an item, the strongest: at least 1 (default 2000).
    pub row_limit: usize,
    /// Share of the core in a score: 0 (memory alone, no core is learned) to 1 (core alone) (default: 0.25 in catalogues of up to 20,000
    /// items, learned in larger ones).
    pub balance: Option<f64>,
    /// Columns of the item space: 1 to the smaller of users and items (default: 500, at most a quarter of the items, all users, 2.5e8
    /// divided by the rows of the log, and 5e7 divided by the items).
    pub rank: Option<usize>,
    /// Exponent `s` of the popularity debiasing of the item space, -10 to 10 (default 0.2).
    pub scaling: f64,
    /// Ridge of the core in units of the mean eigenvalue: above 0, at most 1e12 (default 0.1).
    pub regularization: f64,
    /// Newest items of a history that count when it is scored: 1 to 100000 (default 200).
    pub max_len: usize,
    /// Seed of the solver's random start.
    pub seed: u64,
    /// Most memory that training may take, in bytes (default 8 GiB). Pairs that do not fit go to temporary files.
    pub memory_bytes: Option<u64>,
}

/// What is reported of how surely pairs keep their order, kind by kind: 0.5 is noise, 1 is law.
const AGREEMENTS: [&str; memory::KINDS] =
    ["agreement_at_once", "agreement_neighbours", "agreement_near", "agreement_far"];

/// The key that means something only where times are known.
const TREND: &str = "trend";

/// The key that says whether there is a core.
const BALANCE: &str = "balance";

/// What [`DSatfConfig::memory_bytes`] means if it is not given.
const DEFAULT_MEMORY_BYTES: u64 = 8 << 30;

impl Default for DSatfConfig {
    fn default() -> Self {
        DSatfConfig {
            window: 50,
            distance_decay: None,
            together: None,
            user_power: 0.1,
            saturation: 30.0,
            source_power: 0.25,
            target_power: None,
            recency_decay: None,
            basket_order: None,
            trend: None,
            trend_days: 60.0,
            row_limit: 2000,
            balance: None,
            rank: None,
            scaling: 0.2,
            regularization: 0.1,
            max_len: 200,
            seed: 0,
            memory_bytes: None,
        }
    }
}

impl DSatfConfig {
    /// The model's name.
    pub const NAME: &'static str = "d-satf";

    /// The keys that are given, and for the others where learning begins.
    fn keys(&self) -> Keys {
        let start = Keys::default();
        Keys {
            distance_decay: self.distance_decay.unwrap_or(start.distance_decay),
            together: self.together.unwrap_or(start.together),
            target_power: self.target_power.unwrap_or(start.target_power),
            recency_decay: self.recency_decay.unwrap_or(start.recency_decay),
            basket_order: self.basket_order.unwrap_or(start.basket_order),
            trend: self.trend.unwrap_or(start.trend),
        }
    }

    /// The same on a log. Where only the order is known, nothing is recent: the trend is off.
    fn keys_on(&self, histories: &Histories) -> Keys {
        if histories.clock() == Clock::Calendar {
            return self.keys();
        }
        if self.trend.is_some_and(|trend| trend > 0.0) {
            tracing::warn!("d-satf: the log has an order but no times, so {TREND} plays no part");
        } else {
            tracing::info!("d-satf: the log has an order but no times, so there is no {TREND}");
        }
        Keys { trend: 0.0, ..self.keys() }
    }

    /// The columns of the item space.
    fn rank_on(&self, histories: &Histories) -> usize {
        let affordable =
            (MOST_CORE_WORK / histories.num_rows().max(1)).min(MOST_FACTORS / histories.num_items().max(1));
        let affordable = affordable.clamp(LEAST_RANK, DEFAULT_RANK);
        self.rank.unwrap_or_else(|| default_rank(histories, affordable))
    }

    /// What training on these histories takes.
    fn needs(&self, histories: &Histories) -> Needs {
        Needs::of(histories, self.window, self.row_limit, self.rank_on(histories))
    }

    fn allowed_bytes(&self) -> u64 {
        self.memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES)
    }

    /// An error if even what has to be in memory takes more than allowed. Pairs have not: they may be in temporary files.
    fn check_memory(&self, histories: &Histories) -> Result<(), ModelError> {
        let learned = Learned {
            core: self.balance != Some(0.0),
            keys: self.learned_keys().iter().any(|key| *key != BALANCE),
            balance: self.balance.is_none() && histories.num_items() > LARGE_CATALOGUE,
        };
        let (needs, allowed) = (self.needs(histories), self.allowed_bytes());
        let needed = needs.least(learned);
        if needed <= allowed {
            return Ok(());
        }
        let without_core = Learned { core: false, balance: false, ..learned };
        // Only what would help is proposed.
        let hint = if needs.least(without_core) <= allowed {
            "lower rank, leave the core out (balance = 0), or raise memory_bytes"
        } else if needs.least(Learned { keys: false, ..without_core }) <= allowed {
            "leave the core out (balance = 0) and give all keys that are learned from the log, or raise memory_bytes"
        } else {
            "raise memory_bytes"
        };
        let (rows, items) = (Count::of(histories.num_rows()), Count::of(histories.num_items()));
        let core = format!(", and {items} x {} item factors", self.rank_on(histories));
        Err(ModelError::Memory {
            model: Self::NAME,
            what: format!(
                "{rows} rows and rows of pairs of {items} items{}",
                if learned.core { &core } else { "" }
            ),
            needed,
            allowed,
            hint,
        })
    }

    /// The keys that can be learned, as far as they are given.
    fn learned(&self) -> [(&'static str, Option<f64>, f64); 7] {
        [
            ("distance_decay", self.distance_decay, 10.0),
            ("together", self.together, 100.0),
            ("target_power", self.target_power, 2.0),
            ("recency_decay", self.recency_decay, 10.0),
            ("basket_order", self.basket_order, 1.0),
            (TREND, self.trend, 2.0),
            (BALANCE, self.balance, 1.0),
        ]
    }
}

/// The keys that can be learned from the log ([`rehearsal`]).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Keys {
    distance_decay: f64,
    together: f64,
    target_power: f64,
    recency_decay: f64,
    basket_order: f64,
    trend: f64,
}

impl Default for Keys {
    fn default() -> Self {
        Keys {
            distance_decay: 0.5,
            together: 2.0,
            target_power: 0.2,
            recency_decay: 1.0,
            basket_order: 0.0,
            trend: 0.3,
        }
    }
}

/// The keys that are taken as they are given.
#[derive(Clone, Copy, Debug)]
struct GivenParams {
    counting: Counting,
    saturation: f64,
    source_power: f64,
    trend_days: f64,
    max_len: usize,
    row_limit: usize,
}

impl Keys {
    /// $w_l = (l + 1)^{-\rho}$; items taken at one time share theirs as far as their order tells nothing.
    fn lag_weights(&self, max_len: usize) -> LagWeights {
        let weights = (0..max_len).map(|lag| (lag as f64 + 1.0).powf(-self.recency_decay)).collect();
        LagWeights::ByBasket { weights, order: self.basket_order }
    }

    fn memory_params(&self, given: &GivenParams) -> MemoryParams {
        let &Keys { distance_decay, together, target_power, .. } = self;
        let &GivenParams { saturation, source_power, row_limit, .. } = given;
        MemoryParams { distance_decay, together, saturation, source_power, target_power, row_limit }
    }

    /// Every key by its name.
    fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("distance_decay", self.distance_decay),
            ("together", self.together),
            ("target_power", self.target_power),
            ("recency_decay", self.recency_decay),
            ("basket_order", self.basket_order),
            (TREND, self.trend),
        ]
    }
}

impl Learner for DSatfConfig {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn check(&self) -> Result<(), ModelError> {
        let mut faults = Vec::new();
        for (field, value) in [("window", self.window), ("max_len", self.max_len)] {
            if !(1..=100_000).contains(&value) {
                faults.push(Fault::new(field, value, "1 to 100000"));
            }
        }
        let ranges = [
            ("user_power", self.user_power, 0.0, 2.0),
            ("saturation", self.saturation, 1e-6, 1e12),
            ("source_power", self.source_power, 0.0, 2.0),
            ("scaling", self.scaling, -10.0, 10.0),
        ];
        let given =
            self.learned().into_iter().filter_map(|(field, value, most)| Some((field, value?, 0.0, most)));
        for (field, value, least, most) in ranges.into_iter().chain(given) {
            if !(least..=most).contains(&value) {
                faults.push(Fault::new(field, value, format!("{least} to {most}")));
            }
        }
        for (field, value) in [("trend_days", self.trend_days), ("regularization", self.regularization)] {
            if !(value > 0.0 && value <= 1e12) {
                faults.push(Fault::new(field, value, "above 0, at most 1e12"));
            }
        }
        for (field, value) in [("rank", self.rank), ("row_limit", Some(self.row_limit))] {
            if value == Some(0) {
                faults.push(Fault::new(field, 0, "at least 1"));
            }
        }
        ModelError::from_faults(Self::NAME, faults)
    }

    fn check_on(&self, histories: &Histories) -> Result<(), ModelError> {
        self.check()?;
        let most = most_events(self.window);
        if histories.num_rows() > most {
            let expected = format!("few enough for {} events", Count::of(histories.num_rows()));
            return ModelError::from_faults(Self::NAME, vec![Fault::new("window", self.window, expected)]);
        }
        check_rank(Self::NAME, self.rank, histories)?;
        self.check_memory(histories)
    }

    fn variant_keys(&self) -> Vec<String> {
        variant::keys_of::<Variant>()
    }

    /// One with a balance above 0: its training has both parts.
    fn variant_to_train(&self, variants: &[Table]) -> Result<usize, ModelError> {
        for (at, keys) in variants.iter().enumerate() {
            let Variant { balance, .. } = variant::read(Self::NAME, keys)?;
            if balance.or(self.balance).is_some_and(|balance| balance > 0.0) {
                return Ok(at);
            }
        }
        Ok(0)
    }

    fn learned_keys(&self) -> Vec<&'static str> {
        self.learned().into_iter().filter(|(_, value, ..)| value.is_none()).map(|(key, ..)| key).collect()
    }

    fn fit(
        &self,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        let popularity = histories.popularity();
        self.learn(histories, || PairCounter::new(&self.counting(), histories, &popularity), monitor)
    }

    fn fit_counted(
        &self,
        counts: &Counts,
        histories: &Histories,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        if counts.options().counting() != self.counting() {
            return self.fit(histories, monitor);
        }
        self.learn(histories, || counts.ranked(), monitor)
    }

    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        let open = self.learned_keys();
        let model = DSatf::restore(tensors)?;
        let told = model.learned_by_arrays().into_iter().filter(|(key, _)| open.contains(key)).collect();
        Ok(Box::new(model.with_learned(told)))
    }
}

impl DSatfConfig {
    /// The keys that are inside the counts.
    fn counting(&self) -> Counting {
        Counting { window: self.window, user_power: self.user_power }
    }

    /// The keys that are taken as they are given.
    fn given(&self) -> GivenParams {
        let &DSatfConfig { saturation, source_power, trend_days, max_len, row_limit, .. } = self;
        GivenParams { counting: self.counting(), saturation, source_power, trend_days, max_len, row_limit }
    }

    /// Rehearses, and then learns from the whole log, whose pairs come from `pairs`.
    fn learn<P: PairRows>(
        &self,
        histories: &Histories,
        pairs: impl FnOnce() -> P,
        monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        self.check_on(histories)?;
        let open = self.learned_keys();
        let has_times = histories.clock() == Clock::Calendar;
        let is_fixed = |name: &str| !open.contains(&name) || (name == TREND && !has_times);
        let (given, rank) = (self.given(), self.rank_on(histories));
        let (keys, rehearsed) = rehearse(self.keys_on(histories), is_fixed, &given, histories, monitor)?;
        let balance = if let Some(balance) = self.balance {
            balance
        } else {
            monitor.begin("rehearsing with a core", 0);
            let quiet = OnlyCancels(monitor);
            let fit = |past: &Histories| {
                let popularity = past.popularity();
                let pairs = PairCounter::new(&given.counting, past, &popularity);
                self.fit_parts(past, pairs, &keys, 1.0, rank.min(MOST_REHEARSED_RANK), &quiet)
            };
            rehearse_balance(histories, given.counting.window, fit, monitor)?
        };
        let mut fitted = self.fit_parts(histories, pairs(), &keys, balance, rank, monitor)?;
        let found = keys.named().into_iter().chain([(BALANCE, balance)]);
        let mut learned: Vec<(&'static str, f64)> = found.filter(|(key, _)| open.contains(key)).collect();
        learned.push(("rehearsed_events", rehearsed as f64));
        fitted.learned.splice(0..0, learned);
        monitor.trained(&fitted);
        fitted.finish()
    }

    /// Memory and trend, and a core unless its share of a score is 0.
    fn fit_parts(
        &self,
        histories: &Histories,
        pairs: impl PairRows,
        keys: &Keys,
        balance: f64,
        rank: usize,
        monitor: &dyn Monitor,
    ) -> Result<Fitted, ModelError> {
        let given = self.given();
        let trend = Trend::new(histories, given.trend_days).weights(keys.trend);
        let popularity = histories.popularity();
        let params = keys.memory_params(&given);
        let needs = self.needs(histories);
        let room = needs.room_for_pairs(self.allowed_bytes(), balance > 0.0);
        let memory::Memory { rows: memory, squares, agreements } =
            memory::fit(&params, &pairs, &popularity, &trend, room, monitor)?;
        drop(pairs);
        tracing::info!(
            ?agreements,
            "how pairs at one time, neighbours, near and far ones agree in their order"
        );
        let agreements = AGREEMENTS.into_iter().zip(agreements);
        let mut learned: Vec<_> =
            agreements.filter_map(|(kind, agreement)| Some((kind, agreement?))).collect();
        let lag_weights = keys.lag_weights(given.max_len);
        let core = if balance > 0.0 {
            let v = rough_item_space(Self::NAME, histories, rank, self.scaling, self.seed, monitor)?;
            if let Some(asked) = self.rank {
                warn_of_rank(Self::NAME, "rank", asked, v.ncols());
            }
            let space = ItemSpace::new(v.as_ref());
            drop(v);
            let by_lag = lag_weights.by_lag().unwrap_or_default();
            let Counting { window, user_power } = given.counting;
            let moments = second_moments(&space, histories, by_lag, window, user_power, monitor)?;
            let equations = NormalEquations::new(&space, &memory, moments.as_ref(), monitor)?;
            learned.push(("rank", space.rank() as f64));
            Some((space, equations))
        } else {
            None
        };
        let regularization = self.regularization;
        Ok(Fitted { balance, regularization, lag_weights, memory, squares, core, trend, popularity, learned })
    }
}

/// Everything that was counted and accumulated: any balance and ridge can be had of it.
struct Fitted {
    balance: f64,
    regularization: f64,
    lag_weights: LagWeights,
    memory: ItemRows,
    /// Sums of squared weights of its rows.
    squares: Vec<f64>,
    core: Option<(ItemSpace, NormalEquations)>,
    trend: Vec<f64>,
    popularity: Vec<u32>,
    learned: Vec<(&'static str, f64)>,
}

/// The keys that play no part in training.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Variant {
    /// Both parts are there if the one trained with is not 0.
    balance: Option<f64>,
    regularization: Option<f64>,
}

impl Snapshot for Fitted {
    fn variant(&self, keys: &Table) -> Result<Box<dyn Recommender>, ModelError> {
        let variant: Variant = variant::read(DSatfConfig::NAME, keys)?;
        let model = self.with(variant.balance.unwrap_or(self.balance), variant.regularization)?;
        Ok(Box::new(model))
    }
}

impl Fitted {
    /// The model with another balance and ridge.
    fn with(&self, balance: f64, regularization: Option<f64>) -> Result<DSatf, ModelError> {
        let core = core_with(self.core.as_ref(), balance, regularization.unwrap_or(self.regularization));
        let (weights, memory) = (self.lag_weights.clone(), self.memory.clone());
        let model = DSatf::new(balance, weights, memory, &self.squares, core, &self.trend, &self.popularity)?;
        Ok(model.with_learned(self.learned.clone()))
    }

    /// The model as it was asked for. The memory is not copied.
    fn finish(self) -> Result<Box<dyn Recommender>, ModelError> {
        let core = core_with(self.core.as_ref(), self.balance, self.regularization);
        let (weights, trend) = (self.lag_weights, &self.trend);
        let model =
            DSatf::new(self.balance, weights, self.memory, &self.squares, core, trend, &self.popularity)?;
        Ok(Box::new(model.with_learned(self.learned)))
    }
}

/// The core with a ridge, unless its share of a score is 0.
fn core_with(
    core: Option<&(ItemSpace, NormalEquations)>,
    balance: f64,
    ridge: f64,
) -> Option<(&ItemSpace, Mat<f64>)> {
    let (space, equations) = core.filter(|_| balance > 0.0)?;
    Some((space, equations.core(ridge)))
}

fn not_finite() -> ModelError {
    ModelError::Numerics {
        model: DSatfConfig::NAME,
        reason: "the memory or the factors of the core are not finite".to_owned(),
    }
}
