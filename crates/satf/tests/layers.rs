//! The order of the library's modules, as `ARCHITECTURE.md` has it, is the law: a module imports those before it, never one after it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// The heading in `ARCHITECTURE.md` below which the first fenced block lists the modules, the lowest first.
const HEADING: &str = "## Layers";

/// The names in the list.
fn layers(architecture: &str) -> Vec<String> {
    let below = architecture.split_once(HEADING).map_or("", |(_, below)| below);
    let block = below.split("```").nth(1).unwrap_or_default();
    // What stands after the fence names the language of the block.
    let names = block.split_once('\n').map_or("", |(_, names)| names);
    names.split_whitespace().map(str::to_owned).collect()
}

/// What the source of a module is made of, as far as paths go.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    /// `::`
    Path,
    Open,
    Close,
    Comma,
    Other,
}

/// Tokens with the lines they stand on; comments, texts and characters are none.
fn tokens(source: &str) -> Vec<(usize, Token)> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (source, 1);
    while let Some(first) = rest.chars().next() {
        let (len, token) = if let Some(len) = len_of_no_code(rest) {
            (len, None)
        } else if is_of_word(first) {
            let len = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            (len, Some(Token::Word(rest[..len].to_owned())))
        } else if rest.starts_with("::") {
            (2, Some(Token::Path))
        } else {
            let token = match first {
                '{' => Token::Open,
                '}' => Token::Close,
                ',' => Token::Comma,
                _ => Token::Other,
            };
            (first.len_utf8(), (!first.is_whitespace()).then_some(token))
        };
        tokens.extend(token.map(|token| (line, token)));
        line += rest[..len].matches('\n').count();
        rest = &rest[len..];
    }
    tokens
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of a comment, text or character at the start of `rest`, if there is one.
fn len_of_no_code(rest: &str) -> Option<usize> {
    let until =
        |from: usize, end: &str| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(until(2, "*/"));
    }
    let (prefix, text) =
        rest.split_at(rest.find(|c| !['b', 'c', 'r', '#'].contains(&c)).unwrap_or(rest.len()));
    if text.starts_with('"') {
        return match prefix.trim_start_matches(['b', 'c']).strip_prefix('r') {
            Some(hashes) => Some(until(prefix.len() + 1, &format!("\"{hashes}"))),
            None => Some(prefix.len() + len_of_escaped(text, '"')?),
        };
    }
    // A lifetime has no quote after its first letter; a character has.
    let is_character = rest.starts_with("'\\") || rest.chars().nth(2) == Some('\'');
    (rest.starts_with('\'') && is_character).then(|| len_of_escaped(rest, '\''))?
}

/// The length of what stands between two quotes, which a backslash keeps from ending it.
fn len_of_escaped(text: &str, quote: char) -> Option<usize> {
    let mut escaped = true;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

/// The modules of the crate's root that the source of `module` names by a path, with the lines they stand on.
fn imports(module: &[&str], source: &str) -> Vec<(usize, String)> {
    let tokens = tokens(source);
    let word = |at: usize| match tokens.get(at) {
        Some((_, Token::Word(word))) => Some(word.as_str()),
        _ => None,
    };
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|(_, found)| found == token);
    let mut imports = Vec::new();
    // How deep the modules are that stand within this one, from the outermost in.
    let (mut depth, mut inner): (usize, Vec<usize>) = (0, Vec::new());
    for at in 0..tokens.len() {
        match &tokens[at].1 {
            Token::Open => {
                depth += 1;
                let is_module = at >= 2 && word(at - 2) == Some("mod") && word(at - 1).is_some();
                inner.extend(is_module.then_some(depth));
            }
            Token::Close => {
                inner.retain(|opened| *opened < depth);
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        let begins = at == 0 || !is(at - 1, &Token::Path);
        let root = match word(at) {
            Some("crate") if begins && is(at + 1, &Token::Path) => at + 2,
            Some("self" | "super") if begins => {
                let mut next = at + if word(at) == Some("self") { 2 } else { 0 };
                let mut up = 0;
                while word(next) == Some("super") && is(next + 1, &Token::Path) {
                    (next, up) = (next + 2, up + 1);
                }
                if up < module.len() + inner.len() {
                    continue;
                }
                next
            }
            _ => continue,
        };
        imports.extend(first_words(&tokens, root));
    }
    imports
}

/// The word at a place, or the first word of every path of the braces that open there.
fn first_words(tokens: &[(usize, Token)], at: usize) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let (mut depth, mut is_first) = (0usize, true);
    for (line, token) in tokens.iter().skip(at) {
        match token {
            Token::Word(word) if is_first && depth <= 1 => {
                words.push((*line, word.clone()));
                is_first = false;
            }
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Comma if depth == 1 => is_first = true,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    words
}

/// What breaks the order, one line each. Sources come with their paths below the folder of the crate's root.
fn faults(layers: &[String], sources: &[(PathBuf, String)]) -> Vec<String> {
    let place = |name: &str| layers.iter().position(|layer| layer == name);
    let mut faults = Vec::new();
    let mut found = Vec::new();
    for (path, source) in sources {
        let mut module: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
        let file = module.pop().unwrap().strip_suffix(".rs").unwrap();
        if module.is_empty() && file == "lib" {
            continue;
        }
        module.extend((file != "mod").then_some(file));
        let top = module[0];
        found.push(top);
        let Some(own) = place(top) else {
            faults.push(format!("{}: '{top}' is not in the list of layers", path.display()));
            continue;
        };
        for (line, name) in imports(&module, source).into_iter().filter(|(_, name)| *name != top) {
            let at = format!("{}:{line}", path.display());
            match place(&name) {
                Some(other) if other < own => {}
                Some(_) => faults.push(format!("{at}: '{top}' imports '{name}', which comes after it")),
                None => faults.push(format!("{at}: '{top}' imports '{name}', which is in no layer")),
            }
        }
    }
    let missing = layers.iter().filter(|layer| !found.contains(&layer.as_str()));
    faults.extend(missing.map(|layer| format!("'{layer}' is in the list of layers and nowhere else")));
    faults
}

/// Every source below a folder, by its path there.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut sources = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                sources.push((path.strip_prefix(folder).unwrap().to_owned(), text));
            }
        }
    }
    sources.sort();
    sources
}

