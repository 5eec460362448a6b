//! `fishplate fabric list`: systems with their key figures, and the parts that systems consist of.

use ::fabric::catalogue::{Catalogue, CatalogueEntry, KINDS};
use ::fabric::components::Part;
use ::fabric::figures::Figures;
use ::fabric::{Family, System};
use serde_json::{Value, json};

use super::print;

pub(super) fn list(kind: Option<&str>, json: bool) {
    let catalogue = Catalogue::builtin();
    let chosen: Vec<CatalogueEntry> = KINDS
        .iter()
        .flat_map(|(kind, _)| catalogue.entries().filter(move |entry| entry.kind == *kind))
        .filter(|entry| kind.is_none_or(|kind| kind == entry.kind))
        .collect();
    if json {
        for entry in &chosen {
            say!("{}", object(&catalogue, entry));
        }
        return;
    }
    let (systems, parts): (Vec<_>, Vec<_>) = chosen
        .into_iter()
        .partition(|entry| entry.kind == System::KIND);
    for family in Family::ALL {
        let members = systems.iter().filter(|entry| {
            let system = catalogue.system(entry.name);
            system.is_ok_and(|system| system.family.unwrap_or(Family::Testbed) == family)
        });
        let rows: Vec<[String; 8]> = members.filter_map(|entry| row(&catalogue, entry)).collect();
        let header = [
            "kind",
            "name",
            family.title(),
            "year",
            "Gb/s",
            "8 B, µs",
            "MB/s",
            "M/s",
        ];
        if !rows.is_empty() {
            print(header, rows, 3);
            say!();
        }
    }
    if !systems.is_empty() {
        let legend = "Gb/s: link. 8 B: RDMA write between the hosts furthest apart. MB/s: long writes, one way. \
             M/s: requests of one queue pair, and of the chip. Of several rails, the first.";
        tell!("{legend}");
    }
    let rows: Vec<[String; 3]> = parts
        .iter()
        .map(|entry| [entry.kind, entry.name, entry.about].map(String::from))
        .collect();
    if !rows.is_empty() {
        print(["kind", "name", "what it is"], rows, 3);
    }
}

fn figures(catalogue: &Catalogue, entry: &CatalogueEntry) -> Option<Figures> {
    let system = catalogue.system(entry.name).ok()?;
    Some(Figures::of(&system, 0))
}

fn row(catalogue: &Catalogue, entry: &CatalogueEntry) -> Option<[String; 8]> {
    let figures = figures(catalogue, entry)?;
    let millions = |rate: u64| format!("{:.1}", rate as f64 / 1e6);
    let one = millions(figures.message_rate.0);
    let rate = match figures.chip_rate {
        Some(chip) => format!("{one}, {:.0}", chip.0 as f64 / 1e6),
        None => one,
    };
    Some([
        entry.kind.to_owned(),
        entry.name.to_owned(),
        entry.about.to_owned(),
        figures.year.to_string(),
        format!("{:.0}", figures.link.as_gb_per_sec()),
        format!("{:.2}", figures.latency.as_micros()),
        format!("{:.0}", figures.peak.as_mb_per_sec()),
        rate,
    ])
}

fn object(catalogue: &Catalogue, entry: &CatalogueEntry) -> Value {
    let mut object = json!({"kind": entry.kind, "name": entry.name, "about": entry.about});
    if let Some(system) = (entry.kind == System::KIND).then(|| catalogue.system(entry.name))
        && let Some(family) = system.ok().and_then(|system| system.family)
    {
        object["family"] = family.name().into();
    }
    let figures = (entry.kind == System::KIND).then(|| figures(catalogue, entry));
    if let Some(figures) = figures.flatten() {
        object["year"] = figures.year.into();
        object["link_gb_per_s"] = figures.link.as_gb_per_sec().into();
        object["latency_8_us"] = figures.latency.as_micros().into();
        object["peak_mb_per_s"] = figures.peak.as_mb_per_sec().into();
        object["message_rate"] = figures.message_rate.0.into();
        object["chip_rate"] = figures.chip_rate.map(|rate| rate.0).into();
    }
    object
}
