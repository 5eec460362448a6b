//! `fishplate fabric`: the catalogue of modelled hardware, users' files, and the breakdown of a
//! message's time.

mod calibrate;
mod explain;
pub(crate) mod files;
mod list;
mod route;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::fabric::catalogue::{FieldValue, KINDS, Sheet};
use ::fabric::figures::Figures;
use ::fabric::{Bytes, Operation, System};
use clap::{Args, Subcommand, ValueEnum};
use knobs::{KnobValue, Knobs, RdmaDesign};
use results::arguments::{ANY, whole_number};
use results::report::NetworkPicture;
use serde_json::{Map, Value, json};

use crate::{algorithms, refuse};
use explain::{Explained, Request};
pub(crate) use files::{ValueChange, changed_system, system};
#[cfg(feature = "compare")]
pub(crate) use files::{hosts, sheet};
use files::{in_catalogue, read};
use route::RouteRequest;

/// Modelled hardware: list it, show it, check files of it, and explain the time of a message on it.
#[derive(Args)]
#[command(
    after_help = "Example:\n  fishplate fabric list\n  fishplate fabric explain mpich2-2003 --size 8"
)]
pub(crate) struct FabricArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List systems and the parts that they consist of
    #[command(after_help = "Example:\n  fishplate fabric list hca")]
    List {
        /// Only parts of this kind
        #[arg(value_parser = KINDS.map(|(kind, _)| kind))]
        kind: Option<String>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show every value of a system or part, with its source
    #[command(
        after_help = "Example:\n  fishplate fabric show qdr\n  fishplate fabric show link.qdr --json\n  fishplate fabric show mine.toml --picture mine.svg"
    )]
    Show {
        /// A name, KIND.NAME if parts of several kinds have this name, or a file
        name: String,
        /// Write a picture of the system's network to an SVG file instead
        #[arg(long, value_name = "FILE", conflicts_with = "json")]
        picture: Option<PathBuf>,
        /// Print one JSON object in a line
        #[arg(long)]
        json: bool,
    },
    /// Check a file of parts and systems
    #[command(after_help = CHECK)]
    Check {
        /// A TOML file
        file: String,
    },
    /// Write a machine's file from figures that you measured on it
    #[command(after_help = CALIBRATE)]
    Calibrate {
        /// Outputs: of OSU's latency, bw, bibw and mbw_mr, IMB's PingPong, Uniband and Biband,
        /// perftest; a table of sizes and figures; JSON of `fishplate perf` and `bench latency`.
        /// May be repeated
        #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
        from: Vec<String>,
        /// System that has all values which the figures do not determine [default: the nearest of
        /// the catalogue]
        #[arg(long, value_name = "NAME|FILE", visible_alias = "base")]
        like: Option<String>,
        /// Name of the calibrated system
        #[arg(long, default_value = "mine")]
        name: String,
        /// Number of switches between the measured hosts [default: between the hosts furthest
        /// apart]
        #[arg(long, value_parser = |word: &str| whole_number::<u32>(word, 0..=16))]
        hops: Option<u32>,
        /// Print one JSON object per line: figures with errors, values, the file
        #[arg(long)]
        json: bool,
    },
    /// Break down the time of a single message on an idle machine, or show a route
    #[command(
        after_help = "Example:\n  fishplate fabric explain qdr --size 8\n  fishplate fabric explain mine.toml --size 64K --operation read\n  fishplate fabric explain mine.toml --route 0:40"
    )]
    Explain {
        /// A system of the catalogue, a file with one system, or FILE:NAME
        name: String,
        /// Payload in bytes, with K, M or G for powers of 1024
        #[arg(long, default_value = "8", value_parser = size)]
        size: u64,
        /// The operation that moves the payload
        #[arg(long, value_enum, default_value = "write")]
        operation: OperationName,
        /// Explain a whole MPI message, from MPI_Send to the return of a waiting MPI_Recv
        #[arg(long, conflicts_with_all = ["operation", "rail"])]
        mpi: bool,
        /// Design of the RDMA transport that carries the message [default: that of
        /// FISHPLATE_RDMA_DESIGN, or zero-copy]
        #[arg(long, value_name = "basic|piggyback|pipeline|zero-copy", requires = "mpi", value_parser = design)]
        design: Option<RdmaDesign>,
        /// Number of switches between the hosts [default: between the hosts furthest apart]
        #[arg(long, value_parser = |word: &str| whole_number::<u32>(word, 0..=16))]
        hops: Option<u32>,
        /// The rail, counted from 0
        #[arg(long, default_value = "0", value_parser = |word: &str| whole_number::<u32>(word, ANY))]
        rail: u32,
        /// Show each switch and link on the route between two hosts, by number, or by name in a
        /// graph
        #[arg(long, value_name = "FROM:TO", conflicts_with_all = ["size", "operation", "mpi", "hops"])]
        route: Option<String>,
        /// Print one JSON object in a line
        #[arg(long)]
        json: bool,
    },
}

