//! `fishplate fabric`: the catalogue of modelled hardware, users' files, and where the time of one message goes.

use std::fmt::Display;
use std::process::ExitCode;

use ::fabric::catalogue::{Catalogue, Entry, Held, KINDS, Sheet};
use ::fabric::explain::{Row, explain, total};
use ::fabric::limits::{both_ways, limits, one_way};
use ::fabric::{Bytes, Costs, Operation, System};
use channel::rdma::PacketWrite;
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use model::explain::{Packet, message};
use serde_json::{Map, Value, json};

use crate::refuse;

/// Modelled hardware: list, show and check it, and explain what a message costs on it.
#[derive(Args)]
#[command(
    after_help = "Example:\n  fishplate fabric list\n  fishplate fabric explain mpich2-2003 --size 8"
)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List systems and the parts they are made of
    #[command(after_help = "Example:\n  fishplate fabric list hca")]
    List {
        /// Only this kind of part
        #[arg(value_parser = KINDS.map(|(kind, _)| kind))]
        kind: Option<String>,
        /// Print one JSON array of objects
        #[arg(long)]
        json: bool,
    },
    /// Show every value of a system or part, with its source
    #[command(
        after_help = "Example:\n  fishplate fabric show qdr\n  fishplate fabric show link.qdr --json"
    )]
    Show {
        /// A name, KIND.NAME where several kinds have it, or a file
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Check a file of parts and systems
    #[command(after_help = CHECK)]
    Check {
        /// A TOML file
        file: String,
    },
    /// Explain where the time of one message goes that has the machine to itself
    #[command(
        after_help = "Example:\n  fishplate fabric explain qdr --size 8\n  fishplate fabric explain mine.toml --size 64K --operation read"
    )]
    Explain {
        /// A system of the catalogue, or a file with one system
        name: String,
        /// Bytes of payload, with K, M or G for powers of 1024
        #[arg(long, default_value = "8", value_parser = size)]
        size: u64,
        /// What moves the payload
        #[arg(long, value_enum, default_value = "write")]
        operation: Word,
        /// The whole way of a message of MPI, from MPI_Send to the return of an MPI_Recv that waits
        #[arg(long, conflicts_with_all = ["operation", "rail"])]
        mpi: bool,
        /// Switches on the way; without it those between the hosts furthest apart
        #[arg(long, value_parser = clap::value_parser!(u32).range(0..=5))]
        hops: Option<u32>,
        /// The rail; those after 0 hang on the other socket
        #[arg(long, default_value = "0")]
        rail: u32,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

const CHECK: &str = "Example of a file:
  [system.mine]
  from = \"fdr\"
  hca = { from = \"connectx-3\", mtu = \"4096 B\" }
  cable = { from = \"fibre\", length = \"30 m\" }
  nodes = 200

  fishplate fabric check mine.toml";

#[derive(Clone, Copy, ValueEnum)]
enum Word {
    /// RDMA write, seen by polling memory
    Write,
    /// Send and receive, seen by its completion
    Send,
    /// RDMA read, asked for by the host that the payload goes to
    Read,
}

pub fn main(arguments: Arguments) -> ExitCode {
    let done = match arguments.action {
        Action::List { kind, json } => {
            list(kind.as_deref(), json);
            Ok(())
        }
        Action::Show { name, json } => show(&name, json),
        Action::Check { file } => check(&file),
        Action::Explain {
            name,
            size,
            operation,
            mpi,
            hops,
            rail,
            json,
        } => {
            let what = match (mpi, operation) {
                (true, _) => What::Mpi,
                (_, Word::Write) => What::Device(Operation::Write, "RDMA write"),
                (_, Word::Send) => What::Device(Operation::Send, "send"),
                (_, Word::Read) => What::Device(Operation::Read, "RDMA read"),
            };
            explained(&name, Bytes(size), what, hops, rail, json)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => refuse(&why),
    }
}

fn list(kind: Option<&str>, json: bool) {
    let catalogue = Catalogue::builtin();
    let chosen: Vec<Entry> = KINDS
        .iter()
        .flat_map(|(kind, _)| catalogue.entries().filter(move |entry| entry.kind == *kind))
        .filter(|entry| kind.is_none_or(|kind| kind == entry.kind))
        .collect();
    if json {
        let rows: Vec<Value> = chosen
            .iter()
            .map(|entry| json!({"kind": entry.kind, "name": entry.name, "about": entry.about}))
            .collect();
        say!("{:#}", Value::from(rows));
        return;
    }
    let mut table = table(["kind", "name", "what it is"], 3);
    for entry in chosen {
        table.add_row([entry.kind, entry.name, entry.about]);
    }
    print(&table);
}

fn show(name: &str, json: bool) -> Result<(), String> {
    let (catalogue, word) = open(name)?;
    let (sheet, others) = find(&catalogue, &word)?;
    if json {
        say!("{:#}", object(&sheet));
        return Ok(());
    }
    let mut rows = table(["key", "value", "source"], 3);
    fill(&mut rows, "", &sheet);
    say!("{}.{} ({})", sheet.kind, sheet.name, sheet.place);
    print(&rows);
    for kind in others {
        say!("There is also {kind}.{word}.");
    }
    Ok(())
}

/// The part of a name, and the other kinds that have the name too.
fn find(catalogue: &Catalogue, word: &str) -> Result<(Sheet, Vec<&'static str>), String> {
    if let Some((kind, name)) = word.split_once('.')
        && let Some((kind, _)) = KINDS.iter().find(|(known, _)| *known == kind)
    {
        let sheet = catalogue.sheet(kind, name).map_err(text)?;
        return Ok((sheet, Vec::new()));
    }
    let mut having = KINDS.iter().map(|(kind, _)| *kind).filter(|kind| {
        catalogue
            .entries()
            .any(|entry| entry.kind == *kind && entry.name == word)
    });
    // Without any, the systems are what is most likely meant.
    let sheet = catalogue
        .sheet(having.next().unwrap_or(KINDS[0].0), word)
        .map_err(text)?;
    Ok((sheet, having.collect()))
}

fn fill(table: &mut Table, above: &str, sheet: &Sheet) {
    for field in &sheet.fields {
        let key = format!("{above}{}", field.key.name);
        match &field.held {
            Held::Value(raw) => {
                table.add_row([&key, raw.to_string().trim_matches('"'), &field.source]);
            }
            Held::Part(part) => {
                table.add_row([&key, &part.name, &field.source]);
                fill(table, &format!("{key}."), part);
            }
        }
    }
}

fn object(sheet: &Sheet) -> Value {
    let mut fields = Map::new();
    for field in &sheet.fields {
        let value = match &field.held {
            Held::Value(raw) => json!({
                "value": raw.to_string().trim_matches('"'),
                "doc": field.key.doc,
                "source": field.source,
                "place": field.place.to_string(),
            }),
            Held::Part(part) => object(part),
        };
        fields.insert(field.key.name.to_owned(), value);
    }
    json!({"kind": sheet.kind, "name": sheet.name, "place": sheet.place.to_string(), "values": fields})
}

fn check(file: &str) -> Result<(), String> {
    let (catalogue, _) = read(file)?;
    let own: Vec<Entry> = catalogue
        .entries()
        .filter(|entry| entry.file == file)
        .collect();
    if own.is_empty() {
        return Err(format!(
            "{file}: holds no part; begin one with, for instance, [system.mine] and from = \"fdr\""
        ));
    }
    let names: Vec<String> = own
        .iter()
        .map(|entry| format!("{}.{}", entry.kind, entry.name))
        .collect();
    say!("{file}: good: {}", names.join(", "));
    Ok(())
}

fn explained(
    name: &str,
    size: Bytes,
    what: What,
    hops: Option<u32>,
    rail: u32,
    json: bool,
) -> Result<(), String> {
    let system = system(name)?;
    if rail >= system.rails {
        return Err(format!(
            "--rail {rail}: {name} has {} rail{}, counted from 0",
            system.rails,
            if system.rails == 1 { "" } else { "s" }
        ));
    }
    let hops = hops.unwrap_or(system.most_hops());
    if (hops == 0) != (system.switch.ports == 0) {
        return Err(match hops {
            0 => format!("--hops 0: hosts of {name} hang on switches; valid are 1 to 5"),
            _ => format!("--hops {hops}: hosts of {name} stand back to back; valid is 0"),
        });
    }
    let costs = Costs::of(&system, rail);
    let (rows, verb, limits) = match what {
        What::Device(operation, verb) => {
            let rows = explain(&costs, size, operation, hops);
            (rows, verb, limits(&costs, size))
        }
        What::Mpi => (packet(&costs, size, hops)?, "message of MPI", Vec::new()),
    };
    let sum = total(&rows);
    if json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|row| {
                json!({"step": row.step, "busy": row.resource.map(|r| r.name()), "count": row.count,
                    "ns": row.time.as_nanos()})
            })
            .collect();
        let limits: Vec<Value> = limits
            .iter()
            .map(|limit| {
                json!({"resource": limit.resource.name(), "one_way_mb_per_s": limit.one_way.as_mb_per_sec(),
                    "both_ways_mb_per_s": limit.both_ways.as_mb_per_sec()})
            })
            .collect();
        say!(
            "{:#}",
            json!({"system": name, "operation": verb, "bytes": size.0, "hops": hops, "rail": rail,
                "rows": rows, "total_ns": sum.as_nanos(), "limits": limits})
        );
        return Ok(());
    }
    say!(
        "{name}: one {verb} of {size}, {} on the way, nothing else under way",
        match hops {
            0 => "no switch".to_owned(),
            1 => "1 switch".to_owned(),
            many => format!("{many} switches"),
        }
    );
    let mut steps = table(["step", "busy meanwhile", "count", "ns"], 2);
    for row in &rows {
        let busy = row.resource.map_or("", |resource| resource.name());
        let time = format!("{:.1}", row.time.as_nanos());
        steps.add_row([row.step, busy, &row.count.to_string(), &time]);
    }
    steps.add_row(["sum", "", "", &format!("{:.1}", sum.as_nanos())]);
    print(&steps);
    if limits.is_empty() {
        return Ok(());
    }
    say!(
        "\nWhat each resource carries at most of RDMA writes of this size, in MB/s (* the least):"
    );
    let mut most = table(["resource", "one way", "both ways"], 1);
    let (one, both) = (one_way(&limits), both_ways(&limits));
    for limit in &limits {
        let star = |least: bool, rate: f64| format!("{rate:.0}{}", if least { " *" } else { "  " });
        most.add_row([
            limit.resource.name(),
            &star(one == Some(limit), limit.one_way.as_mb_per_sec()),
            &star(both == Some(limit), limit.both_ways.as_mb_per_sec()),
        ]);
    }
    print(&most);
    Ok(())
}

/// What is explained.
enum What {
    Device(Operation, &'static str),
    Mpi,
}

fn packet(costs: &Costs, size: Bytes, hops: u32) -> Result<Vec<Row>, String> {
    let most = PacketWrite::longest();
    match usize::try_from(size.0) {
        Ok(len) if len <= most => {
            let PacketWrite {
                len: written,
                inline,
            } = PacketWrite::of(len);
            let packet = Packet {
                len: written,
                inline,
            };
            Ok(message(costs, len, packet, hops))
        }
        _ => Err(format!(
            "--mpi explains messages that go in one packet, of up to {most} B; longer ones are agreed upon first and then moved \
             by RDMA read, as --operation read explains"
        )),
    }
}

/// The system that a word names: one of the catalogue, or the one that a file holds.
pub fn system(word: &str) -> Result<System, String> {
    let (catalogue, name) = open(word)?;
    let name = name.strip_prefix("system.").unwrap_or(&name);
    catalogue.system(name).map_err(text)
}

/// The catalogue in which to look, and the name to look for. A word with a slash or ending in `.toml` is a file.
fn open(word: &str) -> Result<(Catalogue, String), String> {
    if !word.contains('/') && !word.ends_with(".toml") {
        return Ok((Catalogue::builtin(), word.to_owned()));
    }
    let (catalogue, systems) = read(word)?;
    match systems.as_slice() {
        [one] => Ok((catalogue, format!("system.{one}"))),
        [] => Err(format!(
            "{word}: holds no system; begin one with [system.mine] and from = \"fdr\""
        )),
        many => Err(format!(
            "{word}: holds several systems ({}); leave one",
            many.join(", ")
        )),
    }
}

/// The catalogue with a file's parts, and the names of the file's systems.
fn read(file: &str) -> Result<(Catalogue, Vec<String>), String> {
    let content = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut catalogue = Catalogue::builtin();
    catalogue.add(file, &content).map_err(text)?;
    let systems = catalogue
        .systems_of(file)
        .into_iter()
        .map(str::to_owned)
        .collect();
    Ok((catalogue, systems))
}

fn text(problem: impl Display) -> String {
    problem.to_string()
}

/// Columns after the first `left` stand right.
fn table<const N: usize>(header: [&str; N], left: usize) -> Table {
    let mut table = Table::new();
    let line = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(line));
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if at < left {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        });
    }
    table
}

fn print(table: &Table) {
    table.lines().for_each(|line| say!("{}", line.trim_end()));
}

/// Bytes, with the suffixes of powers of 1024.
fn size(word: &str) -> Result<u64, String> {
    let most = 4 << 30;
    let (digits, shift) = match word.char_indices().last() {
        Some((at, 'K' | 'k')) => (&word[..at], 10),
        Some((at, 'M' | 'm')) => (&word[..at], 20),
        Some((at, 'G' | 'g')) => (&word[..at], 30),
        _ => (word, 0),
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| *bytes <= most)
        .ok_or_else(|| "valid are whole numbers up to 4G, such as 8 or 64K".to_owned())
}
