//! Fuzz target: the parsers of the graph of a network and of its tables of routes, with a zero byte
//! between the two texts.
//!
//! The promise: each route of a graph that is read leads to its host, and so does each shortest
//! path; an error has a text.

use fabric::network::graph::Graph;
use fabric::network::path::Choice;

/// The most hosts whose routes are followed.
const MOST: u32 = 40;

pub(crate) fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let mut text = || parts.next().map(String::from_utf8_lossy);
    let (graph, routes) = (text().unwrap_or_default(), text());
    let routes = routes.as_ref().map(|text| ("routes", &**text));
    let graph = match Graph::read(("graph", &graph), routes) {
        Ok(graph) => graph,
        Err((key, why)) => {
            assert!(["graph", "routes"].contains(&key) && !why.is_empty());
            return;
        }
    };
    assert!((1..=8).contains(&graph.lanes()));
    let hosts = graph.hosts().min(MOST);
    for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))) {
        for choice in [Choice::ByDestination, Choice::Number(from * to)] {
            let mut at = graph.home(from);
            for link in graph.path(from, to, choice).links() {
                let link = graph.links()[*link as usize];
                assert_eq!(link.from, at);
                at = link.to;
            }
            assert_eq!(at, graph.home(to), "{from} {to} {choice:?}");
        }
    }
}
