//! Text of others on the terminal.
//!
//! Ids, titles, paths and whatever else comes from files may hold characters that move the cursor, change colours, break lines or
//! turn the direction of writing. People see them escaped, such as `\u{1b}` and `\u{202e}`; data keeps them.

use std::borrow::Cow;
use std::path::Path;

use satf::escape::acts_on_terminal;
pub(crate) use satf::escape::json_text as json;

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
    fn lines_of_a_layout_stay_and_lines_within_values_do_not() {
        assert_eq!(lines("one\ntwo\x1b"), "one\ntwo\\u{1b}");
        let faults = "2 faults:\n  one\n  two\nhint: three";
        assert_eq!(message(faults), faults);
        assert_eq!(message("error: a\nerror: b: no rows\n"), "error: a\\nerror: b: no rows\\n");
    }
}
