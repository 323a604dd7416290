//! Training that was stopped goes on where it was.
//!
//! After every epoch the whole state is written: parameters, Adam's moments, what was measured of the epochs, what the monitor remembers
//! (the curve of early stopping) and the parameters of the epoch it holds best. It is a safetensors file, written whole or not at
//! all, and named after the configuration, the histories and the version of this crate: nothing else ever goes on from it.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use satf::data::write_atomically;
use satf::model_file::{content_hash, safetensors};
use satf::models::{Checkpoints, Memory, ModelError, RecallError, StoredTensor, TensorType};
use satf::prepare::Histories;
use serde::{Deserialize, Serialize};

use crate::SasRecConfig;
use crate::adam::Adam;
use crate::parameters::{Parameters, Sizes};
use crate::training::{Epoch, Progress, State};

/// Names of the arrays in a file.
const PARAMETERS: &str = "parameters";
const FIRST: &str = "adam_first";
const SECOND: &str = "adam_second";
const BEST: &str = "best_parameters";

/// The checkpoint of one training.
pub(crate) struct Kept<'a> {
    /// Where the monitor wants it, and what the monitor remembers.
    checkpoints: &'a dyn Checkpoints,
    path: PathBuf,
    sizes: Sizes,
    /// What the training is, in a hash.
    training: String,
    /// Parameters of the epoch that the monitor holds best.
    best: Option<Parameters<f32>>,
}

/// All but the arrays.
#[derive(Serialize, Deserialize)]
struct Header {
    training: String,
    epochs: Vec<Epoch>,
    steps: u64,
    memory: Option<(String, Option<usize>)>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(
        checkpoints: &'a dyn Checkpoints,
        config: &SasRecConfig,
        histories: &Histories,
    ) -> Self {
        let mut hasher = blake3::Hasher::new();
        // Another version may learn otherwise.
        hasher.update(concat!("satf sasrec checkpoint 2 ", env!("CARGO_PKG_VERSION")).as_bytes());
        // With more memory the same is learned.
        let config = &SasRecConfig { memory_bytes: None, ..config.clone() };
        hasher.update(serde_json::to_string(config).unwrap_or_default().as_bytes());
        hasher.update(content_hash(histories).as_bytes());
        let training = hasher.finalize().to_hex().to_string();
        Kept {
            checkpoints,
            path: checkpoints.folder().join(format!("sasrec-{}.safetensors", &training[..16])),
            sizes: config.sizes(histories.num_items()),
            training,
            best: None,
        }
    }

    fn error(&self, reason: impl Into<String>) -> ModelError {
        let hint = "remove it to start again";
        ModelError::Checkpoint {
            model: SasRecConfig::NAME,
            path: self.path.clone(),
            reason: format!("{}; hint: {hint}", reason.into()),
        }
    }

    /// Keeps a state for later.
    pub(crate) fn keep(&mut self, progress: &Progress) -> Result<(), ModelError> {
        let memory = self.checkpoints.memory();
        if memory.as_ref().is_some_and(|memory| memory.best == Some(progress.epochs.len())) {
            self.best = Some(progress.parameters.clone());
        }
        let header = Header {
            training: self.training.clone(),
            epochs: progress.epochs.clone(),
            steps: progress.adam.steps,
            memory: memory.map(|memory| (memory.text, memory.best)),
        };
        let mut arrays = vec![
            (PARAMETERS, bytes(&progress.parameters.values)),
            (FIRST, bytes(&progress.adam.first)),
            (SECOND, bytes(&progress.adam.second)),
        ];
        arrays.extend(self.best.as_ref().map(|best| (BEST, bytes(&best.values))));
        let file = self.serialize(&header, &arrays).map_err(|reason| self.error(reason))?;
        let folder = self.path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder.and_then(|()| write_atomically(&self.path, |writer| writer.write_all(&file))).map_err(
            |error| {
                let reason = format!("it cannot be written: {error}");
                ModelError::Checkpoint { model: SasRecConfig::NAME, path: self.path.clone(), reason }
            },
        )
    }

