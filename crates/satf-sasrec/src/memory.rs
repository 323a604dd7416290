//! What training will take, known before it begins.

use satf::prepare::Histories;

use crate::SasRecConfig;
use crate::batch::{ROWS_A_GROUP, Sequences};
use crate::loss::most_logits;

/// Copies of the parameters at the peak: they themselves, their gradient and the two moments of Adam; a model that is scored on
/// the way and the best one so far; of a checkpoint the best parameters, and twice four arrays on their way to the file.
const COPIES: u64 = 4 + 2 + 1 + 2 * 4;
/// Rows as wide as the network that a block keeps for the way back.
const ROWS_OF_BLOCK: u64 = 8;
/// The same outside of the blocks: what the last norm gets, the hidden states that it gives (later the gradient of the inputs),
/// those of the whole batch, and their gradient.
const ROWS_OUTSIDE: u64 = 4;
/// The same that are there only while a group is on its way back; all groups may be, if there are as many threads.
const ROWS_FOR_A_MOMENT: u64 = 8;
/// Queries of a group whose weights of attention are there at the same time, in three forms.
const QUERIES: u64 = 3 * 64;
/// Values beside each row, with room to grow: its item, the item after it, its position, a negative, and what the loss finds.
const VALUES_OF_ROW: u64 = 14;
/// Values beside each sequence, with room to grow: where its history is, in the log and in a batch, and its place in an epoch.
const VALUES_OF_SEQUENCE: u64 = 32;

/// Most bytes that training takes. Products saturate, so absurd sizes are just very large.
pub(crate) fn needed(config: &SasRecConfig, histories: &Histories) -> u64 {
    let sizes = config.sizes(histories.num_items());
    let product =
        |factors: &[u64]| factors.iter().fold(1u64, |product, &factor| product.saturating_mul(factor));
    let (width, blocks, longest) = (sizes.hidden as u64, sizes.blocks as u64, sizes.max_len as u64);
    let values = sizes.num_values() as u64;
    let weights = (sizes.num_values() - sizes.first_layer()) as u64;
    let sequences = Sequences::of(histories, config.max_len);
    let rows = sequences.most_rows(config.batch_size) as u64;
    let groups = rows / ROWS_A_GROUP as u64 + 1;
    let terms = [
        product(&[COPIES, values]),
        // What every group of sequences adds to the gradient of the layers.
        product(&[groups, weights]),
        product(&[rows, width, ROWS_OF_BLOCK * blocks + ROWS_OUTSIDE + ROWS_FOR_A_MOMENT]),
        product(&[rows, VALUES_OF_ROW]),
        product(&[sequences.len() as u64, VALUES_OF_SEQUENCE]),
        product(&[groups, longest.min(rows), QUERIES]),
        most_logits(config.objective(), sizes.items, sizes.hidden),
    ];
    let all = terms.into_iter().fold(0u64, u64::saturating_add);
    all.saturating_mul(size_of::<f32>() as u64)
}
