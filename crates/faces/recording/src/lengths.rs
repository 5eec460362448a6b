//! The lengths of arrays that follow from the communicator, or from another array.

use crate::capture::View;
use crate::standard::{MPI_IN_PLACE, MPI_ROOT};

impl View<'_> {
    /// The number of elements of an array whose length no parameter is; `None` if the call does not
    /// read the array.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    pub(crate) unsafe fn unknown_length(&self, name: &str) -> Result<Option<usize>, String> {
        let number = |name: &str| {
            self.word(name)
                .map_or(0, |word| (word as i64).max(0) as usize)
        };
        let sum = |name: &str, length: usize| -> usize {
            let values = self.signature.position(name).into_iter().flat_map(|at| {
                // SAFETY: the caller's promise: the array has that length.
                unsafe { self.elements(at, length) }
            });
            values.map(|value| value.max(0) as usize).sum()
        };
        Ok(match name {
            "destinations" | "weights" => Some(sum("degrees", number("n"))),
            "sourceweights" => Some(number("indegree")),
            "destweights" => Some(number("outdegree")),
            "edges" => {
                let (nodes, at) = (number("nnodes"), self.signature.position("indx"));
                // SAFETY: the caller's promise: the array has that length.
                let last = at.and_then(|at| unsafe { self.elements(at, nodes) }.pop());
                Some(last.unwrap_or(0).max(0) as usize)
            }
            "coords" | "remain_dims" => Some(self.dimensions()?),
            _ => self.blocks(name)?,
        })
    }

    fn dimensions(&self) -> Result<usize, String> {
        let topology = self.library.topology(self.comm());
        let dimensions = topology.and_then(|topology| topology.dimensions);
        dimensions.ok_or_else(|| "its communicator is no grid".into())
    }

    /// The number of blocks that an array of a collective call describes.
    fn blocks(&self, name: &str) -> Result<Option<usize>, String> {
        let members = self.library.members(self.comm())?;
        let is_sent = name.starts_with('s');
        if is_sent && self.word("sendbuf") == Some(MPI_IN_PLACE as u64) {
            return Ok(None);
        }
        let procedure = &self.signature.name;
        if procedure.to_ascii_lowercase().contains("neighbor_") {
            let topology = self.library.topology(self.comm());
            let topology = topology.ok_or("its communicator has no topology")?;
            return Ok(Some(match is_sent {
                true => topology.destinations,
                false => topology.sources,
            }));
        }
        if procedure.contains("educe_scatter") {
            return Ok(Some(members.size));
        }
        let is_root = |root: u64| match members.is_inter {
            true => root as i64 == MPI_ROOT,
            false => root as i64 == members.rank,
        };
        let reads = self.word("root").is_none_or(is_root);
        Ok(reads.then_some(members.peers))
    }

    /// The communicator of the call.
    pub(crate) fn comm(&self) -> u64 {
        let at = self.signature.first_of("comm");
        at.map_or(0, |at| self.words[at])
    }
}
