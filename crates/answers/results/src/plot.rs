//! Plots: series on two axes, and timelines. They are drawn as SVG or PNG here; series also as
//! parts of HTML pages by the module `report`.

mod axis;
mod chart;
mod content;
mod draw;
mod legend;
mod panel;
mod pen;
mod scale;
mod timeline;

pub use axis::Axis;
pub use content::{Plot, Series, SeriesKind, Shade};
pub use draw::{ImageFormat, PlotFile, draw, draw_below};
pub use panel::{Across, Band, Panel, Values};
pub use scale::Scale;
pub use timeline::{Arrow, Bar, Lane, Timeline};
