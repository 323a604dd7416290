//! From a list of events to recommendations, and a model that is kept.

#![allow(clippy::print_stdout)]

use satf::{Interactions, Model, Request};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Who took what, when. Ids are strings or integers, times are dates or numbers.
    let log = Interactions::from_events([
        ("ann", "tent", "2024-05-01"),
        ("ann", "stove", "2024-05-03"),
        ("ann", "mug", "2024-05-09"),
        ("bob", "tent", "2024-05-04"),
        ("bob", "stove", "2024-05-05"),
        ("bob", "lamp", "2024-05-08"),
    ])?;
    let path = std::env::temp_dir().join(format!("shop-{}.satf", std::process::id()));
    Model::fit(&log)?.save(&path)?;

    let model = Model::load(&path)?;
    let request = Request { n: 2, exclude: vec!["lamp".into()], explain: true, ..Request::default() };
    for next in model.recommend(&model.history(["tent", "stove"]), &request)?.items {
        println!("{} {:.3}", next.item, next.score);
        for part in next.explanation.iter().flat_map(|why| &why.shares) {
            println!("    {:+.3} because of {}", part.share, part.item);
        }
    }
    Ok(std::fs::remove_file(path)?)
}
