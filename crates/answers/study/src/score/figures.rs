//! Published figures, read from a file, and the plan of the runs that predict them.

use std::path::Path;

use anyhow::{Context, Result, bail};
use csv::StringRecord;
use fabric::accuracy::FigureKind;
use results::sizes::parse_bytes;
use serde::Deserialize;

use super::errors::CLASSES;
use crate::benchmark::Benchmark;
use crate::document::Reads;
use crate::experiments::Run;

/// A published figure: one row of a file of figures. Columns with other names are ignored.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct PublishedFigure {
    pub(crate) id: String,
    /// The tool that measured the figure, by the name of its command.
    pub(crate) test: String,
    /// The name of the system that stands for the measured machine.
    pub(crate) model_cfg: String,
    /// The message size in bytes, or a word for a short or a long message.
    pub(crate) msg_size: String,
    pub(crate) value: String,
    pub(crate) unit: String,
    /// The number of pairs of processes between two hosts, for the message rate of several pairs.
    /// `None`: 1.
    #[serde(default)]
    pub(crate) pairs: Option<usize>,
    /// The number of processes of a collective operation. `None`: 2.
    #[serde(default)]
    pub(crate) ranks: Option<usize>,
    /// The number of processes of a collective operation on each host. `None`: 1.
    #[serde(default)]
    pub(crate) ppn: Option<usize>,
    /// The system in the denominator. With it, the row is the quotient of the figures of
    /// `model_cfg` and of this system; `None`: the figure of `model_cfg` alone.
    #[serde(default)]
    pub(crate) over: Option<String>,
    /// The publication from which the figure is taken.
    #[serde(default)]
    pub(crate) source: String,
    /// The name of the measured installation, if several systems stand for it.
    #[serde(default)]
    pub(crate) system: String,
    /// The use of the figure in building the model, for tables.
    #[serde(default)]
    pub(crate) role: String,
}

/// The columns that a file of figures must have.
const COLUMNS: [&str; 6] = ["id", "test", "model_cfg", "msg_size", "value", "unit"];

/// One run of a benchmark, and the published figures that it predicts.
pub(crate) struct Group {
    pub(crate) run: Run,
    pub(crate) members: Vec<Member>,
}

/// The part of a run's results that predicts one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The index of the predicted figure in its file.
    pub(crate) figure: usize,
    /// The message size of the figure, in bytes.
    pub(crate) size: usize,
    /// True if the run is that of the machine in the denominator of a quotient.
    pub(crate) is_below: bool,
}

/// Reads the figures of a file, or the text `own` if no file is named.
pub(super) fn read(file: Option<&Path>, own: &str) -> Result<Vec<PublishedFigure>> {
    match file {
        None => parse("published.csv", own),
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            parse(&file.display().to_string(), &text)
        }
    }
}

pub(super) fn parse(name: &str, text: &str) -> Result<Vec<PublishedFigure>> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let header = reader.headers().with_context(|| name.to_owned())?.clone();
    if let Some(missing) = COLUMNS
        .iter()
        .find(|column| !header.iter().any(|h| h == **column))
    {
        let all = COLUMNS.join(", ");
        bail!(
            "{name}: there is no column {missing}; the first line names the columns, among them {all}"
        );
    }
    let row = |record: csv::Result<StringRecord>| -> Result<PublishedFigure> {
        let record = record.with_context(|| name.to_owned())?;
        let line = record.position().map_or(0, |position| position.line());
        let figure: PublishedFigure = record
            .deserialize(Some(&header))
            .with_context(|| format!("{name}:{line}"))?;
        if !figure.test.is_empty() && figure.number().is_none() {
            let (id, value) = (&figure.id, &figure.value);
            bail!("{name}:{line}: {id} has the value {value:?}; valid is a number above 0");
        }
        Ok(figure)
    };
    reader.records().map(row).collect()
}

