//! Reading a profile: the parts of all ranks, after the job.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::layout::{
    CLASS, CLASSES, FINISHED, MOST_PEERS, MOST_PROCEDURES, MOST_RAILS, NAME, PART, PEER, PEERS_AT,
    PROCEDURE, PROCEDURES_AT, RUNNING, SIZES_AT, head, largest_of,
};

/// The use of MPI by a rank: before, between or after MPI_Init and MPI_Finalize.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The rank has not called MPI_Init.
    #[default]
    Absent,
    /// The rank has called MPI_Init and not MPI_Finalize: it was killed, or it ended early.
    Running,
    /// The rank has called MPI_Finalize.
    Finished,
}

/// The number of some messages, and the sum of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The number of the counted messages.
    pub count: u64,
    /// The sum of the bytes of the counted messages.
    pub bytes: u64,
}

/// The messages of one size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SizeClass {
    /// The size of the largest messages of this class, in bytes: 0 or a power of two. Messages of
    /// up to half of it belong to other classes.
    pub up_to: u64,
    /// The number of messages of this size class.
    pub count: u64,
    /// The sum of the bytes of the messages of this size class.
    pub bytes: u64,
}

/// A rank's calls of one procedure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Procedure {
    /// The name of the procedure.
    pub name: String,
    /// The number of calls that the rank has made of the procedure.
    pub calls: u64,
    /// The time in those calls that have returned, in picoseconds.
    pub time: u64,
    /// The bytes of the messages that began during its calls.
    pub bytes: u64,
}

/// A rank's messages to one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerTraffic {
    /// The world rank of the peer.
    pub rank: u64,
    /// The messages that the rank has sent to this peer.
    pub sent: Counted,
}

/// The counts that one rank recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankRecord {
    /// The state of the rank: before MPI_Init, in MPI, or after MPI_Finalize.
    pub state: State,
    /// The time of the rank's last record, in picoseconds since the rank's start.
    pub time: u64,
    /// The time at which MPI_Init returned, in picoseconds since the rank's start.
    pub started: u64,
    /// The time in MPI procedures that have returned, in picoseconds.
    pub in_mpi: u64,
    /// The idle part of `in_mpi`, in picoseconds, if it is known.
    pub waited: Option<u64>,
    /// The name of the procedure that has not returned, if there is one.
    pub current: Option<String>,
    /// Messages by size, without empty classes.
    pub sizes: Vec<SizeClass>,
    /// Procedures, in the order of their first calls.
    pub procedures: Vec<Procedure>,
    /// Peers, in the order of the first messages to them.
    pub peers: Vec<PeerTraffic>,
    /// Messages to peers beyond the first [`MOST_PEERS`].
    pub others: Counted,
    /// The number of connections from processes outside the job, for each rail.
    pub strangers: [u64; MOST_RAILS],
    /// The number of outages, times without a path to a peer; and the sum of their durations in
    /// picoseconds.
    pub outages: (u64, u64),
    /// The number of involuntary context switches while the rank computed, the time of that
    /// computing in picoseconds, and the greatest number of threads that computed at once. `None`
    /// if the rank's computing is not timed.
    pub computed: Option<(u64, u64, u64)>,
    /// The time of work inside MPI on the rank's own memory, in picoseconds; 0 on a real machine.
    pub worked: u64,
    /// The time by which the progress thread has made computing longer, in picoseconds.
    pub delayed: u64,
    /// Bytes that were read from files in no virtual time, and bytes that were written.
    pub free_files: (u64, u64),
    /// True if the rank requested MPI_THREAD_MULTIPLE, and got less.
    pub lacks_threads: bool,
}

/// Reads the profile of a job of `ranks` ranks. No rank may be running.
///
/// # Errors
/// The file cannot be read.
pub fn read(file: &File, ranks: usize) -> io::Result<Vec<RankRecord>> {
    (0..ranks).map(|rank| read_part(file, rank)).collect()
}

fn read_part(file: &File, rank: usize) -> io::Result<RankRecord> {
    let words = |at: usize, len: usize| -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; len * 8];
        file.read_exact_at(&mut bytes, (rank * PART + at) as u64 * 8)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    };
    let first = words(0, PROCEDURES_AT)?;
    let state = match first[head::STATE] {
        RUNNING => State::Running,
        FINISHED => State::Finished,
        _ => return Ok(RankRecord::default()),
    };
    let number = |at: usize, most: usize| first[at].min(most as u64) as usize;
    let procedures = number(head::PROCEDURES, MOST_PROCEDURES);
    let peers = number(head::PEERS, MOST_PEERS);
    let procedures = words(PROCEDURES_AT, procedures * PROCEDURE)?;
    let procedures: Vec<Procedure> = procedures
        .chunks_exact(PROCEDURE)
        .map(|entry| Procedure {
            name: name(&entry[..NAME]),
            calls: entry[NAME],
            time: entry[NAME + 1],
            bytes: entry[NAME + 2],
        })
        .collect();
    let peers = words(PEERS_AT, peers * PEER)?;
    let peers = peers.chunks_exact(PEER).map(|entry| PeerTraffic {
        rank: entry[0],
        sent: counted(entry[1], entry[2]),
    });
    let sizes = first[SIZES_AT..][..CLASSES * CLASS].chunks_exact(CLASS);
    let sizes = sizes.enumerate().map(|(class, entry)| SizeClass {
        up_to: largest_of(class),
        count: entry[0],
        bytes: entry[1],
    });
    let current = first[head::CURRENT].checked_sub(1);
    let current = current.and_then(|number| procedures.get(usize::try_from(number).ok()?));
    Ok(RankRecord {
        state,
        time: first[head::TIME],
        started: first[head::STARTED],
        in_mpi: first[head::IN_MPI],
        waited: first[head::WAITED].checked_sub(1),
        current: current.map(|procedure| procedure.name.clone()),
        sizes: sizes.filter(|class| class.count > 0).collect(),
        peers: peers.collect(),
        others: counted(first[head::OTHERS], first[head::OTHERS + 1]),
        strangers: std::array::from_fn(|rail| first[head::STRANGERS + rail]),
        outages: (first[head::OUTAGES], first[head::OUTAGES + 1]),
        computed: first[head::SWITCHES].checked_sub(1).map(|switches| {
            let [time, threads] = [1, 2].map(|at| first[head::SWITCHES + at]);
            (switches, time, threads)
        }),
        worked: first[head::WORKED],
        delayed: first[head::DELAYED],
        free_files: (first[head::FREE_FILES], first[head::FREE_FILES + 1]),
        lacks_threads: first[head::LACKS_THREADS] != 0,
        procedures,
    })
}

