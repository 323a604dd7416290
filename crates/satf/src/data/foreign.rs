//! Files that are something else altogether, told by how they begin.

use std::fmt;

use super::DataHint;

/// A file that is no text of rows, ids or settings, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignKind {
    /// Text in UTF-16.
    Utf16,
    /// A model file of this library.
    Model,
}

/// How the head of a model file begins, after eight bytes with its length.
const MODEL_HEAD: &[u8] = b"{\"__metadata__\":{\"checksum\":";

impl ForeignKind {
    /// So many bytes tell what a file is.
    pub(super) const TELLING: usize = 8 + MODEL_HEAD.len();

    /// What a file is that begins so, if it is none of those that are read here.
    pub(super) fn of(begin: &[u8]) -> Option<Self> {
        match begin {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => Some(ForeignKind::Utf16),
            begin => begin.get(8..)?.starts_with(MODEL_HEAD).then_some(ForeignKind::Model),
        }
    }

    /// What helps.
    pub(super) fn hint(self) -> DataHint {
        match self {
            ForeignKind::Utf16 => DataHint::ConvertToUtf8,
            ForeignKind::Model => DataHint::LoadModel,
        }
    }
}

impl fmt::Display for ForeignKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ForeignKind::Utf16 => "text in UTF-16, expected UTF-8",
            ForeignKind::Model => "this is a model file, expected data",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_how_they_begin() {
        let head = [&[80, 8, 0, 0, 0, 0, 0, 0][..], MODEL_HEAD].concat();
        assert_eq!(head.len(), ForeignKind::TELLING);
        assert_eq!(ForeignKind::of(&head), Some(ForeignKind::Model));
        assert_eq!(ForeignKind::of(&head[..head.len() - 1]), None);
        assert_eq!(ForeignKind::of(b"\xff\xfeu\0"), Some(ForeignKind::Utf16));
        assert_eq!(ForeignKind::of(b"\xfe\xff\0u"), Some(ForeignKind::Utf16));
        for text in [&b""[..], b"\xef\xbb\xbfuser,item", b"user,item,time\n1,2,3\n4,5,6\n"] {
            assert_eq!(ForeignKind::of(text), None);
        }
    }
}
