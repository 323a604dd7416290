//! A trained model in use: what comes next, why, and what is similar.
//!
//! [`Request`] says what is wanted, in the caller's ids; [`Model::recommend`] gives an [`Answer`] in the same ids.
//!
//! ```
//! use satf::generate::{ShopOptions, shop};
//! use satf::{Model, Request};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let log = shop(&ShopOptions { users: 300, ..ShopOptions::default() })?;
//! let model = Model::fit(&log)?;
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("shop.satf");
//! model.save(&path)?;
//!
//! let model = Model::load(&path)?;
//! let history = model.history(["laptop", "laptop sleeve"]);
//! for next in model.recommend(&history, &Request::new(3))?.items {
//!     println!("{} {}", next.item, next.score);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! There is one scoring path for everything. A history is scored against the whole catalogue, alone by [`Recommender::score_one`](crate::models::Recommender::score_one) or among
//! others by [`Recommender::score_batch`](crate::models::Recommender::score_batch), whose bits are the same; filters take out what may not be recommended; and a bounded top-n
//! with a written tie rule ([`top_n`](crate::ranking::top_n)) takes the best. The same history therefore gets the same list and the same
//! scores, to the bit, from [`Model::recommend`], from [`Model::recommend_batch`] in any batch, from [`Prepared::answer`], from a stream,
//! and from the evaluation.
//!
//! A history is an [`OwnedHistory`](crate::OwnedHistory) everywhere: [`Model::history`] makes one from ids, [`Model::history_with_times`] from ids and times,
//! [`UserHistories`](crate::data::UserHistories) from files.
//!
//! # In a server
//!
//! A server keeps the model in an `Arc` and one [`Workspace`](crate::models::Workspace) per thread. For each request it calls
//! [`Model::prepare`] and [`Prepared::answer`]: both run on the calling thread alone, and after the first history nothing of the
//! catalogue's size is allocated. A model of sparse rows (`transitions`, `d-satf` without a core, `vmis-knn`) looks at the items that the
//! history's rows name, never at the whole catalogue. Histories that wait anyway are answered together by [`Prepared::answer_batch`]: for
//! models with factors that is one matrix product.
//!
//! ```
//! # use satf::models::{Configured, TransitionsConfig};
//! # use satf::prepare::Histories;
//! use std::sync::Arc;
//!
//! use satf::models::Workspace;
//! use satf::recommend::{Model, Request};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! # let histories = Histories::from_sequences(4, &[vec![0, 1, 2], vec![1, 2, 3]]);
//! # let model = Model::train(&Configured::new(TransitionsConfig::default())?, &histories, &())?;
//! let model = Arc::new(model);
//! let worker = std::thread::spawn({
//!     let model = Arc::clone(&model);
//!     move || {
//!         let mut workspace = Workspace::new();
//!         // For every request that comes in:
//!         let request: Request = serde_json::from_str(r#"{"n": 2, "exclude": [3, 99]}"#)?;
//!         let prepared = model.prepare(&request)?;
//!         let answer = prepared.answer(&model.history([1]), &mut workspace)?;
//!         assert_eq!((answer.items.len(), prepared.unknown().len()), (2, 1));
//!         Ok::<_, Box<dyn std::error::Error + Send + Sync>>(serde_json::to_string(&answer)?)
//!     }
//! });
//! let answer = worker.join().map_err(|_| "the worker panicked")??;
//! # assert!(answer.contains("item_id"));
//! # Ok(())
//! # }
//! ```

// First, so that the documentation of `Model` begins with `Model::fit`.
mod training;

mod answer;
mod best;
mod error;
mod evaluation;
mod filters;
mod model;
mod prepared;
mod request;
mod statistics;
mod stream;
mod workspaces;

// What stands at the root of the crate has its page there.
#[doc(no_inline)]
pub use answer::{Answer, Explanation, Recommendation};
pub use answer::{Share, SimilarItem, SimilarItems};
pub use error::RecommendError;
pub use evaluation::{Exposure, JudgedModel};
pub use filters::Filters;
#[doc(no_inline)]
pub use model::Model;
#[doc(no_inline)]
pub use prepared::Prepared;
#[doc(no_inline)]
pub use request::Request;
pub use request::{Fallback, Place, Seen, Unknown};
#[doc(no_inline)]
pub use stream::recommend_stream;
pub use stream::{StreamError, StreamReport};
#[doc(no_inline)]
pub use training::{FitError, FitOptions};
