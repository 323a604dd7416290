//! A server of the binary under test, and how it is asked.

#![allow(clippy::unwrap_used, dead_code)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::satf_binary::{satf, satf_that_hears, shop_log};

/// A server that ends with the test.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    log: PathBuf,
}

impl Server {
    pub(crate) fn start(models: &Path, options: &[&str]) -> Self {
        let log = models.with_extension("stderr");
        let mut child = satf_that_hears()
            .arg("serve")
            .arg(models)
            .args(["--listen", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ");
        let address =
            address.unwrap_or_else(|| panic!("{line}{}", fs::read_to_string(&log).unwrap())).parse().unwrap();
        Server { child, address, log }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, Value) {
        ask(&mut self.connect(), "POST", path, body)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        ask(&mut self.connect(), "GET", path, "")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    pub(crate) fn memory(&self) -> u64 {
        self.get("/v1/stats").1["memory_bytes"].as_u64().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request and reads its answer; the connection can be used again.
pub(crate) fn ask(stream: &mut TcpStream, method: &str, path: &str, body: &str) -> (u16, Value) {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).unwrap();
    read_answer(stream).unwrap_or_else(|| panic!("{method} {path}: no answer"))
}

/// An answer, or none if the connection ends before.
pub(crate) fn read_answer(stream: &mut TcpStream) -> Option<(u16, Value)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        if let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                let text = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
                return Some((
                    head[9..12].parse().unwrap(),
                    serde_json::from_str(&text).unwrap_or(Value::String(text)),
                ));
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// A folder with a model of a shop, sparse or not.
pub(crate) fn shop_model(users: usize, settings: &[&str]) -> (TempDir, PathBuf) {
    let (folder, log) = shop_log(users);
    let model = folder.path().join("shop.satf");
    let mut arguments = vec!["train", &log, "-o", model.to_str().unwrap()];
    arguments.extend(settings);
    satf(&arguments).succeeds();
    (folder, model)
}
