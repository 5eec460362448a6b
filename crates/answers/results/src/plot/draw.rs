//! The drawing of pages of plots as SVG or PNG; the suffix of the file's name selects the format.
//!
//! The font is part of this crate (`assets/`), so a PNG has text on a machine without fonts.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Once;

use anyhow::{Context, Result, anyhow, bail};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;

use super::chart::{LINE, SIZE, caption_lines, chart, head_height};
use super::content::Plot;
use super::pen::{Drawn, FAMILY};
use crate::output::OutputFile;

const FONT: &[u8] = include_bytes!("../../assets/roboto-subset.ttf");
/// The number of pixels of a bitmap for each unit of length: more than one, for smooth text.
pub(super) const PIXELS: u32 = 2;
/// The number of bytes of an RGB pixel.
const RGB: usize = 3;

/// The format of a plot's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// Scalable Vector Graphics.
    Svg,
    /// Portable Network Graphics.
    Png,
}

impl ImageFormat {
    /// The format that the suffix of `path` selects. Callers call it before they measure, so that a
    /// wrong name fails at once.
    pub fn of(path: &Path) -> Result<ImageFormat> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("svg") => Ok(ImageFormat::Svg),
            Some("png") => Ok(ImageFormat::Png),
            _ => bail!(
                "--plot {}: the file's name must end in .svg or .png",
                path.display()
            ),
        }
    }
}

/// The file of `--plot`, opened before the measurement.
#[derive(Debug)]
pub struct PlotFile(OutputFile);

impl PlotFile {
    /// Opens the file. An error names the wrong suffix or folder.
    pub fn create(path: &Path) -> Result<PlotFile> {
        ImageFormat::of(path)?;
        OutputFile::open("--plot", path)
            .map(PlotFile)
            .map_err(|why| anyhow!(why))
    }

    /// Draws the plots on one page, two in a row.
    pub fn draw<'a, P>(self, plots: &'a [P]) -> Result<()>
    where
        &'a P: Into<Plot>,
    {
        draw(plots, self.0.path())?;
        self.0.written();
        Ok(())
    }
}

/// Draws the plots on one page, two in a row.
pub fn draw<'a, P>(plots: &'a [P], path: &Path) -> Result<()>
where
    &'a P: Into<Plot>,
{
    let columns = if plots.len() > 1 { 2 } else { 1 };
    draw_in_columns(plots.iter().map(Into::into).collect(), columns, path)
}

/// Draws the plots on one page, each below the one before.
pub fn draw_below<'a, P>(plots: &'a [P], path: &Path) -> Result<()>
where
    &'a P: Into<Plot>,
{
    draw_in_columns(plots.iter().map(Into::into).collect(), 1, path)
}

/// Registers the font of texts, once.
pub(super) fn register_fonts() {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        assert!(
            register_font(FAMILY, FontStyle::Normal, FONT).is_ok(),
            "the font is well formed"
        );
    });
}

// This function is not generic: otherwise every crate that draws would compile all of the drawing
// again.
fn draw_in_columns(plots: Vec<Plot>, columns: usize, path: &Path) -> Result<()> {
    register_fonts();
    let rows = plots.len().div_ceil(columns);
    let lines = plots.iter().map(|plot| caption_lines(&plot.caption).len());
    let heads = plots.iter().map(head_height);
    let around = heads.max().unwrap_or(0) + LINE * lines.max().unwrap_or(0) as u32;
    let height = SIZE.1 + around;
    let size = |scale: u32| {
        (
            SIZE.0 * columns as u32 * scale,
            height * rows as u32 * scale,
        )
    };
    match ImageFormat::of(path)? {
        ImageFormat::Svg => {
            let area = SVGBackend::new(path, size(1)).into_drawing_area();
            page(&area, &plots, (rows, columns), 1)
        }
        ImageFormat::Png => {
            let (width, height) = size(PIXELS);
            let mut pixels = vec![0; width as usize * height as usize * RGB];
            let backend = BitMapBackend::with_buffer(&mut pixels, (width, height));
            let drawn = page(
                &backend.into_drawing_area(),
                &plots,
                (rows, columns),
                PIXELS,
            );
            drawn.and_then(|()| write_png(path, &pixels, (width, height)))
        }
    }
    .with_context(|| format!("cannot draw {}", path.display()))
}

fn page<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    plots: &[Plot],
    grid: (usize, usize),
    scale: u32,
) -> Result<()> {
    let draw = || -> Drawn<B> {
        area.fill(&WHITE)?;
        for (plot, part) in plots.iter().zip(area.split_evenly(grid)) {
            chart(plot, &part, scale)?;
        }
        area.present()
    };
    draw().map_err(|error| anyhow!("{error}"))
}

fn write_png(path: &Path, pixels: &[u8], size: (u32, u32)) -> Result<()> {
    png(&mut BufWriter::new(File::create(path)?), pixels, size)
}

/// Writes a bitmap of RGB pixels.
pub(super) fn png(to: &mut dyn Write, pixels: &[u8], (width, height): (u32, u32)) -> Result<()> {
    let mut encoder = png::Encoder::new(to, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_adaptive_filter(png::AdaptiveFilterType::Adaptive);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    Ok(writer.finish()?)
}

#[cfg(test)]
mod tests;
