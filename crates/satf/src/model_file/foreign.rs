//! What files look like that are not models.

use super::HEADER_START;

/// How much of a file is looked at.
const LOOKED_AT: usize = 512;
/// How much of a text is shown.
const SHOWN: usize = 40;

/// Files that are told by their first bytes.
const KINDS: [(&[u8], &str); 15] = [
    (b"\x89PNG\r\n\x1a\n", "it looks like a PNG picture"),
    (b"\xff\xd8\xff", "it looks like a JPEG picture"),
    (b"GIF8", "it looks like a GIF picture"),
    (b"%PDF", "it looks like a PDF document"),
    (b"PAR1", "it looks like a Parquet file, perhaps a log"),
    (b"ARROW1", "it looks like an Arrow file"),
    (b"\x1f\x8b", "it looks like a file compressed with gzip, which has to be decompressed first"),
    (b"\x28\xb5\x2f\xfd", "it looks like a file compressed with zstd, which has to be decompressed first"),
    (b"BZh", "it looks like a file compressed with bzip2, which has to be decompressed first"),
    (b"\xfd7zXZ", "it looks like a file compressed with xz, which has to be decompressed first"),
    (b"PK\x03\x04", "it looks like a ZIP archive"),
    (b"SQLite format 3", "it looks like an SQLite database"),
    (b"\x89HDF", "it looks like an HDF5 file"),
    (b"\x93NUMPY", "it looks like a NumPy array"),
    (b"\x7fELF", "it looks like a program"),
];

/// Whether a file begins as a model does, as far as it goes.
pub(super) fn begins_as_a_model(bytes: &[u8]) -> bool {
    let header = bytes.get(8..).unwrap_or_default();
    let compared = header.len().min(HEADER_START.len());
    compared > 0 && header[..compared] == HEADER_START.as_bytes()[..compared]
}

/// What a file that is not a model looks like, in words that follow "not a satf model file: ".
pub(super) fn describe(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "it is empty".to_owned();
    }
    if let Some((_, kind)) = KINDS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return (*kind).to_owned();
    }
    if is_safetensors(bytes) {
        return "it looks like a safetensors file of another program".to_owned();
    }
    match text(&bytes[..bytes.len().min(LOOKED_AT)]) {
        Some(text) => describe_text(text.trim_start_matches('\u{feff}').trim_start()),
        None => "it looks like binary data of another kind".to_owned(),
    }
}

fn is_safetensors(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else { return false };
    u64::from_le_bytes(*length) <= rest.len() as u64 && rest.starts_with(b"{")
}

/// The bytes as text, if they are that; the last letter may be cut off.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    let is_text = !text.is_empty() && !text.chars().any(|c| c.is_control() && !c.is_whitespace());
    is_text.then_some(text)
}

fn describe_text(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let begin: String = line.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    let more = if line.chars().nth(SHOWN).is_some() { "..." } else { "" };
    match text.as_bytes().first() {
        None => "it holds nothing but blanks".to_owned(),
        Some(b'{' | b'[') => format!("it looks like JSON, it begins with {begin}{more}"),
        Some(b'<') => format!("it looks like XML or HTML, it begins with {begin}{more}"),
        Some(_) => format!("it looks like text, perhaps a log; it begins with {begin}{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_files_are_recognized() {
        for (bytes, expected) in [
            (&b""[..], "empty"),
            (b"\n \n", "blanks"),
            (
                b"userid,itemid,timestamp\n1,2,3\n",
                "text, perhaps a log; it begins with userid,itemid,timestamp",
            ),
            ("\u{feff}é,b\n".as_bytes(), "text, perhaps a log; it begins with é,b"),
            (b"{\"user_id\": 1}\n", "JSON"),
            (b"<svg xmlns=''>", "XML"),
            (b"\x89PNG\r\n\x1a\n\0\0", "a PNG picture"),
            (b"PAR1\x15\x04", "a Parquet file"),
            (b"\x1f\x8b\x08", "decompressed first"),
            (b"\x02\0\0\0\0\0\0\0{\"a\": 1}", "safetensors"),
            (b"\xff\xfe\x00\x01", "binary data"),
            (b"abc\x1b[31m", "binary data"),
        ] {
            let found = describe(bytes);
            assert!(found.contains(expected), "{bytes:?}: {found}");
        }
        // A letter that the look at the first bytes cuts in two.
        let long = "é".repeat(LOOKED_AT);
        assert!(describe(&long.as_bytes()[1..]).contains("binary data"));
        assert!(describe(format!("x{long}").as_bytes()).contains("text"));
    }

    #[test]
    fn models_are_recognized_however_short() {
        let whole = [b"\x40\0\0\0\0\0\0\0", HEADER_START.as_bytes(), b"0000"].concat();
        assert!((9..=whole.len()).all(|length| begins_as_a_model(&whole[..length])));
        assert!(!begins_as_a_model(&whole[..8]) && !begins_as_a_model(b"userid,itemid"));
    }
}