    fn serialize(&self, header: &Header, arrays: &[(&'static str, Vec<u8>)]) -> Result<Vec<u8>, String> {
        let header = serde_json::to_string(header).map_err(|error| error.to_string())?;
        let checksum = checksum(&header, arrays.iter().map(|(name, bytes)| (*name, &bytes[..])));
        let shape = vec![self.sizes.num_values()];
        let tensors: Vec<_> = arrays
            .iter()
            .map(|(name, bytes)| {
                (*name, StoredTensor { kind: TensorType::F32, shape: shape.clone(), bytes: &bytes[..] })
            })
            .collect();
        Ok(safetensors::serialize(&[("checksum", checksum), ("header", header)], &tensors))
    }

    /// The state to go on from, if there is one that this monitor can go on from.
    pub(crate) fn resume(&mut self) -> Result<Option<Progress>, ModelError> {
        let file = match std::fs::read(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.error(error.to_string())),
        };
        let (header, mut progress, best) = self.parse(&file).map_err(|reason| self.error(reason))?;
        let best = best.map(|values| Parameters { sizes: self.sizes, values });
        let recalled = match (header.memory, self.checkpoints.memory()) {
            (Some((text, number)), Some(_)) => {
                let state = best.as_ref().map(State);
                let state = state.as_ref().map(|state| state as &dyn satf::models::Snapshot);
                self.checkpoints.recall(&Memory { text, best: number }, state)
            }
            (None, Some(_)) => Err(RecallError::NotWatched),
            (_, None) => Ok(ControlFlow::Continue(())),
        };
        match recalled {
            Ok(flow) => progress.stopped = flow.is_break(),
            Err(reason) => {
                let path = self.path.display();
                tracing::warn!(
                    "{path}: training cannot resume from this checkpoint and starts again: {reason}"
                );
                return Ok(None);
            }
        }
        self.best = best;
        self.checkpoints.resumed(&progress.reports());
        Ok(Some(progress))
    }

    #[allow(clippy::type_complexity)]
    fn parse(&self, file: &[u8]) -> Result<(Header, Progress, Option<Vec<f32>>), String> {
        let damaged = |what: String| format!("it is damaged: {what}");
        let content = safetensors::parse(file).map_err(|error| damaged(error.to_string()))?;
        let text = |name: &str| {
            let found = content.metadata.get(name).cloned();
            found.ok_or_else(|| damaged(format!("it has no {name}")))
        };
        let header = text("header")?;
        let names = [PARAMETERS, FIRST, SECOND, BEST];
        let arrays = names.into_iter().filter_map(|name| Some((name, content.tensors.get(name)?)));
        let arrays: Vec<(&str, &StoredTensor<'_>)> = arrays.collect();
        if checksum(&header, arrays.iter().map(|(name, tensor)| (*name, tensor.bytes))) != text("checksum")? {
            return Err(damaged("its checksum is wrong".to_owned()));
        }
        let header: Header = serde_json::from_str(&header).map_err(|error| damaged(error.to_string()))?;
        if header.training != self.training {
            return Err("it belongs to another training".to_owned());
        }
        let find = |name: &str| {
            let tensor = arrays.iter().find(|(found, _)| *found == name).map(|(_, tensor)| *tensor);
            tensor.map(|tensor| floats(name, tensor, self.sizes.num_values())).transpose()
        };
        let need = |name: &str| find(name)?.ok_or_else(|| damaged(format!("it has no {name}")));
        let progress = Progress {
            parameters: Parameters { sizes: self.sizes, values: need(PARAMETERS)? },
            adam: Adam { first: need(FIRST)?, second: need(SECOND)?, steps: header.steps },
            epochs: header.epochs.clone(),
            stopped: false,
        };
        let best = find(BEST)?;
        Ok((header, progress, best))
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(name: &str, tensor: &StoredTensor<'_>, len: usize) -> Result<Vec<f32>, String> {
    if tensor.kind != TensorType::F32 || tensor.shape != [len] {
        return Err(format!(
            "it is damaged: {name} is {:?} of shape {:?}, expected F32 of shape [{len}]",
            tensor.kind, tensor.shape
        ));
    }
    let (values, _) = tensor.bytes.as_chunks::<4>();
    Ok(values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// The BLAKE3 hash of everything.
fn checksum<'a>(header: &str, arrays: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header.as_bytes());
    for (name, bytes) in arrays {
        hasher.update(name.as_bytes()).update_rayon(bytes);
    }
    hasher.finalize().to_hex().to_string()
}
