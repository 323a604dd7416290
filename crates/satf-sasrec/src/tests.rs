//! What the mathematics must satisfy: gradients, causality, independence of sequences, and that it learns.

use std::sync::Arc;

use satf::interactions::ItemIndex;
use satf::models::{Checkpoints, Learner, ModelError, Snapshot, TrainingMonitor};
use satf::monitor::Monitor;
use satf::prepare::Histories;
use satf::ranking::rank_unseen;

use crate::adam::{Adam, norm};
use crate::batch::Sequences;
use crate::checkpoint::Kept;
use crate::gradient::Gradient;
use crate::loss::Objective;
use crate::network::{Pass, embed};
use crate::noise::Noise;
use crate::parameters::{Array, LayerGradients, Parameters, Sizes};
use crate::products::Meter;
use crate::training::Progress;
use crate::{Loss, SasRec, SasRecConfig};

const LOSSES: [Loss; 3] = [Loss::Ce, Loss::SampledCe, Loss::Bce];

/// A network in which every parameter is random, those that start as 0 or 1 too.
fn random_parameters(sizes: Sizes, seed: u64) -> Parameters<f64> {
    let mut parameters = Parameters::<f64>::start(sizes, seed);
    let noise = Noise::new(seed ^ 0x77);
    for (index, value) in (0..).zip(&mut parameters.values) {
        *value += f64::from(noise.below(index, 2001)) / 5000.0 - 0.2;
    }
    parameters
}

fn small_log() -> Histories {
    let sequences = [vec![1, 2, 3, 0, 5, 6, 1], vec![4, 4], vec![2, 0, 2, 1], vec![6, 5, 3, 1, 0], vec![3]];
    Histories::from_sequences(7, &sequences)
}

#[test]
fn gradients_equal_finite_differences() {
    let log = small_log();
    let sizes = Sizes { items: 7, max_len: 5, hidden: 6, blocks: 2, heads: 2 };
    let sequences = Sequences::of(&log, sizes.max_len);
    let batch = sequences.batch(&[2, 0, 3, 1]);
    for loss in LOSSES {
        for dropout in [0.0, 0.3] {
            let mut gradient = Gradient::new(Objective { loss, negatives: 5 }, dropout, &Arc::default());
            let mut parameters = random_parameters(sizes, 5);
            let noise = Noise::new(9);
            gradient.evaluate(&parameters, &batch, noise);
            let by_hand = gradient.values.clone();
            let mut largest = 0f64;
            for (at, &by_hand) in by_hand.iter().enumerate() {
                const STEP: f64 = 1e-5;
                let value = parameters.values[at];
                let mut loss_at = |moved: f64| {
                    parameters.values[at] = moved;
                    gradient.evaluate(&parameters, &batch, noise)
                };
                let difference = (loss_at(value + STEP) - loss_at(value - STEP)) / (2.0 * STEP);
                parameters.values[at] = value;
                let error = (difference - by_hand).abs();
                assert!(
                    error < 1e-8 + 1e-6 * difference.abs(),
                    "{loss:?}, dropout {dropout}, parameter {at}: {by_hand} is not {difference}"
                );
                largest = largest.max(difference.abs());
            }
            assert!(largest > 1e-2, "{loss:?}: nothing was compared");
        }
    }
}

#[test]
fn single_precision_follows_double_precision() {
    let log = small_log();
    let sizes = Sizes { items: 7, max_len: 5, hidden: 32, blocks: 2, heads: 2 };
    let sequences = Sequences::of(&log, sizes.max_len);
    let batch = sequences.batch(&[0, 1, 2, 3]);
    for loss in LOSSES {
        let objective = Objective { loss, negatives: 5 };
        let double = random_parameters(sizes, 3);
        let single = Parameters { sizes, values: double.values.iter().map(|&value| value as f32).collect() };
        let mut in_double = Gradient::new(objective, 0.2, &Arc::default());
        let mut in_single = Gradient::new(objective, 0.2, &Arc::default());
        let losses = (
            in_double.evaluate(&double, &batch, Noise::new(1)),
            in_single.evaluate(&single, &batch, Noise::new(1)),
        );
        assert!((losses.0 - losses.1).abs() < 1e-5 * losses.0, "{loss:?}: {losses:?}");
        let largest = in_double.values.iter().fold(0f64, |most, value| most.max(value.abs()));
        for (double, &single) in in_double.values.iter().zip(&in_single.values) {
            assert!(
                (double - f64::from(single)).abs() < 1e-4 * largest,
                "{loss:?}: {single} is not {double}"
            );
        }
    }
}

