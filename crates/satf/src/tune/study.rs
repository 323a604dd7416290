//! The folder of a study: what was asked, and what every trial showed.
//!
//! | file | what |
//! |---|---|
//! | `study.json` | what was asked: model, space, protocol, log, seed; and how far this search should go |
//! | `trials.jsonl` | one line per trial, appended and synced before the next one begins |
//! | `result.json`, `best.toml` | at the end: the best configuration and its score on the test set |
//! | `checkpoints` | unfinished training, a folder a trial, of models that keep it |
//! | `study.lock` | held by the process that writes |
//!
//! A process can be killed at any moment. What it leaves is a log of whole lines and perhaps a torn last one, which is cut off
//! when the study is opened again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Best, Damage, Trial, TuneError, best_of};
use crate::data::write_atomically;
use crate::unique_keys::Unique;

/// The training at the end, among those of which checkpoints are kept.
const REFIT: &str = "refit";
pub(super) const STUDY: &str = "study.json";
const TRIALS: &str = "trials.jsonl";
const RESULT: &str = "result.json";
const BEST: &str = "best.toml";
const CHECKPOINTS: &str = "checkpoints";
const LOCK: &str = "study.lock";
/// What `study.json` looks like; a later format gets a higher number.
pub(super) const FORMAT: u64 = 1;
/// How often a lock is tried before the study counts as busy.
const LOCK_ATTEMPTS: usize = 10;

/// How far a search should go. May change from run to run: trials that are done stay done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Most trials.
    pub trials: usize,
    /// Wall-clock seconds that trials may take, over all runs.
    pub time_budget_seconds: Option<f64>,
    /// Trials run at once.
    pub jobs: usize,
}

#[derive(Serialize, Deserialize)]
struct StudyFile {
    format: u64,
    asked: Value,
    limits: Limits,
}

/// A study that this process writes.
#[derive(Debug)]
pub struct Study {
    folder: PathBuf,
    log: File,
    trials: Vec<Trial>,
    /// Keeps other processes out until it is dropped, or the process ends.
    _lock: File,
}

impl Study {
    /// Opens the study of `asked` in `folder`, or begins it. A study of something else is refused.
    pub fn open(folder: &Path, asked: &Value, limits: Limits) -> Result<Study, TuneError> {
        // A folder that is somebody else's is left as it is, without a lock in it.
        if folder.is_dir() {
            find(folder, asked)?;
        }
        fs::create_dir_all(folder).map_err(TuneError::file(folder, "create the study folder"))?;
        let lock = lock(folder)?;
        // Now that nobody else writes.
        let known = find(folder, asked)?;
        if known.is_none_or(|study| study.limits != limits) {
            write_study(folder, asked, limits)?;
        }
        let path = folder.join(TRIALS);
        let mut options = OpenOptions::new();
        let mut log = options
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(TuneError::file(&path, "open the trial log"))?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes).map_err(TuneError::file(&path, "read the trial log"))?;
        let (mut trials, whole) = parse_trials(&path, &bytes)?;
        if whole < bytes.len() {
            tracing::warn!("{}: the last line is torn, its trial is run again", path.display());
            log.set_len(whole as u64).map_err(TuneError::file(&path, "cut off the torn line"))?;
        }
        log.sync_all().map_err(TuneError::file(&path, "sync the trial log"))?;
        sync_folder(folder)?;
        trials.sort_by_key(|trial| trial.trial);
        Ok(Study { folder: folder.to_owned(), log, trials, _lock: lock })
    }

    /// The files that a study in this folder is made of, checkpoints aside.
    pub fn files(folder: &Path) -> Vec<PathBuf> {
        [STUDY, TRIALS, RESULT, BEST, LOCK].iter().map(|name| folder.join(name)).collect()
    }

    /// The folder in which a study in this folder keeps unfinished training.
    pub fn all_checkpoints(folder: &Path) -> PathBuf {
        folder.join(CHECKPOINTS)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The trials done, by number. There may be gaps where a run of several jobs was killed.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// Adds a trial. It is safely on disk when this returns, and it is returned as it will be read back.
    pub(super) fn append(&mut self, trial: &Trial) -> Result<Trial, TuneError> {
        let path = self.folder.join(TRIALS);
        let mut line = serde_json::to_vec(trial).map_err(|error| TuneError::content(&path, &error))?;
        line.push(b'\n');
        self.log.write_all(&line).map_err(TuneError::file(&path, "add a trial"))?;
        self.log.sync_data().map_err(TuneError::file(&path, "sync the trial log"))?;
        // A search that goes on has to see what one that comes back will see.
        let trial: Trial =
            serde_json::from_slice(&line).map_err(|error| TuneError::content(&path, &error))?;
        let place = self.trials.partition_point(|other| other.trial < trial.trial);
        self.trials.insert(place, trial.clone());
        Ok(trial)
    }

    /// The folder in which unfinished training of the model at the end is kept.
    pub fn refit_checkpoints(&self) -> PathBuf {
        self.checkpoints(REFIT)
    }

    /// The folder in which unfinished training is kept: that of a trial, or that of the model at the end.
    pub(super) fn checkpoints(&self, of: &str) -> PathBuf {
        self.folder.join(CHECKPOINTS).join(of)
    }

    /// Removes what was kept of the training at the end.
    pub(super) fn forget_refit_checkpoints(&self) {
        self.forget_checkpoints(REFIT);
    }

    /// Removes what was kept of a training that is over. If that fails, nothing but room is lost.
    pub(super) fn forget_checkpoints(&self, of: &str) {
        let _ = fs::remove_dir_all(self.checkpoints(of));
        // It goes once it is empty.
        let _ = fs::remove_dir(self.folder.join(CHECKPOINTS));
    }

    /// The result, if the study has come to its end.
    pub fn result(&self) -> Result<Option<Value>, TuneError> {
        read_json(&self.folder.join(RESULT))
    }

    /// Keeps the result and the best configuration, as TOML.
    pub(super) fn finish(&self, result: &Value, best: &str) -> Result<(), TuneError> {
        let text = serde_json::to_string_pretty(result).unwrap_or_default() + "\n";
        write(&self.folder.join(BEST), best)?;
        write(&self.folder.join(RESULT), &text)
    }
}

