//! Evaluations in parts: whoever scores which events, the whole is the same.

#![allow(clippy::unwrap_used)]

use std::sync::OnceLock;

use proptest::prelude::*;
use satf::evaluate::{
    CompareOptions, EvaluateError, EvaluateOptions, Evaluation, MergeError, ResampleUnit, SeenPolicy,
    evaluate, evaluate_events, write_per_event,
};
use satf::generate::{ShopOptions, shop};
use satf::models::{Learner, Recommender, TransitionsConfig};
use satf::prepare::{Partition, Split, SplitScheme, TiePolicy, Timeline};

/// A partition and a model, made once.
fn fixture() -> &'static (Partition, Box<dyn Recommender>) {
    static FIXTURE: OnceLock<(Partition, Box<dyn Recommender>)> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let log = shop(&ShopOptions { users: 120, ..ShopOptions::default() }).unwrap();
        let scheme = SplitScheme::Holdout { test: "1month".parse().unwrap() };
        let partition =
            Split::new(Timeline::new(&log, TiePolicy::Shuffle, 1), scheme).unwrap().test().unwrap();
        let model = TransitionsConfig::default().fit(&partition.train, &()).unwrap();
        (partition, model)
    })
}

fn part(events: &[usize], options: &EvaluateOptions) -> Evaluation {
    let (partition, model) = fixture();
    let items = partition.train.num_items();
    evaluate_events(&**model, &partition.holdout, items, events, options, &()).unwrap()
}

fn whole(options: &EvaluateOptions) -> Evaluation {
    let (partition, model) = fixture();
    evaluate(&**model, &partition.holdout, partition.train.num_items(), options, &()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any cut of the events over workers, in any order, sent as text: the same evaluation, report and errors as unsplit.
    #[test]
    fn any_cut_over_workers_gives_the_same(
        workers in 1usize..6,
        assigned in prop::collection::vec(any::<u16>(), 64),
        order in any::<prop::sample::Index>(),
        batch in prop::option::of(1usize..9),
        pooled in any::<bool>(),
        by_event in any::<bool>(),
    ) {
        let options = EvaluateOptions {
            cutoffs: vec![3, 10],
            batch,
            seen: if pooled { SeenPolicy::Pooled } else { SeenPolicy::Own },
            unit: if by_event { ResampleUnit::Event } else { ResampleUnit::User },
        };
        let whole = whole(&options);
        let mut shares = vec![Vec::new(); workers];
        for event in 0..whole.ranks.len() {
            shares[assigned[event % assigned.len()] as usize % workers].push(event);
        }
        // Workers get their events in any order, and are heard in any order.
        for share in &mut shares {
            let middle = order.index(share.len() + 1);
            share.rotate_left(middle);
        }
        shares.rotate_left(order.index(workers));
        let parts: Vec<Evaluation> = shares
            .iter()
            .map(|share| serde_json::to_string(&part(share, &options)).unwrap())
            .map(|sent| serde_json::from_str(&sent).unwrap())
            .collect();

        let merged = Evaluation::merge(parts.clone()).unwrap();
        prop_assert_eq!(&merged, &whole);
        prop_assert!(merged.is_whole());
        prop_assert_eq!(merged.report(), whole.report());
        prop_assert_eq!(merged.num_users(), whole.num_users());

        // Step by step as well.
        let stepwise = parts.into_iter().reduce(|merged, part| Evaluation::merge([merged, part]).unwrap());
        prop_assert_eq!(stepwise.unwrap(), whole);
    }
}

#[test]
fn what_does_not_belong_together_is_not_merged() {
    let options = EvaluateOptions::default();
    let (first, second) = (part(&[0, 2], &options), part(&[1, 2], &options));
    assert_eq!(Evaluation::merge([]), Err(MergeError::Nothing));
    assert_eq!(Evaluation::merge([first.clone(), second.clone()]), Err(MergeError::Repeated(2)));

    let others = [
        (EvaluateOptions { cutoffs: vec![5], ..options.clone() }, "cut-offs"),
        (EvaluateOptions { unit: ResampleUnit::Event, ..options.clone() }, "units of standard errors"),
    ];
    for (other, what) in others {
        assert_eq!(Evaluation::merge([first.clone(), part(&[1], &other)]), Err(MergeError::Different(what)));
    }
    let mut counted = second;
    counted.counts.rows += 1;
    assert_eq!(Evaluation::merge([first, counted]), Err(MergeError::Different("holdouts")));
}

#[test]
fn a_part_is_known_to_be_one() {
    let (partition, model) = fixture();
    let options = EvaluateOptions::default();
    let (few, all) = (part(&[3, 1, 3], &options), whole(&options));
    assert!(!few.is_whole() && all.is_whole());
    assert_eq!(few.ranks, [all.ranks[1], all.ranks[3]]);

    let folder = tempfile::tempdir().unwrap();
    let error = write_per_event(&folder.path().join("x.csv"), partition, &few).unwrap_err();
    assert!(error.to_string().contains("only 2 of"), "{error}");

    let events = partition.holdout.events.len();
    let items = partition.train.num_items();
    let outside = evaluate_events(&**model, &partition.holdout, items, &[events], &options, &());
    assert_eq!(outside, Err(EvaluateError::NoSuchEvent { event: events, events }));

    let draws = CompareOptions { draws: 100, seed: 0 };
    let compared = few.difference_from(&all, "HR@10".parse().unwrap(), &draws, &());
    assert_eq!(compared, Err(EvaluateError::NotPaired { first: events, second: 2 }));
}
