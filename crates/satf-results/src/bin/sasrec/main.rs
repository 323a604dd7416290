//! The page `docs/results/sasrec.md`, made from the real datasets:
//!
//! ```sh
//! cargo run --release -p satf-results --bin sasrec -- ../shared/data docs/results/sasrec.md
//! cargo run --release -p satf-results --bin sasrec -- ../shared/data docs/results/sasrec.md \
//!     --only beauty,ml-1m --losses ce --ties shuffle --epochs 30 --bce-epochs 100
//! ```
//!
//! Every training is a cell in the folder `--work` (default `sasrec-results`): finished cells are kept, an unfinished training goes
//! on from its last epoch, so the command may be stopped at any moment and run again. Cells that were not asked for are
//! shown if they are there.

#![allow(clippy::print_stderr)]

mod cells;
mod page;

use std::path::PathBuf;

use satf::data::write_atomically;
use satf::prepare::TiePolicy;

type Error = Box<dyn std::error::Error>;

/// A dataset, the names it goes by, and the configurations of the full softmax that are tried on its validation set.
struct Dataset {
    name: &'static str,
    title: &'static str,
    file: &'static str,
    preset: &'static str,
    /// Instead of the preset's, for a log that is not the paper's.
    offset: Option<&'static str>,
    /// NDCG and HR of SASRec in the paper.
    paper: Option<[f64; 2]>,
    candidates: &'static [&'static str],
}

/// Width, blocks and dropout around what works on sparse logs; everything else as by default.
const SPARSE: &[&str] = &[
    "hidden = 128\nblocks = 2\ndropout = 0.4",
    "hidden = 128\nblocks = 2\ndropout = 0.5",
    "hidden = 64\nblocks = 2\ndropout = 0.3",
];

const DATASETS: [Dataset; 4] = [
    Dataset {
        name: "beauty",
        title: "AMZ-B (Beauty)",
        file: "amz-beauty.csv.gz",
        preset: "amz-b",
        offset: None,
        paper: Some([0.055, 0.100]),
        candidates: SPARSE,
    },
    Dataset {
        name: "toys",
        title: "AMZ-G (Toys and Games)",
        file: "amz-toys.csv.gz",
        preset: "amz-g",
        offset: None,
        paper: Some([0.055, 0.094]),
        candidates: SPARSE,
    },
    Dataset {
        name: "ml-1m",
        title: "ML-1M",
        file: "ml-1m.ratings.dat.gz",
        preset: "ml-1m",
        offset: None,
        paper: Some([0.069, 0.134]),
        candidates: &[
            "hidden = 128\nblocks = 2\ndropout = 0.2\nbatch_size = 128",
            "hidden = 128\nblocks = 2\ndropout = 0.3\nbatch_size = 128",
        ],
    },
    Dataset {
        name: "steam",
        title: "Steam, a sample (not the paper's data)",
        file: "steam-100k-sample.csv.gz",
        preset: "steam",
        offset: Some("1month"),
        paper: None,
        candidates: SPARSE,
    },
];

/// What was asked for.
struct Request {
    data: PathBuf,
    output: PathBuf,
    work: PathBuf,
    only: Vec<String>,
    losses: Vec<String>,
    ties: Vec<TiePolicy>,
    /// Most epochs with the full softmax; early stopping ends earlier.
    epochs: i64,
    /// Most epochs with binary cross-entropy, where the paper's number is too many.
    bce_epochs: i64,
    /// Candidates tried at most.
    candidates: usize,
}

impl Request {
    fn parse(arguments: &[String]) -> Result<Self, Error> {
        let [data, output, options @ ..] = arguments else {
            return Err("usage: sasrec_results DATA_FOLDER OUTPUT.md [--work DIR] [--only DATASETS] [--losses ce,bce] \
                        [--ties file,shuffle] [--epochs N] [--bce-epochs N] [--candidates N]"
                .into());
        };
        let mut request = Request {
            data: data.into(),
            output: output.into(),
            work: "sasrec-results".into(),
            only: DATASETS.iter().map(|dataset| dataset.name.to_owned()).collect(),
            losses: vec!["ce".to_owned(), "bce".to_owned()],
            ties: vec![TiePolicy::File, TiePolicy::Shuffle],
            epochs: 40,
            bce_epochs: i64::MAX,
            candidates: usize::MAX,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let value = options.next().ok_or_else(|| format!("{option}: expected a value after it"))?;
            let list = || value.split(',').map(str::to_owned).collect::<Vec<String>>();
            match option.as_str() {
                "--work" => request.work = value.into(),
                "--only" => request.only = list(),
                "--losses" => request.losses = list(),
                "--ties" => {
                    request.ties = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                "--epochs" => request.epochs = value.parse()?,
                "--bce-epochs" => request.bce_epochs = value.parse()?,
                "--candidates" => request.candidates = value.parse()?,
                other => return Err(format!("unknown option {other}").into()),
            }
        }
        let unknown = |name: &&String| DATASETS.iter().all(|dataset| dataset.name != **name);
        if let Some(name) = request.only.iter().find(unknown) {
            return Err(format!("--only {name}: expected beauty, toys, ml-1m or steam").into());
        }
        if let Some(loss) = request.losses.iter().find(|loss| !["ce", "bce"].contains(&loss.as_str())) {
            return Err(format!("--losses {loss}: expected ce or bce").into());
        }
        Ok(request)
    }
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let request = Request::parse(&arguments)?;
    std::fs::create_dir_all(&request.work)?;
    for dataset in DATASETS.iter().filter(|dataset| request.only.iter().any(|name| name == dataset.name)) {
        for &ties in &request.ties {
            cells::compute(&request, dataset, ties)?;
            write_page(&request)?;
        }
    }
    write_page(&request)
}

fn write_page(request: &Request) -> Result<(), Error> {
    let text = page::page(&request.work)?;
    write_atomically(&request.output, |writer| std::io::Write::write_all(writer, text.as_bytes()))?;
    Ok(())
}
