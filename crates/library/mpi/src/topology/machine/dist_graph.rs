//! Graphs of which each rank knows its own edges (MPI 5.0 §8.5.4).

/// The edges of a rank in a distributed graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DistGraph {
    /// The edges that end at this rank.
    pub incoming: Edges,
    /// The edges that begin at this rank.
    pub outgoing: Edges,
    /// The edges have weights.
    pub weighted: bool,
}

/// Edges of one direction: the ranks at their other ends, and their weights.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Edges {
    /// The ranks at the other ends.
    pub ranks: Vec<i32>,
    /// A weight for each edge; 1 for those without.
    pub weights: Vec<i32>,
}

impl Edges {
    /// Adds an edge.
    pub fn add(&mut self, rank: i32, weight: i32) {
        self.ranks.push(rank);
        self.weights.push(weight);
    }

    /// The number of edges.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// There is no edge.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }
}
