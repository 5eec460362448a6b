//! Sections of the output of a benchmark program: the title of one benchmark, and the lines after
//! it.

use super::reading::{ReadingUnit, figure};

/// The number of bytes of a megabyte in perftest's outputs.
const PERFTEST_MEGABYTE: f64 = 1048576.0;

/// The program that printed a section, which determines its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Format {
    Osu,
    Imb,
    /// perftest. The names of the columns, each with its unit, from the line above the figures.
    Perftest(Vec<String>),
}

/// The lines of one benchmark in the output of a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Section {
    /// The benchmark by the name of its command; empty: no modelled benchmark repeats it.
    pub(super) test: &'static str,
    pub(super) pairs: usize,
    /// True if the reason why this section is left out has been recorded.
    pub(super) is_named: bool,
    title: String,
    format: Format,
    /// An option with which the user ran the benchmark and which no modelled benchmark has, in
    /// words.
    odd: Option<String>,
}

/// The section that begins with this line. `None`: the line is no title.
pub(super) fn section(line: &str) -> Option<Section> {
    let title = line.trim().trim_start_matches('#').trim();
    let (test, format) = osu(title)
        .or_else(|| imb(title))
        .or_else(|| perftest(title))?;
    Some(Section {
        test,
        pairs: 1,
        is_named: false,
        title: title.to_owned(),
        format,
        odd: None,
    })
}

fn osu(title: &str) -> Option<(&'static str, Format)> {
    let (name, _) = title.strip_prefix("OSU MPI")?.split_once(" Test")?;
    // Newer outputs name the kind of memory first, such as `-CUDA`.
    let name = name.trim();
    let test = match name {
        "Latency" => "osu_latency",
        "Bandwidth" => "osu_bw",
        "Bi-Directional Bandwidth" => "osu_bibw",
        "Multiple Bandwidth / Message Rate" => "osu_mbw_mr",
        _ => "",
    };
    Some((test, Format::Osu))
}

fn imb(title: &str) -> Option<(&'static str, Format)> {
    let name = title.strip_prefix("Benchmarking ")?.trim();
    let test = match name {
        "PingPong" => "osu_latency",
        "Uniband" => "osu_bw",
        "Biband" => "osu_bibw",
        _ => "",
    };
    Some((test, Format::Imb))
}

fn perftest(title: &str) -> Option<(&'static str, Format)> {
    let bandwidth = title.contains("BW Test");
    if !bandwidth && !title.ends_with("Latency Test") {
        return None;
    }
    let both = title.contains("Bidirectional");
    let word = title.split_whitespace().next()?;
    let test = match (word, bandwidth, both) {
        ("RDMA_Write", false, _) => "ib_write_lat",
        ("RDMA_Read", false, _) => "ib_read_lat",
        ("Send", false, _) => "ib_send_lat",
        ("RDMA_Write", true, false) => "ib_write_bw",
        ("RDMA_Read", true, false) => "ib_read_bw",
        ("Send", true, false) => "ib_send_bw",
        ("RDMA_Write", true, true) => "ib_write_bibw",
        ("RDMA_Read", true, true) => "ib_read_bibw",
        ("Send", true, true) => "ib_send_bibw",
        _ => "",
    };
    Some((test, Format::Perftest(Vec::new())))
}

