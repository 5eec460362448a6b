//! `fishplate fabric`: the catalogue of modelled hardware, users' files, and the breakdown of a
//! message's time.

mod explain;
mod files;

use std::process::ExitCode;

use ::fabric::catalogue::{CatalogueEntry, FieldValue, KINDS, Sheet};
use ::fabric::{Bytes, Operation};
use clap::{Args, Subcommand, ValueEnum};
use results::arguments::{ANY, whole_number};
use serde_json::{Map, Value, json};

use crate::refuse;
use explain::{Explained, Request};
pub(crate) use files::{ValueChange, changed_system, sheet, system};
use files::{in_catalogue, read};

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
        /// Print one JSON array of objects
        #[arg(long)]
        json: bool,
    },
    /// Show every value of a system or part, with its source
    #[command(
        after_help = "Example:\n  fishplate fabric show qdr\n  fishplate fabric show link.qdr --json"
    )]
    Show {
        /// A name, KIND.NAME if parts of several kinds have this name, or a file
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
    /// Break down the time of a single message on an idle machine
    #[command(
        after_help = "Example:\n  fishplate fabric explain qdr --size 8\n  fishplate fabric explain mine.toml --size 64K --operation read"
    )]
    Explain {
        /// A system of the catalogue, or a file with one system
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
        /// Number of switches between the hosts [default: between the hosts furthest apart]
        #[arg(long, value_parser = |word: &str| whole_number::<u32>(word, 0..=5))]
        hops: Option<u32>,
        /// The rail, counted from 0
        #[arg(long, default_value = "0", value_parser = |word: &str| whole_number::<u32>(word, ANY))]
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

/// Largest payload of `explain`.
const LARGEST: u64 = 4 << 30;

fn size(word: &str) -> Result<u64, String> {
    results::sizes::parse_bytes_up_to(word, LARGEST)
        .map_err(|_| "valid are whole numbers up to 4G, such as 8 or 64K".to_owned())
}

pub(crate) fn main(arguments: FabricArguments) -> ExitCode {
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
            let what = match mpi {
                true => Explained::Mpi,
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
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => refuse(&why),
    }
}

fn list(kind: Option<&str>, json: bool) {
    let catalogue = ::fabric::catalogue::Catalogue::builtin();
    let chosen: Vec<CatalogueEntry> = KINDS
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
    let rows = chosen
        .iter()
        .map(|entry| [entry.kind, entry.name, entry.about].map(String::from));
    print(["kind", "name", "what it is"], rows.collect(), 3);
}

fn show(name: &str, json: bool) -> Result<(), String> {
    let (catalogue, word) = in_catalogue(name)?;
    let (sheet, others) = catalogue.find(&word).map_err(|why| why.to_string())?;
    if json {
        say!("{:#}", object(&sheet));
        return Ok(());
    }
    let mut rows = Vec::new();
    fill(&mut rows, "", &sheet);
    say!("{}.{} ({})", sheet.kind, sheet.name, sheet.location);
    print(["key", "value", "source"], rows, 3);
    for kind in others {
        say!("There is also {kind}.{word}.");
    }
    Ok(())
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
    say!("{file}: good: {}", names.join(", "));
    Ok(())
}

/// Prints a table. Columns after the first `left` are aligned to the right.
fn print<const N: usize>(header: [&str; N], rows: Vec<[String; N]>, left: usize) {
    let header = header.map(String::from).to_vec();
    let rows = rows.into_iter().map(Vec::from).collect();
    say!("{}", results::table::lines(header, rows, left).trim_end());
}
