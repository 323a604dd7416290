//! Words in a picture: escaped for XML, measured, broken into lines, shortened.

/// Text that stands for itself between tags and in attributes. Characters that XML 1.0 does not allow at all become U+FFFD.
pub(super) fn escape(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    for character in words.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// Fonts such as DejaVu Sans or Verdana are wider than most by this.
const WIDE_FONTS: f64 = 1.1;

/// How wide a letter comes out, in units of the font's size: an estimate on the wide side, for whatever sans-serif font
/// draws it in the end.
fn em(character: char) -> f64 {
    match character {
        '\'' | ',' | ';' | ':' | 'i' | 'j' | 'l' | '|' | '!' | '.' | 'I' | ' ' => 0.28,
        '[' | ']' | '-' | '`' | '"' | 't' | 'r' | 'f' | '(' | ')' | '{' | '}' | '/' => 0.36,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.88,
        'A'..='Z' | '&' | '#' | '~' => 0.68,
        '\u{300}'..='\u{36f}' => 0.0,
        '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{ff60}' | '\u{1f000}'.. => 1.05,
        ' '..='~' => 0.56,
        _ => 0.64,
    }
}

/// How wide words come out at a font's size.
pub(super) fn width(words: &str, size: f64) -> f64 {
    WIDE_FONTS * size * words.chars().map(em).sum::<f64>()
}

/// Words that are no wider than `room`, cut with an ellipsis if need be.
pub(super) fn shorten(words: &str, size: f64, room: f64) -> String {
    if width(words, size) <= room {
        return words.to_owned();
    }
    let mut left = room - width("…", size);
    let kept: String = words
        .chars()
        .take_while(|&character| {
            left -= WIDE_FONTS * size * em(character);
            left >= 0.0
        })
        .collect();
    format!("{}…", kept.trim_end())
}

/// Words in at most `most` lines no wider than `room`, broken at spaces; what does not fit ends in an ellipsis.
pub(super) fn wrap(words: &str, size: f64, room: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if lines_end_here(line, word, size, room) => lines.push(word.to_owned()),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    if lines.len() > most {
        let rest = lines.split_off(most).join(" ");
        if let Some(last) = lines.last_mut() {
            last.push(' ');
            last.push_str(&rest);
        }
    }
    lines.iter().map(|line| shorten(line, size, room)).collect()
}

fn lines_end_here(line: &str, word: &str, size: f64, room: f64) -> bool {
    width(line, size) + width(" ", size) + width(word, size) > room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(escape("<a b=\"c\">&'</a>"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;&lt;/a&gt;");
        assert_eq!(escape("one\ntwo\u{0}\u{1b}\u{ffff}"), "one two\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(escape("Größe ≤ 3 日本"), "Größe ≤ 3 日本");
    }

    #[test]
    fn lines_keep_to_their_room() {
        let words = "time of training against the number of columns of the item factors";
        for room in [60.0, 120.0, 1000.0] {
            let lines = wrap(words, 12.0, room, 20);
            assert_eq!(lines.join(" "), words);
            assert!(lines.iter().all(|line| width(line, 12.0) <= room), "{room}: {lines:?}");
        }
        let two = wrap(words, 12.0, 120.0, 2);
        assert!(two.len() == 2 && two[1].ends_with('…') && width(&two[1], 12.0) <= 120.0, "{two:?}");
        assert!(wrap("", 12.0, 100.0, 2).is_empty());
        assert_eq!(wrap("Donaudampfschifffahrt", 12.0, 60.0, 2), ["Donaud…"]);
    }
}
