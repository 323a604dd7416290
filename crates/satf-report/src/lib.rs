//! Pictures and pages of `satf`, and the paper's reproduction: what results look like to people.
//!
//! * [`charts`] draws bars and lines as SVG, and as PNG with the feature `png`.
//! * [`reproduce`](mod@reproduce) measures every table and figure of a suite, beside what others published.
//! * [`report`] writes findings as one HTML page, as Markdown and as JSON, with the charts beside them.
//! * [`numbers`] words counts and durations.
//!
//! ```
//! use satf_report::charts::{LineChart, LineSeries, Scale, Theme};
//!
//! let chart = LineChart {
//!     title: "Training time".to_owned(),
//!     description: "Seconds of training, which grow with the rank.".to_owned(),
//!     x_label: "rank".to_owned(),
//!     y_label: "seconds".to_owned(),
//!     x_scale: Scale::Log,
//!     y_scale: Scale::Linear,
//!     series: vec![LineSeries { name: "pure-svd".to_owned(), points: vec![(10.0, 0.4), (100.0, 2.5)] }],
//! };
//! assert!(chart.svg(Theme::Alone).starts_with("<svg"));
//! ```

pub mod charts;
pub mod numbers;
pub mod report;
pub mod reproduce;
