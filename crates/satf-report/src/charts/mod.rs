//! Charts for reports: bars with whiskers and lines with marks, as SVG and, with the feature `png`, as PNG.
//!
//! A chart is drawn in one of two [themes](Theme). Inside a page its colours are CSS variables and it comes in a wide and a
//! narrow layout, so that [`PAGE_STYLE`], which the page must hold once, can fit it to light and dark screens and
//! to phones without shrinking its letters. Alone it is one picture on white, which [`png()`] can turn into pixels.
//!
//! Series differ in colour (told apart with any kind of colour vision) and in hatching, marks and dashes too, so nothing is
//! lost in black and white. Values that have no place on an axis (not finite, or not above 0 on a logarithmic one)
//! are left out.

mod attention;
mod bars;
mod canvas;
mod figure;
mod lines;
mod png;
mod scale;
mod text;

pub use attention::{attention_bars, attention_curve};
pub use bars::{BarChart, BarSeries, Measured};
pub use canvas::Theme;
pub use lines::{LineChart, LineSeries};
pub use png::{HAS_PNG, PngError, png};
pub use scale::Scale;

/// The style sheet of pages with charts in [`Theme::Page`].
pub const PAGE_STYLE: &str = include_str!("page.css");

#[cfg(test)]
mod tests;