impl PublishedFigure {
    pub(crate) fn number(&self) -> Option<f64> {
        let value: f64 = self.value.trim().parse().ok()?;
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// The size in bytes; a word stands for a short or a long message. `None`: it is neither a size
    /// nor such a word.
    pub(crate) fn size(&self) -> Option<usize> {
        match self.msg_size.trim() {
            "small" | "smallest" | "min" => Some(8),
            "large" | "max" => Some(1 << 20),
            size => parse_bytes(size).ok(),
        }
    }

    /// True if the figure is of a collective operation.
    pub(crate) fn is_of_many(&self) -> bool {
        self.benchmark().is_some_and(|(of, ..)| of.is_collective())
    }

    /// The installation on which the figure was measured.
    pub(super) fn system(&self) -> &str {
        match self.system.as_str() {
            "" => &self.model_cfg,
            named => named,
        }
    }

    /// True if the figure is of devices or sockets, without MPI.
    pub(crate) fn is_of_devices(&self) -> bool {
        let of = self.benchmark();
        of.is_some_and(|(of, ..)| of.is_of_devices())
    }

    /// True if the figure is of sockets over IP over InfiniBand.
    pub(crate) fn is_of_sockets(&self) -> bool {
        self.test.starts_with("ipoib_")
    }

    /// The kind of figure for which intervals are known. `None`: there are none for such a figure.
    pub(super) fn kind(&self) -> Option<FigureKind> {
        let size = self.size().unwrap_or(8) as u64;
        match self.unit.as_str() {
            _ if self.is_of_many() || self.is_of_sockets() => None,
            "us" => Some(FigureKind::latency(size)),
            "x" if self.is_latency() => Some(FigureKind::latency(size)),
            "x" | "MB/s" | "GB/s" | "Gb/s" => Some(FigureKind::bandwidth(size)),
            _ => None,
        }
    }

    /// True if the figure is a time of a message, or a quotient of such times.
    pub(crate) fn is_latency(&self) -> bool {
        let of = self.benchmark();
        of.is_some_and(|(of, ..)| of.unit() == results::Unit::Microseconds)
    }

    /// The kind of the figure in tables, one of [`CLASSES`].
    pub(super) fn class(&self) -> &'static str {
        let size = self.size().unwrap_or(8);
        let place = match (self.unit.as_str(), size) {
            _ if self.is_of_many() => 8,
            _ if self.is_of_sockets() => 10,
            ("x", _) => 9,
            ("us", ..=128) => 0,
            ("us", ..65536) => 1,
            ("us", _) => 2,
            ("msg/s" | "M msg/s", _) => 3,
            (_, ..=256) => 4,
            (_, ..=1024) => 5,
            (_, ..65536) => 6,
            _ => 7,
        };
        CLASSES[place]
    }

    /// The benchmark that repeats the test, its options, and the suffix of the machine's name.
    /// `None`: no benchmark repeats it.
    fn benchmark(&self) -> Option<(Benchmark, Vec<String>, &'static str)> {
        use Benchmark::*;
        let (benchmark, options, end): (_, &[&str], _) = match self.test.as_str() {
            "osu_latency" => (Latency, &[], ""),
            "osu_bw" => (Bw, &[], ""),
            "osu_bibw" => (Bibw, &[], ""),
            "osu_mbw_mr" => (MbwMr, &[], ""),
            "ib_write_lat" => (WriteLat, &[], ""),
            "ib_write_lat_noinl" => (WriteLat, &["--inline", "0"], ""),
            "ib_read_lat" => (ReadLat, &[], ""),
            "ib_send_lat" => (SendLat, &[], ""),
            "ib_write_bw" => (WriteBw, &[], ""),
            "ib_read_bw" => (ReadBw, &[], ""),
            "ib_send_bw" => (SendBw, &[], ""),
            "ib_write_bibw" => (WriteBw, &["--bidirectional"], ""),
            "ib_read_bibw" => (ReadBw, &["--bidirectional"], ""),
            "ib_send_bibw" => (SendBw, &["--bidirectional"], ""),
            "osu_allgather" => (Allgather, &[], ""),
            "osu_allreduce" => (Allreduce, &[], ""),
            "osu_alltoall" => (Alltoall, &[], ""),
            "osu_bcast" => (Bcast, &[], ""),
            "osu_gather" => (Gather, &[], ""),
            "osu_reduce" => (Reduce, &[], ""),
            "osu_scatter" => (Scatter, &[], ""),
            "ipoib_tcp_lat" => (TcpLat, &[], ""),
            "ipoib_tcp_bw" => (TcpBw, &[], ""),
            "dual_port_bw" => (WriteBw, &[], DUAL_PORT),
            "dual_port_bibw" => (WriteBw, &["--bidirectional"], DUAL_PORT),
            _ => return None,
        };
        let options = options.iter().map(|word| word.to_string()).collect();
        Some((benchmark, options, end))
    }
}

