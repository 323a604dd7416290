//! Lists that other tools made, judged as models are.
//!
//! Every event of the holdout is predicted, as by a model: an event without a list is a miss. What counts of a list is what would be
//! ranked of a model. Items that are left out of rankings, those of the history by default, and items that stand in the list a second
//! time are taken out, and those behind them move up. An item that the training set does not know keeps its place and cannot be hit. A
//! list for a user is the same for all events of the user, but for what the history of each takes out of it.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::evaluation::Evaluation;
use super::protocol::{EvaluateError, EvaluateOptions, SeenPolicy, Tally, first_event_that_saw};
use crate::data::{Lists, Whom};
use crate::fault::excerpt;
use crate::interactions::{Clock, Id, ItemIndex};
use crate::monitor::{Monitor, check_cancelled};
use crate::numbers::counted;
use crate::prepare::{EventIds, Holdout, OtherHoldout, Partition};

/// Marks an item that the training set does not know, and an event without a list.
const NONE: u32 = u32::MAX;

/// Events between two questions whether to stop.
const EVENTS_A_CHECK: usize = 1024;

/// Scores of lists, and what became of the lists.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedLists {
    /// The scores, event by event. They pair up with those of models on the same holdout.
    pub evaluation: Evaluation,
    /// What became of the lists.
    pub report: ListsReport,
}

/// What became of lists on their way to scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListsReport {
    /// Lists given.
    pub lists: usize,
    /// Lists that no event took: for users that are not in the log or have no event in the holdout, or beside lists that say more about
    /// whom they are for.
    pub unused_lists: usize,
    /// Events to predict.
    pub events: usize,
    /// Events without a list. They count as misses.
    pub events_without_list: usize,
    /// Users whose events all are without a list.
    pub users_without_list: usize,
    /// Events whose list has fewer items left than the largest cut-off asks for.
    pub short_lists: usize,
    /// Items taken out of lists before the largest cut-off because they may not be ranked, event by event.
    pub seen_items: usize,
    /// Items taken out of lists because they stand there already.
    pub repeated_items: usize,
    /// Items in lists that the training set does not know: they keep their places and cannot be hit.
    pub unknown_items: usize,
}

impl fmt::Display for ListsReport {
    /// One sentence of what there is to know.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", counted(self.lists, "list"), counted(self.events, "event"))?;
        let told = [
            (self.events_without_list, "event", "without a list, which count as misses"),
            (self.users_without_list, "user", "without any list"),
            (self.unused_lists, "list", "for which there is no event, or that has a list of its own"),
            (self.short_lists, "event", "whose list has fewer items left than the largest cut-off"),
            (self.seen_items, "item", "taken out because they may not be ranked"),
            (self.repeated_items, "item", "taken out because they stand in their list twice"),
            (self.unknown_items, "item", "that the training set does not know, which cannot be hit"),
        ];
        told.into_iter()
            .filter(|(count, ..)| *count > 0)
            .try_for_each(|(count, what, rest)| write!(f, "; {} {rest}", counted(count, what)))
    }
}

/// Why lists cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListsError {
    /// No list is for an event of the holdout.
    #[error(
        "none of {lists} lists is for an event to predict{}; the first is for {}, and the first event is of {}{}",
        if *by_time { " at its time" } else { "" }, excerpt(first), excerpt(expected),
        if *by_time { "; times of lists are those of the events, not those at which lists were made" } else { "" }
    )]
    NoEvent {
        /// Lists given.
        lists: usize,
        /// Whether they have times.
        by_time: bool,
        /// Whom the first is for.
        first: String,
        /// The user of the first event.
        expected: String,
    },
    /// No item of any list is known.
    #[error(
        "no item of any list is in the training set, whose ids are such as {}; the first list begins with {}",
        excerpt(expected),
        excerpt(first)
    )]
    NoItem {
        /// An item of a list.
        first: String,
        /// An item of the training set.
        expected: String,
    },
    /// A user has several lists, and not as many as events.
    #[error(
        "{} has {lists} lists for {events} events: expected one list for all of them, or one for each, in their order; hint: say which event \
         each list is for, by its event_id",
        excerpt(whom)
    )]
    HowMany {
        /// Whom the lists are for.
        whom: String,
        /// How many lists.
        lists: usize,
        /// How many events.
        events: usize,
    },
    /// Something that should be the id of an event, and is not.
    #[error("event_id '{}': expected an id as exported events have it, such as {expected}", excerpt(id))]
    NoEventId {
        /// What stands there.
        id: String,
        /// An id that would do.
        expected: String,
    },
    /// The id of an event of another holdout.
    #[error(transparent)]
    OtherHoldout(#[from] OtherHoldout),
    /// Lists by time for a log without times.
    #[error(
        "this log has no times, only an order, so lists cannot be for times; hint: say which event each list is for, by its event_id"
    )]
    NoTimes,
    /// What models cannot be scored by either.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
}

