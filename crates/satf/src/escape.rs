//! Characters that act on a terminal, and JSON that has none of them.
//!
//! Ids and titles may hold characters that move the cursor, change colours, end a line or turn the direction of writing. JSON can
//! spell each of them as `\u009b`, which every reader turns back into the same character: nothing is lost, and whoever looks at the
//! text on a terminal comes to no harm.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Whether a character does something on a terminal, or is there without being seen.
pub fn acts_on_terminal(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // Marks of direction, embeddings, overrides and isolates; what ends a line or a paragraph.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            // Spaces and joiners that take no room: two ids would look the same.
            | '\u{200b}' | '\u{2060}'..='\u{2065}'
            // Annotations within a line, and the byte order mark, which is nowhere seen.
            | '\u{fff9}'..='\u{fffb}' | '\u{feff}')
}

/// A text in JSON with such characters escaped as JSON has it. Line breaks stay: in JSON they stand between values only.
///
/// ```
/// assert_eq!(satf::escape::json_text("\"te\u{9b}nt\""), "\"te\\u009bnt\"");
/// ```
pub fn json_text(text: &str) -> Cow<'_, str> {
    let acts = |character: char| character != '\n' && acts_on_terminal(character);
    // Most ids are plain, and their bytes tell it at once.
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) || !text.contains(acts) {
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

/// Writes a value as JSON on one line, such characters escaped.
pub fn write_json(sink: impl Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(sink, Harmless))
}

/// A value as JSON on one line, such characters escaped.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(128);
    write_json(&mut bytes, value)?;
    Ok(bytes)
}

/// Compact JSON.
struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, sink: &mut W, fragment: &str) -> io::Result<()> {
        sink.write_all(json_text(fragment).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn json_is_harmless_and_says_the_same() {
        let ids = json!({
            "a\u{9b}b\u{7f}\u{85}": ["\u{202e}x\u{200b}", "Zelt – ü 👨‍👩‍👧", "quo\"te\\\n\t\u{1b}"],
            "numbers": [0.1, 1e300, u64::MAX, null, true],
        });
        let shown = String::from_utf8(to_json(&ids).unwrap()).unwrap();
        assert!(!shown.contains(acts_on_terminal), "{shown}");
        assert!(shown.contains("a\\u009bb\\u007f\\u0085") && shown.contains("– ü 👨‍👩‍👧"), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), ids);
        let pretty = serde_json::to_string_pretty(&ids).unwrap();
        let shown = json_text(&pretty);
        assert!(!shown.contains(|c| c != '\n' && acts_on_terminal(c)), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), ids);
        assert_eq!(json_text("[\n  1\n]"), "[\n  1\n]");
    }

    #[test]
    fn plain_json_is_what_it_always_was() {
        let value = json!({"item": "tent", "score": 0.25, "list": [1, "zwölf"], "empty": {}});
        assert_eq!(to_json(&value).unwrap(), serde_json::to_vec(&value).unwrap());
    }
}
