//! Figures from the text outputs of benchmarks: OSU's micro-benchmarks, IMB, perftest, and tables
//! of sizes and figures.
//!
//! Outputs are read as users have them: several in one file, with lines of launchers and libraries
//! between them. A line with a figure that cannot be parsed is an error. A benchmark that no
//! modelled benchmark repeats is left out, and listed.

mod reading;
mod sections;
mod table;

use reading::bounded;
pub use reading::{Reading, ReadingUnit, WrongLine};
use sections::{Section, section};

/// The figures of all benchmark outputs in one text of a user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    /// The figures that the outputs contain, in the order of the lines.
    pub readings: Vec<Reading>,
    /// The benchmarks that were left out, each with the number of its line and the reason.
    pub left_out: Vec<(usize, String)>,
    /// The size in bytes of the device's largest packet, as an output of perftest states it, and
    /// the number of the stating line. `None`: no output states it.
    pub mtu: Option<(u64, usize)>,
    /// The line in which perftest says that the processor's clock was not at its maximum. `None`:
    /// no line says so.
    pub slow_clock: Option<usize>,
}

/// Reads the benchmark outputs in a text. An error if the text has no figure, or if a line that
/// begins like a figure has none.
pub fn read(text: &str) -> Result<Outputs, WrongLine> {
    let mut outputs = Outputs::default();
    if let Some(table) = table::table(text)? {
        outputs.readings = table;
    } else {
        lines(text, &mut outputs)?;
    }
    if !outputs.readings.is_empty() {
        return Ok(outputs);
    }
    let why = match outputs.left_out.first() {
        Some((line, why)) => format!("it holds no figure of use; line {line}: {why}"),
        None => "it holds no figure; valid are outputs of OSU's benchmarks, IMB or perftest, and tables whose first line \
                 names the columns, such as size,latency_us,bandwidth_MB/s"
            .to_owned(),
    };
    Err(WrongLine::at(0, why))
}

fn lines(text: &str, outputs: &mut Outputs) -> Result<(), WrongLine> {
    let mut current: Option<Section> = None;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(next) = section(line) {
            current = Some(next);
            continue;
        }
        if sections::has_slow_clock(line) {
            outputs.slow_clock.get_or_insert(number);
        }
        if let Some(bytes) = sections::mtu(line) {
            outputs.mtu = outputs.mtu.or(Some((bytes, number)));
        }
        let Some(section) = &mut current else {
            continue;
        };
        section.note(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        let starts_with_size = words.first().and_then(|word| word.parse::<u64>().ok());
        let (Some(size), true) = (starts_with_size, words.len() >= 2) else {
            continue;
        };
        match section.left_out() {
            Some(why) => {
                if !section.is_named {
                    section.is_named = true;
                    outputs.left_out.push((number, why));
                }
            }
            None => {
                let found = section.figure(size, &words);
                let found = found.and_then(|found| match found {
                    Some((value, _)) => bounded(value).map(|_| found),
                    None => Ok(None),
                });
                let figure = found.map_err(|why| WrongLine::at(number, why))?;
                // A message of 0 bytes has no bandwidth, and no device sends one.
                outputs
                    .readings
                    .extend(figure.filter(|_| size > 0).map(|(value, unit)| Reading {
                        test: section.test,
                        size,
                        value,
                        unit,
                        pairs: section.pairs,
                        line: number,
                    }));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
