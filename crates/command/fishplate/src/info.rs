//! `fishplate info`: the resources of this machine that ranks can use, and the MPI libraries of a
//! program.

mod interfaces;
mod job_rails;
mod modelled;
mod names;
mod processor;
mod program;
mod rails;
mod rdma;

use std::ffi::OsString;
use std::io::IoSliceMut;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use conditions::Machine;
use knobs::Knobs;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use rail_choice::Wishes;
use results::terminal::{beside, width};
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

use crate::refuse;
use job_rails::JobRails;
use modelled::ModelledRails;

/// Show what ranks can use on this machine: cores, shared memory, limits, other launchers, RDMA
/// devices, IP interfaces. With PROGRAM, show the MPI that this program needs.
///
/// For each RDMA device it shows whether a job would use it and if not, why; its address; and the
/// hardware that it shares with other devices; and the same for each IP interface with an address.
/// RDMA devices are used where there are some, and IP interfaces elsewhere, unless FISHPLATE_DEVICE
/// names others. The ports in use are the rails of a job between hosts: for each it shows the
/// network, the bandwidth, and the rails of other hosts with which it pairs.
///
/// For a program it shows the ABI that it was built for, the file that needs it, the library that
/// its ranks would use, and of the MPI names that the program and its libraries import, which are
/// supported and which are not yet. A script counts as the program of its first line.
#[derive(Args, Default)]
#[command(
    after_help = "Example:\n  fishplate info\n  fishplate info --json\n  fishplate info --fabric 2xqdr\n  FISHPLATE_DEVICE=mlx5_0 fishplate info\n  \
                  fishplate info ./program"
)]
pub(crate) struct InfoArguments {
    /// Print one JSON object in a line
    #[arg(long)]
    json: bool,

    /// Show the rails of a modelled machine instead: a name from `fishplate fabric list`, or a file
    #[arg(long, value_name = "NAME|FILE")]
    fabric: Option<String>,

    /// Show the MPI of this program: a path, or a name to find in PATH
    #[arg(value_name = "PROGRAM", conflicts_with = "fabric")]
    program: Option<OsString>,
}

/// The width of the column of labels, in characters.
const LABEL: usize = 22;

/// A line of the output: the key in JSON, the label, the value.
type Fact = (&'static str, &'static str, Value);

pub(crate) fn main(arguments: InfoArguments) -> ExitCode {
    if let Some(name) = &arguments.fabric {
        return modelled(name, arguments.json);
    }
    if let Some(name) = &arguments.program {
        return program::main(name, arguments.json);
    }
    let set = Knobs::parse(knobs::decode(std::env::vars_os()));
    let settings = set.clone().unwrap_or_default();
    let wishes = Wishes {
        devices: &settings.device,
        connections: settings.tcp_connections,
        most: settings.rails.most(),
    };
    let facts = facts();
    let rails = JobRails::find(&wishes);
    let rdma = rdma::find(&rails);
    let interfaces = interfaces::find(&rails);
    if arguments.json {
        let mut object: serde_json::Map<String, Value> = facts
            .into_iter()
            .map(|(key, _, value)| (key.to_string(), value))
            .collect();
        object.insert("rdma".into(), rdma.object());
        object.insert("ip".into(), interfaces.object());
        object.insert("job".into(), rails.object());
        say!("{}", Value::from(object));
    } else {
        for (_, words, value) in facts {
            say!("{}", beside(words, LABEL, &plain(&value), width()));
        }
        say!("{}", beside("RDMA devices", LABEL, &rdma.line(), width()));
        say!(
            "{}",
            beside("IP interfaces", LABEL, &interfaces.line(), width())
        );
        rdma.print();
        interfaces.print();
        rails.print();
    }
    match set {
        Err(error) => refuse(&error.to_string()),
        // A host without any device is no error; the lack of a device that the user has named is
        // one.
        Ok(_) if wishes.devices.is_empty() => ExitCode::SUCCESS,
        Ok(_) => match rails.problem() {
            Some(problem) => refuse(&format!("FISHPLATE_DEVICE={}: {problem}", wishes.devices)),
            None => ExitCode::SUCCESS,
        },
    }
}

/// Shows the rails of a modelled machine.
fn modelled(name: &str, json: bool) -> ExitCode {
    match ModelledRails::of(name) {
        Ok(rails) if json => say!("{}", rails.object()),
        Ok(rails) => rails.print(),
        Err(why) => return refuse(&why),
    }
    ExitCode::SUCCESS
}

