//! The values of a machine that a fit may move, with their bounds and priors.

use crate::catalogue::Sheet;
use crate::quantity::{Quantity, Raw};
use crate::units::{GbPerSec, Nanos, PerSec, Ratio};

/// A value of a machine that no document states, and that a fit may move.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeValue {
    /// The keys that lead to the value, such as `host.post`; several if parts share it.
    pub paths: Vec<String>,
    /// The standing of the value's source: `assumed` or `inferred`.
    pub standing: &'static str,
    /// The value in the catalogue, as its file writes it.
    pub written: Raw,
    /// The value that the fit's coordinate 0 stands for, in the smallest unit of its quantity.
    centre: f64,
    quantity: Kind,
    /// The standard deviation of the prior, in units of the coordinate.
    deviation: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Time,
    Rate,
    Requests,
    Share,
}

/// The greatest factor by which a value may move, up or down.
const FACTOR: f64 = 3.0;
/// The lower bound of a fitted share (`upkeep` or `encoding`).
const LEAST_SHARE: f64 = 0.85;
/// The standard deviation of the logarithm of a value whose source is *inferred*.
const INFERRED: f64 = 0.25;
/// The standard deviation of the logarithm of a value whose source is *assumed*.
const ASSUMED: f64 = 0.35;
/// The standard deviation of the logarithm of a rate that is unlimited in the catalogue.
const UNLIMITED: f64 = 0.15;
/// The times of a host that move together: a slower processor or bus makes each step longer.
const TOGETHER: [&str; 5] = [
    "host.post",
    "host.mmio",
    "host.dma_read",
    "host.dma_write",
    "host.poll",
];
/// The change of a value's logarithm in a finite difference.
const STEP: f64 = 0.05;
/// The change of a share's coordinate in a finite difference: it changes the share by 1 to 2 %.
const SHARE_STEP: f64 = -0.8;
/// Beginnings of the paths of values that no benchmark of messages between two hosts depends on.
const UNUSED: [&str; 4] = ["kernel.", "price", "rails", "hca.price"];

/// A set of values of a machine that one coordinate of a fit moves together.
#[derive(Clone, Debug, PartialEq)]
pub struct Movement {
    /// The values that move: a single one, or times of a host.
    pub values: Vec<FreeValue>,
}

impl Movement {
    /// True if both movements change the same value.
    pub(super) fn shares_with(&self, other: &Movement) -> bool {
        let mut own = self.values.iter();
        own.any(|value| other.values.iter().any(|other| other.paths == value.paths))
    }

    /// The step of a finite difference, in units of the coordinate.
    pub(super) fn step(&self) -> f64 {
        self.values[0].step()
    }

    /// The weight of the prior: 1 divided by its variance.
    pub(super) fn weight(&self) -> f64 {
        self.values[0].weight()
    }

    /// The cost of the coordinate `at`: it grows with the distance from the catalogue's values.
    pub(super) fn penalty(&self, at: f64) -> f64 {
        self.weight() * at * at
    }

    /// The path of each value, with the value at the coordinate `at`.
    pub fn at(&self, at: f64) -> Vec<(&str, Raw)> {
        let each = self.values.iter().flat_map(|value| {
            let raw = value.at(at);
            value
                .paths
                .iter()
                .map(move |path| (path.as_str(), raw.clone()))
        });
        each.collect()
    }
}

/// The movements of a system: each free value alone, and all times of the host together by one
/// factor. `longest` is the bandwidth of the machine's long messages.
pub fn movements(sheet: &Sheet, longest: GbPerSec) -> Vec<Movement> {
    let alone = free_values(sheet, longest);
    let host = alone.iter().filter(|value| {
        let mut paths = value.paths.iter();
        paths.any(|path| TOGETHER.contains(&path.as_str()))
    });
    let host: Vec<FreeValue> = host.cloned().collect();
    let alone = alone.into_iter().map(|value| Movement {
        values: vec![value],
    });
    let mut all: Vec<Movement> = alone.collect();
    if host.len() > 1 {
        all.push(Movement { values: host });
    }
    all
}

