//! From a list of events to recommendations, and a model that is kept.
#![allow(clippy::print_stdout)]
use satf::{Interactions, Model, Request};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Events: user, item, time. Ids are strings or integers, times are dates or numbers.
    let ann = [("ann", "tent", "2024-05-01"), ("ann", "stove", "2024-05-03"), ("ann", "mug", "2024-05-09")];
    let bob = [("bob", "tent", "2024-05-04"), ("bob", "stove", "2024-05-05"), ("bob", "lamp", "2024-05-08")];
    let model = Model::fit(&Interactions::from_events([ann, bob].concat())?)?;

    // What comes after a tent and a stove, other than a lamp, and why?
    let request = Request { n: 2, exclude: vec!["lamp".into()], explain: true, ..Request::default() };
    let answer = model.recommend(&model.history(["tent", "stove"]), &request)?;
    for next in &answer.items {
        println!("{} {:.3}", next.item, next.score);
        for part in next.explanation.iter().flat_map(|why| &why.shares) {
            println!("    {:+.3} because of {}", part.share, part.item);
        }
    }

    // A model is one file. Loaded again, it gives the same answers.
    let path = std::env::temp_dir().join(format!("shop-{}.satf", std::process::id()));
    model.save(&path)?;
    let loaded = Model::load(&path)?;
    assert_eq!(loaded.recommend(&loaded.history(["tent", "stove"]), &request)?, answer);
    Ok(std::fs::remove_file(path)?)
}
