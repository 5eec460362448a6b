//! Tables of sizes and figures, whose first line names the columns.

use super::reading::{Reading, ReadingUnit, WrongLine, bounded, figure};

/// The names of benchmarks that columns and rows of a table may have.
const TESTS: [&str; 15] = [
    "osu_latency",
    "osu_bw",
    "osu_bibw",
    "osu_mbw_mr",
    "ib_write_lat_noinl",
    "ib_write_lat",
    "ib_read_lat",
    "ib_send_lat",
    "ib_write_bw",
    "ib_read_bw",
    "ib_send_bw",
    "ib_write_bibw",
    "ib_read_bibw",
    "ib_send_bibw",
    "dual_port_bw",
];

/// A column of figures: the benchmark, the unit of the result, and the factor to that unit.
type Column = (&'static str, ReadingUnit, f64);

/// The figures of a table. `None`: the text is no table.
pub(super) fn table(text: &str) -> Result<Option<Vec<Reading>>, WrongLine> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let Some((number, header)) = lines.next() else {
        return Ok(None);
    };
    let Some(separator) = [',', ';', '\t'].into_iter().find(|c| header.contains(*c)) else {
        return Ok(None);
    };
    let header: Vec<String> = cells(header, separator);
    let Some(size) = header.iter().position(|name| is_size(name)) else {
        return Ok(None);
    };
    let wrong = |why: String| WrongLine::at(number, why);
    let long = ["test", "value"].map(|key| header.iter().position(|name| name == key));
    let unit = header.iter().position(|name| name == "unit");
    let mut columns: Vec<(usize, Column)> = Vec::new();
    if long[0].is_none() || long[1].is_none() {
        for (at, name) in header.iter().enumerate().filter(|(at, _)| *at != size) {
            columns.extend(column(name).map_err(wrong)?.map(|found| (at, found)));
        }
        if columns.is_empty() {
            let valid = TESTS.join(", ");
            return Err(wrong(format!(
                "no column has figures; valid are latency_us, bandwidth_MB/s, and with a tool {valid}"
            )));
        }
    }
    let mut readings = Vec::new();
    for (number, line) in lines {
        let cells = cells(line, separator);
        let wrong = |why: String| WrongLine::at(number, why);
        let of = |at: usize| cells.get(at).map_or("", String::as_str);
        if cells.len() > header.len() {
            let (found, named) = (cells.len(), header.len());
            return Err(wrong(format!(
                "it has {found} cells, and the first line names {named} columns"
            )));
        }
        let bytes = bytes(of(size)).map_err(wrong)?;
        let before = readings.len();
        let own = match long {
            [Some(test), Some(value)] => {
                let found = column(&format!("{} {}", of(test), unit.map_or("", of)));
                let found = found.map_err(wrong)?.ok_or_else(|| {
                    wrong(format!(
                        "{:?} is no tool; valid are {}",
                        of(test),
                        TESTS.join(", ")
                    ))
                })?;
                vec![(value, found)]
            }
            _ => columns.clone(),
        };
        for (at, (test, unit, factor)) in own {
            if of(at).is_empty() {
                continue;
            }
            readings.push(Reading {
                test,
                size: bytes,
                value: figure(of(at))
                    .and_then(|value| bounded(value * factor))
                    .map_err(wrong)?,
                unit,
                pairs: 1,
                line: number,
            });
        }
        if readings.len() == before {
            return Err(wrong(
                "it has a size and no figure; valid is a number above 0".into(),
            ));
        }
    }
    Ok(Some(readings))
}

fn is_size(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["size", "bytes", "msg_size", "msgsize", "message"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// The cells of a line. A cell may be enclosed in quotes.
fn cells(line: &str, separator: char) -> Vec<String> {
    let mut quoted = false;
    let parts = line.split(|c: char| {
        quoted ^= c == '"';
        c == separator && !quoted
    });
    parts
        .map(|cell| cell.trim().trim_matches('"').to_owned())
        .collect()
}

/// Parses a size in bytes, with K, M or G for powers of 1024.
fn bytes(word: &str) -> Result<u64, String> {
    let end = word
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kb" | "kib" => Some(1 << 10),
        "m" | "mb" | "mib" => Some(1 << 20),
        "g" | "gb" | "gib" => Some(1_u64 << 30),
        _ => None,
    };
    let size = number.parse::<u64>().ok().zip(factor);
    let size = size.and_then(|(number, factor)| number.checked_mul(factor));
    let size = size.filter(|size| (1..=4 << 30).contains(size));
    size.ok_or_else(|| {
        format!("{word:?} is no size; valid is a number of bytes above 0, such as 8 or 64K")
    })
}

/// The benchmark and the unit that the name of a column states. `None`: the column has no figures.
fn column(name: &str) -> Result<Option<Column>, String> {
    let lower = name.to_ascii_lowercase();
    let named = TESTS.iter().find(|test| lower.starts_with(**test)).copied();
    let (test, rest) = match named {
        Some(test) => (test, &name[test.len()..]),
        None => {
            let starts = [
                ("latency", "osu_latency"),
                ("lat", "osu_latency"),
                ("time", "osu_latency"),
                ("bandwidth", "osu_bw"),
                ("bw", "osu_bw"),
                ("bibw", "osu_bibw"),
                ("bidirectional", "osu_bibw"),
            ];
            let found = starts.iter().find(|(start, _)| lower.starts_with(start));
            let Some((start, test)) = found else {
                return Ok(None);
            };
            (*test, &name[start.len()..])
        }
    };
    let unit = rest.trim_matches(|c: char| "_ ()[]".contains(c));
    let is_time = test.contains("lat");
    let found = match (is_time, unit) {
        (true, "" | "us" | "usec" | "µs" | "microseconds") => (ReadingUnit::Microseconds, 1.0),
        (true, "ns" | "nsec") => (ReadingUnit::Microseconds, 1e-3),
        (true, "ms" | "msec") => (ReadingUnit::Microseconds, 1e3),
        (false, "M msg/s") => (ReadingUnit::MillionsPerSecond, 1.0),
        (false, "" | "MB/s" | "MB/sec" | "MBs" | "MB_s") => (ReadingUnit::MegabytesPerSecond, 1.0),
        (false, "MiB/s" | "MiB/sec") => (ReadingUnit::MegabytesPerSecond, 1.048576),
        (false, "GB/s" | "GB/sec") => (ReadingUnit::MegabytesPerSecond, 1e3),
        (false, "GiB/s" | "GiB/sec") => (ReadingUnit::MegabytesPerSecond, 1073.741824),
        (false, "Gb/s" | "Gb/sec" | "Gbit/s" | "Gbps") => (ReadingUnit::MegabytesPerSecond, 125.0),
        _ => {
            return Err(format!(
                "{name:?} has the unit {unit:?}; valid are us, ns, ms for latencies, MB/s, MiB/s, GB/s, Gb/s for bandwidths"
            ));
        }
    };
    Ok(Some((test, found.0, found.1)))
}
