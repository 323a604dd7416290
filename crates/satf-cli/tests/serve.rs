//! `satf serve` as those meet it who ask, who administer and who attack.

#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used)]

mod satf_binary;
mod server;

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use satf_binary::{SATF, satf};
use serde_json::{Value, json};
use server::{Server, ask, read_answer, shop_model};

const SPARSE: &[&str] = &["--set", "balance=0"];

fn bits(items: &Value) -> Vec<(String, u32)> {
    let items = items.as_array().unwrap().iter();
    items
        .map(|item| (item["item_id"].to_string(), (item["score"].as_f64().unwrap() as f32).to_bits()))
        .collect()
}

#[test]
fn http_and_command_line_give_the_same_ids_and_bits() {
    for settings in [&[][..], SPARSE] {
        let (_folder, model) = shop_model(500, settings);
        let server = Server::start(&model, &[]);
        for history in ["laptop,laptop sleeve", "tent", "tent+laptop,usb-c hub,tent"] {
            let printed =
                satf(&["recommend", model.to_str().unwrap(), "--history", history, "-n", "50", "--json"]);
            let printed: Value = serde_json::from_str(&printed.succeeds()).unwrap();
            let steps: Vec<Value> =
                history.split(',').map(|step| json!(step.split('+').collect::<Vec<_>>())).collect();
            let (status, answer) =
                server.post("/v1/recommend", &json!({"history": steps, "n": 50}).to_string());
            assert_eq!(status, 200, "{answer}");
            assert_eq!(bits(&answer["items"]), bits(&printed["recommendations"]), "{history}");
        }
    }
}

#[test]
fn a_configuration_is_checked_whole_before_the_port_opens() {
    let (folder, model) = shop_model(200, SPARSE);
    let model = model.to_str().unwrap();
    assert!(
        satf(&["serve", model, "--check"]).succeeds().starts_with("everything is right: shop (d-satf of ")
    );
    let config = folder.path().join("serve.toml");
    fs::write(&config, "listen = \"0.0.0.0:0\"\nkeys = \"nowhere.txt\"\nrule = \"price <\"\n[limits]\nn = 0\nbody_seconds = -1.0\n").unwrap();
    let refused = satf(&["serve", model, "--config", config.to_str().unwrap(), "--check"]);
    assert_eq!(refused.code, 1);
    for part in
        ["nowhere.txt", "rule: at character 8", "limits.n = 0: expected 1 to", "limits.body_seconds = -1"]
    {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    let open = satf(&["serve", model, "--listen", "0.0.0.0:0", "--check"]);
    assert!(open.code == 2 && open.stderr.contains("there is no key"), "{}", open.stderr);
    satf(&["serve", model, "--listen", "0.0.0.0:0", "--insecure", "--check"]).succeeds();
    let unknown = satf(&["serve", model, "--set", "limits.m=3", "--check"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("limits: unknown key `m`"), "{}", unknown.stderr);
    let environment = Command::new(SATF)
        .args(["serve", model, "--check"])
        .env("SATF_SERVE_LIMITS__N", "many")
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&environment.stderr).contains("limits.n: \"many\": expected a whole number"),
        "{environment:?}"
    );
    let keys = Command::new(SATF)
        .args(["serve", model, "--listen", "0.0.0.0:0", "--check"])
        .env("SATF_SERVE_READ_KEY", "a secret of sixteen and more")
        .output()
        .unwrap();
    assert!(keys.status.success() && !String::from_utf8_lossy(&keys.stderr).contains("secret"), "{keys:?}");
    assert_eq!(satf(&["serve", "--check"]).code, 2);
    let gone = satf(&["serve", "nothing.satf"]);
    assert!(gone.code == 1 && gone.stderr.contains("nothing.satf"), "{}", gone.stderr);
}

