//! What a server is told: faults are told in words, once, with the exit code of whoever is to blame; no door is left open by mistake.

#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used)]

mod satf_binary;
mod server;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use satf_binary::{SATF, satf};
use server::{Server, shop_model};

#[test]
fn a_server_for_which_keys_are_meant_is_not_open() {
    let (folder, model) = shop_model(60, &["--model", "mp"]);
    let (model, keys) = (model.to_str().unwrap(), folder.path().join("keys.txt"));
    for content in ["", "# read a-key-of-sixteen-and-more\n\n"] {
        fs::write(&keys, content).unwrap();
        let outcome = satf(&["serve", model, "--keys", keys.to_str().unwrap(), "--check"]);
        assert_eq!(outcome.code, 1, "{}", outcome.stdout);
        assert!(outcome.stderr.contains("keys.txt: there is no key in it"), "{}", outcome.stderr);
    }
    for (name, value) in [
        ("SATF_SERVE_READ_KEY", &b""[..]),
        ("SATF_SERVE_ADMIN_KEY", b""),
        ("SATF_SERVE_READ_KEY", b"a-key-of-sixteen-\xff"),
        ("SATF_SERVE_KEYS", b"k\xff"),
        ("SATF_SERVE_RULE", b"x\xff = 1"),
    ] {
        let mut command = Command::new(SATF);
        let output = command.args(["serve", model, "--check"]).env(name, OsStr::from_bytes(value)).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(&format!("the environment variable {name}: ")), "{said}");
    }
    fs::write(&keys, "read a-key-of-sixteen-and-more\n").unwrap();
    satf(&["serve", model, "--keys", keys.to_str().unwrap(), "--check"]).succeeds();
}

#[test]
fn what_no_file_is_needed_to_tell_is_a_wrong_command_line() {
    let (folder, model) = shop_model(60, &["--model", "mp"]);
    let config = folder.path().join("serve.toml");
    fs::write(&config, "[limits]\nn = 0\n").unwrap();
    let (model, config) = (model.to_str().unwrap(), config.to_str().unwrap());
    for (options, code, part) in [
        (&[][..], 2, "models: not set"),
        (&[model, "--set", "limits.n=0"], 2, "limits.n = 0: expected 1 to 1000000"),
        (&[model, "--set", "limits.n=-1"], 2, "limits.n: `-1`: expected a whole number of at least 0"),
        (&[model, "--set", "limits.nosuch=1"], 2, "limits: unknown key `nosuch`"),
        (&[model, "--set", "log.requests=foo"], 2, "log.requests: unknown value `foo`"),
        (&[model, "--set", "split.shop=nan"], 2, "split.shop = NaN: expected"),
        (&[model, "--rule", "price <"], 2, "rule: at character 8"),
        (&[model, "--listen", "0.0.0.0:8080"], 2, "there is no key"),
        (&[model, "--listen", "127.0.0.1:1", "--set", "listen=127.0.0.1:2"], 2, "--listen says"),
        // Files are to blame.
        (&[model, "--config", config], 1, "limits.n = 0: expected 1 to 1000000"),
        (&["nowhere.satf"], 1, "nowhere.satf"),
        (&[config], 1, "hint: satf train"),
    ] {
        let outcome = satf(&[&["serve", "--check"][..], options].concat());
        assert_eq!(outcome.code, code, "{options:?}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.matches(part).count(), 1, "{options:?}: '{part}' in {}", outcome.stderr);
        assert!(!outcome.stderr.contains("\\n"), "{}", outcome.stderr);
    }
    satf(&["serve", model, "--listen", "127.0.0.1:1", "--set", "listen=127.0.0.1:1", "--check"]).succeeds();
}

#[test]
fn attributes_of_other_items_are_told_of() {
    let (folder, model) = shop_model(60, &["--model", "mp"]);
    let items = folder.path().join("items.csv");
    for content in ["item_id,price\n1,2\n", "item_id,price\n"] {
        fs::write(&items, content).unwrap();
        let options = ["--items", items.to_str().unwrap(), "--rule", "price > 1"];
        let check = satf(&[&["serve", model.to_str().unwrap(), "--check"][..], &options].concat());
        let warning = "no item of the model 'shop' is in this file, so that the rule may leave nothing";
        assert!(check.stderr.contains(warning), "{}", check.stderr);
        assert!(!check.succeeds().contains("everything is right"));
        let server = Server::start(&model, &options);
        let end = Instant::now() + Duration::from_secs(10);
        while !server.log().contains(warning) {
            assert!(Instant::now() < end, "{}", server.log());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn an_address_that_cannot_be_had_is_told_of() {
    let (_folder, model) = shop_model(60, &["--model", "mp"]);
    let server = Server::start(&model, &[]);
    let address = server.address.to_string();
    let second = satf(&["serve", model.to_str().unwrap(), "--listen", &address]);
    assert_eq!(second.code, 1, "{}", second.stdout);
    for part in [&format!("cannot listen on {address}"), "another program listens there", "--listen"] {
        assert!(second.stderr.contains(part), "no '{part}' in {}", second.stderr);
    }
    assert!(!second.stderr.contains("the server stopped"), "{}", second.stderr);
    let nowhere = satf(&["serve", model.to_str().unwrap(), "--listen", "192.0.2.1:18080", "--insecure"]);
    assert!(nowhere.stderr.contains("this machine does not have that address"), "{}", nowhere.stderr);
}
