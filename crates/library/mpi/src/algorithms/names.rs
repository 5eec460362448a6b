//! Collective operations and their algorithms, with their names in the knob `collectives`.

/// Declares an enum whose variants have names in the knob `collectives`.
macro_rules! named {
    ($(#[$of_enum:meta])* $enum:ident { $($(#[$of_variant:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum $enum {
            $($(#[$of_variant])* $variant,)*
        }

        impl $enum {
            /// All values of the type, in the order of their declaration.
            pub const ALL: &[$enum] = &[$($enum::$variant,)*];

            /// The name of the value in the knob `collectives`.
            pub fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)*
                }
            }
        }
    };
}

named! {
    /// A collective operation that has more than one algorithm.
    Collective {
        /// `MPI_Barrier`.
        Barrier = "barrier",
        /// `MPI_Bcast`.
        Bcast = "bcast",
        /// `MPI_Gather`.
        Gather = "gather",
        /// `MPI_Scatter`.
        Scatter = "scatter",
        /// `MPI_Allgather` and `MPI_Allgatherv`.
        Allgather = "allgather",
        /// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`.
        Alltoall = "alltoall",
        /// `MPI_Reduce`.
        Reduce = "reduce",
        /// `MPI_Allreduce`.
        Allreduce = "allreduce",
        /// `MPI_Reduce_scatter` and `MPI_Reduce_scatter_block`.
        ReduceScatter = "reduce_scatter",
        /// `MPI_Scan` and `MPI_Exscan`.
        Scan = "scan",
    }
}

impl Collective {
    /// The blocking MPI procedures of this collective.
    pub const fn procedures(self) -> &'static [&'static str] {
        match self {
            Collective::Barrier => &["MPI_Barrier"],
            Collective::Bcast => &["MPI_Bcast"],
            Collective::Gather => &["MPI_Gather"],
            Collective::Scatter => &["MPI_Scatter"],
            Collective::Allgather => &["MPI_Allgather", "MPI_Allgatherv"],
            Collective::Alltoall => &["MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw"],
            Collective::Reduce => &["MPI_Reduce"],
            Collective::Allreduce => &["MPI_Allreduce"],
            Collective::ReduceScatter => &["MPI_Reduce_scatter", "MPI_Reduce_scatter_block"],
            Collective::Scan => &["MPI_Scan", "MPI_Exscan"],
        }
    }
}

named! {
    /// An algorithm of a collective operation.
    Algorithm {
        /// Empty messages between ranks at the distances 1, 2, 4…
        Dissemination = "dissemination",
        /// Messages along a binomial tree.
        Binomial = "binomial",
        /// Pieces of a message along a tree in which each rank has an equal number of branches.
        KAry = "k-ary",
        /// One message between the root and each other rank, without a tree.
        Linear = "linear",
        /// A scatter of the message, then an allgather of its parts.
        ScatterAllgather = "scatter-allgather",
        /// Pieces of a message from each rank to the next.
        Chain = "chain",
        /// Exchanges with partners at distance 1, 2, 4…; the amount of data doubles in each step.
        RecursiveDoubling = "recursive-doubling",
        /// Exchanges with partners; the amount of data halves in each step.
        RecursiveHalving = "recursive-halving",
        /// Bundles of blocks to ranks at distance 1, 2, 4… (Bruck and others 1997).
        Bruck = "bruck",
        /// Blocks from neighbour to neighbour in a ring.
        Ring = "ring",
        /// Blocks from neighbour to neighbour in a ring, in pieces that stay in caches.
        CachedRing = "cached-ring",
        /// Exchanges with one partner after another.
        Pairwise = "pairwise",
        /// Reduction of parts by halving, then an allgather of the parts (Rabenseifner 2004).
        Rabenseifner = "rabenseifner",
        /// A reduction to rank 0, then a broadcast of its result.
        ReduceBcast = "reduce-bcast",
        /// A reduction to rank 0, then a scatter of its result.
        ReduceScatter = "reduce-scatter",
        /// Direct copies by each member from and to the memory of the others.
        Direct = "direct",
        /// Steps within each host, and among one leader of each host.
        TwoLevel = "two-level",
        /// Steps within each host, and among several leaders of each host, each of which moves a
        /// part of the data. Each host has as many leaders as the smallest host has ranks.
        TwoLevelParts = "two-level-parts",
        /// Vectors that each member publishes to all others in a collective buffer.
        Shared = "shared",
    }
}
