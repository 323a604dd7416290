//! `satf` recommends the next item: it learns from ordered histories (who took what, when) and answers what
//! comes next, without deep learning, on a CPU.
//!
//! Data flows one way: files ([`data`]) become [`interactions`], are prepared and split ([`prepare`]), models
//! learn from histories ([`models`]; the sequence-aware ones see them as a [`tensor`] and [`factorize`] it, on
//! [`linalg`]), [`evaluate`] judges them, and [`tune`] searches for their best configurations.
//!
//! ```
//! use satf::evaluate::{EvaluateOptions, evaluate, rank_unseen};
//! use satf::generate::{ShopOptions, shop};
//! use satf::interactions::{Id, ItemIndex};
//! use satf::models::{Learner, TransitionsConfig};
//! use satf::prepare::{History, Split, SplitScheme, TiePolicy, Timeline};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A log: made up here, from files with `satf::data::read_log`.
//! let log = shop(&ShopOptions { users: 500, ..ShopOptions::default() })?;
//!
//! // All but the last month trains, the last month judges.
//! let month = "1month".parse()?;
//! let scheme = SplitScheme::Calendar { valid: month, test: month };
//! let partition = Split::new(Timeline::new(&log, TiePolicy::Shuffle, 0), scheme)?.test()?;
//!
//! let model = TransitionsConfig::default().fit(&partition.train, &())?;
//! let catalog = partition.train.catalog();
//! let outcome = evaluate(&*model, &partition.holdout, catalog.len(), &EvaluateOptions::default(), &())?;
//! for (metric, estimate) in outcome.report() {
//!     println!("{metric} {:.3}", estimate.value);
//! }
//!
//! // What comes after a laptop? Any list of known items can be scored: no stored user is needed.
//! let laptop = ItemIndex(catalog.find(Id::Text("laptop")).ok_or("no laptop")? as u32);
//! let mut scores = vec![0.0; model.num_items()];
//! model.score_batch(&[History::new(&[laptop])], &mut scores);
//! for next in rank_unseen(&mut scores, &[laptop], 3) {
//!     println!("{}", catalog.get(next.item.get()));
//! }
//! # Ok(())
//! # }
//! ```

pub mod byte_size;
pub mod choice;
pub mod data;
pub mod evaluate;
pub mod experiment;
pub mod factorize;
pub mod fault;
pub mod generate;
pub mod interactions;
pub mod linalg;
pub mod model_file;
pub mod models;
pub mod monitor;
pub mod prepare;
pub mod ranking;
pub mod recommend;
pub mod tensor;
pub mod tune;
