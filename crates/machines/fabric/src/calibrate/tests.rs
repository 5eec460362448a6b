//! Calibration finds the values of modelled machines again.

use super::*;
use crate::catalogue::Catalogue;

fn measured(system: &System, benchmark: Benchmark, size: u64) -> Measured {
    measured_over(system, 1, benchmark, size)
}

fn measured_over(system: &System, hops: u32, benchmark: Benchmark, size: u64) -> Measured {
    let fit = Fit {
        system: *system,
        hops,
        all: &[],
        estimates: Vec::new(),
    };
    let mut one = Measured {
        benchmark,
        size: Bytes(size),
        value: 0.0,
        range: [0.0; 2],
        shape: None,
    };
    one.value = fit.predicted(&one);
    one.range = [one.value * 0.99, one.value * 1.05];
    one
}

fn all(system: &System) -> Vec<Measured> {
    let write = Benchmark::Latency(Operation::Write);
    let mut all: Vec<Measured> = [2, 8, 32, 64, 256, 1024, 2048, 65536]
        .map(|size| measured(system, write, size))
        .into();
    all.push(measured(system, Benchmark::Latency(Operation::Send), 8));
    all.extend(
        [64, 256, 4096, 65536, 1 << 20].map(|size| measured(system, Benchmark::Bandwidth, size)),
    );
    all
}

#[test]
fn the_values_of_a_machine_are_found_again() {
    let base = Catalogue::builtin().system("qdr").unwrap();
    let mut other = base;
    other.host.dma_write = Nanos::from_picos(310_000);
    other.host.dma_read = Nanos::from_picos(805_000);
    other.hca.receive_match = Nanos::from_picos(60_000);
    other.hca.message_rate = PerSec(3_000_000);
    other.hca.read_engine = Some(GbPerSec::from_bits_per_sec(24_000_000_000));
    let found = calibrate(&base, 1, &all(&other)).unwrap();
    assert_eq!(found.system.host, other.host);
    assert_eq!(found.system.hca.receive_match, other.hca.receive_match);
    let near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-3;
    let rates = [found.system.hca.message_rate.0, other.hca.message_rate.0];
    assert!(near(rates[0] as f64, rates[1] as f64), "{rates:?}");
    for (one, predicted) in &found.rows {
        assert!(near(one.value, *predicted), "{one:?}: {predicted}");
    }
    let keys: Vec<&str> = found.estimates.iter().map(|one| one.key).collect();
    assert_eq!(
        keys,
        [
            "read_engine",
            "message_rate",
            "dma_write",
            "dma_read",
            "receive_match"
        ]
    );
    let write = &found.estimates[2];
    assert_eq!(
        (write.value.as_str(), write.from.as_str()),
        ("310 ns", "write latency of 2 B to 64 B")
    );
    let ends = write
        .range
        .each_ref()
        .map(|end| end.trim_end_matches(" ns").parse::<f64>().unwrap());
    assert!(ends[0] < 305.0 && ends[1] > 350.0, "{ends:?}");
}

/// Measurements of `system` with links of `shape`: those benchmarks that run on a shaped rail.
fn shaped(system: &System, shape: Shape) -> Vec<Measured> {
    let of = |benchmark, size| {
        let one = measured_over(&shape.of(system), 0, benchmark, size);
        let shape = Some(shape);
        Measured { shape, ..one }
    };
    let latency = Benchmark::Latency(Operation::Write);
    let latencies = [8, 64].map(|size| of(latency, size));
    let streams = [64 << 10, 1 << 20].map(|size| of(Benchmark::Bandwidth, size));
    let message = [of(Benchmark::Message, 8)];
    [&latencies[..], &streams, &message].concat()
}

#[test]
fn shapes_of_links_determine_what_no_shape_changes() {
    let base = Catalogue::builtin().system("tcp").unwrap();
    let mut other = base;
    other.hca.link.encoding = Ratio::new(9, 10).unwrap();
    other.host.dma_write = Nanos::from_picos(40_000_000);
    other.software.receive = Nanos::from_picos(30_000_000);
    let shape = |megabits: u64, millis: u64| Shape {
        rate: GbPerSec::from_bits_per_sec(megabits * 1_000_000),
        delay: Nanos::from_picos(millis * 1_000_000_000),
    };
    let all = [shape(20, 1), shape(400, 4)].map(|shape| shaped(&other, shape));
    let found = calibrate(&base, 0, &all.concat()).unwrap();
    let rows = found.estimates.iter();
    let rows: Vec<_> = rows.map(|one| (one.key, one.from.as_str())).collect();
    assert_eq!(
        rows,
        [
            (
                "link.encoding",
                "write bandwidth of 64 KiB to 1024 KiB over links of 2 shapes"
            ),
            (
                "dma_write",
                "write latency of 8 B to 64 B over links of 2 shapes"
            ),
            ("receive", "message latency of 8 B over links of 2 shapes"),
        ]
    );
    // The calibrated system predicts another shape as the other machine has it.
    let third = shape(100, 2);
    for one in shaped(&other, third) {
        let found = shaped(&found.system, third);
        let same = |found: &&Measured| (found.benchmark, found.size) == (one.benchmark, one.size);
        let found = found.iter().find(same).unwrap();
        let error = found.value / one.value - 1.0;
        assert!(error.abs() < 1e-4, "{one:?}: {error}");
    }
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    let base = Catalogue::builtin().system("tcp").unwrap();
    let shape = Shape {
        rate: GbPerSec::from_bits_per_sec(100_000_000),
        delay: Nanos::ZERO,
    };
    let mut all = shaped(&base, shape);
    let qdr = Catalogue::builtin().system("qdr").unwrap();
    assert_eq!(calibrate(&qdr, 1, &all).unwrap_err().key, "base");
    for one in &mut all {
        one.value *= 8.0;
    }
    let why = calibrate(&base, 0, &all).unwrap_err();
    assert!(
        why.key == "rate" && why.why.contains("bits per second"),
        "{why:?}"
    );
}

#[test]
fn what_no_value_explains_is_refused() {
    let base = Catalogue::builtin().system("qdr").unwrap();
    let fast = Catalogue::builtin().system("c6320-edr").unwrap();
    let why = calibrate(&base, 1, &all(&fast)).unwrap_err();
    assert!(
        why.key == "dma_write" && why.why.contains("start from a faster system"),
        "{why:?}"
    );
    assert_eq!(calibrate(&base, 1, &[]).unwrap_err().key, "from");
    let listed = Catalogue::builtin().system("2x-unequal").unwrap();
    assert_eq!(calibrate(&listed, 1, &all(&base)).unwrap_err().key, "rails");
}