/// Scores lists on a holdout as if a model trained on its training set had made them.
///
/// ```
/// use satf::data::ListsBuilder;
/// use satf::evaluate::{EvaluateOptions, evaluate_lists};
/// use satf::experiment::Protocol;
/// # use satf::generate::{ShopOptions, shop};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let log = shop(&ShopOptions { users: 300, ..ShopOptions::default() })?;
/// let month = Some("1month".parse()?);
/// let cut = Protocol { valid: month, test: month, ..Protocol::default() }.cut(&log)?;
/// let mut lists = ListsBuilder::new();
/// for user in log.users().iter() {
///     lists.push_for_user(user, ["laptop", "laptop sleeve", "tent"])?;
/// }
/// let judged = evaluate_lists(&lists.finish()?, &cut.partition, &EvaluateOptions::default(), &())?;
/// println!("{:?} {:?}", judged.evaluation.report(), judged.report);
/// # Ok(())
/// # }
/// ```
pub fn evaluate_lists(
    lists: &Lists,
    partition: &Partition,
    options: &EvaluateOptions,
    monitor: &dyn Monitor,
) -> Result<JudgedLists, ListsError> {
    let Partition { train, holdout } = partition;
    let (cutoffs, longest) = options.checked_cutoffs()?;
    let mut report =
        ListsReport { lists: lists.len(), events: holdout.events.len(), ..ListsReport::default() };
    let list_of = assign(lists, partition, &mut report)?;
    let ranked = Resolved::new(lists, partition, &list_of, &mut report)?;

    let num_items = train.num_items();
    let pooled = (options.seen == SeenPolicy::Pooled).then(|| first_event_that_saw(holdout, num_items));
    monitor.begin("evaluating", holdout.events.len() as u64);
    let mut tally = Tally::new(holdout.events.len(), num_items);
    // The last event, counted from 1, whose history holds the item.
    let mut seen_by = vec![0usize; num_items];
    let mut list = Vec::with_capacity(longest);
    for (place, event) in holdout.events.iter().enumerate() {
        if place.is_multiple_of(EVENTS_A_CHECK) {
            check_cancelled(monitor).map_err(EvaluateError::from)?;
        }
        for item in holdout.history(event).items() {
            seen_by[item.get()] = place + 1;
        }
        let is_out = |item: u32| {
            let item = item as usize;
            seen_by[item] == place + 1 || pooled.as_ref().is_some_and(|first| first[item] < place)
        };
        list.clear();
        for &item in ranked.list(list_of[place]) {
            if list.len() == longest {
                break;
            }
            if item != NONE && is_out(item) {
                report.seen_items += 1;
            } else {
                list.push((item != NONE).then_some(ItemIndex(item)));
            }
        }
        report.short_lists += usize::from(list_of[place] != NONE && list.len() < longest);
        tally.take(event.target, list.iter().copied());
        monitor.advance(1);
    }
    let events = (0..holdout.events.len()).collect();
    Ok(JudgedLists { evaluation: tally.finish(holdout, events, cutoffs, options.unit), report })
}

/// The number of every event's list, or [`NONE`]. The more a list says about whom it is for, the more it counts.
fn assign(lists: &Lists, partition: &Partition, report: &mut ListsReport) -> Result<Vec<u32>, ListsError> {
    let holdout = &partition.holdout;
    let ids = EventIds::of(partition);
    let users = lists.users.iter().map(|user| whom(user, holdout, &ids)).collect::<Result<Vec<_>, _>>()?;
    let events = events_by_user(holdout);
    let mut order: Vec<u32> = (0..lists.len() as u32).collect();
    // The id of an event may stand where others name a user.
    let is_of_event = |asked: Whom| match asked {
        Whom::User(number) => matches!(users[number as usize], Known::Event(_)),
        _ => false,
    };
    order.sort_by_key(|&list| (is_of_event(lists.whom(list as usize)), lists.whom(list as usize)));
    let mut list_of = vec![NONE; holdout.events.len()];
    for group in order.chunk_by(|one, next| lists.whom(*one as usize) == lists.whom(*next as usize)) {
        let asked = lists.whom(group[0] as usize);
        let places = places_of(asked, lists, holdout, &users, &events, &ids)?;
        match group {
            _ if places.is_empty() => {}
            [only] => places.iter().for_each(|&place| list_of[place] = *only),
            several if several.len() == places.len() => {
                places.iter().zip(several).for_each(|(&place, list)| list_of[place] = *list);
            }
            several => {
                let (whom, lists) = (named(asked, lists), several.len());
                return Err(ListsError::HowMany { whom, lists, events: places.len() });
            }
        }
    }
    if list_of.iter().all(|&list| list == NONE) && !lists.is_empty() {
        let first = lists.whom(0);
        let expected = holdout.users.get(holdout.events[0].user.get()).to_string();
        let by_time = matches!(first, Whom::At(..));
        return Err(ListsError::NoEvent {
            lists: lists.len(),
            by_time,
            first: named(first, lists),
            expected,
        });
    }
    let mut is_used = vec![false; lists.len()];
    list_of.iter().filter(|&&list| list != NONE).for_each(|&list| is_used[list as usize] = true);
    report.unused_lists = is_used.iter().filter(|is_used| !**is_used).count();
    report.events_without_list = list_of.iter().filter(|&&list| list == NONE).count();
    let has_none = |places: &&Vec<usize>| places.iter().all(|&place| list_of[place] == NONE);
    report.users_without_list = events.values().filter(has_none).count();
    Ok(list_of)
}

