//! Distributed graphs: each rank has only its own edges (MPI 5.0 §8.5.4).

/// The edges of a rank in a distributed graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DistGraph {
    /// The edges that end at this rank.
    pub incoming: Edges,
    /// The edges that begin at this rank.
    pub outgoing: Edges,
    /// True if the edges have weights.
    pub weighted: bool,
}

/// The edges of a rank in one direction.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Edges {
    /// The ranks at the other ends of the edges.
    pub ranks: Vec<i32>,
    /// The weight of each edge; 1 for edges without a weight.
    pub weights: Vec<i32>,
}

impl Edges {
    /// Adds an edge.
    pub fn add(&mut self, rank: i32, weight: i32) {
        self.ranks.push(rank);
        self.weights.push(weight);
    }

    /// The number of edges in this direction.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// True if there is no edge in this direction.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }
}
