//! The console of `satf serve` in a browser: clicked and typed at, on wide and narrow screens, in light and dark.
//!
//! Needs Chromium and its driver, by usual names on the path or as `CHROMIUM` and `CHROMEDRIVER`. Without them the tests check nothing
//! and say so, unless `SATF_REQUIRE_BROWSER` is set. `SATF_PICTURES=folder` keeps pictures of what was seen.

#![cfg(all(unix, feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod satf_binary;
mod server;
mod webdriver;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use satf_binary::satf;
use serde_json::{Value, json};
use server::{Server, shop_model};
use tempfile::TempDir;
use webdriver::{Browser, keys};

fn browser() -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        assert!(env::var_os("SATF_REQUIRE_BROWSER").is_none(), "no Chromium with its driver was found");
        eprintln!("no Chromium with its driver was found: the console is not looked at in a browser");
    }
    browser
}

/// A folder of two models, one of them without an attention curve, and a file of items.
fn shop() -> (TempDir, PathBuf, PathBuf) {
    let (folder, model) = shop_model(600, &[]);
    let models = folder.path().join("models");
    fs::create_dir(&models).unwrap();
    fs::rename(&model, models.join("shop.satf")).unwrap();
    let log = folder.path().join("shop.parquet");
    let flat = models.join("flat.satf");
    satf(&["train", log.to_str().unwrap(), "--model", "pure-svd", "-o", flat.to_str().unwrap()]).succeeds();
    let server = Server::start(&models, &[]);
    let catalog = server.get("/v1/items?n=1000&model=shop").1;
    let mut items = "item_id,title,category,price,in_stock\n".to_owned();
    for (at, item) in catalog["items"].as_array().unwrap().iter().enumerate() {
        let id = item["item_id"].as_str().unwrap();
        let mut letters = id.chars();
        let title: String = letters.next().unwrap().to_uppercase().chain(letters).collect();
        items += &format!(
            "{id},{title},{},{},{}\n",
            ["outdoor", "desk"][at % 2],
            5 + at * 7 % 200,
            !at.is_multiple_of(3)
        );
    }
    let path = folder.path().join("items.csv");
    fs::write(&path, items).unwrap();
    (folder, models, path)
}

/// The console, and the server that it asks.
struct Console<'b> {
    browser: &'b Browser,
    server: &'b Server,
}

const HISTORY: &str = "#history-picker input";

impl Console<'_> {
    /// The texts of elements.
    fn texts(&self, selector: &str) -> Vec<String> {
        let script = format!(
            "return Array.from(document.querySelectorAll({}), (element) => element.innerText.trim())",
            json!(selector)
        );
        serde_json::from_value(self.browser.run(&script)).unwrap()
    }

    /// Ids of the items that are recommended, once they are those that the server gives for a request.
    fn shows(&self, mut request: Value) -> Vec<String> {
        for (key, value) in [("n", json!(10)), ("model", json!("shop"))] {
            request.as_object_mut().unwrap().entry(key).or_insert(value);
        }
        let (status, answer) = self.server.post("/v1/recommend", &request.to_string());
        assert_eq!(status, 200, "{answer}");
        let ids: Vec<String> = answer["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["item_id"].as_str().unwrap().to_owned())
            .collect();
        self.browser.wait_for(&format!(
            "const shown = Array.from(document.querySelectorAll('#answers li'), (item) => item.dataset.item);
             return JSON.stringify(shown) === JSON.stringify({})",
            json!(ids)
        ));
        ids
    }

    fn count(&self, selector: &str) -> u64 {
        self.browser
            .run(&format!("return document.querySelectorAll({}).length", json!(selector)))
            .as_u64()
            .unwrap()
    }

    fn wait_for_count(&self, selector: &str, count: usize) {
        self.browser
            .wait_for(&format!("return document.querySelectorAll({}).length === {count}", json!(selector)));
    }

    fn address(&self) -> String {
        format!("http://{}/#model=shop", self.server.address)
    }
}

/// What runs over the edge, is too small to read or to hit, or looks the same as what it stands on.
const PROBE: &str = r#"
const boxes = Array.from(document.querySelectorAll("body *")).filter((element) => element.getClientRects().length);
const scrolls = (element) => element.closest(".scroll, .options") && !element.matches(".scroll, .options");
const isSeen = (element) => !element.closest("svg") && !scrolls(element) && !element.matches(".skip");
const over = boxes.filter((element) => isSeen(element) && (element.getBoundingClientRect().right > innerWidth + 0.5
  || element.getBoundingClientRect().left < -0.5)).map((element) => element.outerHTML.slice(0, 120));
