//! Text of others on the terminal.
//!
//! Ids, titles, paths and whatever else comes from files may hold characters that move the cursor, change colours, break lines or
//! turn the direction of writing. People see them escaped, such as `\u{1b}` and `\u{202e}`; data keeps them.

use std::borrow::Cow;
use std::path::Path;

/// A value within a line or a cell: every such character is escaped.
pub(crate) fn value(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// A path within a line.
pub(crate) fn path(path: &Path) -> String {
    value(&path.to_string_lossy()).into_owned()
}

/// Lines that were laid out from values: their breaks stay.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |rest| rest.starts_with('\n'))
}

/// A message: its own line breaks stay, which come before a hint and before lines that are indented. Any other belongs to a value, and
/// no value shall look like a message.
pub(crate) fn message(text: &str) -> Cow<'_, str> {
    escaped(text, |rest| {
        rest.strip_prefix('\n').is_some_and(|next| next.starts_with(' ') || next.starts_with("hint: "))
    })
}

/// A text in JSON, laid out over lines: the characters within its strings are escaped as JSON has it, so that none is lost.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    let acts = |character: char| character != '\n' && acts_on_terminal(character);
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if acts(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Escapes what must not reach a terminal, but for where `stays` says of the rest of the text that its first character may.
fn escaped(text: &str, stays: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if !text.contains(acts_on_terminal) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for (at, character) in text.char_indices() {
        if acts_on_terminal(character) && !stays(&text[at..]) {
            match character {
                '\n' | '\r' | '\t' => shown.extend(character.escape_default()),
                _ => shown.extend(character.escape_unicode()),
            }
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

fn acts_on_terminal(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // Marks of direction, embeddings, overrides and isolates; what ends a line or a paragraph.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            // Spaces and joiners that take no room: two ids would look the same.
            | '\u{200b}' | '\u{2060}'..='\u{2065}'
            // Annotations within a line, and the byte order mark, which is nowhere seen.
            | '\u{fff9}'..='\u{fffb}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_nothing_else() {
        assert_eq!(value("Tent, 2 m² – שלום 👨‍👩‍👧 C:\\new"), "Tent, 2 m² – שלום 👨‍👩‍👧 C:\\new");
        assert_eq!(value("a\x1b[31mb\r\n\tc\x07\u{9b}d"), "a\\u{1b}[31mb\\r\\n\\tc\\u{7}\\u{9b}d");
        assert_eq!(value("\u{202e}evil\u{2066}\u{200f}"), "\\u{202e}evil\\u{2066}\\u{200f}");
        assert_eq!(value("te\u{200b}nt"), "te\\u{200b}nt");
        assert_eq!(value("\u{feff}tent"), "\\u{feff}tent");
        assert_eq!(path(Path::new("a\nb")), "a\\nb");
    }

    #[test]
    fn json_that_is_escaped_says_the_same() {
        let ids = serde_json::json!(["a\u{9b}b\u{7f}\u{85}", "\u{202e}x\u{200b}", "Zelt – ü 👨‍👩‍👧"]);
        let text = serde_json::to_string_pretty(&ids).unwrap();
        let shown = json(&text);
        assert!(shown.contains("a\\u009bb\\u007f\\u0085") && !shown.contains('\u{202e}'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), ids);
        assert_eq!(json("[\n  1\n]"), "[\n  1\n]");
    }

    #[test]
    fn lines_of_a_layout_stay_and_lines_within_values_do_not() {
        assert_eq!(lines("one\ntwo\x1b"), "one\ntwo\\u{1b}");
        let faults = "2 fault(s):\n  one\n  two\nhint: three";
        assert_eq!(message(faults), faults);
        assert_eq!(message("error: a\nerror: b: no rows\n"), "error: a\\nerror: b: no rows\\n");
    }
}
