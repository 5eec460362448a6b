//! Series of figures: one benchmark at several sizes, of messages or of devices, and the times that
//! a calibrated machine must reach. All times are those of one message, in microseconds.

use super::super::score::figures::PublishedFigure;

/// The level at which a benchmark measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Messages of an MPI library.
    Messages,
    /// Work requests of a device.
    Requests,
}

/// The property that a benchmark measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Property {
    /// The time of one message on an idle machine.
    Latency,
    /// The time of each of many messages in a row.
    Stream,
}

/// The kind of a series: each has a curve of its own in the machine.
pub(crate) type SeriesKind = (Level, Property);

/// All kinds of series.
pub(crate) const KINDS: [SeriesKind; 4] = [
    (Level::Messages, Property::Latency),
    (Level::Messages, Property::Stream),
    (Level::Requests, Property::Latency),
    (Level::Requests, Property::Stream),
];

/// The key of the curve that holds a kind's times.
pub(crate) fn curve_key((level, property): SeriesKind) -> &'static str {
    match (level, property) {
        (Level::Messages, Property::Latency) => "software.delay",
        (Level::Messages, Property::Stream) => "software.interval",
        (Level::Requests, Property::Latency) => "hca.delay",
        (Level::Requests, Property::Stream) => "hca.interval",
    }
}

/// The test that stands for a kind where none of its figures is given.
pub(super) fn usual_test((level, property): SeriesKind) -> (&'static str, &'static str) {
    match (level, property) {
        (Level::Messages, Property::Latency) => ("osu_latency", "us"),
        (Level::Messages, Property::Stream) => ("osu_bw", "MB/s"),
        (Level::Requests, Property::Latency) => ("ib_write_lat", "us"),
        (Level::Requests, Property::Stream) => ("ib_write_bw", "MB/s"),
    }
}

/// The kind of a figure. `None`: a figure of many processes or of sockets, which no curve
/// describes.
pub(crate) fn kind_of(figure: &PublishedFigure) -> Option<SeriesKind> {
    if figure.is_of_many() || figure.is_of_sockets() || figure.pairs.is_some_and(|pairs| pairs > 1)
    {
        return None;
    }
    let level = match figure.is_of_devices() {
        true => Level::Requests,
        false => Level::Messages,
    };
    match figure.unit.as_str() {
        "us" => Some((level, Property::Latency)),
        "MB/s" | "GB/s" | "Gb/s" | "M msg/s" => Some((level, Property::Stream)),
        _ => None,
    }
}

/// The time of one message, in microseconds, that a value of a figure means.
pub(crate) fn time_of(figure: &PublishedFigure, value: f64) -> f64 {
    let size = figure.size().unwrap_or(1).max(1) as f64;
    match figure.unit.as_str() {
        "us" => value,
        "M msg/s" => 1.0 / value,
        "GB/s" => size / (value * 1e3),
        "Gb/s" => size / (value * 125.0),
        _ => size / value,
    }
}

/// The sizes at which a machine is calibrated, in bytes.
pub(super) const GRID: [usize; 13] = [
    8,
    128,
    512,
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
];

