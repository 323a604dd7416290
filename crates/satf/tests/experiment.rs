//! Experiments through the library alone: cuts and their warnings, runs and their reports, early stopping, requests to stop.

#![allow(clippy::unwrap_used)]

use satf::evaluate::{CompareOptions, EvaluateOptions, Metric, ResampleUnit, compare, evaluate};
use satf::experiment::{
    Choice, EarlyStopping, ExperimentError, ExperimentHint, ModelSettings, OffsetSource, Part, Protocol,
    RunOptions, RunReport, SharedKeys, SplitKind, Validation, Warning, fit_with_validation, holdout_scheme,
    run,
};
use satf::generate::{ShopOptions, shop};
use satf::interactions::Interactions;
use satf::models::{Registry, TrainingMonitor};
use satf::monitor::{Cancelled, Monitor};
use satf::prepare::{SplitScheme, TiePolicy};

fn log() -> Interactions {
    shop(&ShopOptions { users: 200, ..ShopOptions::default() }).unwrap()
}

fn ndcg() -> Metric {
    "NDCG@10".parse().unwrap()
}

fn by_month() -> Protocol {
    Protocol { test: Some("1month".parse().unwrap()), ..Protocol::default() }
}

fn choice(model: &str, settings: &str) -> Choice {
    let entry = Registry::default().find(model).unwrap();
    Choice::new(model.to_owned(), entry, settings.parse().unwrap()).unwrap()
}

#[test]
fn a_cut_says_what_was_done_and_what_may_mislead() {
    let log = log();
    let cut = Protocol { ties: TiePolicy::File, seed: 3, ..Protocol::default() }.cut(&log).unwrap();
    let description = &cut.description;
    assert_eq!((description.split, description.leaks_future), (SplitKind::Calendar, false));
    assert_eq!(description.rows.train + description.rows.valid + description.rows.test, log.rows().len());
    assert_eq!(description.train.rows, description.rows.train + description.rows.valid);
    assert_eq!((description.ties, description.seed), (TiePolicy::File, 3));
    // Nobody gave offsets: those chosen are told, and are those of the description.
    let (valid, test) = (description.valid, description.test.unwrap());
    let chosen = Warning::OffsetsChosen { valid, test, source: OffsetSource::Usual };
    assert!(cut.warnings.contains(&chosen), "{:?}", cut.warnings);

    let validation = Protocol { part: Part::Validation, ..by_month() }.cut(&log).unwrap();
    assert_eq!(validation.description.train.rows, validation.description.rows.train);

    let leaking = Protocol { split: SplitKind::LeaveOneOut, ..Protocol::default() }.cut(&log).unwrap();
    assert!(leaking.description.leaks_future && leaking.warnings.contains(&Warning::LeaksFuture));
    let kept = serde_json::to_string(&leaking.warnings).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Warning>>(&kept).unwrap(), leaking.warnings);
    let kept = serde_json::to_string(&leaking.description).unwrap();
    assert!(kept.contains("\"split\":\"leave-one-out\",\"leaks_future\":true,\"valid\":null"), "{kept}");
    assert_eq!(serde_json::from_str::<satf::experiment::CutDescription>(&kept).unwrap(), leaking.description);
}

#[test]
fn warnings_come_even_if_the_log_cannot_be_cut() {
    let log = log();
    let mut warnings = Vec::new();
    let protocol =
        Protocol { ties: TiePolicy::Shuffle, test: Some("9years".parse().unwrap()), ..Protocol::default() };
    let error = protocol.cut_telling(&log, &mut warnings).err().unwrap();
    assert!(matches!(error, ExperimentError::Split(_)), "{error}");
    assert!(warnings.iter().all(|warning| matches!(warning, Warning::TiedRows { .. })), "{warnings:?}");
}

#[test]
fn a_holdout_is_what_was_asked_for_or_what_suits_the_log() {
    let log = log();
    let mut warnings = Vec::new();
    let week = "1week".parse().unwrap();
    let asked = holdout_scheme(&log, None, Some(week), &mut warnings).unwrap();
    assert_eq!((asked, warnings.len()), (SplitScheme::Holdout { test: week }, 0));
    let chosen = holdout_scheme(&log, None, None, &mut warnings).unwrap();
    let Warning::OffsetsChosen { valid: None, test, .. } = warnings[0] else { panic!("{warnings:?}") };
    assert_eq!(chosen, SplitScheme::Holdout { test });
    let error = ExperimentError::NoTestOffset;
    assert_eq!(error.hint(), Some(ExperimentHint::GiveTest));
    assert!(error.to_string().ends_with(&format!("hint: {}", ExperimentHint::GiveTest)));
}

