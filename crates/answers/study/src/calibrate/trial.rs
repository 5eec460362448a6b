//! A machine that a calibration tries: the base with faster parts, and with times by length.

use fabric::curve::MOST_POINTS;
use fabric::quantity::{Quantity, Raw};
use fabric::{GbPerSec, Nanos, PerSec, System};

use super::runs::Change;
use super::series::{KINDS, SeriesKind, curve_key};

/// The speed of a machine whose times by length are then added: they can only make it slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speed {
    /// True if the library's additional times, which occupy nothing, are left out.
    pub is_bare: bool,
    /// The factor on the times of processors, slots and chips, at most 1; rates of requests grow
    /// by its inverse.
    pub times: f64,
    /// The factor on the rate of copies, at least 1.
    pub copies: f64,
    /// The factor on the rates of links and slots, at least 1.
    pub lanes: f64,
}

impl Speed {
    /// The speed of the base.
    pub(super) const OWN: Speed = Speed {
        is_bare: false,
        times: 1.0,
        copies: 1.0,
        lanes: 1.0,
    };
}

/// A machine of a trial.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub speed: Speed,
    /// For each kind of series, the points of its curve: sizes in bytes, and times in microseconds.
    pub curves: [Vec<(usize, f64)>; 4],
}

impl Trial {
    /// The base with parts of this speed.
    pub(super) fn of(speed: Speed) -> Trial {
        Trial {
            speed,
            curves: Default::default(),
        }
    }

    pub(super) fn curve(&mut self, kind: SeriesKind) -> &mut Vec<(usize, f64)> {
        let place = KINDS.iter().position(|own| *own == kind);
        &mut self.curves[place.unwrap_or(0)]
    }

    /// The values by which the machine differs from `system`.
    pub(super) fn changes(&self, system: &System, source: &str) -> Vec<Change> {
        let mut changes = faster(system, self.speed);
        let curves = KINDS.into_iter().zip(&self.curves);
        let curves = curves.filter(|(_, points)| points.iter().any(|(_, time)| *time > 0.0));
        changes.extend(curves.map(|(kind, points)| (curve_key(kind), Raw::Other(list(points)))));
        let changes = changes.into_iter().map(|(path, raw)| Change {
            path: path.to_owned(),
            raw,
            source: source.to_owned(),
        });
        changes.collect()
    }
}

/// The points of a curve as a file writes them.
fn list(points: &[(usize, f64)]) -> String {
    let point = |(bytes, micros): &(usize, f64)| {
        let time = Nanos::from_picos((micros * 1e6).round().max(0.0) as u64);
        format!("{{ bytes = \"{bytes} B\", time = \"{}\" }}", time.show())
    };
    let points: Vec<String> = points.iter().take(MOST_POINTS).map(point).collect();
    format!("[{}]", points.join(", "))
}

/// The values of `system` that make its parts faster.
fn faster(system: &System, speed: Speed) -> Vec<(&'static str, Raw)> {
    let mut changes = Vec::new();
    let (host, hca, software) = (&system.host, &system.hca, &system.software);
    if speed.is_bare && !software.rendezvous.is_empty() {
        changes.push(("software.rendezvous", Raw::Other("[]".into())));
    }
    if speed.is_bare && software.indirect.is_some() {
        changes.push(("software.indirect", Raw::Text("none".into())));
    }
    if speed.times < 1.0 {
        let times = [
            ("host.post", host.post),
            ("host.mmio", host.mmio),
            ("host.mmio_line", host.mmio_line),
            ("host.dma_read", host.dma_read),
            ("host.dma_write", host.dma_write),
            ("host.poll", host.poll),
            ("hca.send", hca.send),
            ("hca.receive", hca.receive),
            ("hca.receive_match", hca.receive_match),
            ("software.send", software.send),
            ("software.receive", software.receive),
            ("software.control", software.control),
        ];
        changes.extend(times.map(|(path, time)| {
            let time = Nanos::from_picos((time.picos() as f64 * speed.times).round() as u64);
            (path, Raw::Text(time.show()))
        }));
        let rates = [
            ("hca.message_rate", Some(hca.message_rate)),
            ("hca.send_rate", hca.send_rate),
            ("hca.read_rate", hca.read_rate),
        ];
        changes.extend(rates.into_iter().filter_map(|(path, rate)| {
            let rate = PerSec((rate?.0 as f64 / speed.times).round() as u64);
            Some((path, Raw::Text(rate.show())))
        }));
    }
    let by = |rate: GbPerSec, factor: f64| {
        let bits = rate.bits_per_sec() as f64 * factor;
        Raw::Text(GbPerSec::from_bits_per_sec(bits.round() as u64).show())
    };
    if speed.copies > 1.0 {
        changes.push(("host.copy", by(host.copy, speed.copies)));
    }
    if speed.lanes > 1.0 {
        let lanes = [
            ("host.bus.lane", host.bus.lane),
            ("hca.bus.lane", hca.bus.lane),
            ("hca.link.lane", hca.link.lane),
        ];
        changes.extend(lanes.map(|(path, rate)| (path, by(rate, speed.lanes))));
        if system.switch.ports > 0 {
            let rate = by(system.switch.link.lane, speed.lanes);
            changes.push(("switch.link.lane", rate));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use fabric::catalogue::Catalogue;

    use super::super::series::{Level, Property};
    use super::*;

    /// The system that the changes of a trial define on the base `fdr`.
    fn built(trial: &Trial) -> System {
        let base = Catalogue::builtin().system("fdr").unwrap();
        let changes = trial.changes(&base, "inferred: a test");
        let lines: String = changes.iter().map(Change::line).collect();
        let mut catalogue = Catalogue::builtin();
        let text = format!("[system.it]\nfrom = \"fdr\"\n{lines}");
        catalogue.add("it.toml", &text).unwrap();
        catalogue.system("it").unwrap()
    }

    #[test]
    fn a_trial_is_a_machine_with_faster_parts_and_curves() {
        let base = Catalogue::builtin().system("fdr").unwrap();
        assert_eq!(built(&Trial::of(Speed::OWN)), base);
        let mut trial = Trial::of(Speed {
            is_bare: true,
            times: 0.5,
            copies: 2.0,
            lanes: 1.25,
        });
        let kind = (Level::Requests, Property::Latency);
        *trial.curve(kind) = vec![(8, 0.25), (1024, 0.0)];
        let system = built(&trial);
        assert_eq!(system.host.post.picos() * 2, base.host.post.picos());
        assert_eq!(system.hca.message_rate.0, base.hca.message_rate.0 * 2);
        assert!(system.host.copy > base.host.copy);
        assert!(system.rail(0).link_rate() > base.rail(0).link_rate());
        assert_eq!(system.hca.delay.at(8).picos(), 250_000);
        assert!(system.hca.interval.is_empty());
    }
}
