//! Model files in: nothing is allocated for what the file does not hold, nothing is believed before it is checked.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;

use super::safetensors::Header;
use super::statistics::{NAMES, StoredEvents};
use super::{CHECKSUM_AT, CHECKSUM_DIGITS, FORMAT, FORMAT_VERSION, HEADER_START};
use super::{Events, Manifest, ModelFileError, catalog, foreign};
use crate::byte_size::ByteSize;
use crate::interactions::Ids;
use crate::models::{Array, ConfigError, Recommender, Registry, SharedBytes, StoredTensors, TensorError};

/// A model file, read.
pub(crate) struct Content {
    pub(crate) manifest: Manifest,
    pub(crate) items: Ids,
    pub(crate) item_counts: Array<u32>,
    pub(crate) model: Box<dyn Recommender>,
    pub(crate) learned_keys: Vec<&'static str>,
    /// The checksum of the file, in hexadecimal digits.
    pub(crate) checksum: Box<str>,
    /// The events that the model learned from, if the file has them.
    pub(crate) events: Option<Events>,
}

/// Reads a model, whose arrays stay in the file.
pub(crate) fn read(path: &Path, registry: &Registry) -> Result<Content, ModelFileError> {
    let io = |source| ModelFileError::Io { path: path.to_owned(), source };
    let (file, _) = open(path)?;
    // SAFETY: the map lives for as long as the arrays of the model refer to it (`SharedBytes` counts them), is never written to,
    // and any bytes are values of the types it is cast to, all of them integers and floating-point numbers. What remains is that
    // the bytes must not change under it: model files are replaced by renaming, never written in place, as the documentation
    // of `Model::load` and of this module demands of others too.
    #[allow(unsafe_code)]
    let map = unsafe { Mmap::map(&file) }.map_err(io)?;
    let length = map.len() as u64;
    parse(path, &(Arc::new(map) as SharedBytes), length, registry)
}

/// Reads a model into memory of its own: whatever becomes of the file, the model stays as it is. Its events stay in the file.
pub(crate) fn read_copied(path: &Path, registry: &Registry, limit: u64) -> Result<Content, ModelFileError> {
    let io = |source| ModelFileError::Io { path: path.to_owned(), source };
    let (file, whole) = open(path)?;
    let length = length_without_events(&file, whole).map_err(io)?;
    if length > limit {
        return Err(ModelFileError::TooLarge { path: path.to_owned(), length, limit });
    }
    // Words of eight bytes, so that arrays are aligned.
    let mut words = vec![0u64; (length as usize).div_ceil(8)];
    let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..length as usize];
    (&file).seek(SeekFrom::Start(0)).and_then(|_| (&file).read_exact(bytes)).map_err(io)?;
    parse(path, &(Arc::new(Copied { words, length: length as usize }) as SharedBytes), whole, registry)
}

/// Reads a model whose file is in memory; `name` is for messages.
pub(crate) fn read_bytes(name: &str, bytes: Vec<u8>, registry: &Registry) -> Result<Content, ModelFileError> {
    let path = Path::new(name);
    let length = bytes.len();
    if length < CHECKSUM_AT + CHECKSUM_DIGITS {
        return Err(not_a_model(path, foreign::describe(&bytes)));
    }
    // Bytes as they came are used where they lie; arrays that are not aligned there are copied.
    let is_aligned = bytemuck::try_cast_slice::<u8, u64>(&bytes[..length / 8 * 8]).is_ok();
    if is_aligned {
        return parse(path, &(Arc::new(bytes) as SharedBytes), length as u64, registry);
    }
    let mut words = vec![0u64; length.div_ceil(8)];
    bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..length].copy_from_slice(&bytes);
    parse(path, &(Arc::new(Copied { words, length }) as SharedBytes), length as u64, registry)
}

/// How many bytes come before the events; all of them if that cannot be told.
fn length_without_events(mut file: &File, length: u64) -> io::Result<u64> {
    let mut begin = [0; 8 + HEADER_START.len()];
    file.read_exact(&mut begin)?;
    let header_length = begin.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if !begin[8..].eq(HEADER_START.as_bytes()) || header_length > length.saturating_sub(8) {
        return Ok(length);
    }
    let mut header = vec![0; header_length as usize];
    file.seek(SeekFrom::Start(8))?;
    file.read_exact(&mut header)?;
    let values_at = 8 + header_length;
    let room = (length - values_at) as usize;
    let first = Header::parse(&header).and_then(|mut header| header.take_last(&NAMES, room));
    Ok(first.map_or(length, |(_, first)| values_at + first as u64))
}

/// A file that was read into memory.
struct Copied {
    words: Vec<u64>,
    length: usize,
}

impl AsRef<[u8]> for Copied {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }
}

/// Opens a file that is long enough to be a model, and says how long it is.
fn open(path: &Path) -> Result<(File, u64), ModelFileError> {
    let io = |source| ModelFileError::Io { path: path.to_owned(), source };
    // Before it is opened: a pipe would keep us waiting.
    let metadata = fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "it is a folder" } else { "it is not a regular file" };
        return Err(not_a_model(path, what));
    }
    let file = File::open(path).map_err(io)?;
    if metadata.len() < (CHECKSUM_AT + CHECKSUM_DIGITS) as u64 {
        let mut bytes = Vec::new();
        file.take(metadata.len()).read_to_end(&mut bytes).map_err(io)?;
        if foreign::begins_as_a_model(&bytes) {
            return Err(ModelFileError::Checksum { path: path.to_owned() });
        }
        return Err(not_a_model(path, foreign::describe(&bytes)));
    }
    Ok((file, metadata.len()))
}