#[test]
fn a_run_is_a_fit_and_an_evaluation_and_its_report_reads_back() {
    let log = log();
    let protocol = Protocol { seed: 4, ..by_month() };
    let cut = protocol.cut(&log).unwrap();
    let settings = ModelSettings::named(["transitions", "pure-svd"]);
    let choices = settings.configure(&protocol.shared_keys(), &Registry::default()).unwrap();
    assert_eq!(choices[1].configured.configuration["seed"], 4);
    let options = RunOptions { cutoffs: vec![5, 10], unit: ResampleUnit::Event, early_stopping: None };
    let runs: Vec<_> = choices.iter().map(|choice| run(choice, &cut, &options, &()).unwrap()).collect();

    let model = choices[0].configured.learner.fit(&cut.partition.train, &()).unwrap();
    let asked =
        EvaluateOptions { cutoffs: vec![5, 10], unit: ResampleUnit::Event, ..EvaluateOptions::default() };
    let (holdout, items) = (&cut.partition.holdout, cut.partition.train.num_items());
    let expected = evaluate(&*model, holdout, items, &asked, &()).unwrap();
    assert_eq!(runs[0].evaluation, expected);

    let report = runs[0].report();
    assert_eq!((report.model.as_str(), &report.preset), ("transitions", &None));
    assert_eq!(report.metrics, expected.report());
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<RunReport>(&text).unwrap(), report);

    // The paired comparison is that of the two lists of values.
    let draws = CompareOptions { draws: 200, seed: 1 };
    let difference = runs[1].evaluation.difference_from(&runs[0].evaluation, ndcg(), &draws, &()).unwrap();
    let values = |at: usize| runs[at].evaluation.values(ndcg()).collect::<Vec<_>>();
    let each: Vec<usize> = (0..values(0).len()).collect();
    assert_eq!(difference, compare(&values(0), &values(1), &each, &draws, &()).unwrap());
}

#[test]
fn early_stopping_fits_again_for_the_best_number_of_iterations() {
    let log = log();
    let cut = by_month().cut(&log).unwrap();
    let la = choice("la-satf", "user_rank = 12\nitem_rank = 10\nnum_iters = 3");
    let stopping = EarlyStopping { metric: ndcg(), patience: 1 };
    let options = RunOptions { early_stopping: Some(stopping), ..RunOptions::default() };
    let stopped_run = run(&la, &cut, &options, &()).unwrap();
    let stopped = stopped_run.stopped.as_ref().unwrap();
    let (best, estimate) = stopped.best.unwrap();

    let partition = cut.split.validation().unwrap();
    let validated =
        fit_with_validation(&*la.configured.learner, &Validation::new(&partition, ndcg(), 1), &()).unwrap();
    assert_eq!((&stopped.curve, Some((best, estimate))), (&validated.curve, validated.best));
    assert_eq!(validated.evaluation.estimate(ndcg()), estimate);
    assert_eq!(stopped_run.configuration["num_iters"], best);
    let plain = run(&la.with_iterations(best).unwrap(), &cut, &RunOptions::default(), &()).unwrap();
    assert_eq!(plain.evaluation, stopped_run.evaluation);
    let expected = (best == 3).then(|| Warning::LastWasBest {
        label: "la-satf".to_owned(),
        key: "num_iters".to_owned(),
        best,
    });
    assert_eq!(stopped_run.warnings, Vec::from_iter(expected));

    let at_once = run(&choice("transitions", ""), &cut, &options, &()).unwrap();
    assert_eq!(at_once.warnings, [Warning::NotIterative { label: "transitions".to_owned() }]);
    assert!(at_once.stopped.is_none());
}

/// Asks to stop from the start.
struct Tired;

impl Monitor for Tired {
    fn is_cancelled(&self) -> bool {
        true
    }
}

impl TrainingMonitor for Tired {}

#[test]
fn a_request_to_stop_is_found_by_its_type() {
    let log = log();
    let cut = by_month().cut(&log).unwrap();
    let error = run(&choice("transitions", ""), &cut, &RunOptions::default(), &Tired).err().unwrap();
    assert!(Cancelled::is_cause_of(&error), "{error}");
    let other = ExperimentError::NoTimes;
    assert!(!Cancelled::is_cause_of(&other));
    let reader = std::io::Error::other(Cancelled);
    assert!(Cancelled::is_cause_of(&reader));
}

#[test]
fn shared_keys_are_for_models_that_have_them() {
    let registry = Registry::default();
    let shared = SharedKeys { seed: 9, max_len: Some(30), memory_bytes: None };
    let defaults = |model| Choice::with_defaults(registry.find(model).unwrap(), &shared).unwrap();
    assert!(defaults("mp").settings().is_empty());
    assert_eq!(defaults("random").settings()["seed"].as_integer(), Some(9));
    assert_eq!(defaults("la-satf").settings()["max_len"].as_integer(), Some(30));
}