/// Whom an id stands for: a user of the log by index, or the event at a place.
#[derive(Clone, Copy)]
enum Known {
    User(u32),
    Event(usize),
    Nobody,
}

fn whom(id: Id<'_>, holdout: &Holdout, ids: &EventIds) -> Result<Known, OtherHoldout> {
    if let Some(user) = holdout.users.find(id) {
        return Ok(Known::User(user as u32));
    }
    let Id::Text(text) = id else { return Ok(Known::Nobody) };
    Ok(ids.place(text)?.map_or(Known::Nobody, Known::Event))
}

/// The events of every user who has one, in the order of time.
fn events_by_user(holdout: &Holdout) -> HashMap<u32, Vec<usize>> {
    let mut events: HashMap<u32, Vec<usize>> = HashMap::new();
    for (place, event) in holdout.events.iter().enumerate() {
        events.entry(event.user.0).or_default().push(place);
    }
    events
}

/// The events that lists are for.
fn places_of(
    asked: Whom,
    lists: &Lists,
    holdout: &Holdout,
    users: &[Known],
    events: &HashMap<u32, Vec<usize>>,
    ids: &EventIds,
) -> Result<Vec<usize>, ListsError> {
    let of_user = |user: u32| events.get(&user).cloned().unwrap_or_default();
    Ok(match asked {
        Whom::Place(place) if place < holdout.events.len() => vec![place],
        Whom::Place(event) => {
            return Err(EvaluateError::NoSuchEvent { event, events: holdout.events.len() }.into());
        }
        Whom::At(..) if holdout.clock == Clock::RowOrder => return Err(ListsError::NoTimes),
        Whom::User(number) | Whom::At(number, _) | Whom::EventId(number) => {
            match (users[number as usize], asked) {
                (Known::Event(place), _) => vec![place],
                (_, Whom::EventId(_)) => {
                    let (id, expected) = (named(asked, lists), ids.id(0));
                    return Err(ListsError::NoEventId { id, expected });
                }
                (Known::User(user), Whom::At(_, time)) => {
                    let at_time = |place: &usize| holdout.events[*place].time == time;
                    of_user(user).into_iter().filter(at_time).collect()
                }
                (Known::User(user), _) => of_user(user),
                (Known::Nobody, _) => Vec::new(),
            }
        }
    })
}

fn named(asked: Whom, lists: &Lists) -> String {
    match asked {
        Whom::User(user) | Whom::EventId(user) => lists.users.get(user as usize).to_string(),
        Whom::At(user, time) => {
            format!("{} at {}", lists.users.get(user as usize), crate::prepare::iso(time))
        }
        Whom::Place(place) => format!("the event at place {place}"),
    }
}

/// The lists that are used, in the indices of the training set, each item once.
struct Resolved {
    items: Vec<u32>,
    bounds: Vec<(usize, usize)>,
}

impl Resolved {
    fn new(
        lists: &Lists,
        partition: &Partition,
        list_of: &[u32],
        report: &mut ListsReport,
    ) -> Result<Self, ListsError> {
        let catalog = partition.train.catalog();
        let known: Vec<u32> =
            lists.items.iter().map(|id| catalog.find(id).map_or(NONE, |index| index as u32)).collect();
        let mut is_used = vec![false; lists.len()];
        list_of.iter().filter(|&&list| list != NONE).for_each(|&list| is_used[list as usize] = true);
        // The last list, counted from 1, that holds the item.
        let mut held_by = vec![0usize; known.len()];
        let mut resolved = Resolved { items: Vec::new(), bounds: vec![(0, 0); lists.len()] };
        for list in (0..lists.len()).filter(|&list| is_used[list]) {
            let start = resolved.items.len();
            for &item in lists.ranked(list) {
                if std::mem::replace(&mut held_by[item as usize], list + 1) == list + 1 {
                    report.repeated_items += 1;
                    continue;
                }
                report.unknown_items += usize::from(known[item as usize] == NONE);
                resolved.items.push(known[item as usize]);
            }
            resolved.bounds[list] = (start, resolved.items.len());
        }
        if !resolved.items.is_empty() && resolved.items.iter().all(|&item| item == NONE) {
            let first = (0..lists.len()).find_map(|list| lists.ranked(list).first());
            let first = first.map(|&item| lists.items.get(item as usize).to_string()).unwrap_or_default();
            return Err(ListsError::NoItem { first, expected: catalog.get(0).to_string() });
        }
        Ok(resolved)
    }

    fn list(&self, list: u32) -> &[u32] {
        self.bounds.get(list as usize).map_or(&[], |&(start, end)| &self.items[start..end])
    }
}
