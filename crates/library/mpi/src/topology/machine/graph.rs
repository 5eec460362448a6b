//! Graphs of which every rank has all edges (MPI 5.0 §8.5.3).

use crate::{Class, Error, Result};

/// A graph: the neighbours of every node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    /// For each node, the number of edges of this node and all nodes before it.
    index: Vec<i32>,
    /// The neighbours of all nodes of the graph, node after node.
    edges: Vec<i32>,
}

impl Graph {
    /// A graph from the arguments of `MPI_Graph_create`: `index[i]` edges belong to the nodes 0 to
    /// i.
    pub fn new(index: &[i32], edges: &[i32]) -> Result<Graph> {
        let mut before = 0;
        for (node, &end) in index.iter().enumerate() {
            if end < before {
                let detail = format!(
                    "indx[{node}] is {end}, less than {before} before it: indx counts the edges of all nodes up to each"
                );
                return Err(Error::new(Class::ARG, detail));
            }
            before = end;
        }
        debug_assert_eq!(edges.len(), before as usize);
        let nodes = index.len() as i32;
        if let Some(at) = edges.iter().position(|node| !(0..nodes).contains(node)) {
            let detail = format!(
                "edges[{at}] is {}, but the graph has {nodes} nodes, from 0",
                edges[at]
            );
            return Err(Error::new(Class::ARG, detail));
        }
        Ok(Graph {
            index: index.to_vec(),
            edges: edges.to_vec(),
        })
    }

    /// The number of nodes of the graph.
    pub fn nodes(&self) -> usize {
        self.index.len()
    }

    /// For each node, the number of edges of this node and all nodes before it.
    pub fn index(&self) -> &[i32] {
        &self.index
    }

    /// The neighbours of all nodes of the graph, node after node.
    pub fn edges(&self) -> &[i32] {
        &self.edges
    }

    /// The neighbours of a node.
    ///
    /// # Panics
    /// If the graph has no such node.
    pub fn neighbours(&self, node: usize) -> &[i32] {
        let first = match node {
            0 => 0,
            _ => self.index[node - 1] as usize,
        };
        &self.edges[first..self.index[node] as usize]
    }

    /// The neighbours of the node that the user names. An error if there is no such node.
    pub fn neighbours_of(&self, rank: i32) -> Result<&[i32]> {
        let node = usize::try_from(rank).ok().filter(|&at| at < self.nodes());
        let Some(node) = node else {
            let detail = format!(
                "rank {rank} does not exist: the graph has {} nodes",
                self.nodes()
            );
            return Err(Error::new(Class::RANK, detail));
        };
        Ok(self.neighbours(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_its_part_of_the_edges() {
        // The example of MPI 5.0 §8.5.3.
        let graph = Graph::new(&[2, 3, 4, 6], &[1, 3, 0, 3, 0, 2]).unwrap();
        let all: Vec<&[i32]> = (0..4).map(|node| graph.neighbours(node)).collect();
        assert_eq!(all, [&[1, 3][..], &[0], &[3], &[0, 2]]);
        assert!(graph.neighbours_of(4).is_err() && graph.neighbours_of(-1).is_err());
    }

    #[test]
    fn a_graph_that_is_none_is_refused() {
        let why = Graph::new(&[2, 1], &[1]).unwrap_err().to_string();
        assert!(why.contains("indx[1] is 1"), "{why}");
        let why = Graph::new(&[1], &[1]).unwrap_err().to_string();
        assert!(why.contains("edges[0] is 1"), "{why}");
    }
}