/// The derivative of a function at 0, to fourth order.
fn derivative(mut function: impl FnMut(f64) -> f64) -> f64 {
    const STEP: f64 = 1e-4;
    let mut difference = |steps: f64| function(steps * STEP) - function(-steps * STEP);
    (8.0 * difference(1.0) - difference(2.0)) / (12.0 * STEP)
}

#[test]
fn the_way_back_equals_finite_differences_of_every_input_and_weight() {
    let sizes = Sizes { items: 9, max_len: 12, hidden: 6, blocks: 2, heads: 3 };
    let mut parameters = random_parameters(sizes, 2);
    let meter = Meter::default();
    let rows: Vec<(u32, u32)> = (0..20).map(|at| (at * 5 % 9, at % 12)).collect();
    let mut inputs = embed(parameters.array(Array::ItemEmbeddings), &parameters, rows.into_iter());
    let of_hidden: Vec<f64> = (0..120).map(|at| f64::from(at * 37 % 101) / 50.0 - 1.0).collect();
    for dropout in [0.0, 0.4] {
        let pass = |parameters: &Parameters<f64>, inputs: &[f64]| {
            let dropout = Some((Noise::new(3), dropout));
            let pass = Pass { parameters, ends: &[7, 8, 20], dropout, meter: &meter };
            let (hidden, trace) = pass.forward(inputs.to_vec());
            let mut of_layers = LayerGradients::new(sizes);
            let of_inputs = pass.backward(trace, &of_hidden, &mut of_layers);
            let sum: f64 = hidden.iter().zip(&of_hidden).map(|(hidden, of_hidden)| hidden * of_hidden).sum();
            (sum, of_inputs, of_layers.values)
        };
        let compare = |what: &str, at: usize, by_hand: f64, found: f64| {
            let error = (by_hand - found).abs();
            assert!(
                error < 1e-9 * (1.0 + found.abs()),
                "{what} {at}, dropout {dropout}: {by_hand} is not {found}"
            );
        };
        let (_, of_inputs, of_layers) = pass(&parameters, &inputs);
        assert!(of_inputs.iter().chain(&of_layers).any(|gradient| gradient.abs() > 1.0));
        for (at, &by_hand) in of_inputs.iter().enumerate() {
            let value = inputs[at];
            let found = derivative(|moved| {
                inputs[at] = value + moved;
                pass(&parameters, &inputs).0
            });
            inputs[at] = value;
            compare("input", at, by_hand, found);
        }
        for (at, &by_hand) in (sizes.first_layer()..).zip(&of_layers) {
            let value = parameters.values[at];
            let found = derivative(|moved| {
                parameters.values[at] = value + moved;
                pass(&parameters, &inputs).0
            });
            parameters.values[at] = value;
            compare("weight", at, by_hand, found);
        }
    }
}

/// Hidden states of packed sequences, one list of rows per sequence.
fn hidden_states(parameters: &Parameters<f64>, sequences: &[Vec<u32>]) -> Vec<Vec<f64>> {
    let sizes = parameters.sizes;
    let mut rows = Vec::new();
    let mut ends = Vec::new();
    for sequence in sequences {
        let first = sizes.max_len - sequence.len();
        rows.extend(sequence.iter().enumerate().map(|(at, &item)| (item, (first + at) as u32)));
        ends.push(rows.len());
    }
    let pass = Pass { parameters, ends: &ends, dropout: None, meter: &Meter::default() };
    let (states, _) =
        pass.forward(embed(parameters.array(Array::ItemEmbeddings), parameters, rows.into_iter()));
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, end)| states[start * sizes.hidden..end * sizes.hidden].to_vec()).collect()
}

