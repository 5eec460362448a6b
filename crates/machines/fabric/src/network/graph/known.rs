//! The graphs of a process, by the files that they were read from.

use std::sync::OnceLock;

use super::files::NetworkFile;
use super::routed::Graph;

/// The files of a graph, as a name of it in all processes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphKey {
    /// The file with the switches, hosts and cables.
    pub graph: NetworkFile,
    /// The file with the tables of routes; `None`: the routes are computed.
    pub routes: Option<NetworkFile>,
}

/// The graphs of this process.
static GRAPHS: [OnceLock<(GraphKey, Graph)>; 64] = [const { OnceLock::new() }; 64];

impl GraphKey {
    /// The graph of these files, if this process has it.
    #[inline]
    pub fn find(self) -> Option<&'static Graph> {
        let known = GRAPHS.iter().map_while(OnceLock::get);
        let mut equal = known.filter(|(key, _)| *key == self);
        equal.next().map(|(_, graph)| graph)
    }

    /// The graph of these files, whose network a checked system has.
    pub(in crate::network) fn graph(self) -> &'static Graph {
        self.find().expect("the check of a system finds its graph")
    }

    /// The graph of these files. As the error, the key of the wrong file, and the reason.
    pub fn load(self) -> Result<&'static Graph, (&'static str, String)> {
        if let Some(known) = self.find() {
            return Ok(known);
        }
        #[cfg(feature = "toml")]
        return self.keep(graph_of(self)?);
        #[cfg(not(feature = "toml"))]
        Err(("graph", "its compiled form is missing".into()))
    }

    /// Adds a graph to those of this process.
    pub(super) fn keep(self, graph: Graph) -> Result<&'static Graph, (&'static str, String)> {
        let mut entry = (self, graph);
        for slot in &GRAPHS {
            match slot.set(entry) {
                Ok(()) => break,
                Err(_) if slot.get().is_some_and(|(key, _)| *key == self) => break,
                Err(back) => entry = back,
            }
        }
        let full = || {
            let most = GRAPHS.len();
            (
                "graph",
                format!("more than {most} graphs at once are not possible"),
            )
        };
        self.find().ok_or_else(full)
    }
}

/// The graph of the files with this key. As the error, the key of the wrong file, and the reason.
#[cfg(feature = "toml")]
fn graph_of(key: GraphKey) -> Result<Graph, (&'static str, String)> {
    let content = |name: &'static str, file: NetworkFile| {
        let missing = || (name, "the file has not been read".to_owned());
        file.content().ok_or_else(missing)
    };
    let graph = content("graph", key.graph)?;
    let routes = key.routes.map(|file| content("routes", file)).transpose()?;
    let routes = routes.as_ref().map(|(name, text)| (name.as_str(), &**text));
    Graph::read((&graph.0, &graph.1), routes)
}