fn facts() -> Vec<Fact> {
    let machine = Machine::now();
    let library = library_directory();
    let library = library.map(|directory| directory.join("libmpi_abi.so.1").display().to_string());
    let first = [
        ("version", "version", json!(env!("CARGO_PKG_VERSION"))),
        ("host", "host", json!(machine.host)),
        ("kernel", "kernel", json!(machine.kernel)),
    ];
    let rest = [
        ("single_copy", "single copy", single_copy()),
        (
            "memlock",
            "locked memory",
            limit(Resource::Memlock, " bytes"),
        ),
        (
            "descriptors",
            "open descriptors",
            limit(Resource::Nofile, ""),
        ),
        ("dev_shm", "/dev/shm", dev_shm()),
        ("launcher", "started by", launcher()),
        ("launchers", "other launchers seen", launchers()),
        ("allocation", "allocation", allocation()),
        (
            "library",
            "library for ranks",
            library.map_or(json!("none found beside this command"), Value::from),
        ),
    ];
    first
        .into_iter()
        .chain(processor::facts())
        .chain(rest)
        .collect()
}

/// The folder of the MPI library that ranks load.
fn library_directory() -> Option<PathBuf> {
    let command = std::env::current_exe().ok()?;
    launch::library_directory(&command)
}

/// The text of a value: lists with commas, `none` for an empty list.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Tests if a rank can read the memory of another. Returns a text with the reason if it cannot.
fn single_copy() -> Value {
    let secret = *b"fishplate";
    let mut copy = [0; 9];
    let there = RemoteIoVec {
        base: secret.as_ptr() as usize,
        len: secret.len(),
    };
    let read = process_vm_readv(
        nix::unistd::getpid(),
        &mut [IoSliceMut::new(&mut copy)],
        &[there],
    );
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let words = match (read, scope.trim()) {
        (Err(errno), _) => {
            format!("no: process_vm_readv is refused ({errno}), by a container's filter perhaps")
        }
        (Ok(_), "2") => "only with CAP_SYS_PTRACE (kernel.yama.ptrace_scope is 2)".into(),
        (Ok(_), "3") => "no: kernel.yama.ptrace_scope is 3".into(),
        (Ok(_), "1") => "yes, ranks allow it to each other (kernel.yama.ptrace_scope is 1)".into(),
        (Ok(_), _) => "yes".into(),
    };
    json!(words)
}

fn limit(resource: Resource, unit: &str) -> Value {
    let word = |value: Option<u64>| {
        value.map_or("unlimited".to_string(), |value| format!("{value}{unit}"))
    };
    let limit = getrlimit(resource);
    match limit.current == limit.maximum {
        true => json!(word(limit.current)),
        false => json!(format!(
            "{}, can be raised to {}",
            word(limit.current),
            word(limit.maximum)
        )),
    }
}

fn dev_shm() -> Value {
    match rustix::fs::statvfs("/dev/shm") {
        Ok(system) => {
            let mib = |blocks: u64| (blocks * system.f_frsize) >> 20;
            json!(format!(
                "{} MiB free of {} MiB (not needed: ranks share anonymous memory)",
                mib(system.f_bavail),
                mib(system.f_blocks)
            ))
        }
        Err(errno) => json!(format!(
            "{errno} (not needed: ranks share anonymous memory)"
        )),
    }
}

/// The launcher that started this process as a rank, and the protocol of the connection to it.
fn launcher() -> Value {
    let vars: Vec<(String, String)> = knobs::decode(std::env::vars_os()).collect();
    match pmi::launcher_of(|name| value_of(&vars, name)) {
        Some((name, protocol)) => json!(format!("{name}, which speaks {protocol}")),
        None if value_of(&vars, pmi::RANK).is_some() => json!("fishplate run"),
        None => json!("no launcher"),
    }
}

fn value_of<'a>(vars: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let row = vars.iter().find(|(known, _)| known == name);
    row.map(|(_, value)| value.as_str())
}

/// The hosts that a batch system has allocated to this process, or the reason why they are unknown.
fn allocation() -> Value {
    match launch::Allocation::of_this_process(launch::AllocationChoice::Any) {
        Ok(Some(allocation)) => json!(allocation.describe()),
        Ok(None) => json!("none"),
        Err(why) => json!(format!("unknown: {why}")),
    }
}

fn launchers() -> Value {
    let vars: Vec<(String, String)> = knobs::decode(std::env::vars_os()).collect();
    let seen = pmi::launchers_seen(|name| value_of(&vars, name)).into_iter();
    seen.map(|(name, marks)| json!(format!("{name} ({})", marks.join(" "))))
        .collect::<Vec<_>>()
        .into()
}