/// The number that follows `word` in a line, such as 4 after `pairs:` in `# [ pairs: 4 ]`.
fn number_after(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(word)?;
    let rest = rest.trim_start_matches([' ', '\t', ':', '=']);
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The size of the largest packet that a line of perftest states, in bytes.
pub(super) fn mtu(line: &str) -> Option<u64> {
    let bytes = number_after(line.trim().strip_prefix("Mtu")?, "")?;
    [256, 512, 1024, 2048, 4096]
        .contains(&bytes)
        .then_some(bytes)
}

/// True if perftest says in this line that the processor's clock was not at its maximum.
pub(super) fn has_slow_clock(line: &str) -> bool {
    line.contains("CPU Frequency is not max") || line.contains("Conflicting CPU frequency values")
}

impl Section {
    /// Records what a line between title and figures states about the section.
    pub(super) fn note(&mut self, line: &str) {
        match &mut self.format {
            Format::Osu => {
                if let Some(pairs) = number_after(line, "pairs:") {
                    self.pairs = usize::try_from(pairs).unwrap_or(usize::MAX);
                }
            }
            Format::Imb => {
                if let Some(count) = number_after(line, "#processes") {
                    self.odd = (count != 2).then(|| format!("{count} processes"));
                }
            }
            Format::Perftest(columns) => {
                if line.trim_start().starts_with("#bytes") {
                    *columns = perftest_columns(line);
                }
                if let Some(pairs) = number_after(line, "Number of qps").filter(|qps| *qps != 1) {
                    self.odd = Some(format!("{pairs} queue pairs"));
                }
                if let Some((_, transport)) = line.split_once("Connection type :") {
                    let transport = transport.split_whitespace().next().unwrap_or("RC");
                    if transport != "RC" {
                        self.odd = Some(format!("transport {transport}"));
                    }
                }
            }
        }
    }

    /// The reason why the figures of this section are left out. `None`: they are used.
    pub(super) fn left_out(&self) -> Option<String> {
        if self.test.is_empty() {
            return Some(format!("no benchmark repeats {:?}", self.title));
        }
        let odd = self.odd.as_ref()?;
        Some(format!("no benchmark repeats {:?} with {odd}", self.title))
    }

    /// The figure in a line. `None`: the line has none for this benchmark.
    pub(super) fn figure(
        &self,
        size: u64,
        words: &[&str],
    ) -> Result<Option<(f64, ReadingUnit)>, String> {
        let bandwidth = ReadingUnit::MegabytesPerSecond;
        let is_time = self.test.ends_with("latency") || self.test.ends_with("_lat");
        let at = |column: usize| {
            let word = words.get(column);
            figure(word.ok_or_else(|| format!("there is no column {}", column + 1))?)
        };
        match &self.format {
            // The columns are size and figure, and for rates also messages per second.
            Format::Osu if self.test == "osu_mbw_mr" => match size {
                0 => Ok(None),
                size => {
                    let messages = at(1)? / size as f64;
                    Ok(Some((messages, ReadingUnit::MillionsPerSecond)))
                }
            },
            Format::Osu if is_time => Ok(Some((at(1)?, ReadingUnit::Microseconds))),
            Format::Osu => Ok(Some((at(1)?, bandwidth))),
            // The columns are size, repetitions and time; or size, repetitions, bandwidth and
            // messages per second. IMB changed its megabyte in 2018, so the bandwidth is computed
            // from the messages.
            Format::Imb if is_time => Ok(Some((at(2)?, ReadingUnit::Microseconds))),
            Format::Imb if size == 0 => Ok(None),
            Format::Imb => Ok(Some((at(3)? * size as f64 / 1e6, bandwidth))),
            Format::Perftest(columns) => {
                let wanted: &[&str] = match is_time {
                    true => &["t_typical[", "t_avg["],
                    false => &["BW average["],
                };
                let column = |start: &&str| columns.iter().position(|name| name.starts_with(start));
                let column = wanted.iter().find_map(column);
                let column = column.ok_or_else(|| {
                    format!("above it is no line with {}…] among the columns", wanted[0])
                })?;
                let value = at(column)?;
                let unit = &columns[column];
                let megabytes = match () {
                    () if is_time => return Ok(Some((value, ReadingUnit::Microseconds))),
                    () if unit.contains("Gb/sec") => 125.0,
                    () if unit.contains("Gib/sec") => 134.217728,
                    () => PERFTEST_MEGABYTE / 1e6,
                };
                Ok(Some((value * megabytes, bandwidth)))
            }
        }
    }
}

/// The names of the columns in a line of perftest: two of one word each, and then names of several
/// words that end with a unit.
fn perftest_columns(line: &str) -> Vec<String> {
    let mut words = line.split_whitespace();
    let mut columns: Vec<String> = words.by_ref().take(2).map(String::from).collect();
    let mut name = Vec::new();
    for word in words {
        name.push(word);
        if word.ends_with(']') {
            columns.push(name.join(" "));
            name.clear();
        }
    }
    columns
}
