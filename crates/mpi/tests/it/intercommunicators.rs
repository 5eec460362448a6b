//! Intercommunicators: that both groups agree on them, that ranks name the remote group, and what
//! is made of them.

use std::sync::Arc;

use crate::common::{out, room, run};
use mpi::comm::WORLD;
use mpi::{ANY_SOURCE, Mode, Rank, RemoteLeader};

/// This rank's group and a remote one: the first `first` ranks of the job, and the others.
pub(crate) fn halves(rank: &Arc<Rank>, first: usize) -> (u32, u32) {
    let is_first = rank.rank() < first;
    let color = i32::from(!is_first);
    let group = rank.comm_split("MPI_Comm_split", WORLD, color, 0).unwrap();
    let remote = RemoteLeader {
        peer_comm: WORLD,
        rank: if is_first { first as i32 } else { 0 },
        tag: 7,
    };
    let made = rank.intercomm_create("MPI_Intercomm_create", group, 0, remote);
    (group, made.unwrap())
}

/// Each rank sends to one of the remote group, which hears the sender's number in its own group.
fn talk(rank: &Rank, comm: u32) {
    let core = rank.lock().comms.get(comm).unwrap().core.clone();
    let (me, remote) = (core.rank, core.remote().unwrap().len());
    let said = (rank.rank() as u64).to_ne_bytes();
    let to = (me % remote) as i32;
    let senders = (0..remote).filter(|sender| sender % core.size() == me);
    rank.send("MPI_Send", Mode::Standard, out(&said), to, 1, comm)
        .unwrap();
    for _ in senders {
        let mut heard = [0; 8];
        let status = rank.receive("MPI_Recv", room(&mut heard), ANY_SOURCE, 1, comm);
        let world = core
            .remote()
            .unwrap()
            .world(status.unwrap().source as usize);
        assert_eq!(world, Some(u64::from_ne_bytes(heard) as usize));
    }
}

#[test]
fn create_talk_merge() {
    for (ranks, first) in [(2, 1), (3, 1), (3, 2), (5, 2), (7, 4)] {
        run(ranks, move |rank| {
            let (_, inter) = halves(rank, first);
            talk(rank, inter);
            let twin = rank.comm_dup("MPI_Comm_dup", inter, &[]).unwrap();
            talk(rank, twin);
            for (low, high) in [(false, true), (true, false), (false, false)] {
                let is_high = if rank.rank() < first { low } else { high };
                let merged = rank.intercomm_merge("MPI_Intercomm_merge", inter, is_high);
                let merged = merged.unwrap();
                let core = rank.lock().comms.get(merged).unwrap().core.clone();
                let turn = if low && !high { first } else { 0 };
                let expected: Vec<usize> = (0..ranks).map(|at| (turn + at) % ranks).collect();
                assert_eq!(core.members.iter().collect::<Vec<_>>(), expected);
                assert_eq!(core.members.world(core.rank), Some(rank.rank()));
            }
        });
    }
}