const CALIBRATE: &str = "\
At most six values that the catalogue infers or assumes move, inside bounds, towards the figures. The
file begins with each figure's error before and after, and as the other figures alone predict it.
A table's first line names its columns: size and latency_us, bandwidth_MB/s, or the name of a tool such
as osu_bw; or test, msg_size, value and unit, with a figure in each line.
JSON of `fishplate perf` determines values by formulas, and needs --like. Objects with the keys \"rate\" and
\"delay\", such as \"100 Mb/s\" and \"2 ms\", were measured over links of that shape.

Example:
  fishplate fabric calibrate --from osu_latency.txt osu_bw.txt > mine.toml
  fishplate fabric calibrate --from figures.csv --like edr > mine.toml
  fishplate bench latency --fabric mine.toml
  fishplate perf write-lat --json HOST > perf.json
  fishplate fabric calibrate --from perf.json --like fdr > mine.toml";

const CHECK: &str = "Example of a file:
  [system.mine]
  from = \"fdr\"
  hca = { from = \"connectx-3\", mtu = \"4096 B\" }
  cable = { from = \"fibre\", length = \"30 m\" }
  nodes = 200

  fishplate fabric check mine.toml";

#[derive(Clone, Copy, ValueEnum)]
enum OperationName {
    /// RDMA write, found by polling memory
    Write,
    /// Send and receive, found by polling for the completion
    Send,
    /// RDMA read by the host that receives the payload
    Read,
}

impl From<OperationName> for Explained {
    fn from(name: OperationName) -> Explained {
        match name {
            OperationName::Write => Explained::Device(Operation::Write, "RDMA write"),
            OperationName::Send => Explained::Device(Operation::Send, "send"),
            OperationName::Read => Explained::Device(Operation::Read, "RDMA read"),
        }
    }
}

/// The design that a word names.
fn design(word: &str) -> Result<RdmaDesign, String> {
    RdmaDesign::parse(word).ok_or_else(|| format!("valid are {}", RdmaDesign::EXPECTED))
}

/// The design that the settings of the environment name, as a run reads them.
fn design_of_environment() -> Result<RdmaDesign, String> {
    Knobs::parse(knobs::decode(std::env::vars_os()))
        .map(|set| set.rdma_design)
        .map_err(|why| terminal_text::line(&why.to_string()))
}

/// The largest payload of `explain`, in bytes.
const LARGEST: u64 = 4 << 30;

fn size(word: &str) -> Result<u64, String> {
    results::sizes::parse_bytes_up_to(word, LARGEST)
        .map_err(|_| "valid are whole numbers up to 4G, such as 8 or 64K".to_owned())
}

pub(crate) fn main(arguments: FabricArguments) -> ExitCode {
    let done = match arguments.action {
        Action::List { kind, json } => {
            list::list(kind.as_deref(), json);
            Ok(())
        }
        Action::Show {
            name,
            picture: Some(file),
            ..
        } => draw(&name, &file),
        Action::Show { name, json, .. } => show(&name, json),
        Action::Check { file } => check(&file),
        Action::Calibrate {
            from,
            like,
            name,
            hops,
            json,
        } => calibrate::Request {
            from: &from,
            like: like.as_deref(),
            name: &name,
            hops,
            json,
        }
        .calibrate(),
        Action::Explain {
            name,
            size,
            operation,
            mpi,
            design,
            hops,
            rail,
            route,
            json,
        } => {
            if let Some(hosts) = &route {
                let (name, hosts) = (&name, hosts);
                let route = RouteRequest { name, hosts, rail };
                return finish(route.explain(json));
            }
            let what = match mpi {
                true => match design.map_or_else(design_of_environment, Ok) {
                    Ok(design) => Explained::Mpi(design),
                    Err(why) => return finish(Err(why)),
                },
                false => operation.into(),
            };
            let size = Bytes(size);
            let request = Request {
                name: &name,
                size,
                what,
                hops,
                rail,
            };
            request.explain(json)
        }
    };
    finish(done)
}

fn finish(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => refuse(&why),
    }
}

fn show(name: &str, json: bool) -> Result<(), String> {
    let (catalogue, word) = in_catalogue(name)?;
    let (sheet, others) = catalogue.find(&word).map_err(|why| why.to_string())?;
    if json {
        let mut object = object(&sheet);
        if let Some(algorithms) = algorithms::object(&sheet) {
            object["algorithms"] = algorithms;
        }
        say!("{object}");
        return Ok(());
    }
    let mut rows = Vec::new();
    fill(&mut rows, "", &sheet);
    tell!("{}.{} ({})", sheet.kind, sheet.name, sheet.location);
    print(["key", "value", "source"], rows, 3);
    algorithms::show(&sheet);
    for kind in others {
        tell!("There is also {kind}.{word}.");
    }
    Ok(())
}

/// Writes the picture of the network of a system's first rail.
fn draw(name: &str, file: &Path) -> Result<(), String> {
    let system = system(name)?;
    let picture = NetworkPicture::of(name, &system, 0).ok_or_else(|| {
        format!(
            "--picture: {name} gives the number of switches between hosts (hops) and no network"
        )
    })?;
    let written = std::fs::write(file, picture.svg());
    written.map_err(|why| {
        let reason = results::output::reason(file, &why);
        format!("--picture {}: {reason}", file.display())
    })
}

fn fill(rows: &mut Vec<[String; 3]>, above: &str, sheet: &Sheet) {
    for field in &sheet.fields {
        let key = format!("{above}{}", field.key.name);
        let source = field.source.clone();
        match &field.value {
            FieldValue::Value(raw) => {
                let value = raw.to_string().trim_matches('"').to_owned();
                rows.push([key, value, source]);
            }
            FieldValue::Part(part) => {
                rows.push([key.clone(), part.name.clone(), source]);
                fill(rows, &format!("{key}."), part);
            }
            FieldValue::List(parts) => {
                rows.push([key.clone(), format!("{} of them", parts.len()), source]);
                for (number, part) in parts.iter().enumerate() {
                    fill(rows, &format!("{key}.{number}."), part);
                }
            }
        }
    }
}

fn object(sheet: &Sheet) -> Value {
    let mut fields = Map::new();
    for field in &sheet.fields {
        let value = match &field.value {
            FieldValue::Value(raw) => json!({
                "value": raw.to_string().trim_matches('"'),
                "doc": field.key.doc,
                "source": field.source,
                "place": field.location.to_string(),
            }),
            FieldValue::Part(part) => object(part),
            FieldValue::List(parts) => parts.iter().map(object).collect(),
        };
        fields.insert(field.key.name.to_owned(), value);
    }
    json!({"kind": sheet.kind, "name": sheet.name, "place": sheet.location.to_string(), "values": fields})
}

fn check(file: &str) -> Result<(), String> {
    let (catalogue, _) = read(file)?;
    let own = catalogue.entries().filter(|entry| entry.file == file);
    let names: Vec<String> = own
        .map(|entry| format!("{}.{}", entry.kind, entry.name))
        .collect();
    if names.is_empty() {
        return Err(format!(
            "{file}: holds no part; begin one with, for instance, [system.mine] and from = \"fdr\""
        ));
    }
    tell!("{file}: good: {}", names.join(", "));
    for name in catalogue.systems_of(file) {
        let system = catalogue.system(name).map_err(|why| why.to_string())?;
        for rail in 0..system.rails.count() {
            tell!("{}", agreed(name, &system, rail));
        }
    }
    for slip in catalogue.slips(file) {
        eprintln!("fishplate: warning: {slip}");
    }
    Ok(())
}

/// A line about a rail: its negotiated link, its latency and its peak bandwidth.
fn agreed(name: &str, system: &System, rail: u32) -> String {
    let figures = Figures::of(system, rail);
    let rail = match system.rails.count() {
        1 => String::new(),
        _ => format!(", rail {rail}"),
    };
    let plural = if figures.hops == 1 { "" } else { "es" };
    format!(
        "system.{name}{rail}: link {}X, {:.1} Gb/s; write of 8 B {:.2} µs over {} switch{plural}; peak {:.0} MB/s ({})",
        figures.width,
        figures.link.as_gb_per_sec(),
        figures.latency.as_micros(),
        figures.hops,
        figures.peak.as_mb_per_sec(),
        figures.bound.name(),
    )
}

/// Prints a table. Columns after the first `left` ones are right-aligned.
pub(crate) fn print<const N: usize>(header: [&str; N], rows: Vec<[String; N]>, left: usize) {
    let header = header.map(String::from).to_vec();
    let rows = rows.into_iter().map(Vec::from).collect();
    say!("{}", results::table::lines(header, rows, left).trim_end());
}
