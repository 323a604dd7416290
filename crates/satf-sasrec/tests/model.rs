//! What SASRec promises beyond what every model does (`promises.rs`): the same scores after it was stored and after training was
//! interrupted, with every loss on any number of threads; and which of the oddest logs it can learn from.

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::ThreadPoolBuilder;
use satf::History;
use satf::evaluate::Evaluation;
use satf::experiment::{ExperimentError, Validation, fit_with_validation};
use satf::interactions::ItemIndex;
use satf::models::{
    Checkpoints, Configured, Iteration, Learner, ModelError, Preset, Recommender, Registry, Snapshot,
    TrainingMonitor, Workspace,
};
use satf::monitor::{Cancelled, Monitor};
use satf::prepare::{Histories, Partition, Split, SplitScheme, TiePolicy, Timeline};
use satf::recommend::{Filters, Model, RecommendError};
use satf::tune::Space;
use satf_sasrec::{Loss, SasRecConfig};

/// A log in which items follow their neighbours in the catalogue more often than not, repeats included.
fn generated_log(num_users: usize, num_items: u32, seed: u64) -> Histories {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sequences: Vec<Vec<u32>> = (0..num_users)
        .map(|_| {
            let mut item = rng.random_range(0..num_items);
            (0..rng.random_range(1..30))
                .map(|_| {
                    let far = rng.random_bool(0.3);
                    let step = if far { rng.random_range(0..num_items) } else { rng.random_range(0..4) };
                    item = (item + step) % num_items;
                    item
                })
                .collect()
        })
        .collect();
    Histories::from_sequences(num_items as usize, &sequences)
}

/// Histories to score: an empty one, a single item, one longer than the model reads, random ones.
fn queries(num_items: u32, count: usize) -> Vec<Vec<ItemIndex>> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let len = |at: usize, rng: &mut ChaCha8Rng| match at {
        0 => 0,
        1 => 1,
        2 => 150,
        _ => rng.random_range(0..20),
    };
    (0..count)
        .map(|at| (0..len(at, &mut rng)).map(|_| ItemIndex(rng.random_range(0..num_items))).collect())
        .collect()
}

fn scores_in_batches(model: &dyn Recommender, histories: &[Vec<ItemIndex>], size: usize) -> Vec<u32> {
    let mut bits = Vec::new();
    for batch in histories.chunks(size) {
        let mut scores = vec![f32::NAN; batch.len() * model.num_items()];
        let batch: Vec<History<'_>> = batch.iter().map(History::from).collect();
        model.score_batch(&batch, &mut scores);
        assert!(scores.iter().all(|score| score.is_finite()));
        bits.extend(scores.iter().map(|score| score.to_bits()));
    }
    bits
}

fn small(loss: Loss) -> SasRecConfig {
    SasRecConfig {
        loss,
        negatives: 20,
        hidden: 16,
        heads: 2,
        dropout: 0.2,
        learning_rate: 3e-3,
        batch_size: 32,
        epochs: 3,
        max_len: 12,
        clip_norm: Some(1.0),
        warmup_steps: 3,
        ..Default::default()
    }
}

const LOSSES: [Loss; 3] = [Loss::Ce, Loss::SampledCe, Loss::Bce];

#[test]
fn one_seed_gives_one_model_on_any_number_of_threads() {
    let log = generated_log(300, 700, 3);
    let queries = queries(700, 20);
    for loss in LOSSES {
        let config = SasRecConfig { batch_size: 128, epochs: 2, ..small(loss) };
        let train = |threads: usize, seed: u64| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let config = SasRecConfig { seed, ..config.clone() };
            pool.install(|| scores_in_batches(&*config.fit(&log, &()).unwrap(), &queries, 20))
        };
        let one = train(1, 5);
        assert!(one == train(2, 5), "{loss:?}: 2 threads differ from 1");
        assert!(one == train(4, 5), "{loss:?}: 4 threads differ from 1");
        assert!(one != train(2, 6), "{loss:?}: another seed gives the same");
    }
}

