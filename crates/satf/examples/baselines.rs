//! The baselines on the real datasets, beside the paper's figures, as a Markdown page.
//!
//! `cargo run --release --example baselines -- ../shared/data docs/results/baselines.md`

#![allow(clippy::print_stderr)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use satf::data::{ReadOptions, read_log, write_atomically};
use satf::evaluate::{EvaluateOptions, Evaluation, Measure, Metric, SeenPolicy, evaluate};
use satf::linalg::gemm_rate;
use satf::models::{ModelEntry, Recommender};
use satf::prepare::{Partition, Split, SplitScheme, TiePolicy, Timeline};

type Error = Box<dyn std::error::Error>;

/// A dataset, how it is cut, and what is run on it.
struct Dataset {
    name: &'static str,
    file: &'static str,
    offset: &'static str,
    runs: &'static [Run],
}

/// A model with its settings and, where there are any, NDCG, HR and COV at 10 in the paper.
struct Run {
    label: &'static str,
    model: &'static str,
    settings: &'static str,
    seen: SeenPolicy,
    paper: Option<[f64; 3]>,
}

const fn run(
    label: &'static str,
    model: &'static str,
    settings: &'static str,
    paper: Option<[f64; 3]>,
) -> Run {
    Run { label, model, settings, seen: SeenPolicy::Own, paper }
}

const fn pooled(paper: [f64; 3]) -> Run {
    Run {
        label: "MP, `--seen pooled`",
        model: "mp",
        settings: "",
        seen: SeenPolicy::Pooled,
        paper: Some(paper),
    }
}

const MP: Run = run("MP", "mp", "", None);
const EASE: Run = run("EASE", "ease", "", None);
const VMIS: Run = run("VMIS-kNN", "vmis-knn", "", None);
const TRANSITIONS: Run = run("transitions", "transitions", "", None);

const DATASETS: [Dataset; 5] = [
    Dataset {
        name: "ML-1M",
        file: "ml-1m.ratings.dat.gz",
        offset: "4months",
        runs: &[
            MP,
            pooled([0.000, 0.000, 0.038]),
            run("PureSVD", "pure-svd", "rank = 100\nscaling = 1.0", Some([0.029, 0.060, 0.187])),
            run("PureSVD-N", "pure-svd", "rank = 800\nscaling = 0.0", Some([0.030, 0.061, 0.275])),
            EASE,
            VMIS,
            TRANSITIONS,
        ],
    },
    Dataset {
        name: "AMZ-B (Beauty)",
        file: "amz-beauty.csv.gz",
        offset: "3weeks",
        runs: &[
            MP,
            pooled([0.002, 0.004, 0.007]),
            run("PureSVD", "pure-svd", "rank = 800\nscaling = 1.0", Some([0.046, 0.082, 0.251])),
            run("PureSVD-N", "pure-svd", "rank = 2000\nscaling = 0.6", Some([0.047, 0.087, 0.615])),
            EASE,
            VMIS,
            TRANSITIONS,
        ],
    },
    Dataset {
        name: "AMZ-G (Toys and Games)",
        file: "amz-toys.csv.gz",
        offset: "6weeks",
        runs: &[
            MP,
            pooled([0.002, 0.003, 0.008]),
            run("PureSVD", "pure-svd", "rank = 1500\nscaling = 1.0", Some([0.042, 0.070, 0.467])),
            run("PureSVD-N", "pure-svd", "rank = 1000\nscaling = 0.2", Some([0.058, 0.101, 0.631])),
            EASE,
            VMIS,
            TRANSITIONS,
        ],
    },
    Dataset {
        name: "Steam, a sample (not the paper's data)",
        file: "steam-100k-sample.csv.gz",
        offset: "1month",
        runs: &[
            MP,
            run("PureSVD", "pure-svd", "rank = 100\nscaling = 1.0", None),
            run("PureSVD-N", "pure-svd", "rank = 1500\nscaling = 0.0", None),
            EASE,
            VMIS,
            TRANSITIONS,
        ],
    },
    Dataset {
        name: "ML-100K",
        file: "ml-100k.csv.gz",
        offset: "2weeks",
        runs: &[MP, run("PureSVD-N", "pure-svd", "scaling = 0.4", None), EASE, VMIS, TRANSITIONS],
    },
];

/// Seeds of the shuffled tie order whose mean is reported.
const SEEDS: [u64; 3] = [1, 2, 3];

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let (Some(data), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: baselines DATA_FOLDER OUTPUT.md".into());
    };
    let rate = gemm_rate();
    let mut page = format!(
        "# Baselines on the real datasets\n\n\
         Made by `cargo run --release --example baselines -- DATA docs/results/baselines.md` with satf {}, on {} cores \
         with a GEMM rate of {:.0} GFLOP/s (single) and {:.0} (double) measured in the same run.\n\n\
         Test split, refit on training + validation, all items ranked, n = 10. ± is one standard error. `file` is the \
         paper's tie order; `shuffle` is the mean of seeds 1-3. The paper's figures stand beside ours with a mark: \
         = within two standard errors of ours, ▲ ours is above, ▼ below. PureSVD runs with the paper's ranks and \
         scalings, the others with their defaults.\n\n\
         The paper's MP column is lower than popularity deserves: all events seem to have shared one score vector there, so that items seen \
         by one user stayed excluded for everyone after. `--seen pooled` does that and comes within two standard errors of it.\n",
        env!("CARGO_PKG_VERSION"),
        rayon::current_num_threads(),
        rate.single,
        rate.double,
    );
    for dataset in &DATASETS {
        let path = Path::new(&data).join(dataset.file);
        if path.exists() {
            page.push_str(&section(dataset, path)?);
        } else {
            eprintln!("{} is not there: left out", path.display());
        }
    }
    write_atomically(Path::new(&output), |writer| std::io::Write::write_all(writer, page.as_bytes()))?;
    Ok(())
}

