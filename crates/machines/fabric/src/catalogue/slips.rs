//! Probable slips in a catalogue file: values that are valid and most likely not meant.

use super::parts::Catalogue;
use super::problem::{Location, Problem};
use super::read::{GivenValue, WrittenPart};
use super::sheet::{Field, FieldValue, Sheet};
use super::{lists, resolve};
use crate::components::{Part, list_to_words};
use crate::network::{Network, Oversubscription, Topology};
use crate::quantity::{Quantity, Raw};
use crate::rails::{Rail, Rails};
use crate::system::System;
use crate::units::{GbPerSec, Nanos, PerSec};

/// A value that exceeds all values of the catalogue by this factor is most likely a slip.
const FAR: f64 = 4.0;

/// A slot whose rate is at most this part of the link's is most likely a slip. The adapters of 200
/// Gb/s in slots of the generation before, which were sold, have 0.63.
const NARROW: f64 = 0.6;

impl Catalogue {
    /// Warnings about the parts of a file that was added without errors.
    pub fn slips(&self, file: &str) -> Vec<Problem> {
        let mut slips = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            if &*part.location.file != file {
                continue;
            }
            let Ok(sheet) = self.part_at(at) else {
                continue;
            };
            self.check(&sheet, file, &mut slips);
            if let (System::KIND, Ok(system)) = (part.kind, sheet.build::<System>()) {
                slips.extend(self.ports(&sheet, &system));
                slips.extend(slots(&sheet, &system));
                slips.extend(self.without_effect(at, &system));
            }
        }
        slips.sort();
        slips.dedup();
        slips
    }

    /// Appends warnings about those values of a sheet that `file` defines and that are far from the
    /// values of the catalogue.
    fn check(&self, sheet: &Sheet, file: &str, slips: &mut Vec<Problem>) {
        for field in &sheet.fields {
            match &field.value {
                FieldValue::Value(raw) if &*field.location.file == file => {
                    let path = format!("{}.{}", sheet.path, field.key.name);
                    let why = self.strange(sheet.kind, field, raw);
                    slips.extend(
                        why.map(|why| Problem::at(&field.location, format!("{path}: {why}"))),
                    );
                }
                FieldValue::Value(_) => {}
                FieldValue::Part(inner) => self.check(inner, file, slips),
                FieldValue::List(all) => all.iter().for_each(|item| self.check(item, file, slips)),
            }
        }
    }

    fn strange(&self, kind: &'static str, field: &Field, raw: &Raw) -> Option<String> {
        let Raw::Text(text) = raw else { return None };
        if field.key.name == "lane" && text.contains("B/s") {
            return Some(format!(
                "{raw} is a rate of bytes, and lanes are given in bits: is {} meant?",
                text.replace("B/s", "b/s")
            ));
        }
        let own = number(field.key.name, raw)?;
        let known = self.known(kind, field.key.name);
        let (least, most) = known
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), (number, _)| {
                (least.min(*number), most.max(*number))
            });
        let show = |wanted: f64| {
            let named = known.iter().find(|(number, _)| *number == wanted);
            named.map_or(String::new(), |(_, raw)| raw.to_string())
        };
        let bits = match text.contains("b/s") {
            true => ": are bytes meant?",
            false => "",
        };
        if most > 0.0 && own > FAR * most {
            let times = own / most;
            Some(format!(
                "{raw} is {times:.0} times the greatest value of the catalogue, {}",
                show(most)
            ))
        } else if least > 0.0 && least < f64::MAX && own < least / FAR {
            let times = least / own;
            Some(format!(
                "{raw} is 1/{times:.0} of the least value of the catalogue, {}{bits}",
                show(least)
            ))
        } else {
            None
        }
    }

    /// The values of a key in the built-in parts of a kind, as numbers and as the files write them.
    fn known(&self, kind: &'static str, key: &str) -> Vec<(f64, Raw)> {
        let mut known = Vec::new();
        for part in Catalogue::builtin()
            .parts
            .iter()
            .filter(|part| part.kind == kind)
        {
            for entry in part.entries.iter().filter(|entry| entry.key.name == key) {
                if let GivenValue::Value { raw, .. } = &entry.what {
                    known.extend(number(key, raw).map(|number| (number, raw.clone())));
                }
            }
        }
        known
    }

    /// Warnings about ports of HCAs that are faster or wider than those of their switch.
    fn ports(&self, sheet: &Sheet, system: &System) -> Vec<Problem> {
        let mut slips = Vec::new();
        for number in 0..system.rails.count() {
            let rail = system.rail(number);
            if rail.switch.ports == 0 {
                continue;
            }
            let mut warn = |what: &str, hca: String, switch: String| {
                let what = format!(
                    "{}: the port of the HCA is {what} than that of the switch ({hca}, {switch}): the link has the switch's",
                    sheet.path
                );
                slips.push(Problem::at(sheet.own_line(), what));
            };
            let (hca, switch) = (rail.hca.link.lane, rail.switch.link.lane);
            if rail.hca.link.data() > rail.switch.link.data() {
                warn("faster", format!("{hca} a lane"), switch.to_string());
            }
            let (hca, switch) = (rail.hca.width, rail.switch.width);
            if hca > switch {
                warn("wider", format!("{hca} lanes"), switch.to_string());
            }
        }
        slips
    }

    /// Warnings about keys of a system that change a value, but no time on the machine.
    fn without_effect(&self, at: usize, system: &System) -> Vec<Problem> {
        let mut slips = Vec::new();
        let part = &*self.parts[at];
        for path in paths(part) {
            let mut fewer = part.clone();
            let Some((location, name)) = remove(&mut fewer, &path) else {
                continue;
            };
            let other = resolve::sheet(&self.parts, &fewer, &mut Vec::new());
            let other = other.and_then(|mut sheet| {
                lists::complete(&self.parts, &mut sheet)?;
                sheet.build::<System>()
            });
            if other.is_ok_and(|other| other != *system && effect(&other) == effect(system)) {
                let what = format!(
                    "{}.{}.{name}: has no effect: another part of the system bounds it, or does not use it",
                    part.kind, part.name
                );
                slips.push(Problem::at(&location, what));
            }
        }
        slips
    }
}