/// The model in a file of so many bytes, of which those of its events need not be there; `path` is for messages.
fn parse(
    path: &Path,
    file: &SharedBytes,
    length: u64,
    registry: &Registry,
) -> Result<Content, ModelFileError> {
    let bytes = (**file).as_ref();
    let header = header_of(path, bytes)?;
    let values_at = 8 + header.len();
    let parsed = Header::parse(header);
    let room = (length as usize).saturating_sub(values_at);
    let split = parsed.and_then(|mut header| Ok((header.take_last(&NAMES, room)?, header)));
    // What comes before the events, if that can be told.
    let covered = split.as_ref().map_or(bytes.len(), |((_, first), _)| values_at + first);
    verify_checksum(path, bytes.get(..covered).unwrap_or_default())?;
    let invalid = |reason: String| ModelFileError::Header { path: path.to_owned(), reason };
    let ((events, _), header) = split.map_err(|error| invalid(error.to_string()))?;
    let (metadata, tensors) = tensors_of(path, &bytes[values_at..covered], header)?;
    let tensors = tensors.within(file);

    let manifest = metadata.get("manifest").ok_or_else(|| invalid("it has no manifest".to_owned()))?;
    let manifest: Manifest =
        serde_json::from_str(manifest).map_err(|error| invalid(format!("its manifest: {error}")))?;
    let events = match (manifest.statistics.is_some(), events.is_empty()) {
        (false, true) => None,
        (true, false) if bytes.len() as u64 == length => {
            Some(Events::InFile(StoredEvents::new(file, values_at, events)))
        }
        (true, false) => Some(Events::Elsewhere),
        _ => {
            return Err(invalid(
                "its manifest and its arrays differ in whether it has statistics".to_owned(),
            ));
        }
    };
    let entry = registry.find(&manifest.model).map_err(|error| ModelFileError::UnknownModel {
        path: path.to_owned(),
        model: manifest.model.clone(),
        nearest: match error {
            ConfigError::UnknownModel { nearest, .. } => nearest,
            _ => None,
        },
    })?;
    let configured = entry.read(&manifest.configuration).map_err(|error| invalid(error.to_string()))?;

    let invalid = |source: TensorError| ModelFileError::Tensor { path: path.to_owned(), source };
    let items = catalog::restore(&catalog::ITEMS, &tensors).map_err(invalid)?;
    let tensors = tensors.with_num_items(items.len());
    let item_counts = tensors.per_item("item_counts").map_err(invalid)?;
    let model = configured.learner.restore(&tensors).map_err(invalid)?;
    let learned_keys = configured.learner.learned_keys();
    let checksum = bytes.get(CHECKSUM_AT..CHECKSUM_AT + CHECKSUM_DIGITS).unwrap_or_default();
    let checksum = String::from_utf8_lossy(checksum).into();
    Ok(Content { manifest, items, item_counts, model, learned_keys, checksum, events })
}

fn not_a_model(path: &Path, reason: impl Into<String>) -> ModelFileError {
    ModelFileError::NotAModel { path: path.to_owned(), reason: reason.into() }
}

/// The header, if it lies within the file and begins as that of a model does.
fn header_of<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a [u8], ModelFileError> {
    let foreign = || not_a_model(path, foreign::describe(bytes));
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(foreign)?;
    if !rest.starts_with(HEADER_START.as_bytes()) {
        return Err(foreign());
    }
    let length = u64::from_le_bytes(*length);
    let header = usize::try_from(length).ok().and_then(|length| rest.get(..length));
    let header = header.filter(|header| header.len() >= HEADER_START.len());
    header.ok_or_else(|| ModelFileError::Header {
        path: path.to_owned(),
        reason: format!(
            "its header would need {}, the file has {}",
            ByteSize(length),
            ByteSize(rest.len() as u64)
        ),
    })
}

/// Compares the digits themselves, so that a changed letter is a changed checksum.
fn verify_checksum(path: &Path, bytes: &[u8]) -> Result<(), ModelFileError> {
    let after = CHECKSUM_AT + CHECKSUM_DIGITS;
    let Some(digits) = bytes.get(CHECKSUM_AT..after) else {
        return Err(not_a_model(path, "it is too short"));
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..CHECKSUM_AT]).update(&[b'0'; CHECKSUM_DIGITS]).update_rayon(&bytes[after..]);
    if hasher.finalize().to_hex().as_bytes() == digits {
        Ok(())
    } else {
        Err(ModelFileError::Checksum { path: path.to_owned() })
    }
}

/// Metadata and tensors, every one of them within the file.
fn tensors_of<'a>(
    path: &Path,
    values: &'a [u8],
    parsed: Header,
) -> Result<(HashMap<String, String>, StoredTensors<'a>), ModelFileError> {
    let invalid = |reason: String| ModelFileError::Header { path: path.to_owned(), reason };
    if parsed.metadata.get("format").is_none_or(|format| format != FORMAT) {
        return Err(not_a_model(path, "its metadata names another format"));
    }
    let version = parsed.metadata.get("format_version").cloned().unwrap_or_default();
    if version != FORMAT_VERSION.to_string() {
        return Err(ModelFileError::Version { path: path.to_owned(), version });
    }
    let content = parsed.content_of(values).map_err(|error| invalid(error.to_string()))?;
    Ok((content.metadata, StoredTensors::new(content.tensors)))
}
