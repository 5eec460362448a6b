//! The calibration of a machine from a user's own measurements: those values of a known system that
//! follow from latencies and bandwidths of RDMA, each with the range that the measurements leave.
//!
//! The values are determined one after the other, and each explains what the earlier ones leave of
//! the measurements: bandwidths first, then latencies from the shortest messages on. Latencies of
//! short messages do not separate the times of processor, bus and chip, so the difference of their
//! sum goes into one value.
//!
//! Measurements of links with a known rate and delay (a [`Shape`]) determine values that do not
//! depend on the shape: the share of the rate that remains for payload, and the time of a message
//! apart from the delay. The calibrated system is then valid for other shapes.

use crate::components::InvalidValue;
use crate::cost::Costs;
use crate::explain::{explain, total};
use crate::limits::{limits, one_way};
use crate::packet::Operation;
use crate::rails::Rails;
use crate::system::System;
use crate::units::{Bytes, GbPerSec, Metres, Nanos, PerSec, Ratio};

/// A benchmark of RDMA operations or of MPI messages, between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// Half of a round trip of this operation, in picoseconds.
    Latency(Operation),
    /// Half of a round trip of MPI messages, in picoseconds.
    Message,
    /// The payload of a stream of writes, in bytes per second.
    Bandwidth,
}

/// A measured value with the range in which it was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The benchmark that measured the value.
    pub benchmark: Benchmark,
    /// The length of the messages, in bytes.
    pub size: Bytes,
    /// The measured value, in the unit of the benchmark.
    pub value: f64,
    /// The lower and the upper end of the value's range.
    pub range: [f64; 2],
    /// The shape of the measured link, if it is known and not the system's own.
    pub shape: Option<Shape>,
}

/// The rate and the delay of a link, such as a traffic shaper imposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The rate of the link, headers included.
    pub rate: GbPerSec,
    /// The time that each packet takes from one host to the other.
    pub delay: Nanos,
}

impl Shape {
    /// The machine `system`, whose hosts must be back to back, with links of this shape.
    pub fn of(self, system: &System) -> System {
        let mut system = *system;
        let lanes = u64::from(system.hca.width);
        let lane = self.rate.bits_per_sec() / lanes;
        system.hca.link.lane = GbPerSec::from_bits_per_sec(lane);
        system.cable.length = Metres::from_millimetres(0);
        system.cable.conversion = self.delay;
        system
    }
}

/// A value of the calibrated system with its range, as a file writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The part of the system that has the key: `host`, `hca` or `software`.
    pub part: &'static str,
    /// The key of the value in the part `part` of the system.
    pub key: &'static str,
    /// The calibrated value, as a machine file writes it.
    pub value: String,
    /// The lower and the upper end of the value's range, as a file writes them.
    pub range: [String; 2],
    /// The measurements that determine the value, as text.
    pub from: String,
}

/// A calibrated system, with the measurements behind it.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The system with the calibrated values.
    pub system: System,
    /// The values of the system that the measurements changed.
    pub estimates: Vec<Estimate>,
    /// Each measurement with the value that the calibrated system predicts by formula.
    pub rows: Vec<(Measured, f64)>,
}

/// Bytes that this library adds to a short message.
const MESSAGE_HEAD: u64 = 40;
/// The longest message whose latency determines the constant part of the time.
const SHORT: Bytes = Bytes(64);
/// The longest message whose bandwidth determines the rate of requests.
const SHORT_STREAM: Bytes = Bytes(256);
/// The shortest message whose bandwidth determines the read engine's rate, or a link's share.
const LONG_STREAM: Bytes = Bytes(64 << 10);
/// The denominator of a share of a link's rate.
const SHARE_PARTS: u32 = 1_000_000;

/// Calibrates the system `base`, whose rails must be equal, for a path of `hops` switches. An error
/// if no measurement determines a value, or if no value of `base` explains one.
pub fn calibrate(base: &System, hops: u32, all: &[Measured]) -> Result<Calibration, InvalidValue> {
    InvalidValue::unless(matches!(base.rails, Rails::Equal(_)), "rails", || {
        "a system with a list of rails cannot be calibrated; choose one with a number of equal rails".into()
    })?;
    let is_shaped = all.iter().any(|one| one.shape.is_some());
    InvalidValue::unless(hops == 0 || !is_shaped, "base", || {
        "links of a given rate and delay join hosts back to back; choose a system without switch, such as tcp".into()
    })?;
    let mut fit = Fit {
        system: *base,
        hops,
        all,
        estimates: Vec::new(),
    };
    // The bandwidth determines the time of a packet, and so belongs to the latency of all but short
    // messages.
    fit.share()?;
    fit.bandwidth();
    fit.rate();
    fit.latencies()?;
    InvalidValue::unless(!fit.estimates.is_empty(), "from", || {
        format!(
            "no measurement determines a value: latencies of up to {SHORT} are needed, or bandwidths"
        )
    })?;
    fit.system.check_all()?;
    let rows = all.iter().map(|one| (*one, fit.predicted(one))).collect();
    Ok(Calibration {
        system: fit.system,
        estimates: fit.estimates,
        rows,
    })
}

