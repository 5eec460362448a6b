//! Notes of collective calls that move data.

use message_check::{Data, Event, PARTS, USER_OP};
use mpi::comm::Core;
use std::ffi::c_int;

use super::{Begun, Inner, MOST_BLOCKS, note};
use crate::constants::*;

impl Inner {
    /// Notes a collective call that moves data.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    pub(super) unsafe fn collective(
        &mut self,
        rank: &mpi::Rank,
        begun: &Begun,
        (comm, core): (u64, &Core),
    ) {
        let root = begun.int("root").map(|root| root as c_int);
        let is_root = root
            .is_none_or(|root| root == MPI_ROOT || !core.is_inter() && root == core.rank as c_int);
        let is_idle = root == Some(MPI_PROC_NULL);
        let lower = begun.signature.name.to_lowercase();
        let significant =
            |is_given: bool| match (lower.contains("gather"), lower.contains("scatter")) {
                _ if is_idle => false,
                _ if root.is_none() => true,
                (true, _) if is_given => !is_root || !core.is_inter(),
                (true, _) => is_root,
                (_, true) => is_given == is_root || !is_given && !core.is_inter(),
                _ => true,
            };
        let in_place = MPI_IN_PLACE.addr() as u64;
        let has = |buffer: &str| begun.word(buffer).is_none_or(|word| word != in_place);
        let side = |inner: &mut Inner, words: [&str; 3], is_given: bool| {
            let [buffer, count, ty] = words;
            (has(buffer) && significant(is_given))
                .then(|| Some(inner.data(rank, begun.word(ty)?, begun.int(count)?)))
                .flatten()
        };
        let is_reduction = begun.signature.position("op").is_some();
        let vector = begun
            .signature
            .position("recvcounts")
            .filter(|_| is_reduction);
        let one = match is_reduction || lower.contains("bcast") {
            true if is_idle => None,
            true => {
                let count = begun.int("count").or(begun.int("recvcount")).unwrap_or(1);
                Some(self.data(rank, begun.word("datatype").unwrap_or(0), count))
            }
            false => side(self, ["sendbuf", "sendcount", "sendtype"], true),
        };
        let gets =
            side(self, ["recvbuf", "recvcount", "recvtype"], false).filter(|_| !is_reduction);
        // SAFETY: the caller's promise.
        let counts = vector.map_or(0, |at| unsafe { digest(&begun.array(at, core.size())) });
        for (are_given, counts, types) in [
            (true, "sendcounts", "sendtype"),
            (false, "recvcounts", "recvtype"),
        ] {
            let at = begun.signature.position(counts).filter(|_| !is_reduction);
            let Some(at) =
                at.filter(|_| significant(are_given) && core.peers().len() <= MOST_BLOCKS)
            else {
                continue;
            };
            if are_given && !has("sendbuf") {
                continue;
            }
            // SAFETY: the caller's promise.
            unsafe { self.blocks(rank, begun, (at, types), are_given, core.peers().len()) };
        }
        let op = begun.word("op").map_or(0, |op| op as u32);
        let event = Event::Collective {
            comm,
            root: root.and_then(|root| number_of_root(root, core, rank.rank())),
            op: match datatype::Op::from_handle(op as usize) {
                Some(_) => op,
                None if op == 0 || is_idle => 0,
                None => USER_OP,
            },
            gives: one,
            gets,
            counts,
        };
        self.operation(rank, event);
    }

    /// Notes the blocks of a collective call that have a count each.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    unsafe fn blocks(
        &mut self,
        rank: &mpi::Rank,
        begun: &Begun,
        (at, types): (usize, &str),
        are_given: bool,
        len: usize,
    ) {
        // SAFETY: the caller's promise.
        let counts = unsafe { begun.array(at, len) };
        let array = begun.signature.position(&format!("{types}s"));
        let types: Vec<u64> = match array {
            // SAFETY: the caller's promise.
            Some(at) => unsafe { begun.array(at, len) }
                .into_iter()
                .map(|one| one as u64)
                .collect(),
            None => vec![begun.word(types).unwrap_or(0); counts.len()],
        };
        let all: Vec<Data> = counts
            .iter()
            .zip(types)
            .map(|(count, ty)| self.data(rank, ty, *count))
            .collect();
        for (at, part) in all.chunks(PARTS).enumerate() {
            let mut blocks = [None; PARTS];
            part.iter()
                .zip(&mut blocks)
                .for_each(|(data, block)| *block = Some(*data));
            let first = (at * PARTS) as u32;
            let event = Event::Blocks {
                are_given,
                first,
                blocks,
            };
            note(rank, event);
        }
    }
}

/// The number of a root, equal on all members: that in the communicator, or in `MPI_COMM_WORLD` for
/// an intercommunicator. `None`: the rank takes no part. `me`: the rank in `MPI_COMM_WORLD`.
fn number_of_root(root: c_int, core: &Core, me: usize) -> Option<u32> {
    match (core.is_inter(), root) {
        (true, MPI_ROOT) => Some(me as u32),
        (true, root) => {
            let peer = usize::try_from(root).ok()?;
            core.peers().world(peer).map(|root| root as u32)
        }
        (false, root) => u32::try_from(root).ok(),
    }
}

/// A digest of counts, which is not 0.
fn digest(counts: &[i64]) -> u32 {
    let step = |sum: u64, count: &i64| (sum ^ *count as u64).wrapping_mul(0x100_0000_01b3);
    let sum = counts.iter().fold(0xcbf2_9ce4_8422_2325, step);
    (sum >> 32) as u32 | 1
}
