//! SVG charts as pixels.

use std::sync::{Arc, LazyLock};

use anyhow::{Context, ensure};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// The letters brought along, so that a chart is the same on every machine, with fonts or without: see `font/README.md`.
static LETTERS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(include_bytes!("font/Roboto-Regular.ttf").to_vec());
    fonts.load_font_data(include_bytes!("font/Roboto-Medium.ttf").to_vec());
    fonts.set_sans_serif_family("Roboto");
    Arc::new(fonts)
});

/// Most pixels of one side.
const LARGEST_SIDE: f32 = 20_000.0;

/// A chart drawn with [`Theme::Alone`](super::Theme::Alone) as PNG, `scale` pixels a unit.
pub(crate) fn png(svg: &str, scale: f32) -> anyhow::Result<Vec<u8>> {
    let options =
        Options { font_family: "Roboto".to_owned(), fontdb: Arc::clone(&LETTERS), ..Options::default() };
    let tree = Tree::from_str(svg, &options).context("the chart is not SVG")?;
    let (width, height) = ((tree.size().width() * scale).ceil(), (tree.size().height() * scale).ceil());
    ensure!(
        (1.0..=LARGEST_SIDE).contains(&width) && (1.0..=LARGEST_SIDE).contains(&height),
        "a scale of {scale} gives a picture of {width} x {height} pixels: expected 1 to {LARGEST_SIDE} a side"
    );
    let mut pixels = Pixmap::new(width as u32, height as u32).context("no memory for the picture")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().context("cannot encode the picture as PNG")
}
