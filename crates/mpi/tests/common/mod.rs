//! Ranks as threads of one process: each has a `Rank` of its own, over real shared memory.

use std::sync::Arc;

use channel::shm::Segment;
use datatype::Buffer;
use mpi::{Rank, RealHost, Wiring};

/// Runs `program` on `size` ranks with these settings; panics of a rank are the test's.
pub fn run_with(
    size: usize,
    settings: &[(&str, &str)],
    program: impl Fn(&Arc<Rank>) + Send + Sync,
) {
    let segment = Segment::create(size).unwrap();
    std::thread::scope(|scope| {
        for rank in 0..size {
            let segment = segment.try_clone().unwrap();
            let program = &program;
            scope.spawn(move || {
                let knobs = knobs::Knobs::parse(
                    settings.iter().map(|(k, v)| (k.to_string(), v.to_string())),
                )
                .unwrap();
                let wiring = Wiring {
                    rank,
                    size,
                    segment,
                    control: None,
                };
                let rank =
                    Rank::new(Some(wiring), knobs, |ranks| Box::new(RealHost::new(ranks))).unwrap();
                let rank = Arc::new(rank);
                program(&rank);
                rank.finish("MPI_Finalize").unwrap();
            });
        }
    });
}

#[allow(dead_code)]
pub fn run(size: usize, program: impl Fn(&Arc<Rank>) + Send + Sync) {
    run_with(size, &[], program);
}

/// The bytes of a slice as a buffer to send; they must stay until the send is complete.
pub fn out(bytes: &[u8]) -> Buffer {
    // SAFETY: the tests keep the bytes until the operation is complete, and a send does not write.
    unsafe { Buffer::dense(bytes.as_ptr().cast_mut(), bytes.len()) }
}

/// The bytes of a slice as a buffer to receive into.
pub fn room(bytes: &mut [u8]) -> Buffer {
    // SAFETY: the tests keep the bytes until the operation is complete, and look at them afterwards.
    unsafe { Buffer::dense(bytes.as_mut_ptr(), bytes.len()) }
}
