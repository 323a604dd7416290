//! What item factors in fewer bytes cost: size of the model file and scores on the test set, for LA-SATF on Beauty at the
//! paper's configuration, as a table in Markdown.
//!
//! `cargo run --release -p satf-results --bin quantization -- amz-beauty.csv.gz [file|shuffle]`

#![allow(clippy::print_stdout)]

use std::path::PathBuf;

use satf::data::{ReadOptions, read_log};
use satf::evaluate::{EvaluateOptions, evaluate};
use satf::models::{Quantization, Registry};
use satf::prepare::{Split, SplitScheme, TiePolicy, Timeline};
use satf::recommend::Model;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path: PathBuf = arguments.next().ok_or("which log?")?.into();
    let ties: TiePolicy = arguments.next().as_deref().unwrap_or("file").parse()?;
    let preset = Registry::default().preset("la-satf/amz-b")?;
    let (log, _) = read_log(&[path], &ReadOptions::default(), &())?;
    let scheme = SplitScheme::Holdout { test: preset.protocol.test };
    let partition = Split::new(Timeline::new(&log, ties, 0), scheme)?.test()?;
    let mut settings = preset.settings;
    settings.insert("max_len".to_owned(), toml::Value::Integer(preset.protocol.max_len as i64));
    let configured = Registry::default().find(&preset.model)?.configure(&settings)?;
    let model = Model::train(&configured, &partition.train, &())?;

    let folder = tempfile::tempdir()?;
    println!("| item factors | file, bytes | NDCG@10 | HR@10 | MRR@10 | COV@10 |\n|---|---|---|---|---|---|");
    for kind in [Quantization::None, Quantization::Half, Quantization::Int8] {
        // Half is rounded from single, and int8 from single too: from the model as trained, not from half.
        let mut rounded =
            Model::new(&configured, &partition.train, model.recommender().quantized(Quantization::None)?);
        if kind != Quantization::None {
            rounded.quantize(kind)?;
        }
        let file = folder.path().join("model.satf");
        rounded.save(&file)?;
        let items = partition.train.num_items();
        let evaluation =
            evaluate(rounded.recommender(), &partition.holdout, items, &EvaluateOptions::default(), &())?;
        let metrics: Vec<String> = evaluation
            .report()
            .iter()
            .map(|(_, estimate)| match estimate.stderr {
                Some(stderr) => format!("{:.4} ± {stderr:.4}", estimate.value),
                None => format!("{:.4}", estimate.value),
            })
            .collect();
        println!("| {} | {} | {} |", kind.name(), std::fs::metadata(&file)?.len(), metrics.join(" | "));
    }
    Ok(())
}
