//! Pages of results: one HTML file with plots, tables, the assumptions behind them and the command
//! that made it. The file needs no network: its plots are SVG, and its script has a few kilobytes.
//!
//! ```
//! use results::report::{Axis, Page, Plot, Section, Series};
//!
//! let curve = Series::line("FDR", vec![(8.0, 1.61), (4096.0, 3.2)]);
//! let published = Series::marks("FDR, published", vec![(8.0, 1.67)]).with_colour_of("FDR");
//! let plot = Plot {
//!     title: "Latency".into(),
//!     x: Axis::sizes("message size"),
//!     y: Axis::logarithmic("latency", "µs"),
//!     series: vec![curve, published],
//!     ..Plot::default()
//! };
//! let page = Page {
//!     title: "FDR".into(),
//!     lead: "The latency of FDR.".into(),
//!     sections: vec![Section::new("Results", vec![plot.into()])],
//!     ..Page::default()
//! };
//! assert!(page.html().starts_with("<!doctype html>"));
//! ```
//!
//! Invariants:
//!
//! - Text from users stands in a page as text: it is never markup or code.
//! - Equal pages have equal bytes. Nothing here reads a clock.
//!
//! Never here: network, clocks, measuring.

mod assumptions;
mod canvas;
mod figure;
mod html;
mod labels;
mod marks;
mod markup;
mod network;
mod page;
mod strip;

pub use crate::origin::Made;
pub use crate::plot::{Axis, Plot, Series, SeriesKind, Shade};
pub use crate::style::Palette;
pub use crate::table::Table;
pub use assumptions::assumptions;
pub use network::NetworkPicture;
pub use page::{Block, Page, Section};
pub use strip::{Strip, StripRange, Strips};
