//! Processes of two hosts that send and receive.

use std::rc::Rc;

use fabric::System;
use fabric::catalogue::Catalogue;
use ipoib::{Mode, Network, Place, Process, take_interrupts};
use model::{Faults, MachineModel, ModelNode};
use proptest::prelude::*;
use sim::coroutines;

pub(crate) fn qdr() -> System {
    Catalogue::builtin().system("qdr").unwrap()
}

/// Runs a process on each of two hosts; returns their results.
pub(crate) fn run<R: 'static>(
    system: System,
    mode: Mode,
    faults: Faults,
    body: impl Fn(&mut Process, usize) -> R + 'static,
) -> [R; 2] {
    let network = Network::new(&system, mode, 1);
    let layout = coroutines::Plan {
        ranks: network.ranks() as u32,
        seed: 1,
        stack: 256 << 10,
    };
    let hosts = [0, system.nodes - 1, 0, system.nodes - 1];
    let body = Rc::new(body);
    let (answers, _) = coroutines::run(
        layout,
        move |memory| MachineModel::new(memory, &system, &hosts, faults),
        move |turn| {
            let rank = turn.rank() as usize;
            let node = ModelNode::new(turn);
            match network.place(rank) {
                Place::Process(host, _) => {
                    Some(body(&mut Process::new(node, &network).unwrap(), host))
                }
                Place::Interrupts(_) => {
                    take_interrupts(node, &network).unwrap();
                    None
                }
            }
        },
    )
    .unwrap();
    let answers: Vec<R> = answers.into_iter().flatten().collect();
    answers.try_into().ok().unwrap()
}

/// The byte at a place of a stream.
fn byte(place: usize) -> u8 {
    (place as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .to_le_bytes()[6]
}

fn stream(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(byte).collect()
}

/// Sends a stream in writes of these lengths, while the other host reads; returns the end's time.
fn transfer(mode: Mode, writes: &[usize], reads: usize, faults: Faults) -> [u64; 2] {
    let writes = writes.to_vec();
    run(qdr(), mode, faults, move |process, host| {
        let total: usize = writes.iter().sum();
        let mut at = 0;
        if host == 0 {
            for len in &writes {
                process.send(&stream(at, *len)).unwrap();
                at += len;
            }
        } else {
            let mut buffer = vec![0; reads];
            while at < total {
                let count = process.receive(&mut buffer, u64::MAX).unwrap().unwrap();
                assert_eq!(buffer[..count], stream(at, count), "at {at}");
                at += count;
            }
        }
        process.now()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn tcp_delivers_all_bytes_in_order_whatever_is_lost(
        writes in prop::collection::vec(1usize..100_000, 1..12),
        reads in 1usize..100_000,
        loss in prop::sample::select(vec![0u32, 1000, 50_000]),
        connected in any::<bool>(),
    ) {
        let mode = if connected { Mode::Connected } else { Mode::Datagram };
        let faults = Faults { loss, ..Faults::default() };
        let ends = transfer(mode, &writes, reads.max(500), faults);
        prop_assert_eq!(ends, transfer(mode, &writes, reads.max(500), faults), "the same again");
    }
}

#[test]
fn a_stream_ends_in_both_modes() {
    for mode in [Mode::Datagram, Mode::Connected] {
        let ends = transfer(mode, &[1 << 20; 16], 1 << 16, Faults::default());
        let rate = 16.0 * (1 << 20) as f64 / (ends[1] as f64 / 1e12) / 1e6;
        println!("{mode:?}: {rate} MB/s");
    }
}