const small = boxes.filter((element) => isSeen(element) && element.childNodes.length
  && Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.data.trim())
  && parseFloat(getComputedStyle(element).fontSize) < 11).map((element) => element.outerHTML.slice(0, 120));
const tight = boxes.filter((element) => element.matches("button, select, input:not([type=checkbox])")
  && element.getBoundingClientRect().height < 24).map((element) => element.outerHTML.slice(0, 120));
const unnamed = boxes.filter((element) => element.matches("button, input, select")
  && !(element.innerText || element.getAttribute("aria-label") || (element.labels && element.labels.length)))
  .map((element) => element.outerHTML.slice(0, 120));
const style = getComputedStyle(document.body);
return { width: innerWidth, scroll: document.documentElement.scrollWidth, over, small, tight, unnamed, back: style.backgroundColor, ink: style.color };
"#;

/// How light a colour is, from `rgb(r, g, b)`.
fn lightness(colour: &Value) -> f64 {
    let parts = colour.as_str().unwrap().trim_start_matches("rgb(").trim_end_matches(')').split(',');
    parts.map(|part| part.trim().parse::<f64>().unwrap()).sum::<f64>() / 765.0
}

fn look(console: &Console<'_>, what: &str, width: u32, dark: bool) {
    let found = console.browser.run(PROBE);
    assert_eq!(found["width"], width);
    assert!(found["scroll"].as_u64().unwrap() <= u64::from(width), "{what} at {width}: {found}");
    for fault in ["over", "small", "tight", "unnamed"] {
        assert_eq!(found[fault], json!([]), "{what} at {width}: {fault}");
    }
    let (back, ink) = (lightness(&found["back"]), lightness(&found["ink"]));
    assert!(if dark { back < 0.3 && ink > 0.7 } else { back > 0.7 && ink < 0.3 }, "{dark}: {back}, {ink}");
    if let Some(folder) = env::var_os("SATF_PICTURES") {
        let scheme = if dark { "dark" } else { "light" };
        fs::create_dir_all(&folder).unwrap();
        console.browser.picture(&Path::new(&folder).join(format!("{what}-{width}-{scheme}.png")));
    }
}

#[test]
fn the_console_answers_clicks_and_keys_on_wide_and_narrow_screens_in_light_and_dark() {
    let Some(browser) = browser() else { return };
    let (_folder, models, items) = shop();
    let options = ["--items", items.to_str().unwrap(), "--set", "default_model=\"shop\""];
    let server = Server::start(&models, &options);
    let console = Console { browser: &browser, server: &server };
    for (width, height, dark) in [(1280, 900, false), (400, 850, false), (1280, 900, true), (400, 850, true)]
    {
        browser.set_screen(width, height, dark);
        browser.open(&console.address());
        begins_empty(&console);
        look(&console, "empty", width, dark);
        takes_a_history(&console);
        shows_exact_shares(&console);
        look(&console, "answers", width, dark);
        obeys_rules(&console);
        look(&console, "rules", width, dark);
        walks(&console);
        look(&console, "walk", width, dark);
        draws_the_curve(&console);
        draws_the_load(&console);
        look(&console, "whole", width, dark);
        is_used_by_keys(&console);
        look(&console, "keys", width, dark);
        let said = browser.console();
        // Requests that were refused on purpose are told of, and nothing else.
        let others: Vec<&String> = said.iter().filter(|line| !line.contains("status of 422")).collect();
        assert_eq!(others, Vec::<&String>::new());
    }
}

fn begins_empty(console: &Console<'_>) {
    console.wait_for_count("#starters button", 8);
    console.shows(json!({}));
    assert_eq!(console.count("#history li"), 0);
    assert!(console.texts("#note")[0].starts_with("The history is empty"));
    assert!(console.texts("#similar")[0].starts_with("Choose an item"));
}

