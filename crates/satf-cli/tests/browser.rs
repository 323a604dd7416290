//! The report in a browser: nothing runs over the edge, nothing complains, everything that should be seen has a size.
//!
//! Needs Chromium, by a usual name on the path or as `CHROMIUM`. Without one the test checks nothing and says so, unless
//! `SATF_REQUIRE_BROWSER` is set.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod satf_binary;
mod webdriver;

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use satf_binary::{satf, shop_log};
use serde_json::Value;

const SUITE: &str = r#"
title = "A shop"
published_by = "manual"
repeats = 2
curve_iterations = 2
[[datasets]]
name = "shop"
title = "A shop with a name that is rather long, so that it has to be broken somewhere"
files = ["shop.parquet"]
valid = "1month"
test = "1month"
max_len = 20
[[models]]
name = "MP"
model = "mp"
[[models]]
name = "PureSVD"
model = "pure-svd"
[[models]]
name = "GA-SATF"
model = "ga-satf"
[[models]]
name = "LA-SATF"
model = "la-satf"
random_start = true
[[models]]
name = "transitions"
model = "transitions"
extra = true
[[ranks]]
datasets = ["shop"]
models = ["PureSVD", "LA-SATF"]
values = [4, 8, 16]
[published.shop]
PureSVD = { ndcg = [0.1, 0.002], hr = [0.2, 0.004], cov = 0.5 }
"#;

/// Put at the end of the page: tells the frame around it what the browser made of it.
const PROBE: &str = r#"<script>
addEventListener("load", () => {
  const size = (element) => { const box = element.getBoundingClientRect(); return [box.width, box.height]; };
  const sizes = (what) => Array.from(document.querySelectorAll(what), size);
  const inside = (element) => element.closest(".scroll") && !element.matches(".scroll");
  const over = Array.from(document.querySelectorAll("body *"))
    .filter((element) => !inside(element) && !element.closest("svg") && element.getBoundingClientRect().right > innerWidth + 0.5)
    .map((element) => element.outerHTML.slice(0, 120));
  const shown = (svg) => Array.from(svg.querySelectorAll("text")).filter((text) => text.getBoundingClientRect().width > 0);
  const letters = Array.from(document.querySelectorAll("svg.chart"), (svg) =>
    Math.min(...shown(svg).map((text) => text.getBoundingClientRect().height)));
  const cut = Array.from(document.querySelectorAll("svg.chart")).flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    return shown(svg).filter((text) => {
      const box = text.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1;
    }).map((text) => text.textContent);
  });
  const found = {
    width: innerWidth, scroll: document.documentElement.scrollWidth, tables: sizes("table"), charts: sizes("svg.chart"),
    over, letters, cut, back: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
  };
  parent.postMessage(JSON.stringify(found), "*");
});
</script>"#;

/// A screen of any width (windows of a browser have a least one), and where `--dump-dom` shows what the page tells.
fn screen(page: &str, width: usize) -> String {
    format!(
        r#"<!DOCTYPE html><meta name="color-scheme" content="light dark"><script>
addEventListener("message", (event) => {{
  const mark = document.createElement("pre");
  mark.id = "probe";
  mark.textContent = event.data;
  document.body.append(mark);
}});
</script><iframe src="{page}" style="width: {width}px; height: 1000px; border: 0"></iframe>"#
    )
}

/// What the browser found on the page, and what it said to the console.
fn look(browser: &Path, page: &Path, width: usize, dark: bool) -> (Value, Vec<String>) {
    let profile = tempfile::tempdir().unwrap();
    let screened = page.with_file_name("screen.html");
    fs::write(&screened, screen(page.file_name().unwrap().to_str().unwrap(), width)).unwrap();
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.args(["--disable-dev-shm-usage", "--enable-logging=stderr", "--hide-scrollbars", "--dump-dom"]);
    command.args(["--window-size=1400,1100", "--virtual-time-budget=5000"]);
    command.arg(format!("--blink-settings=preferredColorScheme={}", usize::from(!dark)));
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.arg(format!("file://{}", screened.display()));
    let (out, err) = (profile.path().join("out"), profile.path().join("err"));
    command
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap())
        .stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("the browser does not come to an end: {}", fs::read_to_string(&err).unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let (page, said) =
        (fs::read_to_string(&out).unwrap(), String::from_utf8_lossy(&fs::read(&err).unwrap()).into_owned());
    let found = page.split("<pre id=\"probe\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let found = found.unwrap_or_else(|| panic!("the page was not shown: {said}"));
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let console = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (serde_json::from_str(&found).unwrap(), console)
}

fn sizes(found: &Value) -> Vec<[f64; 2]> {
    found.as_array().unwrap().iter().map(|size| serde_json::from_value(size.clone()).unwrap()).collect()
}

#[test]
fn the_report_fits_wide_and_narrow_screens_in_light_and_dark() {
    let Some(browser) = webdriver::chromium() else {
        assert!(env::var_os("SATF_REQUIRE_BROWSER").is_none(), "no Chromium was found");
        eprintln!("no Chromium was found: the report is not looked at in a browser");
        return;
    };
    let (folder, _) = shop_log(400);
    let suite = folder.path().join("suite.toml");
    fs::write(&suite, SUITE).unwrap();
    let (data, out) = (folder.path(), folder.path().join("out"));
    let paths = [data, &suite, &out].map(|path| path.to_str().unwrap());
    satf(&["reproduce", "--data", paths[0], "--suite", paths[1], "--out", paths[2]]).succeeds();
    let html = fs::read_to_string(out.join("report.html")).unwrap();
    let page = out.join("probed.html");
    fs::write(&page, html.replace("</body>", &format!("{PROBE}</body>"))).unwrap();

    let mut colours = Vec::new();
    for (width, dark) in [(1280, false), (400, false), (1280, true), (400, true)] {
        let (found, console) = look(&browser, &page, width, dark);
        assert_eq!(console, Vec::<String>::new(), "{width}");
        assert_eq!(found["width"], width);
        assert!(found["scroll"].as_u64().unwrap() <= width as u64, "{width}: {found}");
        assert_eq!(found["over"], serde_json::json!([]), "{width}: runs over the edge");
        assert_eq!(found["cut"], serde_json::json!([]), "{width}: text of a chart is cut off");
        // Datasets, results, further models, times, times by rank.
        let (tables, charts) = (sizes(&found["tables"]), sizes(&found["charts"]));
        assert_eq!((tables.len(), charts.len()), (5, 7), "{width}");
        assert!(tables.iter().all(|[width, height]| *width > 150.0 && *height > 40.0), "{tables:?}");
        assert!(charts.iter().all(|[width, height]| *width > 300.0 && *height > 150.0), "{charts:?}");
        let letters: Vec<f64> = serde_json::from_value(found["letters"].clone()).unwrap();
        assert!(
            letters.iter().all(|height| *height >= 9.0),
            "{width}: letters too small to read: {letters:?}"
        );
        colours.push((found["back"].clone(), found["ink"].clone()));
    }
    assert_eq!(colours[0], colours[1]);
    assert_ne!(colours[0].0, colours[2].0, "dark is like light");
    assert_ne!(colours[0].1, colours[2].1, "dark is like light");
}
