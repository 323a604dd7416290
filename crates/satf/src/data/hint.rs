//! What helps against an error of a file: a choice that the caller can make.

use std::fmt;

use super::{Format, Role, TimeUnit};

/// What the caller can do about a [`DataError`](super::DataError).
///
/// Its text names fields of [`ReadOptions`](super::ReadOptions) and ends the text of the error, after `hint: `. A program with
/// options of its own words it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataHint {
    /// Say what format the file has.
    GiveFormat,
    /// Say which column it is; for times, or that the order of the rows is the time.
    GiveColumn(Role),
    /// Read all ids of this column as text.
    ReadIdsAsText(Role),
    /// Say which unit times are in.
    GiveTimeUnit,
    /// Read every file without its times: the order of the rows is the time.
    OrderIsTime,
    /// Say that the first row is an event.
    GiveHeader,
    /// Convert the file.
    ConvertToUtf8,
    /// Use the file as a model.
    LoadModel,
}

impl fmt::Display for DataHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataHint::GiveFormat => write!(f, "give the format (one of {})", Format::names()),
            DataHint::GiveColumn(role) => {
                write!(f, "give the {role}_column (a name, or a number from 1)")?;
                if *role == Role::Time {
                    f.write_str(", or set order_is_time if the order of the rows is the time")?;
                }
                Ok(())
            }
            DataHint::ReadIdsAsText(role) => {
                write!(f, "the {role}_type string reads all these ids as text")
            }
            DataHint::GiveTimeUnit => write!(f, "give the time_unit ({})", TimeUnit::told_names()),
            DataHint::OrderIsTime => f.write_str("order_is_time reads every file without its times"),
            DataHint::GiveHeader => f.write_str("if it is an event, set header to false"),
            DataHint::ConvertToUtf8 => {
                f.write_str("convert it, for example with iconv -f UTF-16 -t UTF-8 OLD > NEW")
            }
            DataHint::LoadModel => f.write_str("it can be loaded as a model"),
        }
    }
}