#[test]
fn odd_logs_fit_or_give_a_clear_error() {
    let logs: Vec<(&str, usize, Vec<Vec<u32>>)> = vec![
        ("one user", 4, vec![vec![2, 0, 3, 1]]),
        ("one item, once each", 1, vec![vec![0], vec![0], vec![0]]),
        ("one row", 1, vec![vec![0]]),
        ("one user, one item again and again", 1, vec![vec![0; 20]]),
        ("the same history for all", 5, vec![vec![4, 1, 3, 0, 2]; 12]),
        ("histories of length 1", 6, (0..18).map(|user| vec![user % 6]).collect()),
        ("users without rows", 3, vec![vec![], vec![0, 1, 2], vec![]]),
        ("items without rows", 9, vec![vec![0, 8], vec![8, 4]]),
        ("no rows", 3, vec![vec![], vec![]]),
        ("no users", 3, vec![]),
        ("nothing at all", 0, vec![]),
    ];
    for (what, num_items, sequences) in logs {
        let log = Histories::from_sequences(num_items, &sequences);
        let can_learn = sequences.iter().any(|sequence| sequence.len() > 1);
        for loss in LOSSES {
            let negatives = num_items.saturating_sub(1).clamp(1, 20);
            let can_learn = can_learn && (loss != Loss::SampledCe || num_items > 1);
            match (SasRecConfig { negatives, ..small(loss) }).fit(&log, &()) {
                Ok(model) => {
                    assert!(can_learn, "{what}");
                    let all: Vec<ItemIndex> = (0..num_items as u32).map(ItemIndex).collect();
                    scores_in_batches(&*model, &[vec![], vec![ItemIndex(0)], all], 2);
                }
                Err(error @ (ModelError::Data { .. } | ModelError::Configuration { .. })) => {
                    assert!(!can_learn && error.to_string().contains("sasrec"), "{what}: {error}");
                }
                Err(other) => panic!("{what}: {other}"),
            }
        }
    }
}

#[test]
fn a_stored_model_scores_as_before_and_does_not_explain() {
    let log = generated_log(60, 50, 4);
    let folder = tempfile::tempdir().unwrap();
    for loss in LOSSES {
        let configured = Configured::new(small(loss)).unwrap();
        let model = Model::train(&configured, &log, &()).unwrap();
        let path = folder.path().join("sasrec.satf");
        model.save(&path).unwrap();
        let loaded = Model::load_with(&path, &satf_sasrec::registry()).unwrap();
        let queries = queries(50, 20);
        let bits = |model: &Model| scores_in_batches(model.recommender(), &queries, 7);
        assert!(bits(&model) == bits(&loaded), "{loss:?}");
        assert_eq!(loaded.manifest().configuration, configured.configuration);
        let history = [ItemIndex(3), ItemIndex(9)];
        let prepared = loaded.prepare_filters(5, &Filters::default()).unwrap();
        let list = prepared.rank(&history, &mut Workspace::new()).unwrap();
        assert!(list.len() == 5 && list.iter().all(|scored| !history.contains(&scored.item)));
        let error = loaded.explain_indexed((&history).into(), list[0].item).unwrap_err();
        assert!(matches!(error, RecommendError::NoShares { .. }), "{error}");
        assert_eq!(loaded.similar_items_indexed(ItemIndex(3), 5).unwrap().items.len(), 5);
    }
}

#[test]
fn a_registry_without_it_says_how_to_load_its_files() {
    let log = generated_log(20, 10, 4);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sasrec.satf");
    let configured = Configured::new(small(Loss::Ce)).unwrap();
    Model::train(&configured, &log, &()).unwrap().save(&path).unwrap();
    let message = Model::load(&path).err().unwrap().to_string();
    for part in
        ["'sasrec'", "the crate satf-sasrec has it", "Model::load_with(path, &satf_sasrec::registry())"]
    {
        assert!(message.contains(part), "no '{part}' in: {message}");
    }
    Model::load_with(&path, &satf_sasrec::registry()).unwrap();
    Model::load_with(&path, &Registry::default().with(satf_sasrec::entry())).unwrap();
}

