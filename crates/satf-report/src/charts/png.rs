//! SVG charts as pixels.

/// Whether this build can draw PNG: whether the feature `png` is on.
pub const HAS_PNG: bool = cfg!(feature = "png");

/// Why a chart is not drawn as PNG.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PngError {
    /// The crate was built without the feature `png`.
    #[error("PNG needs the feature 'png', which this build does not have; SVG needs no feature")]
    NotBuilt,
    /// The text is not an SVG picture.
    #[error("the chart is not SVG: {reason}")]
    NotSvg {
        /// What the parser says of it.
        reason: String,
    },
    /// The picture would have no pixels, or too many.
    #[error(
        "a scale of {scale} gives a picture of {width} x {height} pixels: expected 1 to {LARGEST_SIDE} per side"
    )]
    Size {
        /// Pixels per unit of the SVG.
        scale: f32,
        /// The width that it gives.
        width: f32,
        /// The height that it gives.
        height: f32,
    },
    /// The pixels cannot be written as PNG.
    #[error("cannot encode the picture as PNG: {reason}")]
    Encoding {
        /// What the encoder says of it.
        reason: String,
    },
}

/// The most pixels per side.
const LARGEST_SIDE: f32 = 20_000.0;

/// A chart drawn with [`Theme::Alone`](super::Theme::Alone) as PNG, with `scale` pixels per unit.
///
/// Without the feature `png` it is [`PngError::NotBuilt`].
#[cfg(not(feature = "png"))]
pub fn png(_svg: &str, _scale: f32) -> Result<Vec<u8>, PngError> {
    Err(PngError::NotBuilt)
}

#[cfg(feature = "png")]
pub use drawn::png;

#[cfg(feature = "png")]
mod drawn {
    use std::sync::{Arc, LazyLock};

    use resvg::tiny_skia::{Pixmap, Transform};
    use resvg::usvg::fontdb::Database;
    use resvg::usvg::{Options, Tree};

    use super::{LARGEST_SIDE, PngError};

    /// The letters brought along, so that a chart is the same on every machine, with fonts or without: see `font/README.md`.
    static LETTERS: LazyLock<Arc<Database>> = LazyLock::new(|| {
        let mut fonts = Database::new();
        fonts.load_font_data(include_bytes!("font/Roboto-Regular.ttf").to_vec());
        fonts.load_font_data(include_bytes!("font/Roboto-Medium.ttf").to_vec());
        fonts.set_sans_serif_family("Roboto");
        Arc::new(fonts)
    });

    /// A chart drawn with [`Theme::Alone`](crate::charts::Theme::Alone) as PNG, with `scale` pixels per unit.
    ///
    /// Without the feature `png` it is [`PngError::NotBuilt`].
    pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, PngError> {
        let options =
            Options { font_family: "Roboto".to_owned(), fontdb: Arc::clone(&LETTERS), ..Options::default() };
        let tree =
            Tree::from_str(svg, &options).map_err(|error| PngError::NotSvg { reason: error.to_string() })?;
        let (width, height) = ((tree.size().width() * scale).ceil(), (tree.size().height() * scale).ceil());
        let sides = 1.0..=LARGEST_SIDE;
        let pixels = if sides.contains(&width) && sides.contains(&height) {
            Pixmap::new(width as u32, height as u32)
        } else {
            None
        };
        let mut pixels = pixels.ok_or(PngError::Size { scale, width, height })?;
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| PngError::Encoding { reason: error.to_string() })
    }
}