/// The network as its formulas read, one number after the other, on a history padded to full length: padding is masked
/// and multiplied away as in the authors' code.
fn padded_twin(parameters: &Parameters<f64>, sequence: &[u32]) -> Vec<f64> {
    let Sizes { max_len, hidden: d, blocks, heads, .. } = parameters.sizes;
    let first = max_len - sequence.len();
    let is_item = |at: usize| at >= first;
    let norm = |row: &[f64], scale: &[f64], shift: &[f64]| -> Vec<f64> {
        let mean = row.iter().sum::<f64>() / d as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d as f64;
        (0..d).map(|at| (row[at] - mean) / (variance + 1e-8).sqrt() * scale[at] + shift[at]).collect()
    };
    let linear = |row: &[f64], weight: &[f64], bias: &[f64]| -> Vec<f64> {
        (0..d)
            .map(|to| bias[to] + (0..d).map(|from| row[from] * weight[from * d + to]).sum::<f64>())
            .collect()
    };
    let items = parameters.array(Array::ItemEmbeddings);
    let positions = parameters.array(Array::PositionEmbeddings);
    let mut x: Vec<Vec<f64>> = (0..max_len)
        .map(|at| {
            let embed = |column: usize| {
                let item = sequence[at - first] as usize;
                (d as f64).sqrt() * items[item * d + column] + positions[at * d + column]
            };
            if is_item(at) { (0..d).map(embed).collect() } else { vec![0.0; d] }
        })
        .collect();
    for block in 0..blocks {
        let of = |array| parameters.of_block(array, block);
        let q: Vec<Vec<f64>> = x
            .iter()
            .map(|row| norm(row, of(Array::AttentionNormScale), of(Array::AttentionNormShift)))
            .collect();
        let project = |rows: &[Vec<f64>], weight, bias| -> Vec<Vec<f64>> {
            rows.iter().map(|row| linear(row, of(weight), of(bias))).collect()
        };
        let queries = project(&q, Array::QueryWeight, Array::QueryBias);
        let keys = project(&x, Array::KeyWeight, Array::KeyBias);
        let values = project(&x, Array::ValueWeight, Array::ValueBias);
        let mut next = vec![vec![0.0; d]; max_len];
        for at in (0..max_len).filter(|&at| is_item(at)) {
            let mut attended = q[at].clone();
            for head in 0..heads {
                let columns = head * d / heads..(head + 1) * d / heads;
                let score = |key: usize| {
                    let product: f64 = columns.clone().map(|c| queries[at][c] * keys[key][c]).sum();
                    if is_item(key) { product / ((d / heads) as f64).sqrt() } else { f64::NEG_INFINITY }
                };
                let weights: Vec<f64> = (0..=at).map(|key| score(key).exp()).collect();
                let sum: f64 = weights.iter().sum();
                for c in columns.clone() {
                    attended[c] += (0..=at).map(|key| weights[key] / sum * values[key][c]).sum::<f64>();
                }
            }
            let f = norm(&attended, of(Array::ForwardNormScale), of(Array::ForwardNormShift));
            let inner = linear(&f, of(Array::InnerWeight), of(Array::InnerBias));
            let inner: Vec<f64> = inner.into_iter().map(|value| value.max(0.0)).collect();
            let outer = linear(&inner, of(Array::OuterWeight), of(Array::OuterBias));
            next[at] = (0..d).map(|column| f[column] + outer[column]).collect();
        }
        x = next;
    }
    let (scale, shift) = (parameters.array(Array::LastNormScale), parameters.array(Array::LastNormShift));
    x[first..].iter().flat_map(|row| norm(row, scale, shift)).collect()
}

#[test]
fn packed_sequences_equal_the_padded_network_written_out() {
    // Longer than what the attention works on at once.
    let sizes = Sizes { items: 30, max_len: 150, hidden: 8, blocks: 2, heads: 2 };
    let parameters = random_parameters(sizes, 4);
    let sequences: Vec<Vec<u32>> =
        [1, 3, 140, 64, 65].map(|len| (0..len).map(|at| (at * 7 + len) % 30).collect()).to_vec();
    for (packed, sequence) in hidden_states(&parameters, &sequences).iter().zip(&sequences) {
        let twin = padded_twin(&parameters, sequence);
        assert_eq!(packed.len(), twin.len());
        let distance = packed.iter().zip(&twin).fold(0f64, |most, (a, b)| most.max((a - b).abs()));
        assert!(distance < 1e-10, "{} items: {distance}", sequence.len());
    }
}

