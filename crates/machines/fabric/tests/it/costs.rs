//! Costs of one message: the steps have the expected sum, by hand and in general, and no message is
//! faster than a resource that it uses.

use fabric::catalogue::Catalogue;
use fabric::explain::{explain, total};
use fabric::limits::{busy, limits, one_way};
use fabric::{Bytes, Costs, Nanos, Operation, Resource, System};
use proptest::prelude::*;

use crate::system;

fn latency(costs: &Costs, bytes: u64, operation: Operation) -> Nanos {
    let hops = costs.system().most_hops();
    total(&explain(costs, Bytes(bytes), operation, hops))
}

#[test]
fn eight_bytes_by_hand_with_blueflame() {
    // QDR: 32 Gb/s are 4 bytes per nanosecond; the bus carries 3.92 bytes per nanosecond.
    let rows = explain(&Costs::of(&system("qdr"), 0), Bytes(8), Operation::Write, 1);
    let picos: Vec<(&str, u64)> = rows
        .iter()
        .map(|row| (row.step, row.time.picos()))
        .collect();
    let line = 22_449; // 64 + 24 bytes at 3.92 bytes/ns, rounded up
    assert_eq!(
        picos,
        [
            ("post", 80_000),
            ("MMIO, lines", 150_000 + 55_000),
            ("HCA, out", 130_000),
            ("link, packets", (8 + 16 + 28) * 250),
            ("cables", 2 * 2 * 5_000),
            ("switches", 100_000),
            ("HCA, in", 130_000),
            ("PCI write, packets", 8_164), // 8 + 24 bytes
            ("PCI, until visible", 220_000 - line),
            ("poll", 80_000),
        ]
    );
    assert_eq!(total(&rows).picos(), 963_715);
}

#[test]
fn two_packets_by_hand_without_blueflame() {
    // PCI-X: 64 lines of 0.1333 Gb/s carry 8.533 / 8 bytes per nanosecond; each burst of 512 bytes
    // has 112 bytes of overhead. The link carries 1 byte per nanosecond.
    let costs = Costs::of(&system("mpich2-2003"), 0);
    let rows = explain(&costs, Bytes(2048), Operation::Write, 1);
    let time = |step: &str| {
        rows.iter()
            .find(|row| row.step == step)
            .unwrap()
            .time
            .as_nanos()
    };
    let bus = |bytes: f64| bytes / (0.133333 * 64.0 / 8.0);
    let near = |a: f64, b: f64| assert!((a - b).abs() < 0.01, "{a} {b}");
    near(time("PCI, ask for work request"), 900.0 - bus(176.0));
    near(time("PCI read of work request"), bus(176.0));
    near(time("PCI, ask for payload"), 900.0 - bus(176.0));
    // The first packet has 16 bytes more on the link. The second arrives 1154 ns after it, before
    // the bus has written the first. So the last packet waits for the receiver's bus.
    let packet = bus(1024.0 + 2.0 * 112.0);
    near(time("PCI read, packets"), packet);
    near(time("link, packets"), 1024.0 + 28.0 + 16.0);
    near(time("PCI write, packets"), 2.0 * packet);
    near(time("switches"), 200.0);
    let fixed = 300.0 + 300.0 + 2.0 * 1300.0 + 20.0 + 200.0 + (400.0 - bus(176.0)) + 200.0;
    let moved = 2.0 * 900.0 - bus(176.0) + 3.0 * packet + 1068.0;
    near(total(&rows).as_nanos(), fixed + moved);
    // The HCA serves requests one by one: it fetches a request and its payload before the next
    // request.
    let turn = costs.turn(Bytes(8), false).as_nanos();
    near(turn, 2.0 * 900.0 - bus(176.0) + bus(120.0));
    near(
        costs.register(Bytes(4097)).as_nanos(),
        8520.0 + 2.0 * 1000.0,
    );
}

