//! The promises of a transport, kept over real devices of this host: the first one, and the one
//! that FISHPLATE_TEST_PEER names.

use device::{Device, HostDevice};
use host_node::{Board, HostNode};
use knobs::RdmaDesign;
use secret::Secret;

use super::*;
use crate::suite;

/// The transports of `ranks` ranks, which use the two devices alternately.
fn all(ranks: usize, config: Config) -> Vec<Rdma> {
    let board = Board::new(ranks);
    let secret = Secret::from_bytes([3; Secret::LENGTH]);
    let first = verbs::open("", &secret).unwrap()[0]
        .attributes()
        .name
        .clone();
    let peer = std::env::var("FISHPLATE_TEST_PEER").expect("FISHPLATE_TEST_PEER names a device");
    let node = |rank| {
        let name = if rank % 2 == 0 { &first } else { &peer };
        let devices = verbs::open(name, &secret).unwrap().into_iter();
        let devices = devices.map(|one| Box::new(one) as Box<dyn HostDevice>);
        HostNode::new(devices.collect(), rank, ranks, &secret, board.of(rank)).unwrap()
    };
    let attach = |rank| Rdma::attach(Box::new(node(rank)), rank, ranks, config).unwrap();
    (0..ranks).map(attach).collect()
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn it_keeps_the_promises_of_a_channel() {
    for design in [
        RdmaDesign::Basic,
        RdmaDesign::Piggyback,
        RdmaDesign::Pipeline,
        RdmaDesign::ZeroCopy,
    ] {
        for (ring_bytes, gather, rings) in [
            (256 << 10, true, 64),
            (16 << 10, true, 2),
            (16 << 10, false, 0),
        ] {
            let config = Config {
                design,
                ring_bytes,
                gather,
                rings,
                ..Config::default()
            };
            println!("{config:?}");
            suite::promises(|ranks| all(ranks, config));
        }
    }
}

/// Maps pages filled with `byte`, at address `at` or at one of the kernel's choice. `None`: another
/// mapping has the address.
fn mapped(at: Option<u64>, len: usize, byte: u8) -> Option<&'static mut [u8]> {
    let place = at.unwrap_or(0) as *mut libc::c_void;
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | at.map_or(0, |_| libc::MAP_FIXED_NOREPLACE);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, which replaces none.
    let address = unsafe { libc::mmap(place, len, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: mapped for this slice alone, until the test unmaps it.
    let memory = unsafe { std::slice::from_raw_parts_mut(address.cast::<u8>(), len) };
    memory.fill(byte);
    Some(memory)
}

/// A device reads the pages that it has pinned. With the key of freed memory it would read the old
/// bytes.
#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn a_peer_reads_memory_that_is_mapped_anew_at_the_address_of_freed_memory() {
    use crate::{Exposed, Family, Transfer, ZeroCopy};
    const LEN: usize = 64 << 10;
    let mut both = all(2, Config::default());
    let mut b = both.pop().unwrap();
    let mut a = both.pop().unwrap();
    super::tests::put(&mut a, &mut b, [1, 0, 0]);
    let mut into = vec![0u8; LEN];
    let mut at = None;
    for byte in 1..=20 {
        let Some(memory) = mapped(at, LEN, byte) else {
            panic!("another mapping has taken the address");
        };
        at = Some(memory.as_ptr() as u64);
        // Twice: the second exposure uses the registration of the first.
        for _ in 0..2 {
            into.fill(0);
            let from = b.expose(
                0,
                &suite::memory(memory),
                LEN,
                Exposed::ToRead,
                Family::Messages,
            );
            let from = from.unwrap().unwrap();
            let to = a.expose(
                1,
                &suite::room(&mut into),
                LEN,
                Exposed::ToWrite,
                Family::Messages,
            );
            let to = to.unwrap().unwrap();
            let started = a
                .read(1, &from.key(), &to, 0..LEN, suite::token(byte.into()))
                .unwrap();
            assert_eq!(started, Transfer::Started);
            while a.done(Family::Messages).is_none() {
                suite::take(&mut a, |_, _, _| ()).unwrap();
                suite::take(&mut b, |_, _, _| ()).unwrap();
                std::thread::yield_now();
            }
            b.retract(from).unwrap();
            a.retract(to).unwrap();
            assert!(
                into.iter().all(|got| *got == byte),
                "{} for {byte}",
                into[0]
            );
        }
        // SAFETY: the memory of this test, which nothing uses any more.
        assert_eq!(unsafe { libc::munmap(memory.as_mut_ptr().cast(), LEN) }, 0);
    }
    let counts = b.registration_counts();
    println!("{counts:?}");
    match counts.off {
        None => assert_eq!(
            (counts.hits, counts.misses, counts.invalidated),
            (20, 20, 19)
        ),
        Some(_) => assert_eq!((counts.hits, counts.misses), (0, 40)),
    }
}