#[test]
fn the_last_state_alone_equals_that_of_all_states() {
    for (blocks, heads) in [(1, 1), (3, 2)] {
        let sizes = Sizes { items: 20, max_len: 90, hidden: 8, blocks, heads };
        let parameters = random_parameters(sizes, 6);
        for len in [1, 2, 64, 65, 90] {
            let sequence: Vec<u32> = (0..len).map(|at| at * 3 % 20).collect();
            let all = hidden_states(&parameters, std::slice::from_ref(&sequence)).remove(0);
            let rows = sequence.iter().enumerate().map(|(at, &item)| (item, 90 - len + at as u32));
            let (ends, meter) = ([sequence.len()], Meter::default());
            let pass = Pass { parameters: &parameters, ends: &ends, dropout: None, meter: &meter };
            let last = pass.last_state(embed(parameters.array(Array::ItemEmbeddings), &parameters, rows));
            let distance =
                last.iter().zip(&all[all.len() - 8..]).fold(0f64, |most, (a, b)| most.max((a - b).abs()));
            assert!(last.len() == 8 && distance < 1e-12, "{len} items: {distance}");
        }
    }
}

#[test]
fn a_later_item_never_changes_an_earlier_state() {
    let sizes = Sizes { items: 20, max_len: 90, hidden: 8, blocks: 3, heads: 2 };
    let parameters = random_parameters(sizes, 6);
    let sequence: Vec<u32> = (0..90).map(|at| at * 3 % 20).collect();
    let before = hidden_states(&parameters, std::slice::from_ref(&sequence)).remove(0);
    for changed in [89, 70, 64, 63, 1, 0] {
        let mut other = sequence.clone();
        other[changed] = (other[changed] + 1) % 20;
        let after = hidden_states(&parameters, &[other]).remove(0);
        let row = |states: &[f64], at: usize| states[at * 8..(at + 1) * 8].to_vec();
        for at in 0..90 {
            let same = row(&before, at) == row(&after, at);
            assert_eq!(same, at < changed, "item {changed} changed, state {at}");
        }
    }
}

#[test]
fn a_sequence_does_not_notice_its_batch_mates() {
    let sizes = Sizes { items: 20, max_len: 30, hidden: 8, blocks: 2, heads: 1 };
    let parameters = random_parameters(sizes, 8);
    let sequence: Vec<u32> = (0..17).map(|at| at * 5 % 20).collect();
    let alone = hidden_states(&parameters, std::slice::from_ref(&sequence)).remove(0);
    let mates = [vec![3; 30], vec![1], (0..9).collect::<Vec<u32>>()];
    let among = hidden_states(&parameters, &[&mates[..2], &[sequence], &mates[2..]].concat()).remove(2);
    let others = hidden_states(
        &parameters,
        &[vec![vec![7], vec![3; 30]], vec![(0..17).map(|at| at * 5 % 20).collect()]].concat(),
    );
    for (packed, what) in [(&among, "three mates"), (&others[2], "two others")] {
        let distance = alone.iter().zip(packed).fold(0f64, |most, (a, b)| most.max((a - b).abs()));
        assert!(distance < 1e-12, "{what}: {distance}");
    }
}

/// Keeps the loss of every epoch.
#[derive(Default)]
struct Losses(std::sync::Mutex<Vec<f64>>);

impl Monitor for Losses {}

impl TrainingMonitor for Losses {
    fn iteration(&self, report: &satf::models::Iteration, _: &dyn Snapshot) -> std::ops::ControlFlow<()> {
        self.0.lock().unwrap().push(report.measures[0].1);
        std::ops::ControlFlow::Continue(())
    }
}