#[test]
fn the_registry_knows_its_presets_and_spaces() {
    let registry = satf_sasrec::registry().with(satf_sasrec::entry());
    let entry = registry.find("sasrec").unwrap();
    assert_eq!(registry.models().iter().filter(|known| known.name == "sasrec").count(), 1);
    let presets: Vec<Preset> =
        registry.presets().into_iter().filter(|preset| preset.model == "sasrec").collect();
    assert_eq!(presets.len(), 4);
    for preset in presets {
        let configured = entry.configure(&preset.settings).unwrap();
        for (key, value) in &preset.settings {
            let expected = serde_json::to_value(value).unwrap();
            assert_eq!(configured.configuration[key], expected, "{} {key}", preset.name);
        }
        assert_eq!(configured.configuration["loss"], "bce");
    }
    let spaces = Space::all(&entry);
    assert_eq!(spaces.len(), 2);
    for space in spaces {
        let known = entry.defaults();
        assert!(space.dimensions().iter().all(|dimension| known.contains_key(&dimension.key)));
    }
    assert!(Space::named(&entry, None).is_ok());
    assert!(Space::named(&registry.find("la-satf").unwrap(), None).is_ok());
}

/// A partition whose validation set is large enough to watch.
fn partition() -> Partition {
    let log = generated_log(120, 30, 12);
    let rows = log.iter().enumerate().flat_map(|(user, items)| {
        items.iter().enumerate().map(move |(at, item)| (user as i64, i64::from(item.0), at as i64 * 3600))
    });
    let mut text = String::from("user_id,item_id,timestamp\n");
    rows.for_each(|(user, item, time)| text.push_str(&format!("{user},{item},{time}\n")));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.csv");
    std::fs::write(&path, text).unwrap();
    let (log, _) = satf::data::read_log(&[path], &Default::default(), &()).unwrap();
    let scheme = SplitScheme::Calendar { valid: "6hours".parse().unwrap(), test: "4hours".parse().unwrap() };
    Split::new(Timeline::new(&log, TiePolicy::File, 0), scheme).unwrap().validation().unwrap()
}

/// Keeps checkpoints in a folder and pulls the plug after a number of batches.
struct Plug {
    folder: PathBuf,
    batches: std::sync::atomic::AtomicUsize,
    /// The iterations it was told of when training went on.
    earlier: std::sync::Mutex<Vec<Iteration>>,
}

impl Plug {
    fn new(folder: &Path, batches: usize) -> Self {
        Plug { folder: folder.to_owned(), batches: batches.into(), earlier: Default::default() }
    }
}

impl Monitor for Plug {
    fn is_cancelled(&self) -> bool {
        let ordering = std::sync::atomic::Ordering::Relaxed;
        self.batches.fetch_update(ordering, ordering, |left| left.checked_sub(1)).is_err()
    }
}

impl TrainingMonitor for Plug {
    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }
}

impl Checkpoints for Plug {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn resumed(&self, earlier: &[Iteration]) {
        *self.earlier.lock().unwrap() = earlier.to_vec();
    }
}

/// What comes of a training under early stopping: the curve, the best epoch, the bits of the best model, and its evaluation.
type Outcome = (Vec<(usize, u64)>, Option<usize>, Vec<u32>, Evaluation);

fn watched(
    config: &SasRecConfig,
    partition: &Partition,
    patience: usize,
    inner: &dyn TrainingMonitor,
) -> Result<Outcome, ExperimentError> {
    let validation = Validation::new(partition, "NDCG@5".parse().unwrap(), patience);
    let validated = fit_with_validation(config, &validation, inner)?;
    let queries = queries(partition.train.num_items() as u32, 10);
    let curve = validated.curve.iter().map(|(epoch, estimate)| (*epoch, estimate.value.to_bits())).collect();
    let best = validated.best.map(|(epoch, _)| epoch);
    Ok((curve, best, scores_in_batches(&*validated.model, &queries, 10), validated.evaluation))
}