/// What a study has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A process is at work on it.
    Running,
    /// It is not finished, and no process is working on it.
    Stopped,
    /// The result is there.
    Finished,
}

/// A study as anyone may look at it, while it is written or not.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Where it stands.
    pub state: State,
    /// What was asked.
    pub asked: Value,
    /// How far it should go.
    pub limits: Limits,
    /// Trials done.
    pub done: usize,
    /// Trials that could not be scored.
    pub failed: usize,
    /// The best so far.
    pub best: Option<Best>,
    /// Wall-clock seconds spent on trials, over all runs.
    pub elapsed_seconds: f64,
    /// Mean wall-clock seconds of a trial.
    pub seconds_a_trial: Option<f64>,
    /// Wall-clock seconds left, if trials go on at this rate.
    pub seconds_left: Option<f64>,
    /// The result, at the end.
    pub result: Option<Value>,
    /// The trials themselves, by number.
    #[serde(skip)]
    pub trials: Vec<Trial>,
}

impl Status {
    /// Reads a study without disturbing it.
    pub fn read(folder: &Path) -> Result<Status, TuneError> {
        let study = read_study(folder)?.ok_or_else(|| TuneError::damaged(folder, Damage::NoStudy))?;
        let path = folder.join(TRIALS);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            outcome => outcome.map_err(TuneError::file(&path, "read the trial log"))?,
        };
        let (mut trials, _) = parse_trials(&path, &bytes)?;
        trials.sort_by_key(|trial| trial.trial);
        let result = read_json(&folder.join(RESULT))?;
        let limits = study.limits;
        let (done, elapsed_seconds) = (trials.len(), elapsed(&trials));
        let seconds_a_trial =
            (done > 0).then(|| trials.iter().map(|trial| trial.seconds).sum::<f64>() / done as f64);
        let running = is_locked(folder);
        let finished = result.is_some() && !running;
        let state = match (running, finished) {
            (true, _) => State::Running,
            (_, true) => State::Finished,
            _ => State::Stopped,
        };
        Ok(Status {
            state,
            asked: study.asked,
            limits,
            done,
            failed: trials.iter().filter(|trial| trial.error.is_some()).count(),
            best: best_of(&trials),
            elapsed_seconds,
            seconds_a_trial,
            seconds_left: if finished { None } else { seconds_left(&limits, done, elapsed_seconds) },
            result,
            trials,
        })
    }
}

/// Wall-clock seconds spent on trials, over all runs.
pub(super) fn elapsed(trials: &[Trial]) -> f64 {
    trials.iter().map(|trial| trial.elapsed_seconds).fold(0.0, f64::max)
}

/// Wall-clock seconds until all trials are done or the budget is spent, at the rate so far.
pub(super) fn seconds_left(limits: &Limits, done: usize, elapsed: f64) -> Option<f64> {
    if done == 0 {
        return None;
    }
    let rest = limits.trials.saturating_sub(done) as f64 * elapsed / done as f64;
    Some(limits.time_budget_seconds.map_or(rest, |budget| rest.min((budget - elapsed).max(0.0))))
}