fn takes_a_history(console: &Console<'_>) {
    let browser = console.browser;
    // Typed, completed by title, taken with a click.
    browser.click(HISTORY);
    browser.type_into(HISTORY, "LAPT");
    browser.wait_for(
        "return document.querySelector('#history-picker [role=option]')?.innerText.startsWith('Laptop')",
    );
    assert_eq!(browser.run("return document.activeElement.getAttribute('aria-expanded')"), "true");
    let options = console.texts("#history-picker [role=option] .name");
    let place = options.iter().position(|option| option == "Laptop").expect("the title is completed") + 1;
    browser.click(&format!("#history-picker [role=option]:nth-child({place})"));
    let first = console.shows(json!({"history": ["laptop"]}));
    assert_eq!(console.count("#starters button"), 0);
    // Clicked together from what is recommended.
    browser.click("#answers li:first-child .take");
    let second = console.shows(json!({"history": ["laptop", first[0]]}));
    assert_ne!(first, second);
    assert_eq!(console.count("#history .step"), 2);
    // Taken together instead of one after the other, and back.
    browser.click("#history li:nth-child(2) .join");
    console.shows(json!({"history": [["laptop", first[0]]]}));
    browser.click("#history li:nth-child(2) .join");
    console.shows(json!({"history": ["laptop", first[0]]}));
    // An id that the model does not know is said to be unknown.
    browser.type_into(HISTORY, "no such thing");
    browser.wait_for(
        "return document.querySelector('#history-picker [role=option]')?.innerText.includes('no such thing')",
    );
    browser.press(&[keys::ENTER]);
    browser.wait_for(
        "return document.querySelector('#note').innerText.includes('1 of 3 items of the history is unknown')",
    );
    browser.press(&[keys::BACKSPACE]);
    console.shows(json!({"history": ["laptop", first[0]]}));
    // The address keeps the history.
    let address = browser.run("return location.hash");
    assert!(address.as_str().unwrap().contains("item=laptop"), "{address}");
}

fn shows_exact_shares(console: &Console<'_>) {
    let browser = console.browser;
    let history: Vec<String> = serde_json::from_value(
        browser.run("return new URLSearchParams(location.hash.slice(1)).getAll('item')"),
    )
    .unwrap();
    browser.click("#answers li:first-child .answer");
    let request = json!({"history": history, "model": "shop", "explain": true});
    let (_, answer) = console.server.post("/v1/recommend", &request.to_string());
    let explained = &answer["items"][0];
    let told = explained["explanation"]["shares"].as_array().unwrap();
    let shown: Vec<f64> = console
        .texts("#answers li:first-child .shares tbody td:nth-child(2)")
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
    let expected: Vec<f64> = told.iter().map(|share| share["share"].as_f64().unwrap()).collect();
    assert_eq!(&shown[..expected.len()], &expected[..], "the shares, to the bit");
    let score: f64 = console.texts("#answers li:first-child .shares tfoot .code")[0].parse().unwrap();
    assert!((shown.iter().sum::<f64>() - score).abs() < 1e-5 * score.abs().max(1.0), "{shown:?} {score}");
    // As wide as they are large, in the colours of the history.
    let widths = browser.run(
        "return Array.from(document.querySelectorAll('#answers li:first-child .above .piece'), (piece) => piece.getBoundingClientRect().width)",
    );
    let widths: Vec<f64> = serde_json::from_value(widths).unwrap();
    let positive: Vec<f64> = shown.iter().copied().filter(|share| *share > 0.0).collect();
    assert_eq!(widths.len(), positive.len());
    for (width, share) in widths.iter().zip(&positive) {
        let expected = share / positive.iter().sum::<f64>() * widths.iter().sum::<f64>();
        assert!((width - expected).abs() < 1.5, "{widths:?} {positive:?}");
    }
    let colours = browser.run(
        "const tint = (selector) => getComputedStyle(document.querySelector(selector)).backgroundColor;
         return [tint('#history li:first-child .swatch'), tint('#answers li:first-child tbody tr:first-child .swatch')]",
    );
    assert_eq!(colours[0], colours[1]);
}