/// The suffix of the name of a machine with both ports of its HCA in use.
const DUAL_PORT: &str = "-dual-port";

/// The runs that predict the figures: one for each test, machine and number of processes. For each
/// figure without a run there is a reason. `word` returns the name of a machine on command lines.
pub(crate) fn groups(
    figures: &[PublishedFigure],
    word: &dyn Fn(&str) -> Result<String, String>,
) -> (Vec<Group>, Vec<Option<String>>) {
    let mut groups: Vec<(String, Group)> = Vec::new();
    let mut refused = vec![None; figures.len()];
    for (at, figure) in figures.iter().enumerate() {
        let machines = [Some(&figure.model_cfg), figure.below()];
        for (machine, is_below) in machines.into_iter().flatten().zip([false, true]) {
            let (size, run) = match planned(figure, machine, word) {
                Ok(found) => found,
                Err(why) => {
                    refused[at] = Some(why);
                    continue;
                }
            };
            let member = Member {
                figure: at,
                size,
                is_below,
            };
            let key = format!("{} {machine} {} {}", figure.test, run.ranks, run.ppn);
            match groups.iter_mut().find(|(own, _)| *own == key) {
                Some((_, group)) => group.members.push(member),
                None => {
                    let members = vec![member];
                    groups.push((key, Group { run, members }));
                }
            }
        }
    }
    let mut all: Vec<Group> = groups.into_iter().map(|(_, group)| group).collect();
    for group in &mut all {
        let mut sizes: Vec<usize> = group.members.iter().map(|member| member.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
        group.run.sizes = Some(sizes.join(","));
    }
    (all, refused)
}

/// The message size of a figure and the run that predicts it, or the reason why there is none.
fn planned(
    figure: &PublishedFigure,
    machine: &str,
    word: &dyn Fn(&str) -> Result<String, String>,
) -> Result<(usize, Run), String> {
    if figure.test.is_empty() {
        return Err("no test: an input of the model, or a property that it does not have".into());
    }
    let (benchmark, options, end) = figure
        .benchmark()
        .ok_or_else(|| format!("no benchmark repeats the test {}", figure.test))?;
    let size = figure
        .size()
        .ok_or_else(|| format!("{:?} is no message size", figure.msg_size))?;
    let (ranks, ppn) = figure.processes(benchmark)?;
    let run = Run {
        label: machine.to_owned(),
        fabric: word(&format!("{machine}{end}"))?,
        benchmark,
        sizes: None,
        iterations: None,
        ranks,
        ppn,
        named: true,
        settings: Vec::new(),
        options,
        reads: Reads::Median,
        hpl: None,
        skew: None,
    };
    Ok((size, run))
}

impl PublishedFigure {
    /// The system in the denominator of a quotient; `None` for other figures.
    pub(super) fn below(&self) -> Option<&String> {
        self.over.as_ref().filter(|name| !name.is_empty())
    }

    /// The number of processes of the test, and the number on each host.
    fn processes(&self, benchmark: Benchmark) -> Result<(usize, usize), String> {
        let (ranks, ppn) = match benchmark {
            Benchmark::MbwMr => {
                let pairs = self.pairs.unwrap_or(1);
                (pairs.saturating_mul(2), pairs)
            }
            _ if benchmark.is_collective() => (self.ranks.unwrap_or(2), self.ppn.unwrap_or(1)),
            _ => (2, 1),
        };
        match (1..=MOST_PROCESSES).contains(&ranks) && (1..=ranks).contains(&ppn) {
            true => Ok((ranks, ppn)),
            false => Err(format!(
                "{ranks} processes, {ppn} on a host, cannot run; valid are up to {MOST_PROCESSES}"
            )),
        }
    }
}

/// The most processes of a run that predicts figures.
const MOST_PROCESSES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::machines::FigureMachines;
    use super::*;

    const HEADER: &str = "id,source,msg_size,value,unit,test,model_cfg\n";

    fn rows(rows: &str) -> Result<Vec<PublishedFigure>> {
        parse("it", &format!("{HEADER}{rows}"))
    }

    #[test]
    fn figures_have_kinds() {
        let class = |size: &str, unit: &str| {
            let row = format!("P1,x,{size},1.5,{unit},osu_bw,qdr\n");
            rows(&row).unwrap()[0].class()
        };
        assert_eq!(class("128", "us"), CLASSES[0]);
        assert_eq!(class("small", "us"), CLASSES[0]);
        assert_eq!(class("129", "us"), CLASSES[1]);
        assert_eq!(class("65536", "us"), CLASSES[2]);
        assert_eq!(class("1", "M msg/s"), CLASSES[3]);
        assert_eq!(class("256", "MB/s"), CLASSES[4]);
        assert_eq!(class("1024", "MB/s"), CLASSES[5]);
        assert_eq!(class("16384", "Gb/s"), CLASSES[6]);
        assert_eq!(class("large", "MB/s"), CLASSES[7]);
    }

    #[test]
    fn figures_of_one_test_and_machine_share_a_run() {
        let machines = FigureMachines::read(None, "").unwrap();
        let figures = rows(
            "P1,x,1024,1,MB/s,osu_bw,qdr\nP2,x,8,2,us,ib_write_lat_noinl,fdr\nP3,x,64,3,MB/s,osu_bw,qdr\n\
             P4,x,64,3,MB/s,own_bw,qdr\nP5,x,64,3,MB/s,osu_bw,nowhere\nP6,x,,1,us,,\nP7,x,long,1,us,osu_bw,qdr\n",
        );
        let (groups, refused) = groups(&figures.unwrap(), &|name| machines.word(name));
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].run.sizes.as_deref(), Some("64,1024"));
        let member = |figure: usize, size: usize| Member {
            figure,
            size,
            is_below: false,
        };
        assert_eq!(groups[0].members, [member(0, 1024), member(2, 64)]);
        assert_eq!(groups[1].run.options, ["--inline", "0"]);
        let reason = |at: usize| refused[at].clone().unwrap_or_default();
        assert!(reason(3).contains("own_bw"), "{}", reason(3));
        assert!(reason(4).contains("nowhere"), "{}", reason(4));
        assert!(reason(5).contains("no test"), "{}", reason(5));
        assert!(reason(6).contains("long"), "{}", reason(6));
        assert!(refused[0].is_none());
    }

    #[test]
    fn many_processes_and_quotients_have_runs_of_their_own() {
        let header = "id,msg_size,value,unit,test,model_cfg,pairs,ranks,ppn,over\n";
        let text = format!(
            "{header}P1,8,3,M msg/s,osu_mbw_mr,qdr,4,,,\nP2,8,3,M msg/s,osu_mbw_mr,qdr,,,,\n\
             P3,8,20,us,osu_allreduce,qdr,,16,4,\nP4,1M,1.9,x,osu_bw,fdr,,,,qdr\nP5,8,2,us,osu_bcast,qdr,,4,8,\n"
        );
        let figures = parse("it", &text).unwrap();
        let (groups, refused) = groups(&figures, &|name| Ok(name.to_owned()));
        let runs = groups.iter().map(|group| {
            let run = &group.run;
            (run.fabric.as_str(), run.ranks, run.ppn)
        });
        let runs: Vec<_> = runs.collect();
        let wanted = [
            ("qdr", 8, 4),
            ("qdr", 2, 1),
            ("qdr", 16, 4),
            ("fdr", 2, 1),
            ("qdr", 2, 1),
        ];
        assert_eq!(runs, wanted);
        assert!(!groups[3].members[0].is_below && groups[4].members[0].is_below);
        let why = refused[4].clone().unwrap_or_default();
        assert!(why.contains("8 on a host"), "{why}");
        let classes: Vec<&str> = figures.iter().map(PublishedFigure::class).collect();
        assert_eq!(classes[2..4], [CLASSES[8], CLASSES[9]]);
    }

    #[test]
    fn wrong_files_are_refused_with_the_line() {
        let error = parse("it", "id,value\nP1,2\n").unwrap_err();
        assert!(error.to_string().contains("no column test"), "{error}");
        let error = rows("P1,x,8,1,us,osu_bw,qdr\nP2,x,8,fast,us,osu_bw,qdr\n").unwrap_err();
        assert!(error.to_string().contains("it:3: P2"), "{error}");
        assert!(rows("P1,x,8\n").is_err());
    }
}
