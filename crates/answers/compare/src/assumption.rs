//! The values of two machines that are assumed or inferred, and how each is varied.
//!
//! A value is an assumption if its source begins with *assumed* or *inferred*. Each is varied by a
//! fifth, up and down; a size that must be a power of two is halved and doubled. Values of the two
//! machines that come from one line of the catalogue are one assumption and vary together.

use fabric::catalogue::NamedValue;
use fabric::quantity::{Quantity, Raw};
use fabric::{Bytes, GbPerSec, Metres, Nanos, PerSec, Price, Ratio};

use crate::machine::{Change, Machine, is_uncertain};

/// The number of the decreased value of an assumption.
pub(crate) const SMALLER: usize = 0;
/// The number of the increased value.
pub(crate) const LARGER: usize = 1;

/// The catalogue's key of prices.
pub(crate) const PRICE: &str = "price";

/// A value of the catalogue that is assumed or inferred.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumption {
    /// The catalogue's part and key of the value, such as `hca.connectx-2.send`.
    pub name: String,
    /// The value in the catalogue, as text.
    pub value: String,
    /// The source of the value.
    pub source: String,
    /// For each machine, the paths of keys to the value; empty on a machine without it.
    pub(crate) paths: [Vec<String>; 2],
    /// The decreased and the increased value; `None` for one that hardware cannot have.
    pub(crate) varied: [Option<Raw>; 2],
    /// True if a larger value makes the machine slower.
    pub(crate) larger_is_slower: bool,
}

impl Assumption {
    /// True if the value is a price.
    pub(crate) fn is_price(&self) -> bool {
        self.name.ends_with(PRICE)
    }

    /// The changes of one machine that set the decreased or the increased value.
    pub(crate) fn changes(&self, machine: usize, to: usize) -> Vec<Change> {
        let Some(raw) = &self.varied[to] else {
            return Vec::new();
        };
        let paths = self.paths[machine].iter();
        paths.map(|path| Change::new(path, raw)).collect()
    }

    /// The changes of both machines that set the decreased or the increased value.
    pub(crate) fn together(&self, to: usize) -> [Vec<Change>; 2] {
        [self.changes(0, to), self.changes(1, to)]
    }
}

/// The assumptions of both machines that can be varied.
pub(crate) fn assumptions(best: &Machine, rival: &Machine) -> Vec<Assumption> {
    let mut places: Vec<NamedValue> = Vec::new();
    let mut found: Vec<Assumption> = Vec::new();
    for (machine, values) in [best.sheet.values(), rival.sheet.values()]
        .into_iter()
        .enumerate()
    {
        for value in values
            .into_iter()
            // No MPI program uses the network path through the kernel.
            .filter(|value| is_uncertain(&value.source) && value.kind != "kernel")
        {
            let same = |known: &NamedValue| {
                (known.key, &known.location, &known.raw) == (value.key, &value.location, &value.raw)
            };
            if let Some(at) = places.iter().position(same) {
                found[at].paths[machine].push(value.path);
                continue;
            }
            let mut paths = [Vec::new(), Vec::new()];
            paths[machine].push(value.path.clone());
            let part = match value.part.is_empty() {
                true => value.kind.to_string(),
                false => format!("{}.{}", value.kind, value.part),
            };
            found.push(Assumption {
                name: format!("{part}.{}", value.key),
                value: Change::new("", &value.raw).value,
                source: value.source.clone(),
                paths,
                varied: [None, None],
                larger_is_slower: larger_is_slower(&value),
            });
            places.push(value);
        }
    }
    for (assumption, value) in found.iter_mut().zip(&places) {
        assumption.varied = varied(value, |raw| {
            [best, rival].iter().enumerate().all(|(machine, sheet)| {
                let changes: Vec<Change> = assumption.paths[machine]
                    .iter()
                    .map(|path| Change::new(path, raw))
                    .collect();
                sheet.allows(&changes)
            })
        });
    }
    found.retain(|assumption| assumption.varied.iter().any(Option::is_some));
    found
}

/// Keys of counts and names, which cannot be varied.
const STRUCTURE: [&str; 10] = [
    "width",
    "lanes",
    "timed_lanes",
    "ports",
    "nodes",
    "socket",
    "card",
    "subnet",
    "rails",
    "reach",
];

/// The decreased and the increased value, if hardware can have them.
fn varied(value: &NamedValue, allows: impl Fn(&Raw) -> bool) -> [Option<Raw>; 2] {
    if STRUCTURE.contains(&value.key) {
        return [None, None];
    }
    // A fifth less and more; if this is not possible, half and double.
    const STEPS: [[(u64, u64); 2]; 2] = [[(4, 5), (6, 5)], [(1, 2), (2, 1)]];
    [SMALLER, LARGER].map(|to| {
        let candidates = STEPS.map(|step| scaled(&value.raw, step[to]));
        candidates
            .into_iter()
            .flatten()
            .find(|raw| *raw != value.raw && allows(raw))
    })
}

/// A quantity times the fraction `over / under`; `None` for a value that is not a quantity.
fn scaled(raw: &Raw, (over, under): (u64, u64)) -> Option<Raw> {
    let part = |number: u64| (u128::from(number) * u128::from(over) / u128::from(under)) as u64;
    let text = if let Some(time) = Nanos::read(raw) {
        format!("{} ps", part(time.picos()))
    } else if let Some(rate) = GbPerSec::read(raw) {
        GbPerSec::from_bits_per_sec(part(rate.bits_per_sec())).show()
    } else if let Some(rate) = PerSec::read(raw) {
        PerSec(part(rate.0)).show()
    } else if let Some(length) = Metres::read(raw) {
        Metres::from_millimetres(part(length.millimetres())).show()
    } else if let Some(size) = Bytes::read(raw) {
        format!("{} B", part(size.0))
    } else if let Some(share) = Ratio::read(raw) {
        let share = share.times(Ratio::new(over.min(under) as u32, under.max(over) as u32)?)?;
        // A share cannot be larger than 1.
        if over > under {
            return None;
        }
        share.show()
    } else if let Some(Some(price)) = Option::<Price>::read(raw) {
        Some(price.part(over, under)).show()
    } else if let Raw::Integer(number) = raw {
        let by = (number / 5).max(1);
        let changed = if over > under {
            number + by
        } else {
            number - by
        };
        return Some(Raw::Integer(changed));
    } else {
        return None;
    };
    Some(Raw::Text(text))
}

/// True if a larger value is slower or costlier: times, lengths, prices, and overheads in bytes.
fn larger_is_slower(value: &NamedValue) -> bool {
    const OVERHEADS: [&str; 9] = [
        "work_request",
        "completion",
        "write_overhead",
        "completion_overhead",
        "request_overhead",
        "copy_traffic",
        "header",
        "hops",
        "read_completion_overhead",
    ];
    Nanos::read(&value.raw).is_some()
        || Metres::read(&value.raw).is_some()
        || value.key == PRICE
        || OVERHEADS.contains(&value.key)
}