struct Fit<'a> {
    system: System,
    hops: u32,
    all: &'a [Measured],
    estimates: Vec<Estimate>,
}

/// The median of values that were derived from measurements, and their range.
struct Middle {
    value: f64,
    range: [f64; 2],
    from: String,
}

impl Fit<'_> {
    /// The costs of the system if its links have the shape of the measurement `one`.
    fn costs(&self, one: &Measured) -> Costs {
        let system = one.shape.map(|shape| shape.of(&self.system));
        Costs::of(&system.unwrap_or(self.system), 0)
    }

    fn predicted(&self, one: &Measured) -> f64 {
        let costs = self.costs(one);
        match one.benchmark {
            Benchmark::Latency(operation) => {
                total(&explain(&costs, one.size, operation, self.hops)).picos() as f64
            }
            Benchmark::Message => {
                let packet = Bytes(one.size.0 + MESSAGE_HEAD);
                let write = total(&explain(&costs, packet, Operation::Write, self.hops));
                let software = &self.system.software;
                (software.send + write + software.receive).picos() as f64
            }
            Benchmark::Bandwidth => {
                let limits = limits(&costs, one.size);
                let least = one_way(&limits);
                least.map_or(0.0, |least| least.one_way.bits_per_sec() as f64 / 8.0)
            }
        }
    }

    /// The median of the values that `of` derives from those measurements of a benchmark that
    /// `wanted` selects. Its range covers the ranges of all of them. `name` is the benchmark in
    /// words.
    fn middle(
        &self,
        benchmark: Benchmark,
        name: &str,
        wanted: impl Fn(&Measured) -> bool,
        of: impl Fn(&Measured, f64) -> f64,
    ) -> Option<Middle> {
        let chosen = self.all.iter().filter(|one| one.benchmark == benchmark);
        let chosen: Vec<&Measured> = chosen.filter(|one| wanted(one)).collect();
        let mut values: Vec<f64> = chosen.iter().map(|one| of(one, one.value)).collect();
        values.sort_by(f64::total_cmp);
        let value = *values.get(values.len() / 2)?;
        let ends = chosen
            .iter()
            .flat_map(|one| one.range.map(|end| of(one, end)));
        let ends: Vec<f64> = ends.chain(values.iter().copied()).collect();
        let low = ends.iter().copied().fold(f64::MAX, f64::min);
        let high = ends.iter().copied().fold(f64::MIN, f64::max);
        let sizes = chosen.iter().map(|one| one.size);
        let (first, last) = (sizes.clone().min()?, sizes.max()?);
        let mut from = match first == last {
            true => format!("{name} of {first}"),
            false => format!("{name} of {first} to {last}"),
        };
        let mut shapes: Vec<Shape> = chosen.iter().filter_map(|one| one.shape).collect();
        shapes.dedup();
        if shapes.len() > 1 {
            from += &format!(" over links of {} shapes", shapes.len());
        }
        Some(Middle {
            value,
            range: [low, high],
            from,
        })
    }

    /// The median excess of measured latencies, measured minus predicted, for the sizes that
    /// `wanted` selects.
    fn excess(
        &self,
        benchmark: Benchmark,
        name: &str,
        wanted: impl Fn(Bytes) -> bool,
    ) -> Option<Middle> {
        let of = |one: &Measured, value: f64| value - self.predicted(one);
        let wanted = |one: &Measured| wanted(one.size);
        self.middle(benchmark, name, wanted, of)
    }

    /// Adds an excess to that time of the system which `place` returns, and records the estimate.
    fn add(
        &mut self,
        part: &'static str,
        key: &'static str,
        excess: Option<Middle>,
        place: fn(&mut System) -> &mut Nanos,
    ) -> Result<(), InvalidValue> {
        let Some(excess) = excess else { return Ok(()) };
        let before = place(&mut self.system).picos() as f64;
        let time = |more: f64| Nanos::from_picos((before + more).max(0.0).round() as u64);
        InvalidValue::unless(before + excess.value > -1.0, key, || {
            let over = Nanos::from_picos(-(before + excess.value) as u64);
            format!(
                "the {} is {over} shorter than the system's other times explain; start from a faster system with --base",
                excess.from
            )
        })?;
        let value = time(excess.value);
        *place(&mut self.system) = value;
        self.estimates.push(Estimate {
            part,
            key,
            value: value.to_string(),
            range: excess.range.map(|end| time(end).to_string()),
            from: excess.from,
        });
        Ok(())
    }

    fn latencies(&mut self) -> Result<(), InvalidValue> {
        let short = |size: Bytes| size <= SHORT;
        let (write, send) = (Operation::Write, Operation::Send);
        let [write, send] = [write, send].map(Benchmark::Latency);
        let excess = self.excess(write, "write latency", short);
        self.add("host", "dma_write", excess, |system| {
            &mut system.host.dma_write
        })?;
        let (inline, mtu) = (self.system.hca.inline, self.system.hca.mtu);
        let fetched = |size: Bytes| size > inline && size <= mtu;
        let excess = self.excess(write, "write latency", fetched);
        self.add("host", "dma_read", excess, |system| {
            &mut system.host.dma_read
        })?;
        let excess = self.excess(send, "send latency", short);
        self.add("hca", "receive_match", excess, |system| {
            &mut system.hca.receive_match
        })?;
        // The wake-up of a rank that sleeps is part of the time of its receive.
        let excess = self.excess(Benchmark::Message, "message latency", short);
        self.add("software", "receive", excess, |system| {
            &mut system.software.receive
        })
    }

    /// Determines the share of a shaped link's rate that its headers leave.
    fn share(&mut self) -> Result<(), InvalidValue> {
        let long = |one: &Measured| one.shape.is_some() && one.size >= LONG_STREAM;
        let of = |one: &Measured, value: f64| value / self.predicted(one);
        let Some(middle) = self.middle(Benchmark::Bandwidth, "write bandwidth", long, of) else {
            return Ok(());
        };
        let (over, under) = self.system.hca.link.encoding.parts();
        let before = f64::from(over) / f64::from(under);
        InvalidValue::unless(before * middle.value < 1.02, "rate", || {
            format!(
                "the {} is {:.2} times what links of this rate carry; give the rate of the link in bits per second",
                middle.from,
                before * middle.value
            )
        })?;
        let share = |value: f64| {
            let parts = (before * value).clamp(1e-6, 1.0) * f64::from(SHARE_PARTS);
            Ratio::new(parts.round() as u32, SHARE_PARTS).unwrap_or(Ratio::ONE)
        };
        self.system.hca.link.encoding = share(middle.value);
        self.estimates.push(Estimate {
            part: "hca",
            key: "link.encoding",
            value: share(middle.value).to_string(),
            range: middle.range.map(|end| share(end).to_string()),
            from: middle.from,
        });
        Ok(())
    }

    fn rate(&mut self) {
        let short = |one: &Measured| one.shape.is_none() && one.size <= SHORT_STREAM;
        let per_second = |one: &Measured, value: f64| value / one.size.0 as f64;
        let middle = self.middle(Benchmark::Bandwidth, "write bandwidth", short, per_second);
        if let Some(middle) = middle {
            let rate = |value: f64| PerSec(value.max(1.0).round() as u64);
            self.system.hca.message_rate = rate(middle.value);
            self.estimates.push(Estimate {
                part: "hca",
                key: "message_rate",
                value: rate(middle.value).to_string(),
                range: middle.range.map(|end| rate(end).to_string()),
                from: middle.from,
            });
        }
    }

    fn bandwidth(&mut self) {
        let long = |one: &Measured| one.shape.is_none() && one.size >= LONG_STREAM;
        let middle = self.middle(Benchmark::Bandwidth, "write bandwidth", long, |_, value| {
            value
        });
        if let Some(middle) = middle {
            let rate =
                |value: f64| GbPerSec::from_bits_per_sec((value * 8.0).max(1e6).round() as u64);
            self.system.hca.read_engine = Some(rate(middle.value));
            self.estimates.push(Estimate {
                part: "hca",
                key: "read_engine",
                value: rate(middle.value).to_string(),
                range: middle.range.map(|end| rate(end).to_string()),
                from: middle.from,
            });
        }
    }
}

impl System {
    /// Refuses a system with a combination of values that no hardware has.
    fn check_all(&self) -> Result<(), InvalidValue> {
        use crate::components::Part;
        self.host.check()?;
        self.hca.check()?;
        self.check()
    }
}

#[cfg(all(test, feature = "toml"))]
mod tests;