fn obeys_rules(console: &Console<'_>) {
    let browser = console.browser;
    let history = browser.run("return new URLSearchParams(location.hash.slice(1)).getAll('item')");
    browser.click("#where-help button:nth-of-type(3)");
    assert_eq!(browser.run("return document.querySelector('#where').value"), "price < ");
    browser.type_into("#where", "60");
    console.shows(json!({"history": history, "where": "price < 60"}));
    browser.type_into("#where", " and");
    browser.wait_for("return document.querySelector('#where-fault').innerText.length > 5");
    assert_eq!(browser.run("return document.querySelector('#where').getAttribute('aria-invalid')"), "true");
    browser.type_into("#where", " category = desk");
    let listed = console.shows(json!({"history": history, "where": "price < 60 and category = desk"}));
    assert_eq!(console.texts("#where-fault"), [""]);
    // The last one first, by a boost of its own; then the first one not at all.
    let last = listed.last().unwrap();
    let row = format!("#answers li[data-item={}]", json!(last));
    browser.click(&format!("{row} .answer"));
    browser.click(&format!("{row} .details button:nth-of-type(2)"));
    let filter = "price < 60 and category = desk";
    console.shows(json!({"history": history, "where": filter, "boost": [{"item_id": last, "multiply": 2}]}));
    browser.run("const field = document.querySelector('#item-rules input'); field.focus(); field.select()");
    browser.press(&["9", "9", "9"]);
    let boosted = console
        .shows(json!({"history": history, "where": filter, "boost": [{"item_id": last, "multiply": 999}]}));
    let first = &boosted[0];
    let is_open = format!(
        "return document.querySelector('#answers li[data-item={}] .answer').getAttribute('aria-expanded')",
        json!(first)
    );
    if browser.run(&is_open) == "false" {
        browser.click(&format!("#answers li[data-item={}] .answer", json!(first)));
    }
    browser.click(&format!("#answers li[data-item={}] .details button:nth-of-type(3)", json!(first)));
    console.wait_for_count(&format!("#answers li[data-item={}]", json!(first)), 0);
    assert_eq!(console.texts("#item-rules .tag").last().unwrap(), "Leave out");
    while console.count("#item-rules .icon") > 0 {
        browser.click("#item-rules .icon");
    }
    browser.click("#again");
    console.shows(json!({"history": history, "where": filter, "allow_seen": true}));
    browser.click("#again");
    // Rules that nothing satisfies.
    browser.type_into("#where", " and price < 0");
    browser.wait_for(
        "return document.querySelector('#answers').innerText.includes('Nothing is left to recommend')",
    );
    browser.run("document.querySelector('#where').select()");
    browser.type_into("#where", keys::DELETE);
    console.shows(json!({ "history": history }));
}

fn walks(console: &Console<'_>) {
    let browser = console.browser;
    let similar = |item: &str| {
        let path = format!("/v1/similar?n=8&model=shop&item_id={}", item.replace(' ', "%20"));
        let (_, answer) = console.server.get(&path);
        let ids = answer["items"].as_array().unwrap().iter().map(|item| item["item_id"].clone());
        ids.collect::<Vec<Value>>()
    };
    let shown = |expected: &[Value], depth: usize| {
        browser.wait_for(&format!(
            "const shown = Array.from(document.querySelectorAll('#similar li'), (item) => item.dataset.item);
             return JSON.stringify(shown) === JSON.stringify({}) && document.querySelectorAll('#crumbs li').length === {depth}",
            json!(expected)
        ));
    };
    browser.click("#similar button");
    let start = browser.run("return new URLSearchParams(location.hash.slice(1)).getAll('item').at(-1)");
    let first = similar(start.as_str().unwrap());
    shown(&first, 1);
    browser.click("#similar li:nth-child(2) .answer");
    let second = similar(first[1].as_str().unwrap());
    shown(&second, 2);
    browser.click("#similar li:nth-child(1) .answer");
    shown(&similar(second[0].as_str().unwrap()), 3);
    // Back by the crumbs.
    browser.click("#crumbs li:nth-child(2) button");
    shown(&second, 2);
    browser.click("#crumbs li:nth-child(1) button");
    shown(&first, 1);
    browser.click("#similar li:nth-child(1) .answer");
    shown(&similar(first[0].as_str().unwrap()), 2);
}

fn draws_the_curve(console: &Console<'_>) {
    let browser = console.browser;
    let (_, model) = console.server.get("/v1/model?model=shop");
    let weights: Vec<f64> = serde_json::from_value(model["attention"].clone()).unwrap();
    browser.wait_for("return document.querySelector('#curve svg .stroke') !== null");
    browser.click("#curve summary");
    let shown: Vec<f64> =
        console.texts("#curve tbody td:nth-child(3)").iter().map(|text| text.parse().unwrap()).collect();
    assert_eq!(shown, weights, "the model's own weights");
    let points = browser
        .run("return document.querySelector('#curve svg .stroke').getAttribute('points').split(' ').length");
    assert_eq!(points, weights.len());
    assert_eq!(console.count("#curve svg .dot"), console.count("#history .step"));
    browser.click("#curve summary");
    // A model without weights says so, and the others go on.
    browser.click("#model option[value=flat]");
    browser.wait_for("return document.querySelector('#curve').innerText.includes('has no attention curve')");
    let history = browser.run("return new URLSearchParams(location.hash.slice(1)).getAll('item')");
    console.shows(json!({"history": history, "model": "flat"}));
    browser.click("#model option[value=shop]");
    console.shows(json!({ "history": history }));
    browser.wait_for("return document.querySelector('#curve svg .stroke') !== null");
}

