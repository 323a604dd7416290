//! Characters that act on a terminal come from files, ids, titles and names: people see them escaped, data keeps them.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod satf_binary;
#[cfg(feature = "serve")]
mod server;

use std::fs;

use satf_binary::{Outcome, satf};
use serde_json::Value;

/// Colours, a new line, a bell, an override of direction and an isolate.
const EVIL: &str = "\x1b[31mred\nerror: fake\x07\u{202e}txt\u{2066}";
const ESCAPED: &str = "\\u{1b}[31mred\\nerror: fake\\u{7}\\u{202e}txt\\u{2066}";

fn assert_harmless(what: &str, text: &str) {
    let harmful = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{2066}".contains(c);
    assert!(!text.contains(harmful), "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.trim_start().starts_with("error: fake")), "{what}: {text}");
}

/// A shop whose best-selling item has the name.
fn log() -> String {
    let mut text = String::new();
    for user in 0..40 {
        for (step, item) in [EVIL, "tent", "lamp", "mug"].iter().enumerate() {
            let time = 1_600_000_000 + user * 86_400 + step;
            text.push_str(&serde_json::json!({ "user": user, "item": item, "time": time }).to_string());
            text.push('\n');
            if user % (step + 2) == 0 {
                break;
            }
        }
    }
    text
}

#[test]
fn tables_and_messages_show_ids_and_titles_escaped_and_data_keeps_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (raw, model, titles) = (path("log.jsonl"), path("shop.satf"), path("titles.csv"));
    fs::write(&raw, log()).unwrap();
    fs::write(&titles, format!("item_id,title\ntent,\"{EVIL}\"\n")).unwrap();
    satf(&["train", &raw, "--model", "transitions", "-o", &model]).succeeds();

    let history = ["recommend", &model, "--history", "tent", "--titles", &titles, "--explain"];
    let shown = satf(&history).succeeds();
    assert!(shown.contains(ESCAPED) && shown.contains(&format!("{ESCAPED} (tent)")), "{shown}");
    assert_harmless("recommend", &shown);
    let like = satf(&["similar", &model, EVIL, "--titles", &titles]).succeeds();
    assert!(like.contains(&format!("like {ESCAPED}")), "{like}");
    assert_harmless("similar", &like);
    let unknown =
        satf(&["recommend", &model, "--history", "tent,x\x1b[2Jx", "--exclude", "y\x07", "--strict"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("y\\u{7}"), "{}", unknown.stderr);
    assert_harmless("unknown", &unknown.stderr);
    let skipped = satf(&["recommend", &model, "--history", "tent,x\x1b[2Jx"]);
    assert!(skipped.stderr.contains("x\\u{1b}[2Jx"), "{}", skipped.stderr);

    // Programs get what was in the log.
    let json: Value = serde_json::from_str(&satf(&[&history[..], &["--json"]].concat()).succeeds()).unwrap();
    let ids: Vec<&str> = json["recommendations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["item_id"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&EVIL), "{ids:?}");
    assert_eq!(json["history"][0]["title"], EVIL);
    let (csv, next) = (path("log.csv"), path("next.csv"));
    satf(&["prepare", &raw, "-o", &csv]).succeeds();
    assert!(fs::read_to_string(&csv).unwrap().contains(EVIL));
    fs::write(path("h.jsonl"), "{\"user_id\": 1, \"history\": [\"tent\"]}\n").unwrap();
    satf(&["recommend", &model, "--histories", &path("h.jsonl"), "-o", &next]).succeeds();
    assert!(fs::read_to_string(&next).unwrap().contains(EVIL));
    let streamed = satf(&["recommend", &model, "--histories", &path("h.jsonl")]).succeeds();
    let first: Vec<Value> = streamed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(first.iter().any(|row| row["item_id"] == EVIL), "{streamed}");
}

#[test]
fn lines_of_json_do_nothing_on_a_terminal_and_lose_nothing() {
    const ODD: &str = "a\u{9b}31mb\u{202e}c\u{7f}d\u{200b}";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let row = |user: &str, item: &str, time: i32| {
        serde_json::json!({ "user": user, "item": item, "time": time }).to_string() + "\n"
    };
    let text: String = (0..9)
        .map(|user| row(&format!("u{user}"), "tent", user) + &row(&format!("u{user}"), ODD, user + 1))
        .collect();
    fs::write(path("log.jsonl"), text).unwrap();
    fs::write(path("h.jsonl"), serde_json::json!({ "user": ODD, "history": ["tent"] }).to_string()).unwrap();
    fs::write(path("titles.csv"), format!("item_id,title\n{ODD},{ODD}\n")).unwrap();
    let (model, histories, titles) = (path("m.satf"), path("h.jsonl"), path("titles.csv"));
    satf(&["train", &path("log.jsonl"), "-m", "transitions", "-o", &model]).succeeds();
    let line = ["recommend", &model, "--histories", &histories, "--titles", &titles, "--explain"];
    let shown = satf(&line).succeeds();
    let acts = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
    assert!(!shown.contains(acts), "{shown:?}");
    let first: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    for key in ["user_id", "item_id", "title"] {
        assert_eq!(first[key], ODD, "{shown}");
    }
    // Columns of a file keep their bytes.
    satf(&[&line[..], &["-o", &path("next.csv")]].concat()).succeeds();
    assert!(fs::read_to_string(path("next.csv")).unwrap().contains(ODD));
}

#[cfg(feature = "serve")]
#[test]
fn the_log_and_the_answers_of_a_server_do_nothing_on_a_terminal() {
    use std::io::Read as _;
    use std::io::Write as _;

    let (folder, model) = server::shop_model(40, &["-m", "mp"]);
    let items = folder.path().join("it\u{9b}e\u{202e}ms\u{7f}.csv");
    fs::write(&items, "item_id,title\ntent,\"te\u{9b}nt\u{202e}\"\n").unwrap();
    let server =
        server::Server::start(&model, &["--items", items.to_str().unwrap(), "--set", "watch_seconds=0"]);
    let acts = |c: char| (c.is_control() && !"\r\n".contains(c)) || c == '\u{202e}';
    let mut stream = server.connect();
    let body = "{\"history\": [\"lamp\"], \"n\": 1000}";
    let head =
        format!("content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    stream
        .write_all(format!("POST /v1/recommend HTTP/1.1\r\nhost: localhost\r\n{head}\r\n{body}").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("te\\u009bnt\\u202e") && !answer.contains(acts), "{answer:?}");
    fs::write(&items, "item_id,title\n\"tent\n").unwrap();
    server.signal(nix::sys::signal::Signal::SIGHUP);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !server.log().contains("csv") {
        assert!(std::time::Instant::now() < end, "{}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(server.log().contains("it\\u009be\\u202ems\\u007f.csv"), "{}", server.log());
    assert!(!server.log().contains(acts), "{:?}", server.log());
}

#[test]
fn names_of_files_and_words_of_the_command_line_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    // A name may not hold a slash; anything else it may.
    let path = |name: &str| format!("{}/{EVIL}{name}", folder.path().to_str().unwrap());
    let refused = |arguments: &[&str], code: i32| -> Outcome {
        let outcome = satf(arguments);
        assert_eq!(outcome.code, code, "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("\\u{1b}[31mred"), "{arguments:?}: {}", outcome.stderr);
        assert_harmless(arguments[0], &outcome.stderr);
        outcome
    };
    let (log, model) = (path(".csv"), path(".satf"));
    refused(&["stats", &log], 1);
    refused(&["compare", &log, &log], 1);
    refused(&["inspect", &model], 1);
    fs::write(&log, "user,item,time\na,b,1\na,c,x\n").unwrap();
    refused(&["stats", &log], 1);
    refused(&["inspect", &log], 1);
    refused(&["prepare", &log, "-o", &log], 1);
    refused(&["evaluate", &log, "--model", "mp", "--config", &log], 1);
    refused(&["train", &log, "-o", &format!("{model}/x")], 1);
    refused(&["tune", &log, "--model", "pure-svd", "--space", &path(".toml")], 1);
    fs::write(path(".toml"), "keys.rank = [\n\x1b").unwrap();
    refused(&["tune", &log, "--model", "pure-svd", "--space", &path(".toml")], 1);
    refused(&["evaluate", &log, "--model", EVIL], 2);
    refused(&["evaluate", &log, "--model", "mp", "--ties", EVIL], 2);
    refused(&["stats", &log, EVIL, &format!("--{EVIL}")], 2);

    let out = path("out.csv");
    let made = satf(&["generate", "--users", "30", "-o", &out]).succeeds();
    assert!(made.contains(&format!("{ESCAPED}out.csv")), "{made}");
    assert_harmless("generate", &made);
    let trained = satf(&["train", &out, "--model", "mp", "-o", &model]).succeeds();
    assert!(trained.contains(ESCAPED), "{trained}");
    let scores = path("scores.csv");
    satf(&["evaluate", &out, "--model", "mp,random", "--per-event", &scores]).succeeds();
    let compared = satf(&["compare", &path("scores.mp.csv"), &path("scores.random.csv"), "--draws", "100"]);
    let compared = compared.succeeds();
    assert!(compared.contains(&format!("{ESCAPED}scores.random against {ESCAPED}scores.mp")), "{compared}");
    assert_harmless("compare", &compared);
}