/// The sizes at which a machine keeps its times where no figure asks to change them, in bytes.
pub(super) const KEPT: [usize; 7] = [8, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// The longest message whose time is a constant beside that of its bytes.
const SHORT: usize = 8 << 10;
/// The longest message of a stream whose time is that of processors or engines.
const SHORT_STREAM: usize = 2 << 10;
/// A stream is bound by its bytes where a message takes no more than this many times as long as
/// its bytes in the fastest part of the stream.
const BOUND: f64 = 1.25;
/// The least share of a predicted time that remains when a constant is subtracted.
const LEAST: f64 = 0.05;

/// The times that a machine must reach at `sizes`, given the times that the uncalibrated one
/// predicts there, and the anchors: sizes, each one of `sizes`, with measured times.
///
/// The difference of the shortest anchor is a constant for all sizes where bytes do not bind. What
/// remains of the others is a factor, which is interpolated over the logarithm of the size.
pub(crate) fn targets(
    property: Property,
    sizes: &[usize],
    base: &[f64],
    anchors: &[(usize, f64)],
) -> Vec<f64> {
    let Some(&(first, measured)) = anchors.first() else {
        return base.to_vec();
    };
    let place = |size: usize| sizes.iter().position(|own| *own == size);
    let limit = match property {
        Property::Latency => SHORT,
        Property::Stream => SHORT_STREAM,
    };
    let constant = match (first <= limit, place(first)) {
        (true, Some(at)) => measured - base[at],
        _ => 0.0,
    };
    let shifted: Vec<f64> = match property {
        Property::Latency => base
            .iter()
            .map(|time| (time + constant).max(time * LEAST))
            .collect(),
        Property::Stream => shifted_stream(sizes, base, constant),
    };
    let factors: Vec<(f64, f64)> = anchors
        .iter()
        .filter_map(|&(size, time)| {
            let at = place(size)?;
            Some(((size.max(1) as f64).log2(), (time / shifted[at]).ln()))
        })
        .collect();
    let least = least_of_byte(sizes, base);
    let times = sizes.iter().zip(&shifted).zip(base);
    times
        .map(|((size, shifted), base)| {
            let time = shifted * between(&factors, (*size.max(&1) as f64).log2()).exp();
            // Between the anchors the rate of the link bounds the time from below.
            let of_bytes = (*size as f64 * least).min(*base);
            match anchors.iter().any(|(own, _)| own == size) {
                true => time,
                false => time.max(of_bytes),
            }
        })
        .collect()
}

/// The time of a byte in the fastest message, in microseconds.
fn least_of_byte(sizes: &[usize], times: &[f64]) -> f64 {
    let pairs = sizes.iter().zip(times);
    pairs
        .map(|(size, time)| time / (*size.max(&1) as f64))
        .fold(f64::MAX, f64::min)
}

/// The times of a stream's messages, with a constant added where their bytes do not bind.
fn shifted_stream(sizes: &[usize], base: &[f64], constant: f64) -> Vec<f64> {
    let least = least_of_byte(sizes, base);
    let mut own = base.first().copied().unwrap_or(0.0);
    let pairs = sizes.iter().zip(base);
    pairs
        .map(|(size, &time)| {
            let of_bytes = *size as f64 * least;
            if time > BOUND * of_bytes {
                own = time;
                return (time + constant).max(of_bytes).max(time * LEAST);
            }
            time.max(own + constant)
        })
        .collect()
}

/// The value at `at` on the lines through `points`, which ascend; beyond them that of the nearest.
fn between(points: &[(f64, f64)], at: f64) -> f64 {
    let after = points.partition_point(|point| point.0 <= at);
    match (points[..after].last(), points.get(after)) {
        (Some(low), Some(high)) => {
            low.1 + (high.1 - low.1) * (at - low.0) / (high.0 - low.0).max(1e-9)
        }
        (Some(one), None) | (None, Some(one)) => one.1,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one / other - 1.0).abs() < 1e-9
    }

    #[test]
    fn anchors_are_reached_and_a_constant_holds_for_all_sizes() {
        let sizes = [8, 1024, 16 << 10, 1 << 20];
        let base = [1.0, 1.5, 5.0, 100.0];
        let one = targets(Property::Latency, &sizes, &base, &[(8, 1.4)]);
        assert!(close(one[1], 1.9) && close(one[3], 100.4), "{one:?}");
        let anchors = [(8, 1.4), (16 << 10, 8.1)];
        let two = targets(Property::Latency, &sizes, &base, &anchors);
        assert!(close(two[0], 1.4) && close(two[2], 8.1), "{two:?}");
        // The factor 1.5 at 16 KiB goes on beyond, and has not begun at 8 B.
        assert!(close(two[3], 150.6), "{two:?}");
        assert!(two[1] > 1.9 && two[1] < 1.9 * 1.5, "{two:?}");
        let long = targets(Property::Latency, &sizes, &base, &[(1 << 20, 110.0)]);
        assert!(
            long.iter()
                .zip(base)
                .all(|(one, base)| close(*one, base * 1.1))
        );
        assert_eq!(targets(Property::Latency, &sizes, &base, &[]), base);
    }

    #[test]
    fn a_stream_gets_its_constant_where_bytes_do_not_bind() {
        let sizes = [64, 1024, 8 << 10, 1 << 20];
        let base = [0.2, 0.25, 0.9, 100.0];
        let slower = targets(Property::Stream, &sizes, &base, &[(64, 0.5)]);
        assert!(
            close(slower[0], 0.5) && close(slower[1], 0.55),
            "{slower:?}"
        );
        assert!(
            close(slower[2], 0.9) && close(slower[3], 100.0),
            "{slower:?}"
        );
        let faster = targets(Property::Stream, &sizes, &base, &[(64, 0.1)]);
        assert!(
            close(faster[0], 0.1) && close(faster[1], 0.15),
            "{faster:?}"
        );
        assert!(close(faster[3], 100.0), "{faster:?}");
    }

    #[test]
    fn figures_have_kinds_and_times() {
        let figure = |test: &str, unit: &str| PublishedFigure {
            test: test.into(),
            unit: unit.into(),
            msg_size: "1000".into(),
            ..PublishedFigure::default()
        };
        let of = |test: &str, unit: &str| kind_of(&figure(test, unit));
        assert_eq!(of("osu_latency", "us"), Some(KINDS[0]));
        assert_eq!(of("osu_mbw_mr", "M msg/s"), Some(KINDS[1]));
        assert_eq!(of("ib_send_lat", "us"), Some(KINDS[2]));
        assert_eq!(of("ib_write_bw", "Gb/s"), Some(KINDS[3]));
        assert_eq!(of("osu_allreduce", "us"), None);
        assert!(close(time_of(&figure("osu_bw", "MB/s"), 500.0), 2.0));
        assert!(close(time_of(&figure("osu_bw", "Gb/s"), 4.0), 2.0));
        assert!(close(time_of(&figure("osu_mbw_mr", "M msg/s"), 4.0), 0.25));
    }
}