/// The number of a time or a rate. `None`: the value is neither, or its key depends on the site.
fn number(key: &str, raw: &Raw) -> Option<f64> {
    let rate = GbPerSec::read(raw).map(|rate| rate.bits_per_sec());
    let time = Nanos::read(raw).map(|time| time.picos());
    let per = PerSec::read(raw).map(|rate| rate.0);
    // These lengths and the rate of the memory depend on the site and not on the part.
    let free = ["length", "reach", "memory"].contains(&key);
    rate.or(time)
        .or(per)
        .filter(|_| !free)
        .map(|number| number as f64)
}

/// The positions of all keys of a part: for each the numbers of the entries that lead to it,
/// outermost first.
fn paths(part: &WrittenPart) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    for (at, entry) in part.entries.iter().enumerate() {
        let inner = match &entry.what {
            GivenValue::Table(inner) => paths(inner),
            _ => Vec::new(),
        };
        match inner.is_empty() {
            true => all.push(vec![at]),
            false => all.extend(inner.into_iter().map(|path| [vec![at], path].concat())),
        }
    }
    all
}

/// Warnings about slots that carry about half of the link, or less.
fn slots(sheet: &Sheet, system: &System) -> Vec<Problem> {
    let rails = (0..system.rails.count()).map(|number| system.rail(number));
    let bits = |rate: GbPerSec| rate.bits_per_sec() as f64;
    let narrow = rails.filter(|rail| bits(rail.bus_rate()) <= NARROW * bits(rail.link_rate()));
    let warned = narrow.map(|rail| {
        let [bus, link] = [rail.bus_rate(), rail.link_rate()].map(|rate| bits(rate) / 1e9);
        let what = format!(
            "{}: the slot of {} lanes carries {bus:.1} Gb/s each way, and the link {link:.0} Gb/s: \
             `lanes` are those of a slot; is `hca.width`, the lanes of the link, meant?",
            sheet.path,
            rail.bus_lanes()
        );
        Problem::at(sheet.own_line(), what)
    });
    warned.collect()
}

