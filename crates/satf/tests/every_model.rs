//! Every model of the registry is held to what every model promises ([`promises`]), with its defaults and with other settings.

#![allow(clippy::unwrap_used)]

mod promises;

use promises::{Case, promised_by};
use satf::models::Registry;

/// Models whose scores do not depend on the order of a history. All others read it.
const IGNORE_ORDER: [&str; 4] = ["mp", "random", "pure-svd", "ease"];

/// Models that hold whole histories. All others hold nothing but sums over users.
const HOLD_HISTORIES: [&str; 1] = ["vmis-knn"];

/// Configurations besides the defaults.
const MORE: [(&str, &str); 11] = [
    ("random", "seed = 11"),
    ("pure-svd", "rank = 7\nscaling = 1.0"),
    // Few columns: products of other shapes take other kernels.
    ("pure-svd", "rank = 2"),
    ("pure-svd", "rank = 5\nscaling = 0.2\nrescaled = true"),
    ("d-satf", "balance = 0.0"),
    ("d-satf", "balance = 1.0\nrank = 7\nrecency_decay = 1.0"),
    ("ease", "regularization = 0.5"),
    ("ga-satf", "user_rank = 12\nitem_rank = 9\nposition_rank = 3\nrescaled = true"),
    (
        "la-satf",
        "user_rank = 12\nitem_rank = 9\nattention_rank = 3\nsequences_rank = 4\nattention_window = 6\nattention_decay = 1.0\n\
         precision = 'double'\nstart = 'random'\nmax_len = 10\nrescaled = true",
    ),
    ("vmis-knn", "neighbors = 3\nsample_size = 7\nmax_items = 4\ndecay = 'linear'\nidf = false"),
    ("transitions", "reverse = 0.5\nwindow = 3\nmax_len = 4"),
];

fn every_model() -> Vec<Case> {
    let registry = Registry::default();
    let defaults = registry.models().iter().map(|entry| (entry.name, ""));
    let case = |(model, settings): (&str, &str)| {
        Case::new(&registry.find(model).unwrap(), settings)
            .reading_order(!IGNORE_ORDER.contains(&model))
            .holding_histories(HOLD_HISTORIES.contains(&model))
    };
    defaults.chain(MORE).map(case).collect()
}

promised_by!(every_model());
