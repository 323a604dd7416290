//! Names that stand for one of a few choices, such as `file`, `shuffle` and `basket`.

use std::fmt;

use crate::fault::excerpt;

/// A name that stands for none of the choices there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownChoice {
    /// What was written.
    pub written: String,
    /// The names there are, at least one.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': expected ", excerpt(&self.written))?;
        match self.known.as_slice() {
            [first @ .., last] if !first.is_empty() => write!(f, "{} or {last}", first.join(", ")),
            known => f.write_str(&known.concat()),
        }
    }
}

impl std::error::Error for UnknownChoice {}

/// The choice with the name that was written.
pub(crate) fn choose<T, const N: usize>(
    written: &str,
    choices: [(&'static str, T); N],
) -> Result<T, UnknownChoice> {
    let known = choices.each_ref().map(|(name, _)| *name);
    let found = choices.into_iter().find(|(name, _)| *name == written);
    let (_, choice) =
        found.ok_or_else(|| UnknownChoice { written: written.to_owned(), known: known.to_vec() })?;
    Ok(choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_those_known_or_answered_with_them() {
        assert_eq!(choose("b", [("a", 1), ("b", 2)]), Ok(2));
        let message = |outcome: Result<u8, UnknownChoice>| outcome.unwrap_err().to_string();
        assert_eq!(message(choose("x", [("a", 1), ("b", 2), ("c", 3)])), "'x': expected a, b or c");
        assert_eq!(message(choose("x", [("a", 1)])), "'x': expected a");
    }
}
