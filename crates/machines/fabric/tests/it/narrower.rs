//! A narrower or slower bus or link never makes a message or a stream faster.

use fabric::catalogue::Catalogue;
use fabric::components::{Bus, Link};
use fabric::explain::{explain, total};
use fabric::limits::{both_ways, limits, one_way};
use fabric::{Bytes, Costs, GbPerSec, Nanos, Operation, System};

const OPERATIONS: [Operation; 3] = [Operation::Write, Operation::Send, Operation::Read];
const SIZES: [u64; 10] = [1, 8, 48, 64, 100, 300, 2048, 5000, 65_536, 1 << 20];

/// The times of a cache line on the fastest buses are rounded, so a time may be shorter by 1
/// divided by this.
const ROUNDED: u64 = 1000;

/// Halves the rate of a lane.
fn slower_lane(lane: &mut GbPerSec) {
    *lane = GbPerSec::from_bits_per_sec(lane.bits_per_sec() / 2);
}

fn slower_bus(bus: &mut Bus) {
    slower_lane(&mut bus.lane);
}

fn slower_link(link: &mut Link) {
    slower_lane(&mut link.lane);
}

/// Machines that differ from this one by one narrower or slower part each.
fn worse(system: &System) -> Vec<(&'static str, System)> {
    let half = |lanes: u32| (lanes / 2).max(1);
    let host = |change: &dyn Fn(&mut System)| {
        let mut system = *system;
        change(&mut system);
        system
    };
    vec![
        (
            "lanes of the HCA",
            system.with_hcas(|hca| hca.lanes = half(hca.lanes)),
        ),
        (
            "lanes of the host",
            host(&|system| system.host.lanes = half(system.host.lanes)),
        ),
        (
            "bus of the HCA",
            system.with_hcas(|hca| slower_bus(&mut hca.bus)),
        ),
        (
            "bus of the host",
            host(&|system| slower_bus(&mut system.host.bus)),
        ),
        (
            "link of the HCA",
            system.with_hcas(|hca| slower_link(&mut hca.link)),
        ),
        (
            "link of the switch",
            host(&|system| slower_link(&mut system.switch.link)),
        ),
        (
            "width of the HCA's port",
            system.with_hcas(|hca| hca.width = 1),
        ),
        (
            "width of the switch's port",
            host(&|system| system.switch.width = 1),
        ),
    ]
}

/// Times of messages, and times of a GiB in streams of them, in one direction and in both.
fn times(system: &System) -> Vec<(String, Nanos)> {
    let costs = Costs::of(system, 0);
    let hops = system.most_hops();
    let mut all = Vec::new();
    for bytes in SIZES.map(Bytes) {
        for operation in OPERATIONS {
            let time = total(&explain(&costs, bytes, operation, hops));
            all.push((format!("{operation:?} of {bytes}"), time));
        }
        let limits = limits(&costs, bytes);
        let streams = [
            one_way(&limits).unwrap().one_way,
            both_ways(&limits).unwrap().both_ways,
        ];
        for rate in streams {
            all.push((format!("stream of {bytes}"), rate.time(1 << 30)));
        }
    }
    all
}

#[test]
fn no_message_and_no_stream_is_faster_over_a_worse_bus_or_link() {
    let catalogue = Catalogue::builtin();
    for entry in catalogue.entries().filter(|entry| entry.kind == "system") {
        let mut before = catalogue.system(entry.name).unwrap();
        // Repeatedly, down to one lane.
        for round in 0..4 {
            let known = times(&before);
            for (what, system) in worse(&before) {
                for ((name, time), (_, worse)) in known.iter().zip(times(&system)) {
                    assert!(
                        time.picos() <= worse.picos() + worse.picos() / ROUNDED,
                        "{}, {what}, round {round}: {name} {time} {worse}",
                        entry.name
                    );
                }
                if what == "lanes of the HCA" {
                    before = system;
                }
            }
        }
    }
}

/// The times of a cache line belong to a slot as wide as the catalogue's slots.
#[test]
fn the_times_of_a_line_are_those_of_the_catalogues_slots() {
    let catalogue = Catalogue::builtin();
    for entry in catalogue.entries().filter(|entry| entry.kind == "system") {
        let system = catalogue.system(entry.name).unwrap();
        let hca = system.rail(0).hca;
        let timed = hca.timed_bus.data() * hca.timed_lanes;
        assert_eq!(timed, system.rail(0).bus_rate(), "{}", entry.name);
    }
}