fn section(dataset: &Dataset, path: PathBuf) -> Result<String, Error> {
    let (log, _) = read_log(&[path], &ReadOptions::default(), &())?;
    let offset = dataset.offset.parse()?;
    let cut = |ties: TiePolicy, seed: u64| -> Result<Partition, Error> {
        let scheme = SplitScheme::Calendar { valid: offset, test: offset };
        Ok(Split::new(Timeline::new(&log, ties, seed), scheme)?.test()?)
    };
    let file = cut(TiePolicy::File, 0)?;
    let shuffled = SEEDS.iter().map(|&seed| cut(TiePolicy::Shuffle, seed)).collect::<Result<Vec<_>, _>>()?;
    let mut text = format!(
        "\n## {}\n\n{} valid and test, {} users, {} items, {} events scored\n\n\
         | model | NDCG | HR | COV | NDCG, HR, COV shuffled | paper | train s | score s |\n|---|---|---|---|---|---|---|---|\n",
        dataset.name,
        dataset.offset,
        file.train.num_users(),
        file.train.num_items(),
        file.holdout.counts.scored,
    );
    for run in dataset.runs {
        let (model, train) = fit(run, &file)?;
        let start = Instant::now();
        let outcome = score_events(run, &*model, &file)?;
        let score = start.elapsed().as_secs_f64();
        eprintln!("{} {}: {train:.1} s + {score:.1} s", dataset.name, run.label);
        let [ndcg, hr] =
            [Measure::Ndcg, Measure::HitRate].map(|m| outcome.estimate(Metric { measure: m, cutoff: 10 }));
        let values = [(ndcg.value, ndcg.stderr), (hr.value, hr.stderr), (outcome.coverage(10), None)];
        let shown = values.map(|(value, stderr)| match stderr {
            Some(stderr) => format!("{value:.4} ± {stderr:.4}"),
            None => format!("{value:.3}"),
        });
        let paper = run.paper.map_or_else(String::new, |paper| {
            let marked = paper.iter().zip(values).map(|(&theirs, (ours, stderr))| match stderr {
                Some(stderr) if (ours - theirs).abs() <= 2.0 * stderr + 0.0005 => format!("{theirs:.3} ="),
                Some(_) if ours > theirs => format!("{theirs:.3} ▲"),
                Some(_) => format!("{theirs:.3} ▼"),
                None => format!("{theirs:.3}"),
            });
            marked.collect::<Vec<_>>().join(", ")
        });
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {paper} | {train:.2} | {score:.2} |",
            run.label,
            shown[0],
            shown[1],
            shown[2],
            mean_shuffled(run, &*model, &shuffled)?,
        )?;
    }
    Ok(text)
}

/// NDCG, HR and COV with ties shuffled, the mean over the seeds. `fitted` serves all of them if the model does not look at the
/// order of a history.
fn mean_shuffled(run: &Run, fitted: &dyn Recommender, partitions: &[Partition]) -> Result<String, Error> {
    let reads_order = matches!(run.model, "vmis-knn" | "transitions");
    let mut sums = [0.0; 3];
    for partition in partitions {
        let outcome = if reads_order {
            score_events(run, &*fit(run, partition)?.0, partition)?
        } else {
            score_events(run, fitted, partition)?
        };
        let value = |measure| outcome.estimate(Metric { measure, cutoff: 10 }).value;
        let values = [value(Measure::Ndcg), value(Measure::HitRate), outcome.coverage(10)];
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value / partitions.len() as f64;
        }
    }
    Ok(format!("{:.4}, {:.4}, {:.3}", sums[0], sums[1], sums[2]))
}

/// The fitted model and the seconds it took.
fn fit(run: &Run, partition: &Partition) -> Result<(Box<dyn Recommender>, f64), Error> {
    let configured = ModelEntry::find(run.model)?.configure(&run.settings.parse()?)?;
    let start = Instant::now();
    let model = configured.learner.fit(&partition.train, &())?;
    Ok((model, start.elapsed().as_secs_f64()))
}

fn score_events(run: &Run, model: &dyn Recommender, partition: &Partition) -> Result<Evaluation, Error> {
    let options = EvaluateOptions { seen: run.seen, ..EvaluateOptions::default() };
    Ok(evaluate(model, &partition.holdout, partition.train.num_items(), &options, &())?)
}
