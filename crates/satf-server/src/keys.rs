//! Who may ask: keys, of which the server keeps hashes only.

use std::path::Path;

use axum::http::{HeaderMap, header};
use satf::data::DataError;

/// What a key allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// To ask for recommendations and figures.
    Read,
    /// To do so and to administer.
    Admin,
}

/// The shortest key that is taken: shorter ones are guessed.
const SHORTEST: usize = 16;

/// Hashes of all keys. What is compared is hashes, in constant time ([`blake3::Hash`] compares so).
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    keys: Vec<(Role, blake3::Hash)>,
}

impl Keys {
    /// Keys of a file and of the environment.
    pub(crate) fn gather(
        file: Option<&Path>,
        read: Option<&str>,
        admin: Option<&str>,
    ) -> Result<Self, Vec<String>> {
        let (mut keys, mut faults) = (Keys::default(), Vec::new());
        for (name, role, key) in
            [(crate::config::READ_KEY, Role::Read, read), (crate::config::ADMIN_KEY, Role::Admin, admin)]
        {
            if let Some(Err(fault)) = key.map(|key| keys.add(role, key)) {
                faults.push(format!("the environment variable {name}: {fault}"));
            }
        }
        if let Some(path) = file {
            match satf::data::read_configuration(path, &()) {
                // What is not text may be part of a key: only its place is told.
                Err(DataError::BadRow { position, expected, .. }) => {
                    faults.push(format!("keys: {}: {position}: expected {expected}", path.display()));
                }
                Err(error) => faults.push(format!("keys: {error}")),
                Ok(text) => {
                    let before = (keys.keys.len(), faults.len());
                    for (number, line) in (1..).zip(text.lines()) {
                        if let Err(fault) = keys.add_line(line) {
                            faults.push(format!("keys: {}: line {number}: {fault}", path.display()));
                        }
                    }
                    if (keys.keys.len(), faults.len()) == before {
                        faults.push(format!(
                            "keys: {}: there is no key in it: expected lines of `read KEY` or `admin KEY`; hint: without keys leave the file out",
                            path.display()
                        ));
                    }
                }
            }
        }
        if faults.is_empty() { Ok(keys) } else { Err(faults) }
    }

    fn add_line(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        // No fault repeats a key: faults are logged.
        match line.split_once(char::is_whitespace) {
            Some(("read", key)) => self.add(Role::Read, key.trim()),
            Some(("admin", key)) => self.add(Role::Admin, key.trim()),
            _ => Err("expected `read` or `admin`, a space, and a key".to_owned()),
        }
    }

    fn add(&mut self, role: Role, key: &str) -> Result<(), String> {
        let hash = match key.strip_prefix("blake3:") {
            Some(hash) => blake3::Hash::from_hex(hash)
                .map_err(|_| "expected 64 hexadecimal digits after blake3:".to_owned())?,
            None if key.len() < SHORTEST => {
                return Err(format!("a key of {} characters: expected at least {SHORTEST}", key.len()));
            }
            None => blake3::hash(key.as_bytes()),
        };
        self.keys.push((role, hash));
        Ok(())
    }

    /// Whether there is none, so that everybody may do everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What the bearer of these headers may do.
    pub(crate) fn role(&self, headers: &HeaderMap) -> Option<Role> {
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
            let (scheme, key) = value.as_bytes().split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then_some(key)
        });
        let given = bearer.or_else(|| headers.get("x-api-key").map(axum::http::HeaderValue::as_bytes))?;
        let given = blake3::hash(given);
        // Every key is looked at, whichever fits.
        self.keys.iter().filter(|(_, hash)| *hash == given).map(|(role, _)| *role).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn keys_come_plain_or_hashed_and_open_what_they_are_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let hash = blake3::hash(b"the key of the admin").to_hex();
        std::fs::write(&path, format!("# ours\n\nread the key of a shop\nadmin blake3:{hash}\n")).unwrap();
        let keys = Keys::gather(Some(&path), None, None).unwrap();
        assert_eq!(keys.role(&headers("authorization", "Bearer the key of a shop")), Some(Role::Read));
        assert_eq!(keys.role(&headers("x-api-key", "the key of the admin")), Some(Role::Admin));
        for wrong in
            ["Bearer the key of a sho", "the key of a shop", "Bearer ", "Basic the key of a shop", "B"]
        {
            assert_eq!(keys.role(&headers("authorization", wrong)), None, "{wrong}");
        }
        assert_eq!(keys.role(&headers("x-api-key", &format!("blake3:{hash}"))), None);
        assert_eq!(keys.role(&headers("x-api-key", &hash)), None);
    }

    #[test]
    fn a_file_without_keys_and_an_empty_key_are_faults() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        for content in ["", "\n\n", "# read the key of a shop\n"] {
            std::fs::write(&path, content).unwrap();
            for environment in [None, Some("a key of sixteen and more")] {
                let faults = Keys::gather(Some(&path), environment, None).unwrap_err();
                assert!(faults.concat().contains("there is no key in it"), "{faults:?}");
            }
        }
        let faults = Keys::gather(None, None, Some("")).unwrap_err();
        assert!(faults.concat().contains("ADMIN_KEY: a key of 0 characters"), "{faults:?}");
    }

    #[test]
    fn faults_name_the_line_and_never_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, "read short\nwrite secret-secret-secret\nadmin blake3:12\n").unwrap();
        let faults = Keys::gather(Some(&path), Some("tiny"), None).unwrap_err();
        assert_eq!(faults.len(), 4, "{faults:?}");
        for (fault, line) in faults.iter().skip(1).zip(["line 1", "line 2", "line 3"]) {
            assert!(fault.contains(line), "{fault}");
        }
        for secret in ["short", "secret", "tiny"] {
            assert!(!faults.concat().contains(secret), "{faults:?}");
        }
    }
}