#[test]
fn ten_short_sequences_are_learned_by_heart() {
    // Each begins with an item of its own and goes on in an order of its own.
    let sequences: Vec<Vec<u32>> = (0..10u32)
        .map(|user| {
            std::iter::once(user).chain((1..5).map(|at| 10 + (user * 7 + at * (user + 2)) % 13)).collect()
        })
        .collect();
    let log = Histories::from_sequences(23, &sequences);
    for (loss, epochs, most) in [(Loss::Ce, 300, 0.005), (Loss::SampledCe, 300, 0.01), (Loss::Bce, 600, 0.02)]
    {
        let config = SasRecConfig {
            loss,
            negatives: 22,
            hidden: 32,
            dropout: 0.0,
            learning_rate: 5e-3,
            batch_size: 10,
            max_len: 10,
            epochs,
            ..Default::default()
        };
        let losses = Losses::default();
        let model = config.fit(&log, &losses).unwrap();
        let last = *losses.0.lock().unwrap().last().unwrap();
        assert!(last < most, "{loss:?}: the loss is {last}");
        // At prediction the newest item has the last position, as the newest item of a whole sequence had in training.
        let foretold = |sequence: &Vec<u32>| {
            let items: Vec<ItemIndex> = sequence.iter().copied().map(ItemIndex).collect();
            let Some((last, history)) = items.split_last() else { return false };
            let mut scores = vec![0f32; 23];
            model.score_batch(&[history.into()], &mut scores);
            rank_unseen(&mut scores, history, 1)[0].item == *last
        };
        let hits = sequences.iter().filter(|sequence| foretold(sequence)).count();
        assert_eq!(hits, 10, "{loss:?}");
    }
}

#[test]
fn numbers_that_are_not_finite_are_an_error() {
    let log = small_log();
    let config = SasRecConfig { hidden: 8, epochs: 2, max_len: 5, ..Default::default() };
    let start = Parameters::<f32>::start(config.sizes(7), 1);
    let reason = |outcome: Result<(), ModelError>| match outcome {
        Err(ModelError::Numerics { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(SasRec::new(start.clone()).is_ok());
    let mut infinite = start.clone();
    infinite.values[17] = f32::INFINITY;
    assert!(reason(SasRec::new(infinite).map(|_| ())).contains("learning_rate"));

    // Training goes on from weights that have exploded.
    let mut exploded = start;
    exploded.values.fill(1e30);
    let adam = Adam::new(exploded.values.len());
    let progress = Progress { parameters: exploded, adam, epochs: Vec::new(), stopped: false };
    let folder = tempfile::tempdir().unwrap();
    Kept::new(&Keeps(folder.path()), &config, &log).keep(&progress).unwrap();
    let reason = reason(config.fit(&log, &Keeps(folder.path())).map(|_| ()));
    assert!(reason.contains("in epoch 1") && reason.contains("clip_norm"), "{reason}");
}

#[test]
fn a_gradient_longer_than_allowed_is_cut() {
    let log = Histories::from_sequences(6, &[vec![0, 1, 2, 3], vec![3, 4, 5], vec![1, 5, 0]]);
    // One step: Adam's first moment is a tenth of the gradient.
    let first_moment = |clip_norm: Option<f64>| {
        let config =
            SasRecConfig { hidden: 8, epochs: 1, max_len: 5, dropout: 0.0, clip_norm, ..Default::default() };
        let folder = tempfile::tempdir().unwrap();
        config.fit(&log, &Keeps(folder.path())).unwrap();
        let keeps = Keeps(folder.path());
        let mut kept = Kept::new(&keeps, &config, &log);
        norm(&kept.resume().unwrap().unwrap().adam.first)
    };
    let whole = first_moment(None);
    assert!((first_moment(Some(whole)) / (0.1 * whole) - 1.0).abs() < 1e-3);
    assert!((first_moment(Some(100.0 * whole)) / whole - 1.0).abs() < 1e-3);
}

/// Keeps checkpoints in a folder.
struct Keeps<'a>(&'a std::path::Path);

impl Monitor for Keeps<'_> {}

impl TrainingMonitor for Keeps<'_> {
    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }
}

impl Checkpoints for Keeps<'_> {
    fn folder(&self) -> &std::path::Path {
        self.0
    }
}
