//! Values with a notation of their own.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use satf::data::{Boost, LogFormat, RecommendationFormat};

/// `1GiB`, `800MB` or a plain number of bytes.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let error = || format!("'{text}': expected a size such as 1GiB, 800MB or a number of bytes");
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "kib" | "k" => 1024.0,
        "mib" | "m" => 1024.0 * 1024.0,
        "gib" | "g" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(error()),
    };
    let bytes = number.trim().parse::<f64>().map_err(|_| error())? * scale;
    if (1.0..9e18).contains(&bytes) { Ok(bytes as u64) } else { Err(error()) }
}

/// `90s`, `30min`, `2h`, `1day`, as seconds.
pub(super) fn parse_seconds(text: &str) -> Result<f64, String> {
    let error = || format!("'{text}': expected a time such as 90s, 30min or 2h");
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(error)?;
    let (number, unit) = text.split_at(digits);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return Err(error()),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| error())? * scale;
    if seconds > 0.0 && seconds < 1e9 { Ok(seconds) } else { Err(error()) }
}

/// What an option says of items: in so many words, or in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// The words themselves.
    Here(String),
    /// `@FILE`.
    File(PathBuf),
}

impl Listed {
    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        match self {
            Listed::Here(_) => None,
            Listed::File(path) => Some(path),
        }
    }
}

/// `tent,mug` or `@FILE`; the name of a file need not be text.
pub(super) fn parse_listed(text: OsString) -> Result<Listed, &'static str> {
    match after_at(&text) {
        Some(path) if path.as_os_str().is_empty() => return Err("expected the name of a file after @"),
        Some(path) => return Ok(Listed::File(path)),
        None => {}
    }
    text.into_string().map(Listed::Here).map_err(|_| "expected ids in valid UTF-8, or @FILE")
}

/// The file in `@FILE`.
fn after_at(text: &OsStr) -> Option<PathBuf> {
    if let Some(text) = text.to_str() {
        return text.strip_prefix('@').map(PathBuf::from);
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        text.as_bytes().strip_prefix(b"@").map(|path| PathBuf::from(OsStr::from_bytes(path)))
    }
    #[cfg(not(unix))]
    None
}

/// A file, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// `NAME=FILE`, or a file alone, whose name up to the first point it has.
pub(super) fn parse_named_file(text: OsString) -> Result<NamedFile, &'static str> {
    let given = text.to_str().and_then(|text| text.split_once('='));
    // A path may have the sign too, as folders of partitions do.
    let given =
        given.filter(|(name, _)| !name.contains(std::path::is_separator) && !Path::new(&text).exists());
    if let Some((name, path)) = given {
        if name.is_empty() || path.is_empty() {
            return Err("expected FILE, or NAME=FILE with a name and a file");
        }
        return Ok(NamedFile { name: name.to_owned(), path: PathBuf::from(path) });
    }
    let path = PathBuf::from(text);
    let name = path.file_name().ok_or("expected the name of a file")?.to_string_lossy().into_owned();
    let first = name.split('.').find(|part| !part.is_empty()).unwrap_or(&name).to_owned();
    Ok(NamedFile { name: first, path })
}

/// A level of significance.
pub(super) fn parse_level(text: &str) -> Result<f64, &'static str> {
    let level = text.parse::<f64>().ok().filter(|level| *level > 0.0 && *level < 1.0);
    level.ok_or("expected a number between 0 and 1, such as .05")
}

/// `tent=0.5`, `tent=*1.5` or `@FILE`, kept as it is.
pub(super) fn parse_boost(text: OsString) -> Result<Listed, &'static str> {
    let listed = parse_listed(text)?;
    let is_boost = |text: &str| text.rsplit_once('=').is_some_and(|(_, boost)| Boost::parse(boost).is_some());
    match &listed {
        Listed::Here(text) if !is_boost(text) => Err(BOOST_EXPECTED),
        _ => Ok(listed),
    }
}

const BOOST_EXPECTED: &str = "expected ITEM=NUMBER such as tent=0.5, ITEM=*NUMBER such as tent=*1.5, or @FILE; numbers are finite, up to 3.4e38, and factors above 0";

/// A length, which models keep as an integer of 64 bits with a sign.
pub(super) fn length() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=i64::MAX as u64)
}

/// A seed, which models keep as an integer of 64 bits with a sign.
pub(super) fn seed() -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(..=i64::MAX as u64)
}

/// A file for a log, whose ending says how it is written.
pub(super) fn parse_log(path: PathBuf) -> Result<PathBuf, &'static str> {
    LogFormat::of(&path)
        .map(|_| path)
        .ok_or("expected a name that ends in .parquet, .csv, .csv.gz or .csv.zst")
}

/// A file that is not packed, whatever its name is.
pub(super) fn parse_unpacked(path: PathBuf) -> Result<PathBuf, &'static str> {
    let is_packed =
        |ending: &std::ffi::OsStr| ["gz", "zst"].iter().any(|packed| ending.eq_ignore_ascii_case(packed));
    if path.extension().is_some_and(is_packed) {
        return Err("expected a name that ends in .csv or .parquet: it is not compressed");
    }
    Ok(path)
}

/// A file for a model, which does not go to standard output.
pub(super) fn parse_model_file(path: PathBuf) -> Result<PathBuf, &'static str> {
    if path.as_os_str() == "-" {
        return Err(
            "expected the name of a file: a model is not written to standard output; hint: ./- is a file of this name",
        );
    }
    Ok(path)
}

/// A file for recommendations, whose ending says how they are written.
pub(super) fn parse_recommendations(path: PathBuf) -> Result<PathBuf, &'static str> {
    let format = RecommendationFormat::of(&path);
    format.map(|_| path).ok_or("expected a name that ends in .jsonl, .csv or .parquet")
}

pub(super) fn parse_yes_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err("expected yes or no".to_owned()),
    }
}

pub(super) fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if *byte != b'"' && (b' '..=b'~').contains(byte) => Ok(*byte),
        [b'\t'] => Ok(b'\t'),
        _ => Err("expected one character of ASCII that is seen or a space, but no quotation mark, or tab"
            .to_owned()),
    }
}
