//! Collective procedures of a foreign library in their three forms: blocking, nonblocking and
//! persistent.
//!
//! Invariant: a [`CollectiveCall`] owns the buffers that its operation uses, and gives no access to
//! them while the operation is in progress.

use std::ffi::c_int;
use std::ptr;

use anyhow::{Context, Result};
use memmap2::MmapMut;

use super::signature::Arguments;
use super::{AbiHandle, Address, BYTE, COMM_WORLD, INT, Mpi, REQUEST_NULL, STATUS_IGNORE, SUM};
use crate::form::Form;
use crate::operation::{Collective, Operation, Share, Topology};
use crate::procedure::buffer;

/// Counts, displacements and datatypes of the blocks for each peer.
#[derive(Debug, Default, PartialEq)]
struct Layout {
    counts: Vec<c_int>,
    offsets: Vec<c_int>,
    addresses: Vec<isize>,
    types: Vec<AbiHandle>,
}

impl Layout {
    /// The layout of contiguous blocks, one of `size` bytes for each of `peers`; with
    /// [`Share::Part`], of the parts of one block of `size` bytes.
    fn new(operation: &Operation, size: usize, peers: usize) -> Result<Layout> {
        let elements = size / operation.element();
        let counts: Vec<usize> = match operation.receives {
            Share::Part => parts(elements, peers).collect(),
            _ => vec![elements; peers],
        };
        let offsets = counts.iter().scan(0, |end, count| {
            let begin = *end;
            *end += count;
            Some(begin)
        });
        let offsets: Vec<usize> = offsets.collect();
        let int = |&number: &usize| {
            c_int::try_from(number).with_context(|| format!("{number} does not fit a C integer"))
        };
        Ok(Layout {
            addresses: offsets.iter().map(|offset| *offset as isize).collect(),
            offsets: offsets.iter().map(int).collect::<Result<_>>()?,
            counts: counts.iter().map(int).collect::<Result<_>>()?,
            types: vec![datatype(operation); peers],
        })
    }
}

/// The number of elements in each rank's part: equal numbers, and one more for the first ranks if
/// `elements` is not a multiple of `ranks`.
fn parts(elements: usize, ranks: usize) -> impl Iterator<Item = usize> {
    (0..ranks).map(move |rank| elements / ranks + usize::from(rank < elements % ranks))
}

fn datatype(operation: &Operation) -> AbiHandle {
    match operation.element() {
        1 => BYTE,
        _ => INT,
    }
}

/// The root rank of all measured operations that have a root.
pub(crate) const ROOT: usize = 0;

/// A collective operation with its buffers, communicator and request.
pub(crate) struct CollectiveCall<'a> {
    mpi: &'a Mpi,
    collective: Collective,
    address: Address,
    comm: AbiHandle,
    /// The ranks of the peers, in the order of the blocks: all ranks, or the neighbours.
    peers: Vec<usize>,
    send: Option<MmapMut>,
    recv: Option<MmapMut>,
    layout: Layout,
    arguments: Arguments,
    request: AbiHandle,
    active: bool,
}

