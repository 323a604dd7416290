//! Events in, from files, memory and Arrow; prepared logs and recommendations out.
//!
//! [`LogBuilder`] makes a log of events in memory, Arrow record batches, files and readers, all by the same rules;
//! [`read_log`] turns one or several files, each plain, gzip or zstd, in any [`Format`], into
//! [`Interactions`]. Text is streamed through a bounded buffer; memory is that of the log itself: the rows and
//! one copy of every distinct id. [`write_log`] writes the compact prepared log, [`write_atomically`] is how every
//! file of this crate is written.
//!
//! Ids are kept as given. In text formats, where nothing tells a number from a string, a column holds integers if
//! the id in its first row is one in its shortest spelling (`7`, not `007`); JSON, Python and Parquet say it
//! themselves. Times become microseconds since 1970 in UTC; a time without a zone is read as UTC.

mod arrow;
mod atomic_file;
mod boosts;
mod columns;
mod delimited;
mod error;
mod event_time;
mod field;
mod file_identity;
mod file_lock;
mod foreign;
mod format;
mod gzip;
mod hint;
mod history_text;
mod interner;
mod item_table;
mod json;
mod json_texts;
mod ledger;
mod lists;
mod log_builder;
mod nameless_file;
mod new_folder;
mod options;
mod parquet;
mod python_literal;
mod recommendations;
mod records;
mod rows;
mod source;
mod steam;
pub(crate) mod time;
mod titles;
mod tolerance;
mod user_histories;
mod waiting;
mod write;

use std::fs;
use std::path::PathBuf;

#[doc(no_inline)]
pub use {arrow_array, arrow_schema};

pub use atomic_file::{check_writable, discard_unfinished, discard_unfinished_if_free, write_atomically};
pub use boosts::{Boost, read_boosts};
pub use columns::{Role, choose_columns};
pub use error::{DataError, Place, Position};
pub use event_time::EventTime;
pub use file_identity::FileIdentity;
pub use file_lock::FileLock;
pub use foreign::ForeignKind;
pub use format::Format;
pub use hint::DataHint;
pub use history_text::{HistoryTextError, parse_history};
pub use item_table::{ItemTable, read_item_table};
pub use lists::{Lists, ListsBuilder};
pub use log_builder::LogBuilder;
pub use new_folder::NewFolder;
pub use options::{FileReport, FirstRow, IdType, ReadOptions, ReadReport, TimeKind, TimeUnit};
pub use parquet::is_decoding;
pub use recommendations::{
    ExplanationRow, RecommendationColumns, RecommendationFormat, RecommendationRow, RecommendationWriter,
};
pub use source::{read_configuration, read_text};
pub use titles::{Titles, read_titles};
pub use user_histories::{HistoryOptions, UserHistories, UserHistory};
pub use write::{LogFormat, write_log};

pub(crate) use arrow::{moments, texts};
pub(crate) use lists::Whom;
pub(crate) use nameless_file::nameless_file;
pub(crate) use parquet::{check_codecs, guarded};
pub(crate) use source::{Content, read_content};
pub(crate) use write::{Columns, IdColumn, RowSink, write_rows};

use crate::interactions::Interactions;
use crate::monitor::{Monitor, check_cancelled};

/// Reads `paths`, in this order, as one log.
///
/// Formats may differ from file to file; the types of the ids must not. The monitor sees the bytes of the files as
/// they lie on disk and may stop the reading; `&()` is a monitor that does nothing.
///
/// ```no_run
/// use satf::{ReadOptions, read_log};
///
/// let (log, report) = read_log(&["events.csv".into()], &ReadOptions::default(), &())?;
/// # Ok::<(), satf::data::DataError>(())
/// ```
pub fn read_log(
    paths: &[PathBuf],
    options: &ReadOptions,
    monitor: &dyn Monitor,
) -> Result<(Interactions, ReadReport), DataError> {
    let mut total = 0u64;
    for path in paths {
        let metadata = fs::metadata(path).map_err(|source| DataError::open(path, source))?;
        if metadata.is_dir() {
            return Err(DataError::Directory { path: path.clone() });
        }
        total = total.saturating_add(metadata.len());
    }
    monitor.begin("reading", total);
    let mut builder = LogBuilder::with_options(options.clone());
    for path in paths {
        builder.add_file(path, monitor)?;
    }
    check_cancelled(monitor)?;
    let report = builder.report();
    Ok((builder.finish()?, report))
}
