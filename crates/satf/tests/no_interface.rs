//! The library knows no interface: no text of it names an option or a command of the command line.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// What can be asked of the command line, as it reads in a message.
const COMMANDS: [&str; 15] = [
    "satf prepare",
    "satf stats",
    "satf evaluate",
    "satf train",
    "satf forget",
    "satf recommend",
    "satf similar",
    "satf inspect",
    "satf tune",
    "satf reproduce",
    "satf plan",
    "satf compare",
    "satf models",
    "satf generate",
    "satf demo",
];

#[test]
fn no_text_of_the_libraries_names_an_option_or_a_command() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut checked = 0;
    let mut faults = Vec::new();
    for library in ["satf", "satf-sasrec"] {
        for file in sources(&crates.join(library).join("src")) {
            for (line, text) in literals(&fs::read_to_string(&file).unwrap()) {
                checked += 1;
                if names_an_interface(&text) {
                    faults.push(format!("{}:{line}: {text:?}", file.display()));
                }
            }
        }
    }
    assert!(checked > 1000, "only {checked} texts were found");
    assert!(faults.is_empty(), "texts with options or commands:\n{}", faults.join("\n"));
}

#[test]
fn options_and_commands_are_told_from_other_texts() {
    for text in ["hint: give --test", "--{role}-column", "x --a", "satf train LOG writes one"] {
        assert!(names_an_interface(text), "{text}");
    }
    for text in ["a -- b", "1--2", "---", "a newer satf, or train again", "satf training"] {
        assert!(!names_an_interface(text), "{text}");
    }
    let code = "// \"--no\"\nlet a = \"one\\\"two\"; /* \"--no\" */ let b = '\"'; let c = r#\"--\"raw\"#; let d: &'a str = \"x\";";
    let found = literals(code);
    let expected = [(2, "one\\\"two"), (2, "--\"raw"), (2, "x")];
    assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
}

/// Whether a text has `--` with a name after it, written or put in, or the name of a command.
fn names_an_interface(text: &str) -> bool {
    let option = text.match_indices("--").any(|(at, _)| {
        let next = text[at + 2..].chars().next();
        let is_begin = at == 0 || !text[..at].ends_with(|c: char| c == '-' || c.is_alphanumeric());
        is_begin && next.is_some_and(|next| next.is_ascii_lowercase() || next == '{')
    });
    let command = COMMANDS.iter().any(|command| {
        text.match_indices(command)
            .any(|(at, _)| !text[at + command.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    });
    option || command
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// The texts between quotes, with their lines; comments have none.
fn literals(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(character) = character_literal(rest) {
            character
        } else if let Some((opening, closing)) = raw_quotes(rest).filter(|_| !code[..at].ends_with(is_word)) {
            let text = &rest[opening..];
            let end = text.find(&closing).unwrap_or(text.len());
            found.push((line_of(code, at), text[..end].to_owned()));
            opening + end + closing.len()
        } else if let Some(text) = rest.strip_prefix('"') {
            let end = end_of_text(text);
            found.push((line_of(code, at), text[..end].to_owned()));
            end + 2
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at = (at + skipped).min(code.len());
    }
    found
}

/// The length of `'x'` or `'\n'`; a lifetime is neither.
fn character_literal(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if let Some(escaped) = inner.strip_prefix('\\') {
        let first = escaped.chars().next()?.len_utf8();
        return Some(2 + first + escaped[first..].find('\'')? + 1);
    }
    let first = inner.chars().next()?.len_utf8();
    inner[first..].starts_with('\'').then_some(first + 2)
}

/// The length of `r#"` and what ends such a text.
fn raw_quotes(rest: &str) -> Option<(usize, String)> {
    let hashes = rest.strip_prefix('r')?;
    let count = hashes.len() - hashes.trim_start_matches('#').len();
    hashes[count..].starts_with('"').then(|| (count + 2, format!("\"{}", "#".repeat(count))))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn end_of_text(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().find(|&(_, c)| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at)
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}
