//! The collective operations, each a row of [`OPERATIONS`]. A new collective is a new row, and a
//! new [`Signature`] if its argument list is new.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::ffi::signature::Signature;
use crate::form::Form;

/// A collective operation of MPI.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// The subcommands' names on the command line, one for each [`Form`].
    names: [&'static str; 3],
    /// The first line of the subcommand's help.
    pub(crate) help: &'static str,
    pub(crate) signature: Signature,
    pub(crate) contents: Contents,
    pub(crate) sends: Share,
    pub(crate) receives: Share,
}

/// The relation of the received data to the sent data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// The operation moves no data.
    Nothing,
    /// The block of the root, which all ranks receive into the same buffer from which the root
    /// sends.
    Broadcast,
    /// Blocks that the operation moves unchanged.
    Blocks,
    /// Sums of 32-bit integers.
    Sum(Summands),
}

/// The ranks whose vectors are summed to a rank's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Summands {
    All,
    /// The rank itself and all lower ranks contribute to its result.
    UpToOwn,
    /// All lower ranks contribute to a rank's result; rank 0 receives nothing.
    BelowOwn,
}

/// The data that one rank sends or receives in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    Nothing,
    /// One block, of the message size.
    Block,
    /// One block for each rank, or for each neighbour.
    BlockEach,
    /// One block at the root, nothing at other ranks.
    RootBlock,
    /// One block for each rank at the root, nothing at other ranks.
    RootBlockEach,
    /// One part of a block that is divided among all ranks.
    Part,
}

/// The communicator of neighbourhood collectives. All ranks have the same number of neighbours, and
/// each is a neighbour of its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Topology {
    /// A periodic grid of this number of dimensions, by MPI_Dims_create and MPI_Cart_create.
    Grid(usize),
    /// A graph with the neighbours of the two-dimensional grid, by MPI_Dist_graph_create_adjacent.
    Graph,
}

/// The most dimensions of a grid.
const MOST_DIMENSIONS: usize = 8;

impl Topology {
    pub(crate) fn parse(text: &str) -> Result<Topology, String> {
        let wrong = || {
            format!(
                "valid are grid (two dimensions), grid:D with 1 to {MOST_DIMENSIONS} dimensions, and graph"
            )
        };
        match text.split_once(':') {
            None if text == "grid" => Ok(Topology::Grid(2)),
            None if text == "graph" => Ok(Topology::Graph),
            Some(("grid", dimensions)) => match dimensions.parse() {
                Ok(dimensions @ 1..=MOST_DIMENSIONS) => Ok(Topology::Grid(dimensions)),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }
}

/// An operation in one of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Collective {
    pub(crate) operation: &'static Operation,
    pub(crate) form: Form,
}

impl Collective {
    /// The collective with a name such as `allreduce`, `iallreduce` or `allreduce-persistent`;
    /// `None` if there is no such collective.
    pub(crate) fn named(name: &str) -> Option<Collective> {
        let forms = |operation| Form::ALL.map(|form| Collective { operation, form });
        let mut all = OPERATIONS.iter().flat_map(forms);
        all.find(|collective| collective.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        self.operation.name(self.form)
    }

    /// The procedure of the library that begins this collective.
    pub(crate) fn procedure(self) -> String {
        let plain = self.operation.name(Form::Blocking).replace('-', "_");
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        match self.form {
            Form::Blocking => format!("MPI_{}", capital(&plain)),
            Form::Nonblocking => format!("MPI_I{plain}"),
            Form::Persistent => format!("MPI_{}_init", capital(&plain)),
        }
    }
}

impl From<Collective> for String {
    fn from(collective: Collective) -> String {
        collective.name().into()
    }
}

impl TryFrom<String> for Collective {
    type Error = anyhow::Error;

    fn try_from(name: String) -> Result<Collective> {
        match Collective::named(&name) {
            Some(collective) => Ok(collective),
            None => bail!("{name} is not a collective operation"),
        }
    }
}

impl Operation {
    pub(crate) fn name(&self, form: Form) -> &'static str {
        self.names[form as usize]
    }

    /// The size of a message's elements in bytes.
    pub(crate) fn element(&self) -> usize {
        match self.contents {
            Contents::Sum(_) => size_of::<i32>(),
            _ => 1,
        }
    }

    /// True if the operation's messages have a size.
    pub(crate) fn sized(&self) -> bool {
        self.contents != Contents::Nothing
    }

    /// The number of bytes by which the library chooses an algorithm: that of all blocks together
    /// if each rank collects the blocks of all ranks, or if vectors of blocks are reduced;
    /// otherwise that of the message.
    pub(crate) fn chosen_bytes(&self, size: usize, ranks: usize) -> usize {
        match (self.sends, self.receives) {
            (Share::Block, Share::BlockEach) | (Share::BlockEach, Share::Block) => size * ranks,
            _ => size,
        }
    }

    pub(crate) fn of_neighbours(&self) -> bool {
        self.names[0].starts_with("neighbor-")
    }
}

impl Share {
    /// The most bytes that a rank sends or receives with this number of peers, itself included.
    pub(crate) fn bytes(self, size: usize, peers: usize) -> usize {
        match self {
            Share::Nothing => 0,
            Share::Block | Share::RootBlock | Share::Part => size,
            Share::BlockEach | Share::RootBlockEach => size * peers,
        }
    }