#[test]
fn models_are_swapped_a_thousand_times_without_an_error_or_a_mixture() {
    let (folder, model) = shop_model(300, SPARSE);
    let (other_folder, other) = shop_model(400, SPARSE);
    let server = Server::start(&model, &["--set", "watch_seconds=0", "--set", "log.requests=none"]);
    let body = json!({"history": ["laptop", "tent"], "n": 20}).to_string();
    let versions = [fs::read(&model).unwrap(), fs::read(&other).unwrap()];
    let swap = |bytes: &[u8]| {
        let next = folder.path().join("next");
        fs::write(&next, bytes).unwrap();
        fs::rename(&next, &model).unwrap();
    };
    let mut expected = Vec::new();
    for bytes in &versions {
        swap(bytes);
        assert_eq!(server.post("/v1/admin/reload", "").0, 200);
        let (_, answer) = server.post("/v1/recommend", &body);
        expected.push((answer["model_version"].clone(), answer["items"].clone()));
    }
    assert_ne!(expected[0], expected[1]);
    drop(other_folder);
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut stream = server.connect();
                while !is_over.load(Ordering::Relaxed) {
                    let started = Instant::now();
                    let (status, answer) = ask(&mut stream, "POST", "/v1/recommend", &body);
                    assert_eq!(status, 200, "{answer}");
                    let version = expected.iter().find(|(version, _)| *version == answer["model_version"]);
                    assert_eq!(answer["items"], version.unwrap().1, "an answer of two models");
                    answered.fetch_add(1, Ordering::Relaxed);
                    // Four times 125 a second.
                    thread::sleep(Duration::from_millis(8).saturating_sub(started.elapsed()));
                }
            });
        }
        let mut stream = server.connect();
        for at in 0..1_000 {
            swap(&versions[at % 2]);
            let (status, outcome) = ask(&mut stream, "POST", "/v1/admin/reload", "");
            assert_eq!((status, &outcome["loaded"]), (200, &json!(["shop"])), "{outcome}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(answered.load(Ordering::Relaxed) > 100, "{answered:?}");
}

/// Waits until something holds.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn files_are_watched_and_sighup_is_heard() {
    let (folder, model) = shop_model(200, SPARSE);
    let server = Server::start(&model, &["--set", "watch_seconds=0.05"]);
    let version = || server.get("/v1/model").1["version"].clone();
    let first = version();
    let good = fs::read(&model).unwrap();
    // Cut short in place and at once, while it is served.
    fs::OpenOptions::new().write(true).open(&model).unwrap().set_len(good.len() as u64 / 3).unwrap();
    eventually("a damaged file is told of", || server.log().contains("checksum"));
    assert_eq!(server.post("/v1/recommend", r#"{"history": ["tent"]}"#).0, 200);
    assert_eq!(version(), first);
    thread::sleep(Duration::from_millis(400));
    assert_eq!(
        server.log().matches("what was served before goes on").count(),
        1,
        "told once, not again and again"
    );
    let log = folder.path().join("shop.parquet");
    satf(&[
        "train",
        log.to_str().unwrap(),
        "-o",
        model.to_str().unwrap(),
        "--set",
        "balance=0",
        "--set",
        "window=3",
    ])
    .succeeds();
    eventually("a new file is served", || version() != first);

    let (_folder, model) = shop_model(200, SPARSE);
    let server = Server::start(&model, &["--set", "watch_seconds=0"]);
    let version = || server.get("/v1/model").1["version"].clone();
    let first = version();
    satf(&[
        "train",
        log.to_str().unwrap(),
        "-o",
        model.to_str().unwrap(),
        "--set",
        "balance=0",
        "--set",
        "window=4",
    ])
    .succeeds();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(version(), first, "nobody looks");
    server.signal(Signal::SIGHUP);
    eventually("SIGHUP is heard", || version() != first);
}

#[test]
fn sigterm_finishes_what_is_under_way() {
    let (_folder, model) = shop_model(200, SPARSE);
    let mut server = Server::start(&model, &[]);
    let body = r#"{"history": ["tent"]}"#;
    let mut slow = server.connect();
    let head = format!(
        "POST /v1/recommend HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    slow.write_all(head.as_bytes()).unwrap();
    slow.write_all(&body.as_bytes()[..5]).unwrap();
    let mut idle = server.connect();
    ask(&mut idle, "GET", "/health/ready", "");
    thread::sleep(Duration::from_millis(200));
    server.signal(Signal::SIGTERM);
    eventually("it stops listening", || TcpStream::connect(server.address).is_err());
    slow.write_all(&body.as_bytes()[5..]).unwrap();
    let (status, answer) = read_answer(&mut slow).expect("a request under way is answered");
    assert_eq!((status, answer["model"].as_str()), (200, Some("shop")));
    let end = Instant::now() + Duration::from_secs(10);
    let code = loop {
        if let Some(code) = server.child.try_wait().unwrap() {
            break code;
        }
        assert!(Instant::now() < end, "it does not end");
        thread::sleep(Duration::from_millis(20));
    };
    assert!(code.success(), "{code}");
    assert!(server.log().contains("\"connections_cut\":0"), "{}", server.log());
}

#[test]
fn hostile_clients_get_4xx_and_good_ones_their_answers() {
    let (_folder, model) = shop_model(300, SPARSE);
    let options = [
        "--set",
        "limits.header_seconds=1.5",
        "--set",
        "limits.body_seconds=1",
        "--set",
        "log.requests=none",
    ];
    let server = Arc::new(Server::start(&model, &options));
    let good = r#"{"history": ["laptop", "tent"]}"#;
    let expected = server.post("/v1/recommend", good);
    assert_eq!(expected.0, 200);
    let before = server.memory();
    let head = "POST /v1/recommend HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let sent = |bytes: &[u8]| {
        let mut stream = server.connect();
        // Whoever is refused may find the connection closed while it still sends.
        let _ = stream.write_all(bytes);
        read_answer(&mut stream).map(|(status, _)| status)
    };
    // A thousand connections that say nothing more.
    let stalled: Vec<TcpStream> = (0..1_000)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(&head.as_bytes()[..40]).unwrap();
            stream
        })
        .collect();
    assert_eq!(server.post("/v1/recommend", good), expected);
    assert_eq!(sent(format!("{head}content-length: 1000000000\r\n\r\n{{").as_bytes()), Some(413));
    let deep = "[".repeat(500_000);
    assert_eq!(sent(format!("{head}content-length: {}\r\n\r\n{deep}", deep.len()).as_bytes()), Some(422));
    let deep = format!("{{\"history\":{deep}");
    assert_eq!(sent(format!("{head}content-length: {}\r\n\r\n{deep}", deep.len()).as_bytes()), Some(422));
    let invalid = [head.as_bytes(), b"content-length: 15\r\n\r\n{\"model\": \"\xff\xff\"}"].concat();
    assert_eq!(sent(&invalid), Some(400));
    let many = format!("{{\"history\":[{}1]}}", "1,".repeat(1_000_000));
    assert_eq!(sent(format!("{head}content-length: {}\r\n\r\n{many}", many.len()).as_bytes()), Some(413));
    let some = format!("{{\"history\":[{}1]}}", "1,".repeat(400_000));
    assert_eq!(sent(format!("{head}content-length: {}\r\n\r\n{some}", some.len()).as_bytes()), Some(422));
    assert_eq!(server.post("/v1/recommend", "{\"n\": 1000000000}").0, 422);
    let flood = "x-flood: 1\r\n".repeat(10_000);
    assert_eq!(sent(format!("{head}{flood}content-length: 2\r\n\r\n{{}}").as_bytes()), Some(431));
    assert_eq!(
        sent(format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(1 << 20)).as_bytes()),
        Some(431)
    );
    assert_eq!(sent(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"), Some(400));
    // Three megabytes of chunks of one byte each.
    let mut stream = server.connect();
    let _ = stream.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes());
    let crumbs = "1\r\n \r\n".repeat(10_000);
    let mut writer = stream.try_clone().unwrap();
    let crumbling = thread::spawn(move || (0..300).all(|_| writer.write_all(crumbs.as_bytes()).is_ok()));
    let (status, _) = read_answer(&mut stream).expect("an answer to crumbs");
    assert_eq!(status, 400);
    drop(stream);
    crumbling.join().unwrap();
    // A body that never comes.
    let started = Instant::now();
    assert_eq!(sent(format!("{head}content-length: 10\r\n\r\n{{").as_bytes()), Some(408));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    for mut stream in stalled {
        assert!(
            read_answer(&mut stream).is_none_or(|(status, _)| status == 408),
            "stalled connections are closed"
        );
    }
    assert_eq!(server.post("/v1/recommend", good), expected);
    let (_, metrics) = server.get("/metrics");
    assert!(!metrics.as_str().unwrap().contains("status=\"5xx\""), "{metrics}");
    let after = server.memory();
    assert!(after < before + (40 << 20), "{before} bytes before, {after} after");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[test]
fn requests_are_logged_with_ids_and_without_keys() {
    let (folder, model) = shop_model(200, SPARSE);
    let keys = folder.path().join("keys.txt");
    fs::write(&keys, "read a-key-to-read-with\n").unwrap();
    let server = Server::start(&model, &["--keys", keys.to_str().unwrap(), "--set", "watch_seconds=0.05"]);
    let request = |key: &str| {
        let mut stream = server.connect();
        let body = "{}";
        let head = format!(
            "POST /v1/recommend HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer {key}\r\n\
             x-request-id: order-17\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\ncontent-length: 2\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        read_answer(&mut stream).unwrap().0
    };
    assert_eq!((request("a-key-to-read-with"), request("another-key-altogether")), (200, 401));
    eventually("requests are logged", || server.log().lines().count() >= 2);
    let line: Value = serde_json::from_str(server.log().lines().next().unwrap()).unwrap();
    assert_eq!(line["request_id"], "order-17");
    assert_eq!(line["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!((&line["model"], &line["status"]), (&json!("shop"), &json!(200)));
    assert!(!server.log().contains("key-to-read") && !server.log().contains("altogether"));
    // Keys are replaced while the server runs, and a file without any does not open the door.
    fs::write(&keys, "read another-key-altogether\n").unwrap();
    eventually("new keys count", || request("another-key-altogether") == 200);
    assert_eq!(request("a-key-to-read-with"), 401);
    fs::write(&keys, "# none\n").unwrap();
    eventually("it is told of", || server.log().contains("there is no key in it"));
    assert_eq!((request("another-key-altogether"), request("x")), (200, 401));
}
