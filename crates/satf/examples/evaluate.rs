//! Which model is better on a log, and could it be luck? Both learn from all but its newest month and are judged on that month.

#![allow(clippy::print_stdout)]

use satf::evaluate::CompareOptions;
use satf::experiment::{ModelSettings, Protocol, RunOptions, run};
use satf::generate::{ShopOptions, shop};
use satf::models::Registry;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A log: made up here, from files with `satf::data::read_log`, from elsewhere with `satf::LogBuilder`.
    let log = shop(&ShopOptions { users: 500, ..ShopOptions::default() })?;

    let protocol = Protocol { test: Some("1month".parse()?), ..Protocol::default() };
    let cut = protocol.cut(&log)?;
    for warning in &cut.warnings {
        println!("warning: {warning}");
    }

    let models = ModelSettings::named(["mp", "transitions"]);
    let mut runs = Vec::new();
    for choice in models.configure(&protocol.shared_keys(), &Registry::default())? {
        runs.push(run(&choice, &cut, &RunOptions::default(), &())?);
    }

    let ndcg = "NDCG@10".parse()?;
    for run in &runs {
        let estimate = run.evaluation.estimate(ndcg);
        println!(
            "{:12} {ndcg} {:.3} ± {:.3}",
            run.label,
            estimate.value,
            estimate.stderr.unwrap_or_default()
        );
    }

    let [baseline, model] = &runs[..] else { return Err("two models".into()) };
    let difference =
        model.evaluation.difference_from(&baseline.evaluation, ndcg, &CompareOptions::default(), &())?;
    println!("{} is better by {:.3} (p = {:.4})", model.label, difference.difference, difference.p_value);
    assert!(difference.p_value < 0.01 && difference.interval.is_some_and(|[low, _]| low > 0.0));
    Ok(())
}
