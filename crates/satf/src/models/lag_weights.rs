//! What an item of a history counts, by its lag.

use std::borrow::Cow;

use super::tensors::{StoredTensors, Tensor, TensorError};
use crate::interactions::ItemIndex;
use crate::prepare::History;

/// What an item of a history counts, by its lag (0 = newest).
#[derive(Clone, Debug, PartialEq)]
pub enum LagWeights {
    /// Every distinct item once, however old: the binary preference vector of PureSVD.
    Flat,
    /// The item at lag `l` counts `weights[l]`; items older than the weights reach do not count.
    ByLag(Vec<f64>),
    /// The same, but the order of items within a basket counts only so far: with an `order` of 1 it counts as every other, with
    /// 0 each of them counts the mean of their weights.
    ByBasket {
        /// What the item at lag `l` counts.
        weights: Vec<f64>,
        /// How much the order of items within a basket counts: 0 to 1.
        order: f64,
    },
}

/// Names of the arrays in files.
const WEIGHTS: &str = "lag_weights";
const ORDER: &str = "basket_order";

impl LagWeights {
    /// What the items of a history count, newest first, as far as the weights reach; `None` if every distinct item counts one.
    pub(super) fn of(&self, history: History<'_>) -> Option<Cow<'_, [f64]>> {
        match self {
            LagWeights::Flat => None,
            LagWeights::ByLag(weights) => Some(Cow::Borrowed(&weights[..weights.len().min(history.len())])),
            LagWeights::ByBasket { weights, order } => {
                let weights = &weights[..weights.len().min(history.len())];
                if *order < 1.0 && history.has_baskets_in_newest(weights.len()) {
                    Some(Cow::Owned(averaged(weights, *order, history)))
                } else {
                    Some(Cow::Borrowed(weights))
                }
            }
        }
    }

    /// The items of a history that count by their lag, newest first, and what they count. Empty for [`LagWeights::Flat`].
    pub(super) fn weighted<'a>(
        &'a self,
        history: History<'a>,
    ) -> impl Iterator<Item = (ItemIndex, f64)> + 'a {
        let weights = self.of(history).unwrap_or_default();
        let items = history.items().iter().rev();
        (0..weights.len()).map(move |lag| weights[lag]).zip(items).map(|(weight, &item)| (item, weight))
    }

    /// The weights by lag, if there are any.
    pub(super) fn by_lag(&self) -> Option<&[f64]> {
        match self {
            LagWeights::Flat => None,
            LagWeights::ByLag(weights) | LagWeights::ByBasket { weights, .. } => Some(weights),
        }
    }

    /// As they lie in a file.
    pub(super) fn from_tensors(tensors: &StoredTensors<'_>) -> Result<Self, TensorError> {
        if tensors.find(WEIGHTS).is_none() {
            return Ok(LagWeights::Flat);
        }
        let weights = tensors.values(WEIGHTS, &[None])?;
        if tensors.find(ORDER).is_none() {
            return Ok(LagWeights::ByLag(weights));
        }
        match tensors.values::<f64>(ORDER, &[Some(1)])?[..] {
            [order] if (0.0..=1.0).contains(&order) => Ok(LagWeights::ByBasket { weights, order }),
            ref found => Err(TensorError::new(ORDER, format!("{found:?}"), "a number from 0 to 1")),
        }
    }

    /// As they lie in a file of a model that cannot do without.
    pub(super) fn from_tensors_by_lag(tensors: &StoredTensors<'_>) -> Result<Self, TensorError> {
        match LagWeights::from_tensors(tensors)? {
            LagWeights::Flat => Err(TensorError::new(WEIGHTS, "no such array", "a list of numbers")),
            by_lag => Ok(by_lag),
        }
    }

    /// Its arrays.
    pub(super) fn tensors(&self) -> Vec<Tensor<'_>> {
        let mut tensors: Vec<Tensor<'_>> =
            self.by_lag().map(|weights| Tensor::list(WEIGHTS, weights)).into_iter().collect();
        if let LagWeights::ByBasket { order, .. } = self {
            tensors.push(Tensor::list(ORDER, vec![*order]));
        }
        tensors
    }
}

/// Draws the weights of items of one basket towards their mean.
fn averaged(weights: &[f64], order: f64, history: History<'_>) -> Vec<f64> {
    let mut averaged = weights.to_vec();
    let newest = history.len() - 1;
    let mut start = 0;
    while start < weights.len() {
        let mut end = start + 1;
        while end < weights.len() && history.is_with_previous(newest + 1 - end) {
            end += 1;
        }
        let mean = weights[start..end].iter().sum::<f64>() / (end - start) as f64;
        for (to, weight) in averaged[start..end].iter_mut().zip(&weights[start..end]) {
            *to = order * weight + (1.0 - order) * mean;
        }
        start = end;
    }
    averaged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_taken_at_one_time_share_their_weights_as_far_as_order_means_nothing() {
        let items: Vec<ItemIndex> = (0..5).map(ItemIndex).collect();
        let marks = [true, false, true, false, true];
        let history = History::with_baskets(&items, &marks);
        let weights = vec![8.0, 4.0, 2.0, 1.0];
        let of = |order| {
            LagWeights::ByBasket { weights: weights.clone(), order }.of(history).unwrap().into_owned()
        };
        assert_eq!(of(1.0), [8.0, 4.0, 2.0, 1.0]);
        assert_eq!(of(0.0), [6.0, 6.0, 1.5, 1.5]);
        assert_eq!(of(0.5), [7.0, 5.0, 1.75, 1.25]);
        let alone = LagWeights::ByBasket { weights: weights.clone(), order: 0.0 };
        assert_eq!(&*alone.of(History::new(&items)).unwrap(), [8.0, 4.0, 2.0, 1.0]);
        assert_eq!(&*alone.of(History::new(&items[..2])).unwrap(), [8.0, 4.0]);
        assert!(alone.of(History::default()).unwrap().is_empty());
    }
}
