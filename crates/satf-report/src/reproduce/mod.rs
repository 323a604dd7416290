//! The paper's reproduction: every table and figure of a suite, cell by cell, each kept as soon as it is done.
//!
//! A [`Suite`] says which datasets and models there are and what others published of them; the paper's is built in. [`reproduce`]
//! measures what is not done yet, and gathers all of it as [`Findings`], which [`report`](crate::report) makes pages of.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use satf::models::Registry;
//! use satf_report::report;
//! use satf_report::reproduce::{Request, Suite, reproduce};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::default();
//! let mut suite = Suite::of_paper(&registry);
//! let selection = suite.select(&["amz-b".to_owned(), "PureSVD".to_owned()], &[], &registry)?;
//! let (data, out) = (Path::new("data"), Path::new("reproduction"));
//! let request = Request::new(&suite, &selection, &registry, data, out);
//! let findings = reproduce(&request, &())?;
//! report::write(&findings, out)?;
//! # Ok(())
//! # }
//! ```

mod cell;
mod error;
mod findings;
mod gathering;
mod pace;
mod plan;
mod run;
mod standing;
mod store;
mod suite;
mod tuning;
mod watcher;

pub use error::{ReproduceError, SuiteError};
pub use findings::{DatasetFindings, Findings, MEASURES, Made, Published, Row, Scores, Step};
pub use gathering::quoted;
pub use run::{FOLDERS, Request, reproduce};
pub use standing::{Figure, Mark, Place, places};
pub use suite::{Selection, Suite};
pub use watcher::Watcher;
