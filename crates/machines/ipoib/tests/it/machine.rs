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

/// The byte at a position of a stream.
fn byte(place: usize) -> u8 {
    (place as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .to_le_bytes()[6]
}

fn stream(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(byte).collect()
}

/// Sends a stream in writes of these lengths, while the other host reads. Returns the time of each
/// host at its end.
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

/// Exchanges datagrams of several lengths, one after the other.
#[test]
fn datagrams_arrive_whole_in_both_modes() {
    for mode in [Mode::Datagram, Mode::Connected] {
        let lengths = [1, 8, 2016, 2017, 2024, 5000, 65_507];
        run(qdr(), mode, Faults::default(), move |process, host| {
            let mut buffer = vec![0; 65_507];
            for len in lengths {
                let datagram = stream(len, len);
                if host == 0 {
                    process.send_datagram(&datagram).unwrap();
                }
                let count = process.receive_datagram(&mut buffer, u64::MAX).unwrap();
                assert_eq!(buffer[..count.unwrap()], datagram, "{mode:?}, {len} B");
                if host == 1 {
                    process.send_datagram(&datagram).unwrap();
                }
            }
        });
    }
}

#[test]
fn wrong_datagrams_are_refused() {
    run(qdr(), Mode::Datagram, Faults::default(), |process, _| {
        for len in [0, 65_508] {
            let why = process
                .send_datagram(&vec![0; len])
                .unwrap_err()
                .to_string();
            assert_eq!(
                why,
                format!("a datagram of {len} B; valid are 1 to 65507 B")
            );
        }
    });
}

/// A receiver that does not read keeps as much as its buffer holds, and drops the rest.
#[test]
fn a_full_buffer_drops_datagrams() {
    let mut system = qdr();
    system.kernel.udp_buffer = fabric::Bytes(65_536);
    let received = run(
        system,
        Mode::Datagram,
        Faults::default(),
        |process, host| {
            if host == 0 {
                for number in 0..100 {
                    process.send_datagram(&stream(number, 1000)).unwrap();
                }
                return 0;
            }
            // The receiver does not read until all datagrams have arrived.
            process.node().turn().spend(1_000_000_000);
            let mut buffer = [0; 1000];
            let mut count = 0;
            while let Some(len) = process.receive_datagram(&mut buffer, 1_000_000).unwrap() {
                assert_eq!(buffer[..len], stream(count, 1000));
                count += 1;
            }
            assert_eq!(count as u64 + process.dropped(), 100);
            count
        },
    );
    // The kernel counts 2 KiB for each datagram.
    assert_eq!(received[1], 32);
}

/// The one-way time of a ping-pong of eight bytes, in picoseconds.
fn latency(system: System) -> u64 {
    let rounds = 10;
    let ends = run(
        system,
        Mode::Datagram,
        Faults::default(),
        move |process, host| {
            let mut buffer = [0; 8];
            process.set_nodelay(true);
            let mut start = 0;
            for round in 0..=rounds {
                if host == 0 {
                    if round == 1 {
                        start = process.now();
                    }
                    process.send(&buffer).unwrap();
                }
                let count = process.receive(&mut buffer, u64::MAX).unwrap();
                assert_eq!(count, Some(8));
                if host == 1 {
                    process.send(&buffer).unwrap();
                }
            }
            process.now() - start
        },
    );
    ends[0] / rounds / 2
}

/// A reference to one of the times of the kernel's path.
type Step = fn(&mut fabric::Kernel) -> &mut fabric::Nanos;

/// Each step of the kernel's path costs its time once in each direction.
#[test]
fn the_latency_has_each_step_of_the_path() {
    let usual = latency(qdr());
    let steps: [(&str, Step, u64); 6] = [
        // The reader's call begins before the bytes arrive.
        ("system_call", |kernel| &mut kernel.system_call, 1),
        ("segment_out", |kernel| &mut kernel.segment_out, 1),
        ("segment_in", |kernel| &mut kernel.segment_in, 1),
        ("interrupt", |kernel| &mut kernel.interrupt, 1),
        ("coalesce", |kernel| &mut kernel.coalesce, 1),
        ("switch", |kernel| &mut kernel.switch, 1),
    ];
    for (name, step, times) in steps {
        let mut system = qdr();
        let more = fabric::Nanos::from_picos(100_000);
        let step = step(&mut system.kernel);
        *step += more;
        assert_eq!(latency(system) - usual, times * more.picos(), "{name}");
    }
}

/// The rate of a stream of 8 MiB, in bytes per second.
fn rate(system: System, mode: Mode) -> f64 {
    let total = 8 << 20;
    let times = run(system, mode, Faults::default(), move |process, host| {
        let start = process.now();
        if host == 0 {
            process.send(&vec![0; total]).unwrap();
            return 0;
        }
        let (mut count, mut buffer) = (0, vec![0; 65_536]);
        while count < total {
            count += process.receive(&mut buffer, u64::MAX).unwrap().unwrap();
        }
        process.now() - start
    });
    total as f64 / (times[1] as f64 / 1e12)
}

/// At most a window of bytes is sent in a round trip, which takes at least the kernel's work for a
/// segment and its acknowledgement.
#[test]
fn the_window_bounds_the_bytes_in_flight() {
    let mut narrow = qdr();
    narrow.kernel.window = fabric::Bytes(4096);
    let kernel = narrow.kernel;
    let round_trip = (kernel.interrupt + kernel.segment_in) * 2 + kernel.segment_out;
    let (usual, bound) = (rate(qdr(), Mode::Datagram), rate(narrow, Mode::Datagram));
    let most = 4096.0 / (round_trip.picos() as f64 / 1e12);
    assert!(bound < usual && bound < most, "{bound} of {usual}");
}

#[test]
fn an_hca_that_cuts_and_sums_up_saves_processor_time() {
    let mut without = qdr();
    without.kernel.offload = false;
    let (usual, slow) = (rate(qdr(), Mode::Datagram), rate(without, Mode::Datagram));
    assert!(usual > 1.05 * slow, "{usual} {slow}");
    let connected = [qdr(), without].map(|system| rate(system, Mode::Connected));
    assert_eq!(connected[0], connected[1], "connected mode has neither");
}