#[test]
fn a_training_that_was_interrupted_ends_as_an_unbroken_one() {
    let partition = partition();
    let train = &partition.train;
    let config = SasRecConfig { epochs: 9, evaluate_every: 2, batch_size: 40, ..small(Loss::Ce) };
    let unbroken = watched(&config, &partition, 3, &()).unwrap();
    assert!(unbroken.0.len() >= 4 && unbroken.0[0].0 == 2, "{:?}", unbroken.0);

    let folder = tempfile::tempdir().unwrap();
    let mut interruptions = 0;
    let broken = loop {
        match watched(&config, &partition, 3, &Plug::new(folder.path(), 12)) {
            Ok(outcome) => break outcome,
            Err(error) if Cancelled::is_cause_of(&error) => interruptions += 1,
            Err(other) => panic!("{other}"),
        }
        assert!(interruptions < 50, "it does not get further");
    };
    assert!(interruptions >= 3, "{interruptions}");
    assert!(broken == unbroken);
    // Once more: everything is there already.
    let plug = Plug::new(folder.path(), 4);
    assert!(watched(&config, &partition, 3, &plug).unwrap() == unbroken);
    let earlier = plug.earlier.into_inner().unwrap();
    assert_eq!(earlier.len(), 9);
    assert!(earlier.iter().all(|report| report.seconds > 0.0 && report.measures[0].1 > 0.0));
    let scored =
        earlier.iter().filter(|report| report.measures.iter().any(|(name, _)| *name == "validation"));
    assert_eq!(scored.count(), unbroken.0.len());

    // Without early stopping the file serves too, and another configuration does not touch it.
    let bits = |model: &dyn Recommender| scores_in_batches(model, &queries(train.num_items() as u32, 10), 10);
    let plain = config.fit(train, &()).unwrap();
    let resumed = config.fit(train, &Plug::new(folder.path(), usize::MAX)).unwrap();
    assert!(bits(&*plain) == bits(&*resumed));
    let other = SasRecConfig { seed: 1, ..config.clone() };
    let fresh = other.fit(train, &Plug::new(folder.path(), usize::MAX)).unwrap();
    assert!(bits(&*fresh) != bits(&*plain));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn another_patience_ends_where_it_would_have_ended_unbroken() {
    let partition = partition();
    // Steps so large that scores go up and down.
    let config = SasRecConfig { epochs: 12, batch_size: 40, learning_rate: 0.05, ..small(Loss::Ce) };
    let folder = tempfile::tempdir().unwrap();
    let mut ends = Vec::new();
    for patience in [3, 1, 4, 2] {
        let expected = watched(&config, &partition, patience, &()).unwrap();
        let plug = Plug::new(folder.path(), usize::MAX);
        assert!(watched(&config, &partition, patience, &plug).unwrap() == expected, "{patience}");
        ends.push(expected.0.len());
    }
    assert!(ends.iter().any(|end| *end != ends[0]), "patience changes nothing here: {ends:?}");
}

#[test]
fn a_damaged_checkpoint_is_refused_by_name() {
    let log = generated_log(40, 20, 1);
    let config = SasRecConfig { epochs: 1, ..small(Loss::Ce) };
    let folder = tempfile::tempdir().unwrap();
    let plug = || Plug::new(folder.path(), usize::MAX);
    config.fit(&log, &plug()).unwrap();
    let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let sound = std::fs::read(&path).unwrap();
    let mut flipped = sound.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for damaged in [&sound[..sound.len() / 2], &sound[..4], &[], &flipped] {
        std::fs::write(&path, damaged).unwrap();
        let message = config.fit(&log, &plug()).err().unwrap().to_string();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(message.contains(&name) && message.contains("remove it"), "{message}");
    }
    let file = folder.path().join("no folder");
    std::fs::write(&file, "").unwrap();
    let message = config.fit(&log, &Plug::new(&file, usize::MAX)).err().unwrap().to_string();
    assert!(message.contains("no folder"), "{message}");
}

#[test]
fn epochs_between_evaluations_are_reported_too() {
    #[derive(Default)]
    struct Reports(std::sync::Mutex<Vec<(usize, bool)>>);
    impl Monitor for Reports {}

    impl TrainingMonitor for Reports {
        fn progressed(&self, report: &Iteration) {
            self.0.lock().unwrap().push((report.iteration, false));
        }

        fn iteration(&self, report: &Iteration, snapshot: &dyn Snapshot) -> ControlFlow<()> {
            assert!(report.measures.iter().any(|(name, loss)| *name == "loss" && loss.is_finite()));
            assert!(snapshot.recommender().is_ok());
            self.0.lock().unwrap().push((report.iteration, true));
            ControlFlow::Continue(())
        }
    }
    let reports = Reports::default();
    let config = SasRecConfig { epochs: 5, evaluate_every: 2, ..small(Loss::Bce) };
    config.fit(&generated_log(30, 20, 2), &reports).unwrap();
    let expected = [(1, false), (2, true), (3, false), (4, true), (5, true)];
    assert_eq!(*reports.0.lock().unwrap(), expected);
}