/// Removes the key at the position `path`; returns its line and its name.
fn remove(part: &mut WrittenPart, path: &[usize]) -> Option<(Location, String)> {
    let (&at, rest) = path.split_first()?;
    if rest.is_empty() {
        let entry = part.entries.remove(at);
        return Some((entry.location, entry.key.name.to_owned()));
    }
    let entry = &mut part.entries[at];
    let GivenValue::Table(inner) = &mut entry.what else {
        return None;
    };
    let (location, name) = remove(inner, rest)?;
    Some((location, format!("{}.{name}", entry.key.name)))
}

/// The words of a system, with one fixed value wherever a value has no effect. Systems on which all
/// operations take equal times have equal words.
fn effect(system: &System) -> Vec<u64> {
    let rails: Vec<Rail> = (0..system.rails.count())
        .map(|number| plain(system, system.rail(number)))
        .collect();
    let mut words = Vec::new();
    for rail in &rails {
        rail.to_words(&mut words);
    }
    // With a list of rails, the system's own HCA, cable and switches are unused.
    let mut rest = *system;
    rest.rails = Rails::Equal(1);
    if let Some(first) = rails.first() {
        (rest.hca, rest.cable, rest.switch) = (first.hca, first.cable, first.switch);
        (rest.hops, rest.topology) = (first.hops, first.topology);
        rest.oversubscription = first.oversubscription;
        (rest.switch_hosts, rest.dimensions) = (first.switch_hosts, first.dimensions);
        (rest.cables, rest.routing) = (first.cables, first.routing);
        (rest.graph, rest.routes) = (first.graph, first.routes);
        rest.inner_width = first.inner_width;
        (rest.host.bus, rest.host.lanes) = (first.slot, first.lanes);
    }
    list_to_words(&system.hosts, &mut words);
    rest.to_words(&mut words);
    words
}

/// A rail in which each part that has more than the rail uses is cut down to what the rail uses.
fn plain(system: &System, rail: Rail) -> Rail {
    let (link, width, bus, lanes) = (
        *rail.link(),
        rail.link_width(),
        *rail.bus(),
        rail.bus_lanes(),
    );
    let mut plain = rail;
    (plain.hca.link, plain.hca.width) = (link, width);
    (plain.hca.bus, plain.slot) = (bus, bus);
    (plain.hca.lanes, plain.lanes) = (lanes, lanes);
    plain.cable.metre = rail.cable_time();
    plain.cable.length = crate::units::Metres::from_millimetres(1000);
    plain.cable.reach = plain.cable.length;
    plain.cable.conversion = Nanos::ZERO;
    let network = system.network(&rail);
    let inner = network.is_some_and(|network| network.has_inner_links());
    if !matches!(network, Some(Network::Tree(_))) || !inner {
        plain.oversubscription = Oversubscription(1);
    }
    if plain.graph.is_some() {
        plain.topology = Topology::FatTree;
        (plain.switch_hosts, plain.dimensions, plain.cables) = (None, None, None);
    }
    if !inner {
        (plain.switch.link, plain.switch.width) = (link, width);
        plain.topology = Topology::FatTree;
        (plain.graph, plain.routes) = (None, None);
        (plain.routing, plain.inner_width) = (None, None);
        plain.hops = Some(system.hops_on(&rail, 0, 1));
        plain.switch.ports = 2 * u32::from(rail.switch.ports > 0);
    }
    plain
}