#[test]
fn every_import_goes_to_a_lower_layer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let layers = layers(&fs::read_to_string(root.join("../../ARCHITECTURE.md")).unwrap());
    assert!(layers.len() > 10, "ARCHITECTURE.md has the list below '{HEADING}': {layers:?}");
    let sources = sources(&root.join("src"));
    assert!(sources.len() > 100, "{} sources", sources.len());
    let faults = faults(&layers, &sources);
    assert!(
        faults.is_empty(),
        "{} import(s) against the order of layers:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// The faults of one source of a small crate.
fn faults_of(path: &str, source: &str) -> Vec<String> {
    let layers = ["low", "middle", "high"].map(str::to_owned);
    let others =
        ["low.rs", "middle/mod.rs", "high.rs", "lib.rs"].map(|path| (PathBuf::from(path), String::new()));
    let others = others.into_iter().filter(|(other, _)| *other != Path::new(path));
    let sources: Vec<_> = others.chain([(PathBuf::from(path), source.to_owned())]).collect();
    faults(&layers, &sources)
}

#[test]
fn an_import_of_a_higher_layer_is_found_wherever_it_stands() {
    for source in [
        "use crate::high::Thing;",
        "pub(crate) use crate::{low, high::{self, Thing}};",
        "use crate::{\n    low::{Lid, Cup},\n    high,\n};",
        "fn f() -> usize { crate::high::count() }",
        "fn f(text: &str) { assert_eq!(text, \"a \\\" // quote\"); crate::high::count() }",
        "#[cfg(test)]\nmod tests {\n    use crate::high::Thing;\n}",
        "use super::high::Thing;",
        "use self::super::high;",
        "mod inner {\n    use super::super::high;\n}",
        "macro_rules! count { () => { $crate::high::count() } }",
        "fn f<'a>(c: char, x: &'a str) { if c == '\"' || c == '\\'' { crate::high::count() } }",
    ] {
        let faults = faults_of("middle/mod.rs", source);
        assert_eq!(faults.len(), 1, "{source}: {faults:?}");
        assert!(faults[0].contains("'middle' imports 'high', which comes after it"), "{source}: {faults:?}");
    }
    let nested = "use super::super::high;\nuse super::super::low;";
    assert_eq!(faults_of("middle/inner.rs", nested).len(), 1);
    assert!(faults_of("middle/inner.rs", nested)[0].starts_with("middle/inner.rs:1:"));
}

#[test]
fn what_is_no_import_of_a_higher_layer_is_left_alone() {
    for source in [
        "use crate::low::Cup;",
        "use crate::middle::Own;",
        "//! See [`crate::high::Thing`].\n/// [x](crate::high)\n/* crate::high */",
        "const TEXT: &str = \"crate::high::Thing\";",
        "const TEXT: &str = r#\"use \"crate::high\" here\"#;",
        "const BYTES: &[u8] = b\"crate::high\";",
        "mod inner {\n    use super::high;\n}\nmod high {}",
        "use crate::low::{high, Cup};",
        "use other::high::Thing;",
        "fn f() { self.high(); high::own() }",
    ] {
        assert_eq!(faults_of("middle/mod.rs", source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn modules_and_the_list_hold_the_same_names() {
    assert!(faults_of("new.rs", "")[0].contains("'new' is not in the list"));
    assert!(faults_of("middle/mod.rs", "use crate::Root;")[0].contains("in no layer"));
    let layers = ["low", "gone"].map(str::to_owned);
    let faults = faults(&layers, &[(PathBuf::from("low.rs"), String::new())]);
    assert_eq!(faults, ["'gone' is in the list of layers and nowhere else"]);
}

#[test]
fn the_list_is_the_first_block_below_its_heading() {
    let text = "# A\n```text\nnot these\n```\n## Layers\nIn words.\n\n```text\nlow middle\nhigh\n```\n```text\nnor these\n```\n";
    assert_eq!(layers(text), ["low", "middle", "high"]);
    assert_eq!(layers("# A\n"), Vec::<String>::new());
}