/// The values of a system that a fit may move. `longest` is the bandwidth of its long messages:
/// just above it lies the starting value of a read engine's rate that the catalogue does not limit.
fn free_values(sheet: &Sheet, longest: GbPerSec) -> Vec<FreeValue> {
    let mut found: Vec<(FreeValue, String)> = Vec::new();
    for value in sheet.values() {
        let standing = ["inferred", "assumed"].into_iter().find(|standing| {
            let rest = value.source.strip_prefix(standing);
            rest.is_some_and(|rest| rest.starts_with(':'))
        });
        let Some(standing) = standing else { continue };
        if UNUSED.iter().any(|start| value.path.starts_with(start)) {
            continue;
        }
        let Some((quantity, centre)) = read(value.key, &value.raw, longest) else {
            continue;
        };
        let line = format!("{} {}", value.location, value.key);
        if let Some((known, _)) = found.iter_mut().find(|(_, other)| *other == line) {
            known.paths.push(value.path);
            continue;
        }
        let width = FACTOR.ln();
        let deviation = match (quantity, standing) {
            (Kind::Share, _) => 1.0,
            _ if value.raw == Raw::Text("none".into()) => UNLIMITED / width,
            (_, "inferred") => INFERRED / width,
            _ => ASSUMED / width,
        };
        let free = FreeValue {
            paths: vec![value.path],
            standing,
            written: value.raw,
            centre,
            quantity,
            deviation,
        };
        found.push((free, line));
    }
    found.into_iter().map(|(free, _)| free).collect()
}

/// The kind of a value, and the value in the smallest unit. `None`: a fit cannot move it.
fn read(key: &str, raw: &Raw, longest: GbPerSec) -> Option<(Kind, f64)> {
    if key == "read_engine" && *raw == Raw::Text("none".into()) {
        return Some((Kind::Rate, 1.15 * longest.bits_per_sec() as f64));
    }
    if let Some(time) = Nanos::read(raw) {
        // No factor changes a time of 0.
        return (time > Nanos::ZERO).then_some((Kind::Time, time.picos() as f64));
    }
    if let Some(rate) = GbPerSec::read(raw) {
        return Some((Kind::Rate, rate.bits_per_sec() as f64));
    }
    if let Some(requests) = PerSec::read(raw) {
        return Some((Kind::Requests, requests.0 as f64));
    }
    let share = Ratio::read(raw).map(share)?;
    (share > LEAST_SHARE && share < 1.0).then_some((Kind::Share, share))
}

fn share(ratio: Ratio) -> f64 {
    let (over, under) = ratio.parts();
    f64::from(over) / f64::from(under)
}

impl FreeValue {
    /// The step of a finite difference, in units of the coordinate.
    fn step(&self) -> f64 {
        match self.quantity {
            Kind::Share => SHARE_STEP,
            // Downward, to where a lower rate begins to limit the bandwidth.
            Kind::Rate => -4.0 * STEP / FACTOR.ln(),
            _ => STEP / FACTOR.ln(),
        }
    }

    /// The weight of the prior: 1 divided by its variance.
    fn weight(&self) -> f64 {
        1.0 / (self.deviation * self.deviation)
    }

    /// The value at a coordinate, in the smallest unit. Every coordinate gives a value within the
    /// bounds.
    fn amount(&self, at: f64) -> f64 {
        match self.quantity {
            Kind::Share => {
                let inside = (self.centre - LEAST_SHARE) / (1.0 - LEAST_SHARE);
                let centre = (inside / (1.0 - inside)).ln();
                LEAST_SHARE + (1.0 - LEAST_SHARE) / (1.0 + (-centre - at).exp())
            }
            _ => self.centre * (FACTOR.ln() * at.tanh()).exp(),
        }
    }

    /// The value at a coordinate, rounded to three digits, as a file writes it.
    pub fn at(&self, at: f64) -> Raw {
        let amount = self.amount(at);
        let size = 10_f64.powf(amount.abs().log10().floor() - 2.0);
        let rounded = (amount / size).round() * size;
        Raw::Text(match self.quantity {
            Kind::Time => Nanos::from_picos(rounded.round() as u64).show(),
            Kind::Rate => GbPerSec::from_bits_per_sec(rounded.round() as u64).show(),
            Kind::Requests => PerSec(rounded.round() as u64).show(),
            Kind::Share => format!("{}/1000", (amount * 1000.0).round() as u32),
        })
    }

    /// The lowest and the highest value that a fit can reach, as a file writes them.
    pub fn bounds(&self) -> [Raw; 2] {
        [self.at(-20.0), self.at(20.0)]
    }
}
