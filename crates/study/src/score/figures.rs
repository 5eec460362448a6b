//! Published figures from a file, and the runs that predict them.

use std::path::Path;

use anyhow::{Context, Result, bail};
use csv::StringRecord;
use results::sizes::parse_bytes;
use serde::Deserialize;

use super::errors::CLASSES;
use super::machines::FigureMachines;
use crate::benchmark::Benchmark;
use crate::document::Reads;
use crate::experiments::Run;

/// One row of a file of figures. Columns of other names are ignored.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PublishedFigure {
    pub(crate) id: String,
    /// The tool that measured it, by the name of its command.
    pub(crate) test: String,
    /// The name of a system.
    pub(crate) model_cfg: String,
    /// A size in bytes, or a word for a short or a long message.
    pub(crate) msg_size: String,
    pub(crate) value: String,
    pub(crate) unit: String,
}

/// The columns that a file must have.
const COLUMNS: [&str; 6] = ["id", "test", "model_cfg", "msg_size", "value", "unit"];

/// A run, and the figures that it predicts: their places in the file, and their sizes.
pub(super) struct Group {
    pub(super) run: Run,
    pub(super) members: Vec<(usize, usize)>,
}

/// The figures of a file, or of `own` if none is named.
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

fn parse(name: &str, text: &str) -> Result<Vec<PublishedFigure>> {
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
    pub(super) fn number(&self) -> Option<f64> {
        let value: f64 = self.value.trim().parse().ok()?;
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// The size in bytes; a word stands for a short or a long message.
    fn size(&self) -> Option<usize> {
        match self.msg_size.trim() {
            "small" | "smallest" | "min" => Some(8),
            "large" | "max" => Some(1 << 20),
            size => parse_bytes(size).ok(),
        }
    }

    /// The kind of figure, one of [`CLASSES`].
    pub(super) fn class(&self) -> &'static str {
        let size = self.size().unwrap_or(8);
        let place = match (self.unit.as_str(), size) {
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

    /// The benchmark that repeats the test, its options, and what the machine's name ends in.
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
            "dual_port_bw" => (WriteBw, &[], DUAL_PORT),
            "dual_port_bibw" => (WriteBw, &["--bidirectional"], DUAL_PORT),
            _ => return None,
        };
        let options = options.iter().map(|word| word.to_string()).collect();
        Some((benchmark, options, end))
    }
}

/// The end of the name of a machine with both ports of its HCA in use.
const DUAL_PORT: &str = "-dual-port";

/// The runs that predict the figures, one for each test and machine; and for each figure that no
/// run predicts the reason.
pub(super) fn groups(
    figures: &[PublishedFigure],
    machines: &FigureMachines,
) -> (Vec<Group>, Vec<Option<String>>) {
    let mut groups: Vec<(String, String, Group)> = Vec::new();
    let mut refused = vec![None; figures.len()];
    for (at, figure) in figures.iter().enumerate() {
        let (size, run) = match planned(figure, machines) {
            Ok(found) => found,
            Err(why) => {
                refused[at] = Some(why);
                continue;
            }
        };
        let known = groups
            .iter_mut()
            .find(|(test, machine, _)| *test == figure.test && *machine == figure.model_cfg);
        match known {
            Some((_, _, group)) => group.members.push((at, size)),
            None => groups.push((
                figure.test.clone(),
                figure.model_cfg.clone(),
                Group {
                    run,
                    members: vec![(at, size)],
                },
            )),
        }
    }
    let mut all: Vec<Group> = groups.into_iter().map(|(_, _, group)| group).collect();
    for group in &mut all {
        let mut sizes: Vec<usize> = group.members.iter().map(|(_, size)| *size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
        group.run.sizes = Some(sizes.join(","));
    }
    (all, refused)
}

/// The size of a figure and the run that predicts it, or the reason that there is none.
fn planned(figure: &PublishedFigure, machines: &FigureMachines) -> Result<(usize, Run), String> {
    if figure.test.is_empty() {
        return Err("no test: an input of the model, or a property that it does not have".into());
    }
    let (benchmark, options, end) = figure
        .benchmark()
        .ok_or_else(|| format!("no benchmark repeats the test {}", figure.test))?;
    let size = figure
        .size()
        .ok_or_else(|| format!("{:?} is no message size", figure.msg_size))?;
    let run = Run {
        label: figure.model_cfg.clone(),
        fabric: machines.word(&format!("{}{end}", figure.model_cfg))?,
        benchmark,
        sizes: None,
        iterations: None,
        ranks: 2,
        ppn: 1,
        named: true,
        settings: Vec::new(),
        options,
        reads: Reads::Median,
        hpl: None,
    };
    Ok((size, run))
}

#[cfg(test)]
mod tests {
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
        let (groups, refused) = groups(&figures.unwrap(), &machines);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].run.sizes.as_deref(), Some("64,1024"));
        assert_eq!(groups[0].members, [(0, 1024), (2, 64)]);
        assert_eq!(groups[1].run.options, ["--inline", "0"]);
        let reason = |at: usize| refused[at].clone().unwrap_or_default();
        assert!(reason(3).contains("own_bw"), "{}", reason(3));
        assert!(reason(4).contains("nowhere"), "{}", reason(4));
        assert!(reason(5).contains("no test"), "{}", reason(5));
        assert!(reason(6).contains("long"), "{}", reason(6));
        assert!(refused[0].is_none());
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
