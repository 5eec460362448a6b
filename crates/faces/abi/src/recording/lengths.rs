//! The lengths of arrays that follow from the communicator, or from another array.

use crate::constants::{MPI_IN_PLACE, MPI_ROOT};
use crate::handle::Comm;
use mpi::topology::Shape;
use std::ffi::c_int;

use super::capture::View;

impl View<'_> {
    /// The number of elements of an array whose length no parameter is; `None` if the call does not
    /// read the array.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    pub(super) unsafe fn unknown_length(&self, name: &str) -> Result<Option<usize>, String> {
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
        let state = self.rank.lock();
        let topology = state.objects().neighbourhood(self.comm().id());
        match topology.map(|topology| topology.shape.clone()) {
            Ok(Shape::Cartesian(grid)) => Ok(grid.dims().len()),
            _ => Err("its communicator is no grid".into()),
        }
    }

    /// The number of blocks that an array of a collective call describes.
    fn blocks(&self, name: &str) -> Result<Option<usize>, String> {
        let state = self.rank.lock();
        let wrong = |error: mpi::Error| error.to_string();
        let comm = self.comm().id();
        let core = &state.objects().comms().get(comm).map_err(wrong)?.core;
        let is_sent = name.starts_with('s');
        if is_sent && self.word("sendbuf") == Some(MPI_IN_PLACE as usize as u64) {
            return Ok(None);
        }
        if self
            .signature
            .name
            .to_ascii_lowercase()
            .contains("neighbor_")
        {
            let topology = state.objects().neighbourhood(comm).map_err(wrong)?;
            return Ok(Some(match is_sent {
                true => topology.neighbours.destinations().len(),
                false => topology.neighbours.sources().len(),
            }));
        }
        if self.signature.name.contains("educe_scatter") {
            return Ok(Some(core.size()));
        }
        let is_root = |root: u64| match core.is_inter() {
            true => root as c_int == MPI_ROOT,
            false => root == core.rank as u64,
        };
        let reads = self.word("root").is_none_or(is_root);
        Ok(reads.then(|| core.peers().len()))
    }

    /// The communicator of the call.
    pub(super) fn comm(&self) -> Comm {
        let at = self.signature.first_of("comm");
        Comm(at.map_or(0, |at| self.words[at] as usize))
    }
}