fn counted(count: u64, bytes: u64) -> Counted {
    Counted { count, bytes }
}

/// The name in these words, up to the first byte that no name has.
fn name(words: &[u64]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
    let own = bytes.take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    own.map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RankProfile, create};

    #[test]
    fn a_rank_leaves_what_it_has_counted() {
        let file = create(3).unwrap();
        let rank = RankProfile::open(&file, 2).unwrap();
        rank.begin("MPI_Init_thread", 10);
        for round in 0..3 {
            rank.enter("MPI_Send", 100 * round + 20);
            rank.sent(round as usize % 2, 100);
            rank.leave(100 * round + 50, Some(5 * round));
        }
        rank.enter("MPI_Recv", 400);
        rank.strangers(1, 5);
        rank.strangers(1, 7);
        rank.strangers(MOST_RAILS, 9);
        rank.outages(2, 3_000);
        rank.computed(0, 7_000, 2);
        rank.worked(70);
        rank.worked(90);
        rank.delayed(40);
        rank.free_files(5, 40);
        rank.free_files(0, 2);
        rank.lacks_threads();
        assert!(RankProfile::open(&file, 3).is_err());
        let file = File::from(file);
        let records = read(&file, 3).unwrap();
        assert_eq!(records[0], RankRecord::default());
        let seen = &records[2];
        assert_eq!(seen.state, State::Running);
        assert_eq!((seen.time, seen.in_mpi), (400, 10 + 3 * 30));
        assert_eq!(seen.waited, Some(10));
        assert_eq!(seen.strangers, [0, 7, 0, 0, 0, 0, 0, 0]);
        assert_eq!(seen.outages, (2, 3_000_000));
        assert_eq!(seen.computed, Some((0, 7_000_000, 2)));
        assert_eq!((seen.worked, seen.delayed), (90, 40));
        assert_eq!((seen.free_files, seen.lacks_threads), ((5, 42), true));
        assert_eq!(seen.current.as_deref(), Some("MPI_Recv"));
        let sends = &seen.procedures[1];
        assert_eq!(
            (&*sends.name, sends.calls, sends.time, sends.bytes),
            ("MPI_Send", 3, 90, 300)
        );
        let class = SizeClass {
            up_to: 128,
            count: 3,
            bytes: 300,
        };
        assert_eq!(seen.sizes, [class]);
        let peers: Vec<_> = seen
            .peers
            .iter()
            .map(|peer| (peer.rank, peer.sent))
            .collect();
        assert_eq!(peers, [(0, counted(2, 200)), (1, counted(1, 100))]);
        rank.finish(450, None);
        let seen = &read(&file, 3).unwrap()[2];
        assert_eq!((seen.state, seen.in_mpi), (State::Finished, 150));
    }

    #[test]
    fn peers_beyond_the_table_are_summed() {
        let file = create(1).unwrap();
        let rank = RankProfile::open(&file, 0).unwrap();
        rank.begin("MPI_Init", 0);
        for peer in 0..MOST_PEERS + 5 {
            rank.sent(peer, 7);
        }
        rank.sent(3, 7);
        let seen = &read(&File::from(file), 1).unwrap()[0];
        assert_eq!(seen.peers.len(), MOST_PEERS);
        assert_eq!(seen.peers[3].sent, counted(2, 14));
        assert_eq!(seen.others, counted(5, 35));
    }

    #[test]
    fn a_file_that_was_written_over_is_read_without_harm() {
        let file = File::from(create(1).unwrap());
        file.write_all_at(&[0xff; PART * 8], 0).unwrap();
        assert_eq!(read(&file, 1).unwrap()[0], RankRecord::default());
        file.write_all_at(&RUNNING.to_ne_bytes(), 0).unwrap();
        let seen = &read(&file, 1).unwrap()[0];
        assert_eq!(seen.peers.len(), MOST_PEERS);
        assert_eq!(
            (seen.current.as_deref(), &*seen.procedures[0].name),
            (None, "")
        );
    }
}
