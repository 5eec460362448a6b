//! The parts of a page of results.

use std::path::Path;

use crate::origin::Made;
use crate::plot::Plot;
use crate::table::Table;
use anyhow::{Result, anyhow};

use crate::report::network::NetworkPicture;
use crate::report::strip::Strips;

/// A page of results.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The heading of the page, and its title in a browser.
    pub title: String,
    /// The answer in a few words, in large type below the heading; empty if there is none.
    pub answer: String,
    /// The certainty of the answer in a word or two, next to the answer; empty if there is none.
    pub certainty: String,
    /// The paragraph below the heading: the answer in a few sentences, with comments.
    pub lead: String,
    /// The sections, in order.
    pub sections: Vec<Section>,
    /// The origin of the page, which becomes the last section; `None`: the page has no such
    /// section.
    pub made: Option<Made>,
}

/// A part of a page with a heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The heading of the section.
    pub heading: String,
    /// The content of the section, in order.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section with this heading and content.
    pub fn new(heading: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section {
            heading: heading.into(),
            blocks,
        }
    }
}

/// A piece of a section: text, table, plot or strips.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph of plain text.
    Text(String),
    /// A table.
    Table(Table),
    /// A table that the reader can open, and the line that opens it.
    Folded(String, Table),
    /// A plot of curves or bars.
    Plot(Plot),
    /// Strips with ranges in which one side is better.
    Strips(Strips),
    /// The picture of a network.
    Network(NetworkPicture),
}

impl From<Table> for Block {
    fn from(table: Table) -> Block {
        Block::Table(table)
    }
}

impl From<Strips> for Block {
    fn from(strips: Strips) -> Block {
        Block::Strips(strips)
    }
}

impl From<Plot> for Block {
    fn from(plot: Plot) -> Block {
        Block::Plot(plot)
    }
}

impl Page {
    /// Writes the page as one HTML file.
    pub fn write(&self, file: &Path) -> Result<()> {
        std::fs::write(file, self.html()).map_err(|why| {
            let reason = crate::output::reason(file, &why);
            anyhow!("cannot write the report {}: {reason}", file.display())
        })
    }

    /// The plots of all sections, in order.
    pub fn plots(&self) -> impl Iterator<Item = &Plot> {
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        blocks.filter_map(|block| match block {
            Block::Plot(plot) => Some(plot),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_file() {
        let error = Page::default().write(Path::new("/nonexistent/a.html"));
        let error = format!("{:#}", error.unwrap_err());
        assert!(error.contains("/nonexistent/a.html"), "{error}");
    }
}
