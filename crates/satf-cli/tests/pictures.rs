//! Charts as files: SVG in every build, PNG in those with the feature `png`.

#![allow(clippy::unwrap_used)]

mod satf_binary;

use std::fs;
use std::path::Path;

use satf_binary::{satf, shop_log};

const SUITE: &str = "title = 'A shop'\nrepeats = 1\n[[datasets]]\nname = 'shop'\nfiles = ['shop.parquet']\nvalid = '1month'\n\
                     test = '1month'\nmax_len = 20\n[[models]]\nname = 'MP'\nmodel = 'mp'\n";

fn is_png(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x89PNG\r\n"))
}

#[test]
fn the_attention_curve_is_drawn_in_the_formats_of_the_build() {
    let (folder, log) = shop_log(300);
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (model, svg, png) = (at("shop.satf"), at("curve.svg"), at("curve.png"));
    satf(&["train", &log, "-o", &model, "--model", "la-satf", "--set", "item_rank=8"]).succeeds();
    let outcome = satf(&["inspect", &model, "--svg", &svg, "--png", &png]);
    if cfg!(feature = "png") {
        outcome.succeeds();
        assert!(is_png(png.as_ref()));
    } else {
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        for part in ["--png", "--svg works", "feature png"] {
            assert!(outcome.stderr.contains(part), "{part}: {}", outcome.stderr);
        }
        assert!(!Path::new(&png).exists() && !Path::new(&svg).exists());
        satf(&["inspect", &model, "--svg", &svg]).succeeds();
    }
    assert!(fs::read_to_string(&svg).unwrap().contains("<polyline"));
}

#[test]
fn a_report_has_its_charts_in_the_formats_of_the_build() {
    let (folder, _) = shop_log(300);
    let (out, suite) = (folder.path().join("out"), folder.path().join("suite.toml"));
    fs::write(&suite, SUITE).unwrap();
    let chart = |ending: &str| out.join("charts").join(format!("shop-ndcg.{ending}"));
    // A picture of an earlier report, which may show something else.
    fs::create_dir_all(out.join("charts")).unwrap();
    fs::write(chart("png"), "old").unwrap();
    fs::write(out.join("report.json"), r#"{"made": {"satf_version": "0.0.1"}}"#).unwrap();
    let words = [folder.path(), &out, &suite].map(|path| path.to_str().unwrap());
    satf(&["reproduce", "--data", words[0], "--out", words[1], "--suite", words[2]]).succeeds();
    assert!(fs::read_to_string(chart("svg")).unwrap().starts_with("<svg"));
    assert_eq!(
        (chart("png").exists(), is_png(&chart("png"))),
        (cfg!(feature = "png"), cfg!(feature = "png"))
    );
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    let formats = if cfg!(feature = "png") { "as SVG and PNG," } else { "as SVG," };
    assert!(page.contains(formats), "{formats}");
}
