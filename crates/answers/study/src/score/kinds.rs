//! Groups of figures by network, level, property and size, with the limits for the errors of their
//! predictions.

use fabric::System;

use super::figures::PublishedFigure;
use crate::calibrate::series::{Level, Property, SeriesKind};

/// A group of figures. Limits are the greatest acceptable median and 90th percentile of the errors,
/// as shares.
pub(super) struct Group {
    pub(super) network: &'static str,
    pub(super) name: &'static str,
    kinds: &'static [SeriesKind],
    /// The least and the greatest size of the group's figures, in bytes.
    sizes: [usize; 2],
    /// The limits for systems from which no value was inferred. `None`: there are none.
    pub(super) unseen: Option<[f64; 2]>,
    /// The limits for machines that are calibrated by three figures. `None`: there are none.
    pub(super) anchored: Option<[f64; 2]>,
}

impl Group {
    /// True if a figure belongs to the group.
    pub(super) fn has(&self, network: &str, kind: SeriesKind, size: usize) -> bool {
        let [least, most] = self.sizes;
        self.network == network && self.kinds.contains(&kind) && (least..=most).contains(&size)
    }
}

/// The network of a figure's machine, in words; for figures of more than one pair of processes,
/// their own name.
pub(super) fn network(system: &System, figure: &PublishedFigure) -> &'static str {
    match (system.hca.polled, system.hca.link.framing.is_some()) {
        _ if figure.is_of_sockets() => IPOIB,
        _ if figure.is_of_many() => COLLECTIVES,
        _ if figure.test == "osu_mbw_mr" => PAIRS,
        (true, _) => TCP,
        (false, true) => ROCE,
        (false, false) => INFINIBAND,
    }
}

const INFINIBAND: &str = "InfiniBand";
const ROCE: &str = "RoCE";
const TCP: &str = "TCP";
const IPOIB: &str = "IPoIB";
const COLLECTIVES: &str = "collectives";
const PAIRS: &str = "pairs of processes";

const MESSAGE_LATENCY: SeriesKind = (Level::Messages, Property::Latency);
const MESSAGE_STREAM: SeriesKind = (Level::Messages, Property::Stream);
const REQUEST_LATENCY: SeriesKind = (Level::Requests, Property::Latency);
const REQUEST_STREAM: SeriesKind = (Level::Requests, Property::Stream);
const ALL: &[SeriesKind] = &[
    MESSAGE_LATENCY,
    MESSAGE_STREAM,
    REQUEST_LATENCY,
    REQUEST_STREAM,
];
const STREAMS: &[SeriesKind] = &[MESSAGE_STREAM, REQUEST_STREAM];

/// The size from which on a message counts as long, in bytes.
const LONG: usize = 64 << 10;
/// The size from which on a message of a stream is not short, in bytes.
const MIDDLE: usize = 2 << 10;
const ANY: [usize; 2] = [0, usize::MAX];

/// A median and a 90th percentile in percent, as shares.
const fn most(median: f64, far: f64) -> Option<[f64; 2]> {
    Some([median / 100.0, far / 100.0])
}

const fn group(
    network: &'static str,
    name: &'static str,
    kinds: &'static [SeriesKind],
    sizes: [usize; 2],
    [unseen, anchored]: [Option<[f64; 2]>; 2],
) -> Group {
    Group {
        network,
        name,
        kinds,
        sizes,
        unseen,
        anchored,
    }
}

/// The groups, in the order of tables.
#[rustfmt::skip]
pub(super) const GROUPS: [Group; 17] = [
    group(INFINIBAND, "all", ALL, ANY, [most(11.5, 37.0), most(4.0, 18.0)]),
    group(INFINIBAND, "latency to 128 B", &[MESSAGE_LATENCY], [0, 128], [most(17.0, 36.0), most(3.0, 13.0)]),
    group(INFINIBAND, "latency 129 B to 63 KiB", &[MESSAGE_LATENCY], [129, LONG - 1], [most(14.0, 32.0), most(7.0, 20.0)]),
    group(INFINIBAND, "latency from 64 KiB", &[MESSAGE_LATENCY], [LONG, usize::MAX], [most(6.0, 22.0), most(3.0, 18.0)]),
    group(INFINIBAND, "verbs latency", &[REQUEST_LATENCY], ANY, [most(18.0, 45.0), most(5.0, 15.0)]),
    group(INFINIBAND, "stream below 2 KiB", &[MESSAGE_STREAM], [0, MIDDLE - 1], [most(27.0, 80.0), most(5.0, 24.0)]),
    group(INFINIBAND, "verbs stream below 2 KiB", &[REQUEST_STREAM], [0, MIDDLE - 1], [most(22.0, 75.0), most(3.0, 20.0)]),
    group(INFINIBAND, "streams 2 to 63 KiB", STREAMS, [MIDDLE, LONG - 1], [most(8.0, 32.0), most(7.0, 28.0)]),
    group(INFINIBAND, "streams from 64 KiB", STREAMS, [LONG, usize::MAX], [most(1.6, 7.0), most(0.4, 6.0)]),
    group(ROCE, "all", ALL, ANY, [most(6.0, 27.0), most(4.0, 18.0)]),
    group(TCP, "latency to 128 B", &[MESSAGE_LATENCY], [0, 128], [most(45.0, 70.0), most(2.0, 8.0)]),
    group(TCP, "latency above 128 B", &[MESSAGE_LATENCY], [129, usize::MAX], [None, None]),
    group(TCP, "stream below 2 KiB", &[MESSAGE_STREAM], [0, MIDDLE - 1], [most(32.0, 80.0), most(25.0, 45.0)]),
    group(TCP, "streams from 2 KiB", &[MESSAGE_STREAM], [MIDDLE, usize::MAX], [None, None]),
    group(IPOIB, "all", ALL, ANY, [most(18.0, 42.0), most(10.0, 27.0)]),
    group(COLLECTIVES, "all", ALL, ANY, [most(40.0, 120.0), None]),
    group(PAIRS, "all", ALL, ANY, [most(30.0, 80.0), None]),
];

/// A median and a percentile, as text.
pub(super) fn pair([middle, far]: [f64; 2]) -> String {
    format!("{:.1}, {:.1} %", middle * 100.0, far * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_of_two_processes_is_in_a_group() {
        for network in [INFINIBAND, ROCE, TCP] {
            for kind in [MESSAGE_LATENCY, MESSAGE_STREAM] {
                for size in [1, 128, 129, 2047, 2048, 65535, 65536, 1 << 22] {
                    let of = GROUPS.iter().filter(|one| one.has(network, kind, size));
                    assert!(of.count() >= 1, "{network} {kind:?} {size}");
                }
            }
        }
    }
}