/// The study in a folder, if there is one. An error if it is of something else, or if the folder is.
fn find(folder: &Path, asked: &Value) -> Result<Option<StudyFile>, TuneError> {
    let Some(study) = read_study(folder)? else {
        refuse_strangers(folder)?;
        return Ok(None);
    };
    let differences = differences(&study.asked, asked);
    if !differences.is_empty() {
        return Err(TuneError::OtherStudy { folder: folder.to_owned(), differences });
    }
    Ok(Some(study))
}

fn lock(folder: &Path) -> Result<File, TuneError> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(TuneError::file(&path, "create the lock of the study"))?;
    // Whoever asks for the status holds the lock for a moment.
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(20)),
            Err(TryLockError::Error(error)) => return Err(TuneError::file(&path, "lock the study")(error)),
        }
    }
    Err(TuneError::Locked(folder.to_owned()))
}

fn is_locked(folder: &Path) -> bool {
    let Ok(file) = File::open(folder.join(LOCK)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// A folder without a study must be empty, but for what a killed process may have left of one.
fn refuse_strangers(folder: &Path) -> Result<(), TuneError> {
    let entries = fs::read_dir(folder).map_err(TuneError::file(folder, "list the folder"))?;
    for entry in entries {
        let name = entry.map_err(TuneError::file(folder, "list the folder"))?.file_name();
        let name = name.to_string_lossy();
        let ours = name == LOCK || (name.starts_with(".satf-") && name.ends_with(".tmp"));
        if !ours {
            return Err(TuneError::damaged(folder, Damage::Stranger(name.into_owned())));
        }
    }
    Ok(())
}

fn read_study(folder: &Path) -> Result<Option<StudyFile>, TuneError> {
    let path = folder.join(STUDY);
    let Some(value) = read_json(&path)? else { return Ok(None) };
    if value["format"] != FORMAT {
        return Err(TuneError::damaged(&path, Damage::Format(value["format"].clone())));
    }
    let study = serde_json::from_value(value).map_err(|error| TuneError::content(&path, &error))?;
    Ok(Some(study))
}

fn write_study(folder: &Path, asked: &Value, limits: Limits) -> Result<(), TuneError> {
    let study = json!(StudyFile { format: FORMAT, asked: asked.clone(), limits });
    write(&folder.join(STUDY), &(serde_json::to_string_pretty(&study).unwrap_or_default() + "\n"))
}

fn write(path: &Path, text: &str) -> Result<(), TuneError> {
    write_atomically(path, |writer| writer.write_all(text.as_bytes()))
        .map_err(TuneError::file(path, "write the file"))
}

fn read_json(path: &Path) -> Result<Option<Value>, TuneError> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome.map_err(TuneError::file(path, "read the file"))?,
    };
    let Unique(value) = serde_json::from_str(&text).map_err(|error| TuneError::content(path, &error))?;
    Ok(Some(value))
}

fn sync_folder(folder: &Path) -> Result<(), TuneError> {
    #[cfg(unix)]
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(TuneError::file(folder, "sync the folder"))?;
    Ok(())
}

/// The trials of a log, and how many of its bytes are whole lines of them. Only the last line may be torn.
fn parse_trials(path: &Path, bytes: &[u8]) -> Result<(Vec<Trial>, usize), TuneError> {
    let mut trials: Vec<Trial> = Vec::new();
    let mut seen = HashSet::new();
    let mut whole = 0;
    for (number, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let last = whole + line.len() == bytes.len();
        match serde_json::from_slice::<Trial>(line) {
            Ok(trial) if line.ends_with(b"\n") => {
                if !seen.insert(trial.trial) {
                    let damage = Damage::Repeated { line: number + 1, trial: trial.trial };
                    return Err(TuneError::damaged(path, damage));
                }
                trials.push(trial);
            }
            _ if last => break,
            Ok(_) => {}
            Err(error) => {
                let damage = Damage::Line { line: number + 1, reason: error.to_string() };
                return Err(TuneError::damaged(path, damage));
            }
        }
        whole += line.len();
    }
    Ok((trials, whole))
}

/// Where two requests differ, by the path of the field.
fn differences(theirs: &Value, ours: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_differences("", theirs, ours, &mut found);
    found
}

