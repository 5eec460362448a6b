//! Work of a rank on its own memory takes time on a modelled machine: as much as its rate says, once,
//! and before the messages that carry its result.

use std::sync::{Arc, Mutex};

use datatype::{Buffer, Elements, Op, Predefined, Type};
use fabric::GbPerSec;
use model::config::MachineConfig;
use mpi::coll::{Blocks, Counts, Reduction, Work};
use mpi::comm::{SELF, WORLD};
use mpi::op::Operation;
use mpi::{Mode, Rank};

use crate::common::modelled::{Keep, play, system};
use crate::common::{elements, out, room};

/// Bytes of a vector, and the picoseconds of one of them: 1 GB/s.
const BYTES: usize = 1 << 20;
const EACH: u64 = 1000;

/// The times that each of two ranks works on its own memory, and that `part` takes, in picoseconds.
fn times(part: impl Fn(&Arc<Rank>) + 'static) -> [[u64; 2]; 2] {
    let mut machine = system("qdr");
    machine.host.local = Some(GbPerSec::from_bits_per_sec(8_000_000_000));
    let scene = MachineConfig::new(&machine, 2, 1, 1).unwrap();
    let found = Arc::new(Mutex::new([[0; 2]; 2]));
    let theirs = found.clone();
    play(scene, vec![], Keep::Nothing, move |rank| {
        rank.collective("MPI_Barrier", &Work::Barrier, WORLD)
            .unwrap();
        let before = rank.virtual_time().unwrap();
        part(rank);
        let after = rank.virtual_time().unwrap();
        let times = [after.worked - before.worked, after.now - before.now];
        theirs.lock().unwrap()[rank.rank()] = times;
    });
    let found = found.lock().unwrap();
    *found
}

/// The picoseconds of work on a number of bytes.
fn of(bytes: usize) -> u64 {
    bytes as u64 * EACH
}

fn doubles(bytes: &mut [u8]) -> Elements {
    elements(bytes, bytes.len() / 8, &Predefined::DOUBLE.into())
}

#[test]
fn a_sum_takes_the_time_of_its_bytes() {
    let times = times(|rank| {
        let (mut input, mut inout) = (vec![0; BYTES], vec![0; BYTES]);
        let sum = Operation::Predefined(Op::Sum);
        rank.reduce_local(&doubles(&mut input), &doubles(&mut inout), &sum)
            .unwrap();
    });
    assert_eq!(times, [[of(BYTES); 2]; 2]);
}

#[test]
fn a_reduction_takes_its_sums_beside_its_messages() {
    let reduce = |rank: &Arc<Rank>| {
        let (mut input, mut result) = (vec![0; BYTES], vec![0; BYTES / 2]);
        let reduction = Reduction {
            send: Some(doubles(&mut input)),
            receive: Some(doubles(&mut result)),
            op: Operation::Predefined(Op::Sum),
        };
        let work = Work::ReduceScatter {
            reduction,
            counts: Counts::Even(BYTES / 16),
        };
        rank.collective("MPI_Reduce_scatter_block", &work, WORLD)
            .unwrap();
    };
    for [worked, all] in times(reduce) {
        // Each rank adds its half; some algorithms copy contributions first.
        assert!(
            (of(BYTES / 2)..=of(5 * BYTES / 2)).contains(&worked),
            "{worked}"
        );
        assert!(all > worked, "{all} {worked}");
    }
}

/// Elements of 8 bytes at a stride, in bytes.
fn column(rank: &Rank, stride: isize) -> Type {
    let double = Predefined::DOUBLE.into();
    let ty = Type::hvector((BYTES / 8) as i64, 1, stride, &double).unwrap();
    let mut state = rank.lock();
    let handle = state.objects_mut().types_mut().add(ty).unwrap();
    state.objects_mut().types_mut().commit(handle).unwrap();
    state.objects().types().committed(handle).unwrap().clone()
}

#[test]
fn a_column_takes_the_time_of_its_lines_at_each_end() {
    const STRIDE: usize = 128;
    for is_one_run in [true, false] {
        let times = times(move |rank| {
            let mut bytes = vec![0; BYTES / 8 * STRIDE];
            let buffer = match is_one_run {
                true => room(&mut bytes[..BYTES]),
                // SAFETY: the vector holds the column and outlives the operation.
                false => unsafe {
                    Buffer::new(bytes.as_mut_ptr(), 1, &column(rank, STRIDE as isize))
                },
            };
            match rank.rank() {
                0 => rank
                    .send("MPI_Send", Mode::Standard, buffer, 1, 0, WORLD)
                    .unwrap(),
                _ => drop(rank.receive("MPI_Recv", buffer, 0, 0, WORLD).unwrap()),
            }
        });
        // A line of 64 bytes for each element, less the copy that every message has.
        let wanted = match is_one_run {
            true => 0,
            false => of(BYTES / 8 * 56),
        };
        assert_eq!(times.map(|[worked, _]| worked), [wanted; 2]);
        let end = times[1][1];
        // The ends work on different pieces at once.
        assert!(end > wanted, "{end}");
    }
}

#[test]
fn a_message_to_the_rank_itself_takes_its_copies() {
    let times = times(|rank| {
        let (data, mut taken) = (vec![1; BYTES], vec![0; BYTES]);
        let mut state = rank.lock();
        let receive = state.receive(room(&mut taken), 0, 0, SELF).unwrap();
        drop(state);
        rank.send("MPI_Send", Mode::Standard, out(&data), 0, 0, SELF)
            .unwrap();
        rank.wait("MPI_Wait", receive).unwrap();
        assert_eq!(taken, data);
    });
    // Packets of control have some bytes, too.
    for [worked, _] in times {
        assert!((of(BYTES)..of(BYTES + 1000)).contains(&worked), "{worked}");
    }
}

#[test]
fn a_block_of_the_rank_itself_is_copied_in_its_time() {
    let times = times(|rank| {
        let (mut give, mut take) = (vec![1; 2 * BYTES], vec![0; 2 * BYTES]);
        let work = Work::Alltoall {
            send: Some(Blocks::even(room(&mut give), 2)),
            receive: Blocks::even(room(&mut take), 2),
        };
        rank.collective("MPI_Alltoall", &work, WORLD).unwrap();
        assert_eq!(take, give);
    });
    assert_eq!(times.map(|[worked, _]| worked), [of(BYTES); 2]);
}
