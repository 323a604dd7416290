//! The pages of `docs/results`, made from the real datasets:
//!
//! ```sh
//! cargo run --release -p satf-results --bin models -- baselines ../shared/data docs/results/baselines.md
//! cargo run --release -p satf-results --bin models -- tensor ../shared/data docs/results/tensor-models.md
//! cargo run --release -p satf-results --bin models -- d-satf ../shared/data docs/results/d-satf.md [WORK_FOLDER [DATASET]]
//! ```
//!
//! The last one keeps what is done in a folder and goes on from there.

#![allow(clippy::print_stderr)]

mod baselines;
mod d_satf;
mod tensor;

use std::path::Path;

use satf::data::{ReadOptions, read_log, write_atomically};
use satf::evaluate::{Evaluation, Measure, Metric};
use satf::interactions::Interactions;
use satf::models::gemm_rate;
use satf::prepare::{Offset, Partition, Split, SplitScheme, TiePolicy, Timeline};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [page, data, output, options @ ..] = arguments.as_slice() else {
        return Err(
            "usage: models baselines|tensor|d-satf DATA_FOLDER OUTPUT.md [WORK_FOLDER [DATASET]]".into()
        );
    };
    let text = match page.as_str() {
        "baselines" => baselines::page(Path::new(data))?,
        "tensor" => tensor::page(Path::new(data))?,
        "d-satf" => {
            let work = options.first().map_or("d-satf-results", String::as_str);
            d_satf::page(Path::new(data), Path::new(work), options.get(1).map(String::as_str))?
        }
        other => {
            return Err(format!("unknown page '{other}': expected 'baselines', 'tensor' or 'd-satf'").into());
        }
    };
    write_atomically(Path::new(output), |writer| std::io::Write::write_all(writer, text.as_bytes()))?;
    Ok(())
}

/// Title, how the page was made, and what to know before reading it.
fn head(title: &str, page: &str, notes: &str) -> String {
    let rate = gemm_rate();
    format!(
        "# {title}\n\n\
         Made by `cargo run --release -p satf-results --bin models -- {page} DATA OUTPUT` with satf {}, on {} cores with a GEMM rate of \
         {:.0} GFLOP/s (single) and {:.0} (double) measured before.\n\n{notes}\n",
        env!("CARGO_PKG_VERSION"),
        rayon::current_num_threads(),
        rate.single,
        rate.double,
    )
}

/// A dataset and where it is cut.
struct Log {
    rows: Interactions,
    scheme: SplitScheme,
}

impl Log {
    /// `None`, with a word on it, if the file is not there.
    fn read(path: &Path, valid: &str, test: &str) -> Result<Option<Self>, Error> {
        if !path.exists() {
            eprintln!("{} is not there: left out", path.display());
            return Ok(None);
        }
        let (rows, _) = read_log(&[path.to_path_buf()], &ReadOptions::default(), &())?;
        let (valid, test): (Offset, Offset) = (valid.parse()?, test.parse()?);
        Ok(Some(Log { rows, scheme: SplitScheme::Calendar { valid, test } }))
    }

    fn split(&self, ties: TiePolicy, seed: u64) -> Result<Split<'_>, Error> {
        Ok(Split::new(Timeline::new(&self.rows, ties, seed), self.scheme)?)
    }

    fn cut(&self, ties: TiePolicy, seed: u64) -> Result<Partition, Error> {
        Ok(self.split(ties, seed)?.test()?)
    }
}

/// NDCG, HR and COV at 10, the first two with their standard errors.
#[derive(Clone, Copy)]
struct Scores {
    ndcg: (f64, f64),
    hit_rate: (f64, f64),
    coverage: f64,
}

impl Scores {
    fn of(evaluation: &Evaluation) -> Self {
        let estimate = |measure| {
            let estimate = evaluation.estimate(Metric { measure, cutoff: 10 });
            (estimate.value, estimate.stderr.unwrap_or(0.0))
        };
        Scores {
            ndcg: estimate(Measure::Ndcg),
            hit_rate: estimate(Measure::HitRate),
            coverage: evaluation.coverage(10),
        }
    }

    /// The mean of several runs on the same events: its error is that of one run, for the events are the same.
    fn mean(runs: &[Scores]) -> Self {
        let mean = |of: &dyn Fn(&Scores) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        Scores {
            ndcg: (mean(&|run| run.ndcg.0), mean(&|run| run.ndcg.1)),
            hit_rate: (mean(&|run| run.hit_rate.0), mean(&|run| run.hit_rate.1)),
            coverage: mean(&|run| run.coverage),
        }
    }

    /// Three cells of a table.
    fn cells(&self) -> String {
        format!(
            "{:.4} ± {:.4} | {:.4} ± {:.4} | {:.3}",
            self.ndcg.0, self.ndcg.1, self.hit_rate.0, self.hit_rate.1, self.coverage
        )
    }
}

/// Other figures, each with a mark that says how ours compare: within two standard errors, above or below.
fn marked(ours: &Scores, theirs: [f64; 3]) -> String {
    let mark = |theirs: f64, (ours, stderr): (f64, f64)| match ours - theirs {
        // Theirs are rounded to three digits.
        difference if difference.abs() <= 2.0 * stderr + 0.0005 => '=',
        difference if difference > 0.0 => '▲',
        _ => '▼',
    };
    let [ndcg, hit_rate, coverage] = theirs;
    format!(
        "{ndcg:.3} {}, {hit_rate:.3} {}, {coverage:.3}",
        mark(ndcg, ours.ndcg),
        mark(hit_rate, ours.hit_rate)
    )
}