fn draws_the_load(console: &Console<'_>) {
    let browser = console.browser;
    // Requests of this second are on the chart when it is over.
    browser.wait_for("return document.querySelectorAll('#load .chart svg').length === 2");
    browser.wait_for("return document.querySelector('#load .chart:last-child svg .stroke, #load .chart:last-child svg .dot') !== null");
    browser.wait_for("return Number(document.querySelector('#by-model tbody td:nth-child(2)').innerText.replaceAll(',', '')) > 0");
    assert!(console.texts("#load dd").last().unwrap().ends_with("iB"));
    browser.click("#pause");
    assert_eq!(browser.run("return document.querySelector('#pause').getAttribute('aria-pressed')"), "true");
    browser.click("#pause");
}

fn is_used_by_keys(console: &Console<'_>) {
    let browser = console.browser;
    browser.click("#clear");
    browser.run("document.activeElement.blur()");
    console.wait_for_count("#history .step", 0);
    browser.press(&["/"]);
    assert_eq!(browser.run("return document.activeElement.id"), "picker-1");
    browser.press(&["t", "e", "n", "t"]);
    browser.wait_for(
        "return document.querySelector('#history-picker [role=option]')?.innerText.startsWith('Tent')",
    );
    browser.press(&[keys::ENTER]);
    console.shows(json!({"history": ["tent"]}));
    browser.press(&["l", "a", "p", "t", "o", "p"]);
    browser.wait_for(
        "return document.querySelector('#history-picker [role=option]')?.innerText.startsWith('Laptop')",
    );
    browser.press(&[keys::DOWN]);
    let pointed = "return document.querySelector('#history-picker [aria-selected=true]').id === document.activeElement.getAttribute('aria-activedescendant')";
    assert_eq!(browser.run(pointed), true);
    browser.press(&[keys::UP, keys::DOWN, keys::ESCAPE]);
    assert_eq!(browser.run("return document.querySelector('#history-picker ul').hidden"), true);
    browser.press(&[keys::DOWN]);
    browser.wait_for("return !document.querySelector('#history-picker ul').hidden");
    browser.press(&[keys::ENTER]);
    console.wait_for_count("#history .step", 2);
    // On to the steps, which can be moved and removed; whatever has the focus shows it.
    browser.press(&[keys::TAB]);
    let focus = browser.run("const style = getComputedStyle(document.activeElement); return [document.activeElement.className, style.outlineStyle, style.outlineWidth]");
    assert_eq!(focus, json!(["step", "solid", "2px"]));
    let names = console.texts("#history .name");
    browser.press_with(keys::ALT, keys::DOWN);
    assert_eq!(console.texts("#history .name"), [names[1].clone(), names[0].clone()]);
    browser.press(&[keys::DELETE]);
    console.wait_for_count("#history .step", 1);
    assert_eq!(console.texts("#history .name"), [names[1].clone()]);
    assert_eq!(browser.run("return document.activeElement.className"), "step");
    // An answer is opened with Enter, from the keyboard alone.
    browser.run("document.querySelector('#answers li .answer').focus()");
    browser.press(&[keys::ENTER]);
    assert_eq!(browser.run("return document.activeElement.getAttribute('aria-expanded')"), "true");
}

#[test]
fn keys_are_asked_for_and_a_server_that_is_gone_is_told_of() {
    let Some(browser) = browser() else { return };
    let (folder, models, _) = shop();
    let keys = folder.path().join("keys.txt");
    fs::write(&keys, "read a-key-to-read-with\n").unwrap();
    let server = Server::start(&models, &["--keys", keys.to_str().unwrap()]);
    browser.set_screen(400, 850, false);
    browser.open(&format!("http://{}/", server.address));
    browser.wait_for("return document.activeElement.id === 'key'");
    assert!(
        browser
            .run("return document.querySelector('#alert').innerText")
            .as_str()
            .unwrap()
            .contains("expected a key")
    );
    browser.type_into("#key", "not-the-right-key");
    browser.click("#key-form button");
    browser.wait_for(
        "return document.activeElement.id === 'key' && !document.querySelector('#key-form').hidden",
    );
    browser.run("document.querySelector('#key').value = ''");
    browser.type_into("#key", "a-key-to-read-with\u{E007}");
    browser.wait_for("return document.querySelector('#alert').hidden && document.querySelectorAll('#answers li').length === 10");
    // The key is kept in the field alone.
    assert_eq!(
        browser.run("return JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + document.cookie"),
        "{}{}"
    );
    drop(server);
    browser.wait_for("return document.querySelector('#load-state').innerText.includes('does not answer')");
    browser.click("#starters button");
    browser.wait_for("return document.querySelector('#answers').innerText.includes('There is no answer')");
    let found = browser.run(PROBE);
    assert_eq!((&found["over"], &found["unnamed"]), (&json!([]), &json!([])));
}