impl<'a> CollectiveCall<'a> {
    /// Finds the procedure in the library and allocates buffers for messages of up to `largest`
    /// bytes.
    pub(crate) fn new(
        mpi: &'a Mpi,
        collective: Collective,
        topology: Topology,
        largest: usize,
    ) -> Result<CollectiveCall<'a>> {
        let operation = collective.operation;
        let address = mpi.procedure(&collective.procedure())?;
        let (comm, peers) = match operation.of_neighbours() {
            true => mpi.neighbourhood(topology)?,
            false => (COMM_WORLD, (0..mpi.size()).collect()),
        };
        let send = buffer(operation.sends.bytes(largest, peers.len()))?;
        let recv = buffer(operation.receives.bytes(largest, peers.len()))?;
        let mut call = CollectiveCall {
            mpi,
            collective,
            address,
            comm,
            peers,
            send: Some(send),
            recv: Some(recv),
            layout: Layout::default(),
            arguments: Arguments {
                send: ptr::null(),
                recv: ptr::null_mut(),
                count: 0,
                root: ROOT as c_int,
                datatype: datatype(operation),
                op: SUM,
                comm,
                send_counts: ptr::null(),
                recv_counts: ptr::null(),
                send_offsets: ptr::null(),
                recv_offsets: ptr::null(),
                send_addresses: ptr::null(),
                recv_addresses: ptr::null(),
                types: ptr::null(),
            },
            request: REQUEST_NULL,
            active: false,
        };
        call.describe(0)?;
        Ok(call)
    }

    pub(crate) fn peers(&self) -> &[usize] {
        &self.peers
    }

    /// The displacement and the length in bytes of this rank's part of the buffer.
    pub(crate) fn part(&self) -> (usize, usize) {
        let (rank, element) = (self.mpi.rank(), self.collective.operation.element());
        let of = |numbers: &[c_int]| numbers[rank] as usize * element;
        (of(&self.layout.offsets), of(&self.layout.counts))
    }

    pub(crate) fn send(&mut self) -> &mut [u8] {
        assert!(!self.active, "the buffer is in use");
        self.send.as_mut().expect("present until the end")
    }

    pub(crate) fn recv(&self) -> &[u8] {
        assert!(!self.active, "the buffer is in use");
        self.recv.as_ref().expect("present until the end")
    }

    pub(crate) fn recv_mut(&mut self) -> &mut [u8] {
        assert!(!self.active, "the buffer is in use");
        self.recv.as_mut().expect("present until the end")
    }

    /// Sets the size of messages to `size` bytes, and initializes the request of a persistent
    /// operation.
    pub(crate) fn prepare(&mut self, size: usize) -> Result<()> {
        self.finish()?;
        self.describe(size)?;
        if self.collective.form == Form::Persistent {
            self.begin()?;
        }
        Ok(())
    }

    /// Frees the persistent request that [`CollectiveCall::prepare`] initialized.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if self.request == REQUEST_NULL {
            return Ok(());
        }
        // SAFETY: an inactive persistent request of the library.
        let code = unsafe { (self.mpi.call.request_free)(&mut self.request) };
        self.request = REQUEST_NULL;
        self.mpi.check("MPI_Request_free", code)
    }

    /// Performs the operation once.
    #[inline]
    pub(crate) fn run(&mut self) -> Result<()> {
        if self.collective.form == Form::Blocking {
            return self.begin();
        }
        self.start()?;
        self.wait()
    }

    /// Starts the operation, in its nonblocking or persistent form.
    #[inline]
    pub(crate) fn start(&mut self) -> Result<()> {
        self.active = true;
        if self.collective.form == Form::Persistent {
            // SAFETY: an inactive persistent request of the library; its buffers are ours.
            let code = unsafe { (self.mpi.call.start)(&mut self.request) };
            return self.mpi.check("MPI_Start", code);
        }
        self.begin()
    }

    #[inline]
    pub(crate) fn wait(&mut self) -> Result<()> {
        // SAFETY: a request of the library, or the null request; the status is ignored.
        let code = unsafe { (self.mpi.call.wait)(&mut self.request, STATUS_IGNORE) };
        self.mpi.check("MPI_Wait", code)?;
        self.active = false;
        Ok(())
    }

    /// True if the operation has completed. It may be called again, and
    /// [`wait`](CollectiveCall::wait) too, after completion.
    #[inline]
    pub(crate) fn test(&mut self) -> Result<bool> {
        let mut completed = 0;
        // SAFETY: a request of the library and a flag; the status is ignored.
        let code =
            unsafe { (self.mpi.call.test)(&mut self.request, &mut completed, STATUS_IGNORE) };
        self.mpi.check("MPI_Test", code)?;
        Ok(completed != 0)
    }

    /// Calls the procedure of the operation, in its blocking, nonblocking or persistent form.
    #[inline]
    fn begin(&mut self) -> Result<()> {
        let Collective { operation, form } = self.collective;
        // SAFETY: the standard ABI fixes the prototype behind the procedure's name. `describe` has
        // set the pointers to the layout and to the buffers, which have room for blocks of this
        // size and exist until the operation is complete.
        let code = unsafe {
            operation
                .signature
                .call(self.address, form, &self.arguments, &mut self.request)
        };
        if code == 0 {
            return Ok(());
        }
        self.mpi.check(&self.collective.procedure(), code)
    }

    /// Sets the arguments for messages of `size` bytes.
    fn describe(&mut self, size: usize) -> Result<()> {
        let operation = self.collective.operation;
        let peers = self.peers.len();
        let room = |share: Share, map: &Option<MmapMut>| {
            share.bytes(size, peers) <= map.as_ref().map_or(0, |map| map.len())
        };
        assert!(room(operation.sends, &self.send) && room(operation.receives, &self.recv));
        self.layout = Layout::new(operation, size, peers)?;
        let (counts, offsets) = (self.layout.counts.as_ptr(), self.layout.offsets.as_ptr());
        let addresses = self.layout.addresses.as_ptr();
        self.arguments = Arguments {
            send: self.send.as_ref().map_or(ptr::null(), |map| map.as_ptr()),
            recv: self
                .recv
                .as_mut()
                .map_or(ptr::null_mut(), |map| map.as_mut_ptr()),
            count: c_int::try_from(size / operation.element()).context("a message of 2 GiB")?,
            send_counts: counts,
            recv_counts: counts,
            send_offsets: offsets,
            recv_offsets: offsets,
            send_addresses: addresses,
            recv_addresses: addresses,
            types: self.layout.types.as_ptr(),
            ..self.arguments
        };
        Ok(())
    }
}

impl Drop for CollectiveCall<'_> {
    fn drop(&mut self) {
        if self.active {
            // An operation is in progress after an error: the library may still access these, so
            // leak them.
            std::mem::forget(self.send.take());
            std::mem::forget(self.recv.take());
            std::mem::forget(std::mem::take(&mut self.layout));
            return;
        }
        // This also runs after an error; the user already has that error.
        let _ = self.finish();
        if self.comm != COMM_WORLD {
            self.mpi.free(&mut self.comm);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_contiguous_and_parts_add_up() {
        let operation = |name| Collective::named(name).unwrap().operation;
        let blocks = Layout::new(operation("alltoallw"), 6, 3).unwrap();
        assert_eq!(blocks.counts, [6, 6, 6]);
        assert_eq!(blocks.offsets, [0, 6, 12]);
        assert_eq!(blocks.addresses, [0, 6, 12]);
        assert_eq!(blocks.types, [BYTE; 3]);
        let divided = Layout::new(operation("reduce-scatter"), 32, 3).unwrap();
        assert_eq!(divided.counts, [3, 3, 2]);
        assert_eq!(divided.offsets, [0, 3, 6]);
        for elements in 0..20 {
            for ranks in 1..9 {
                assert_eq!(parts(elements, ranks).sum::<usize>(), elements);
            }
        }
    }
}