fn collect_differences(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let nothing = Value::Null;
                collect_differences(
                    &path,
                    a.get(key).unwrap_or(&nothing),
                    b.get(key).unwrap_or(&nothing),
                    found,
                );
            }
        }
        (a, b) if a != b => found.push(format!("{path}: {a} there, {b} asked for now")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(number: usize) -> Trial {
        let keys = json!({ "rank": number }).as_object().unwrap().clone();
        let keys_of_score = serde_json::Map::new();
        let unit = Some(crate::evaluate::ResampleUnit::User);
        let score = super::super::Score { keys: keys_of_score, value: 0.1 / 3.0, stderr: Some(0.01), unit };
        Trial {
            trial: number,
            keys,
            scores: vec![score],
            error: None,
            seconds: 1.0,
            elapsed_seconds: number as f64,
        }
    }

    const LIMITS: Limits = Limits { trials: 5, time_budget_seconds: None, jobs: 1 };

    fn open(folder: &Path) -> Result<Study, TuneError> {
        Study::open(folder, &json!({ "model": "x", "seed": 1 }), LIMITS)
    }

    #[test]
    fn trials_come_back_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let mut study = open(folder.path()).unwrap();
        let kept: Vec<Trial> = [1, 0, 2].map(|number| study.append(&trial(number)).unwrap()).to_vec();
        drop(study);
        let study = open(folder.path()).unwrap();
        assert_eq!(study.trials(), [kept[1].clone(), kept[0].clone(), kept[2].clone()]);
    }

    #[test]
    fn a_log_cut_anywhere_keeps_its_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut study = open(folder.path()).unwrap();
        for number in 0..3 {
            study.append(&trial(number)).unwrap();
        }
        drop(study);
        let path = folder.path().join(TRIALS);
        let bytes = fs::read(&path).unwrap();
        for len in 0..=bytes.len() {
            fs::write(&path, &bytes[..len]).unwrap();
            let whole = bytes[..len].split(|&byte| byte == b'\n').count() - 1;
            let mut study = open(folder.path()).unwrap();
            assert_eq!(study.trials().len(), whole, "cut at {len}");
            for number in whole..3 {
                study.append(&trial(number)).unwrap();
            }
            assert_eq!(fs::read(&path).unwrap(), bytes, "cut at {len}");
        }
        // Zeros in place of data, as a file system may leave them.
        fs::write(&path, [&bytes[..], &[0; 40]].concat()).unwrap();
        assert_eq!(open(folder.path()).unwrap().trials().len(), 3);
    }

    #[test]
    fn damage_in_the_middle_is_an_error_with_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut study = open(folder.path()).unwrap();
        for number in 0..3 {
            study.append(&trial(number)).unwrap();
        }
        drop(study);
        let path = folder.path().join(TRIALS);
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines[1] = "{ broken";
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let message = open(folder.path()).unwrap_err().to_string();
        assert!(message.contains("trials.jsonl") && message.contains("line 2"), "{message}");
        let twice = text.lines().next().unwrap();
        fs::write(&path, format!("{twice}\n{twice}\n")).unwrap();
        assert!(open(folder.path()).unwrap_err().to_string().contains("trial 0 appears twice"));
    }

    #[test]
    fn another_request_is_refused_and_other_limits_are_not() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()).unwrap());
        let other = json!({ "model": "x", "seed": 2, "space": { "name": "y" } });
        let message = Study::open(folder.path(), &other, LIMITS).unwrap_err().to_string();
        assert!(
            message.contains("seed: 1 there, 2 asked for now") && message.contains("another folder"),
            "{message}"
        );
        assert!(message.contains("space"), "{message}");
        let more = Limits { trials: 9, ..LIMITS };
        drop(Study::open(folder.path(), &json!({ "seed": 1, "model": "x" }), more).unwrap());
        assert_eq!(Status::read(folder.path()).unwrap().limits, more);
    }

    #[test]
    fn two_processes_cannot_write_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let study = open(folder.path()).unwrap();
        assert_eq!(Status::read(folder.path()).unwrap().state, State::Running);
        assert!(matches!(open(folder.path()), Err(TuneError::Locked(_))));
        drop(study);
        assert_eq!(Status::read(folder.path()).unwrap().state, State::Stopped);
        assert!(open(folder.path()).is_ok());
    }

    #[test]
    fn folders_of_other_things_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "precious").unwrap();
        let message = open(folder.path()).unwrap_err().to_string();
        assert!(message.contains("thesis.tex"), "{message}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left in it");
        // So is one whose study.json is of another program.
        fs::remove_file(folder.path().join("thesis.tex")).unwrap();
        for text in [
            "{}",
            "not JSON",
            "{\"format\": 1, \"asked\": {\"model\": \"y\"}, \"limits\": {\"trials\": 1, \"jobs\": 1}}",
        ] {
            fs::write(folder.path().join(STUDY), text).unwrap();
            open(folder.path()).unwrap_err();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{text}");
        }
        fs::remove_file(folder.path().join(STUDY)).unwrap();
        assert!(Status::read(folder.path()).unwrap_err().to_string().contains("no study here"));
    }
}