#[test]
fn peaks_are_those_of_the_narrowest_resource() {
    let peak = |name: &str| {
        let limits = limits(&Costs::of(&system(name), 0), Bytes(1 << 20));
        let least = one_way(&limits).unwrap();
        (least.resource, least.one_way.as_mb_per_sec().round())
    };
    // The bus allows 875; one queue pair reaches less, because the bus is asked twice between two
    // requests.
    assert_eq!(peak("mpich2-2003"), (Resource::Engine, 874.0));
    assert_eq!(peak("sdr"), (Resource::Link, 973.0));
    // Packets of read data have 128 bytes with 20 of overhead, on a bus of 4 GB/s less 2 %.
    assert_eq!(peak("qdr"), (Resource::BusDown, 3390.0));
    assert_eq!(peak("fdr"), (Resource::BusDown, 6350.0));
    assert_eq!(peak("edr"), (Resource::Link, 12415.0));
}

#[test]
fn the_second_rail_is_further_away() {
    let system = system("2xqdr");
    let [near, far] = [0, 1].map(|rail| Costs::of(&system, rail));
    let more = |bytes| {
        latency(&far, bytes, Operation::Write).picos()
            - latency(&near, bytes, Operation::Write).picos()
    };
    assert_eq!(more(8), 2 * 80_000, "the doorbell and the write");
    assert_eq!(more(4096), 4 * 80_000, "and the read, there and back");
}

#[test]
fn a_read_takes_longer_than_a_write_and_a_send_too() {
    let catalogue = Catalogue::builtin();
    for entry in catalogue.entries().filter(|entry| entry.kind == "system") {
        let costs = Costs::of(&catalogue.system(entry.name).unwrap(), 0);
        for bytes in [0, 8, 4096, 1 << 20] {
            let write = latency(&costs, bytes, Operation::Write);
            assert!(
                latency(&costs, bytes, Operation::Read) > write,
                "{} {bytes}",
                entry.name
            );
            assert!(
                latency(&costs, bytes, Operation::Send) > write,
                "{} {bytes}",
                entry.name
            );
        }
    }
}

fn any_system() -> impl Strategy<Value = System> {
    let catalogue = Catalogue::builtin();
    let systems: Vec<System> = catalogue
        .entries()
        .filter(|entry| entry.kind == "system")
        .map(|entry| catalogue.system(entry.name).unwrap())
        .collect();
    let mtu = prop::sample::select(vec![256, 512, 1024, 2048, 4096]);
    (prop::sample::select(systems), mtu, any::<bool>()).prop_map(|(mut system, mtu, blueflame)| {
        system.hca.mtu = Bytes(mtu);
        system.hca.blueflame = blueflame;
        system
    })
}

fn any_size() -> impl Strategy<Value = u64> {
    prop_oneof![0..300u64, 0..20_000u64, 0..2_000_000u64]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn more_bytes_never_take_less_time(system in any_system(), small in any_size(), more in any_size()) {
        let costs = Costs::of(&system, 0);
        for operation in [Operation::Write, Operation::Send, Operation::Read] {
            prop_assert!(latency(&costs, small, operation) <= latency(&costs, small + more, operation));
        }
    }

    #[test]
    fn no_message_is_faster_than_a_resource(system in any_system(), bytes in 1..2_000_000u64) {
        let costs = Costs::of(&system, 0);
        let time = latency(&costs, bytes, Operation::Write);
        for resource in Resource::ALL.into_iter().filter(|resource| *resource != Resource::Engine) {
            for out in [true, false] {
                // The requests for reads overlap with the data of earlier reads.
                if (resource, out) == (Resource::BusUp, true) {
                    continue;
                }
                let least = busy(&costs, Bytes(bytes), resource, out);
                prop_assert!(least <= time, "{resource:?} {out}: {least} in {time}");
            }
        }
        let wire = system.link_rate().time(bytes);
        prop_assert!(wire <= time);
        let most = limits(&costs, Bytes(bytes));
        for limit in &most {
            prop_assert!(limit.one_way <= limit.both_ways);
            prop_assert!(limit.both_ways.bits_per_sec() <= 2 * limit.one_way.bits_per_sec() + 2);
        }
    }
}
