//! A graph from the texts of its files.

use super::discover::{self, Wrong};
use super::routed::Graph;
use super::{routing, tables};

impl Graph {
    /// The graph of a file with its cables and one with its routes, each given by its name and its
    /// text. As the error, the key of the wrong file, and the reason with name and line.
    pub fn read(
        (name, text): (&str, &str),
        routes: Option<(&str, &str)>,
    ) -> Result<Graph, (&'static str, String)> {
        let at = |name: &str, wrong: Wrong| match wrong.line {
            0 => format!("{name}: {}", wrong.what),
            line => format!("{name}:{line}: {}", wrong.what),
        };
        let found = discover::read(text).map_err(|wrong| ("graph", at(name, wrong)))?;
        let Some((routes, text)) = routes else {
            let graph = routing::with_shortest(found);
            return graph.map_err(|why| ("graph", format!("{name}: {why}")));
        };
        let table = tables::read(text, &found);
        let table = table.map_err(|wrong| ("routes", at(routes, wrong)))?;
        let graph = routing::with_table(found, table);
        graph.map_err(|why| ("routes", format!("{routes}: {why}")))
    }
}
