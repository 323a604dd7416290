//! A browser that is driven as WebDriver has it: clicks, keys, scripts and screenshots.

#![allow(clippy::unwrap_used, dead_code)]

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A program on the path, by one of its names, or the one that the variable names.
pub(crate) fn program(variable: &str, names: &[&str]) -> Option<PathBuf> {
    if let Some(given) = env::var_os(variable) {
        return Some(given.into());
    }
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let mut paths = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    paths.find(|path| path.is_file())
}

/// Chromium, if it is installed.
pub(crate) fn chromium() -> Option<PathBuf> {
    program("CHROMIUM", &["chromium", "chromium-browser", "google-chrome", "chrome"])
}

/// Keys without a letter, as WebDriver names them.
pub(crate) mod keys {
    pub(crate) const ENTER: &str = "\u{E007}";
    pub(crate) const ESCAPE: &str = "\u{E00C}";
    pub(crate) const TAB: &str = "\u{E004}";
    pub(crate) const BACKSPACE: &str = "\u{E003}";
    pub(crate) const DELETE: &str = "\u{E017}";
    pub(crate) const DOWN: &str = "\u{E015}";
    pub(crate) const UP: &str = "\u{E013}";
    pub(crate) const ALT: &str = "\u{E00A}";
}

/// A browser that ends with the test.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: TempDir,
}

const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

impl Browser {
    /// Starts a browser; none if this machine has none.
    pub(crate) fn start() -> Option<Self> {
        let (chromium, driver) =
            (chromium()?, program("CHROMEDRIVER", &["chromedriver", "chromium.chromedriver"])?);
        let profile = tempfile::tempdir().unwrap();
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            line.strip_suffix('.')?.split("successfully on port ").nth(1)?.parse().ok()
        });
        let mut browser = Browser {
            driver,
            port: port.expect("the driver names its port"),
            session: String::new(),
            profile,
        };
        let profile = format!("--user-data-dir={}", browser.profile.path().display());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--window-size=1400,1000",
            &profile,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let session = browser.ask("POST", "/session", &wanted).expect("a session");
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        Some(browser)
    }

    /// One command; an error is what the driver calls it, with its message.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).unwrap();
        // The driver keeps the connection open: the length says where its answer ends.
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap() > 2 {
            let found = line
                .to_ascii_lowercase()
                .strip_prefix("content-length:")
                .map(|rest| rest.trim().parse().unwrap());
            length = found.unwrap_or(length);
            line.clear();
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).unwrap();
        let value = serde_json::from_slice::<Value>(&answer).unwrap()["value"].take();
        match value.get("error") {
            Some(error) => Err(format!("{error}: {}", value["message"])),
            None => Ok(value),
        }
    }

    fn command(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.ask("POST", &format!("{}{path}", self.session), body)
    }

    /// The width of the screen and its colours.
    pub(crate) fn set_screen(&self, width: u32, height: u32, dark: bool) {
        let tell = |what: &str, parameters: Value| {
            self.command("/goog/cdp/execute", &json!({"cmd": what, "params": parameters})).unwrap();
        };
        tell(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}),
        );
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        tell("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Goes to an address, from an empty page.
    pub(crate) fn open(&self, address: &str) {
        self.command("/url", &json!({"url": "about:blank"})).unwrap();
        self.command("/url", &json!({ "url": address })).unwrap();
    }

    /// What a script returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.command("/execute/sync", &json!({"script": script, "args": []}))
            .unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    fn find(&self, selector: &str) -> Result<String, String> {
        let found = self.command("/element", &json!({"using": "css selector", "value": selector}))?;
        Ok(found[ELEMENT].as_str().unwrap().to_owned())
    }

    /// Clicks with the mouse, as soon as the element can be clicked.
    pub(crate) fn click(&self, selector: &str) {
        until(selector, || {
            let element = self.find(selector)?;
            self.command(&format!("/element/{element}/click"), &json!({}))
        });
    }

    /// Types into a field, after what is there.
    pub(crate) fn type_into(&self, selector: &str, text: &str) {
        until(selector, || {
            let element = self.find(selector)?;
            self.command(&format!("/element/{element}/value"), &json!({ "text": text }))
        });
    }

    /// Presses keys one after the other, wherever the focus is.
    pub(crate) fn press(&self, keys: &[&str]) {
        let each = keys.iter().flat_map(|key| {
            [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
        });
        self.keys(&each.collect::<Vec<_>>());
    }

    /// Presses a key while another one is held.
    pub(crate) fn press_with(&self, held: &str, key: &str) {
        self.keys(&[
            json!({"type": "keyDown", "value": held}),
            json!({"type": "keyDown", "value": key}),
            json!({"type": "keyUp", "value": key}),
            json!({"type": "keyUp", "value": held}),
        ]);
    }

    fn keys(&self, actions: &[Value]) {
        let actions = json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]});
        self.command("/actions", &actions).unwrap();
    }

    /// Waits until a script returns something other than false, null or nothing, and gives it.
    pub(crate) fn wait_for(&self, script: &str) -> Value {
        until(script, || {
            let value = self.run(script);
            let is_there = !matches!(value, Value::Null | Value::Bool(false));
            if is_there {
                Ok(value)
            } else {
                Err(format!("not yet: {}", self.run("return document.body.innerText")))
            }
        })
    }

    /// What the browser said to its console since the last time.
    pub(crate) fn console(&self) -> Vec<String> {
        let lines = self.command("/se/log", &json!({"type": "browser"})).unwrap();
        lines.as_array().unwrap().iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    }

    /// A picture of the whole page, for people to look at.
    pub(crate) fn picture(&self, file: &Path) {
        let parameters = json!({"captureBeyondViewport": true});
        let picture = self
            .command("/goog/cdp/execute", &json!({"cmd": "Page.captureScreenshot", "params": parameters}))
            .unwrap();
        fs::write(file, decode_base64(picture["data"].as_str().unwrap())).unwrap();
    }
}

/// Tries again and again, for a while.
fn until<T>(what: &str, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) if Instant::now() > end => panic!("{what}: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.ask("DELETE", &self.session, &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.bytes().filter(|letter| *letter != b'=').map(value).collect();
    let bytes = letters.chunks(4).flat_map(|four| {
        let bits = four.iter().fold(0u32, |bits, six| bits << 6 | u32::from(*six)) << (6 * (4 - four.len()));
        bits.to_be_bytes().into_iter().skip(1).take(four.len() * 6 / 8)
    });
    bytes.collect()
}