    pub(crate) fn only_at_root(self) -> bool {
        matches!(self, Share::RootBlock | Share::RootBlockEach)
    }
}

/// One row for each operation: name, argument list, contents, sent data, received data, help.
macro_rules! operations {
    ($($name:literal $signature:ident $contents:expr, $sends:ident $receives:ident $help:literal;)*) => {
        pub(crate) static OPERATIONS: &[Operation] = &[$(Operation {
            names: [$name, concat!("i", $name), concat!($name, "-persistent")],
            help: $help,
            signature: Signature::$signature,
            contents: $contents,
            sends: Share::$sends,
            receives: Share::$receives,
        },)*];
    };
}

use Contents::{Blocks, Broadcast, Nothing, Sum};
use Summands::{All, BelowOwn, UpToOwn};

#[rustfmt::skip]
operations! {
    "barrier"              Barrier       Nothing,       Nothing       Nothing       "MPI_Barrier: time of a call, averaged over the ranks";
    "bcast"                Bcast         Broadcast,     Nothing       Block         "MPI_Bcast from rank 0";
    "reduce"               Reduce        Sum(All),      Block         RootBlock     "MPI_Reduce of 32-bit integers (sum) to rank 0";
    "allreduce"            Allreduce     Sum(All),      Block         Block         "MPI_Allreduce of 32-bit integers (sum)";
    "reduce-scatter"       ReduceScatter Sum(All),      Block         Part          "MPI_Reduce_scatter of 32-bit integers (sum), by the size of the whole vector";
    "reduce-scatter-block" Allreduce     Sum(All),      BlockEach     Block         "MPI_Reduce_scatter_block of 32-bit integers (sum), by the size of a rank's block";
    "scan"                 Allreduce     Sum(UpToOwn),  Block         Block         "MPI_Scan of 32-bit integers (sum)";
    "exscan"               Allreduce     Sum(BelowOwn), Block         Block         "MPI_Exscan of 32-bit integers (sum)";
    "gather"               Gather        Blocks,        Block         RootBlockEach "MPI_Gather to rank 0, by the size of a rank's block";
    "gatherv"              Gatherv       Blocks,        Block         RootBlockEach "MPI_Gatherv to rank 0, by the size of a rank's block";
    "scatter"              Gather        Blocks,        RootBlockEach Block         "MPI_Scatter from rank 0, by the size of a rank's block";
    "scatterv"             Scatterv      Blocks,        RootBlockEach Block         "MPI_Scatterv from rank 0, by the size of a rank's block";
    "allgather"            Allgather     Blocks,        Block         BlockEach     "MPI_Allgather, by the size of a rank's block";
    "allgatherv"           Allgatherv    Blocks,        Block         BlockEach     "MPI_Allgatherv, by the size of a rank's block";
    "alltoall"             Allgather     Blocks,        BlockEach     BlockEach     "MPI_Alltoall, by the size of a block";
    "alltoallv"            Alltoallv     Blocks,        BlockEach     BlockEach     "MPI_Alltoallv, by the size of a block";
    "alltoallw"            Alltoallw     Blocks,        BlockEach     BlockEach     "MPI_Alltoallw, by the size of a block";
    "neighbor-allgather"   Allgather     Blocks,        Block         BlockEach     "MPI_Neighbor_allgather, by the size of a rank's block";
    "neighbor-allgatherv"  Allgatherv    Blocks,        Block         BlockEach     "MPI_Neighbor_allgatherv, by the size of a rank's block";
    "neighbor-alltoall"    Allgather     Blocks,        BlockEach     BlockEach     "MPI_Neighbor_alltoall, by the size of a block";
    "neighbor-alltoallv"   Alltoallv     Blocks,        BlockEach     BlockEach     "MPI_Neighbor_alltoallv, by the size of a block";
    "neighbor-alltoallw"   NeighborAlltoallw Blocks,    BlockEach     BlockEach     "MPI_Neighbor_alltoallw, by the size of a block";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_procedures_of_all_forms() {
        let procedure = |name| Collective::named(name).unwrap().procedure();
        assert_eq!(procedure("barrier"), "MPI_Barrier");
        assert_eq!(procedure("iallreduce"), "MPI_Iallreduce");
        assert_eq!(
            procedure("ireduce-scatter-block"),
            "MPI_Ireduce_scatter_block"
        );
        assert_eq!(
            procedure("neighbor-alltoallw-persistent"),
            "MPI_Neighbor_alltoallw_init"
        );
        assert_eq!(Collective::named("Allreduce"), None);
    }

    #[test]
    fn names_are_unique_and_pass_through_json() {
        let mut names = Vec::new();
        for operation in OPERATIONS {
            for form in Form::ALL {
                let collective = Collective { operation, form };
                let text = serde_json::to_string(&collective).unwrap();
                assert_eq!(
                    serde_json::from_str::<Collective>(&text).unwrap(),
                    collective
                );
                names.push(collective.name());
            }
        }
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!((all, names.len()), (3 * 22, 3 * 22));
    }

    #[test]
    fn algorithms_are_chosen_by_the_bytes_of_the_table() {
        let bytes = |name: &str| {
            Collective::named(name)
                .unwrap()
                .operation
                .chosen_bytes(8, 4)
        };
        for (name, wanted) in [
            ("bcast", 8),
            ("allreduce", 8),
            ("reduce-scatter", 8),
            ("reduce-scatter-block", 32),
            ("gather", 8),
            ("scatter", 8),
            ("allgather", 32),
            ("alltoall", 8),
        ] {
            assert_eq!(bytes(name), wanted, "{name}");
        }
    }

    #[test]
    fn topologies_are_grids_and_graphs() {
        assert_eq!(Topology::parse("grid"), Ok(Topology::Grid(2)));
        assert_eq!(Topology::parse("grid:3"), Ok(Topology::Grid(3)));
        assert_eq!(Topology::parse("graph"), Ok(Topology::Graph));
        for wrong in ["", "grid:", "grid:0", "grid:9", "graph:2", "ring"] {
            assert!(Topology::parse(wrong).unwrap_err().contains("grid:D"));
        }
    }
}
