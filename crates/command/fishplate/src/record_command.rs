//! `fishplate record`: the trace of a program under any MPI library, by a library that is preloaded
//! into its processes.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use knobs::{RECORD, RECORD_LIMIT};
use launch::{LARGE_RECORDER_LIBRARY, RECORDER_LIBRARY};
use trace::merged;
use trace::part_file::Parts;

use crate::output::Output;
use crate::refuse;

/// The greatest limit of a recording, in bytes.
const MOST_BYTES: u64 = 1 << 50;

/// Record the trace of a program under the MPI library that it runs with.
///
/// COMMAND starts the program as usual: `mpiexec -n 4 ./program`, `srun ./program`, a script. Its
/// MPI may be MPICH, Intel MPI, MVAPICH, Cray MPICH, Open MPI, or any library of the standard ABI.
/// The folder of FILE must exist on all hosts. Then `fishplate compare FILE` compares machines.
#[derive(Args)]
#[command(
    after_help = "Example:\n  fishplate record -o run.trace -- mpiexec -n 4 ./program input.dat"
)]
pub(crate) struct RecordArguments {
    /// The trace to write
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,

    /// Leave out the name of the program
    #[arg(long)]
    anonymise: bool,

    /// End the recording after so many seconds; the program goes on
    #[arg(long, value_name = "SECONDS", value_parser = |word: &str| match word.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err("valid are numbers above 0, such as 60"),
    })]
    seconds: Option<f64>,

    /// End the recording once all ranks together have written this much, within a second; the
    /// program goes on
    #[arg(long, value_name = "BYTES", value_parser = |word: &str| results::sizes::parse_bytes_up_to(word, MOST_BYTES))]
    size_limit: Option<u64>,

    /// Leave out the procedures with large counts (`MPI_Send_c`): the MPI library has none, and a
    /// program that asks for them must not find any. Without this option the library beside the
    /// launcher decides, if there is one
    #[arg(long)]
    without_large_counts: bool,

    /// The command that starts the program, with its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Merge the parts of a recording that the processes of a job have written.
#[derive(Args)]
pub(crate) struct MergeArguments {
    /// The folder of the parts: the value of FISHPLATE_RECORD
    folder: PathBuf,

    /// The file to write
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,

    /// Leave out the name of the program
    #[arg(long)]
    anonymise: bool,
}

pub(crate) fn main(arguments: &RecordArguments) -> ExitCode {
    recorded(arguments).unwrap_or_else(|why| refuse(&why))
}

fn recorded(arguments: &RecordArguments) -> Result<ExitCode, String> {
    let mut libraries = Vec::new();
    if !arguments.without_large_counts && has_large_counts(&arguments.command) {
        libraries.push(library(LARGE_RECORDER_LIBRARY)?);
    }
    libraries.push(library(RECORDER_LIBRARY)?);
    let output = Output::create("-o", &arguments.output)?;
    let folder = match folder_of(&arguments.output) {
        Ok(folder) => folder,
        Err(why) => {
            output.remove();
            return Err(why);
        }
    };
    let ended = match started(arguments, &libraries, &folder).status() {
        Ok(ended) => ended,
        Err(why) => {
            output.remove();
            let _ = fs::remove_dir(&folder);
            let program = arguments.command[0].display();
            return Err(format!("{program} cannot be started: {why}"));
        }
    };
    // The parts of a job that cannot be merged stay, for whoever wants to see them.
    merge(&folder, output, arguments.anonymise)?;
    let _ = fs::remove_dir_all(&folder);
    let code = ended.code().map(|code| ExitCode::from(code as u8));
    Ok(code.unwrap_or(ExitCode::FAILURE))
}

/// The command that starts the program, with the variables of the recording.
fn started(arguments: &RecordArguments, libraries: &[PathBuf], folder: &Path) -> Command {
    let own = libraries
        .iter()
        .map(|library| library.clone().into_os_string());
    let more = std::env::var_os("LD_PRELOAD").filter(|more| !more.is_empty());
    let preloaded: Vec<OsString> = own.chain(more).collect();
    let preloaded = preloaded.join(OsStr::new(":"));
    let mut started = Command::new(&arguments.command[0]);
    started.args(&arguments.command[1..]);
    started.env("LD_PRELOAD", preloaded).env(RECORD, folder);
    let seconds = arguments.seconds.map(|seconds| format!("{seconds}s"));
    let size = arguments.size_limit.map(|bytes| format!("{bytes}B"));
    let limits: Vec<String> = seconds.into_iter().chain(size).collect();
    started.env(RECORD_LIMIT, limits.join(","));
    // Open MPI's launcher passes to other hosts what this list names.
    started.env(
        "OMPI_MCA_mca_base_env_list",
        format!("LD_PRELOAD;{RECORD};{RECORD_LIMIT}"),
    );
    started
}

/// An empty folder beside the trace, for the parts of all hosts.
fn folder_of(output: &Path) -> Result<PathBuf, String> {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".parts");
    let beside = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let make = || {
        let folder = beside.canonicalize()?.join(name);
        fs::create_dir(&folder)?;
        Ok(folder)
    };
    make().map_err(|why: std::io::Error| {
        let output = output.display();
        format!("the folder {output}.parts for the parts of the processes cannot be made: {why}")
    })
}

/// True unless the MPI library beside the launcher lacks procedures with large counts.
fn has_large_counts(command: &[OsString]) -> bool {
    let found = command
        .iter()
        .find_map(|word| library_beside(&file_of(word)?));
    found.is_none_or(|library| {
        let names = launch::defined_names(&library);
        names.is_empty() || names.iter().any(|name| name == "MPI_Send_c")
    })
}

/// The executable that a word of a command names, as a shell finds it, behind all links.
fn file_of(word: &OsStr) -> Option<PathBuf> {
    let path = Path::new(word);
    if path.components().count() > 1 {
        return path.canonicalize().ok();
    }
    let folders = std::env::var_os("PATH")?;
    let files = std::env::split_paths(&folders).map(|folder| folder.join(path));
    files
        .filter_map(|file| file.canonicalize().ok())
        .find(|file| file.is_file())
}

/// The MPI library of the installation that a launcher belongs to.
fn library_beside(launcher: &Path) -> Option<PathBuf> {
    const NAMES: [&str; 4] = [
        "libmpi_abi.so.1",
        "libmpi.so.12",
        "libmpich.so.12",
        "libmpi.so.40",
    ];
    const FOLDERS: [&str; 4] = [
        "lib",
        "lib64",
        "lib/x86_64-linux-gnu",
        "lib/aarch64-linux-gnu",
    ];
    let name = launcher.file_name()?.to_string_lossy();
    let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
    // One folder may have the libraries of several launchers, as in Debian.
    let names = match (is(&["openmpi", "orte", "prte"]), is(&["mpi", "hydra"])) {
        (true, _) => &NAMES[3..],
        (false, true) => &NAMES[..],
        (false, false) => return None,
    };
    let root = launcher.parent()?.parent()?;
    let folders = FOLDERS.iter().map(|folder| root.join(folder));
    let mut files = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    files.find(|file| file.exists())
}

/// A library of `record` in this installation.
fn library(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().ok();
    let folder = own.and_then(|own| launch::library_directory(&own));
    let library = folder.map(|folder| folder.join(name));
    let library = library.filter(|library| library.exists());
    library.ok_or_else(|| format!("{name} is not beside this command; install fishplate whole"))
}

/// Writes the trace of the parts in a folder. If no process has written one, there is no trace, and
/// a line says why that may be.
fn merge(folder: &Path, output: Output, anonymise: bool) -> Result<(), String> {
    let traces = match read(folder).and_then(|parts| merged(&parts, anonymise)) {
        Ok(traces) => traces,
        Err(why) => {
            output.remove();
            return Err(format!(
                "the recording in {} cannot be merged: {why}",
                folder.display()
            ));
        }
    };
    if traces.is_empty() {
        output.remove();
        eprintln!(
            "fishplate record: no MPI call was seen, so there is no trace. The program does not use MPI, is linked with \
             a static MPI library, or its launcher does not pass LD_PRELOAD on"
        );
        return Ok(());
    }
    let (ranks, jobs) = (traces[0].ranks.len(), traces.len());
    let notes: Vec<String> = traces
        .iter()
        .flat_map(|trace| trace.notes.clone())
        .collect();
    output.fill(|to| {
        for trace in &traces {
            to.write_all(&trace.write())?;
        }
        Ok(None)
    })?;
    eprintln!(
        "fishplate record: {jobs} recording{} of {ranks} ranks",
        if jobs == 1 { "" } else { "s" }
    );
    for note in notes {
        eprintln!("fishplate record: {note}");
    }
    Ok(())
}

/// The parts in the files of a folder.
fn read(folder: &Path) -> Result<Parts, String> {
    let mut parts = Parts::default();
    let entries = fs::read_dir(folder).map_err(|why| why.to_string())?;
    for entry in entries {
        let path = entry.map_err(|why| why.to_string())?.path();
        if path.extension() != Some(OsStr::new("part")) {
            continue;
        }
        let bytes = fs::read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        parts.add(&bytes);
    }
    Ok(parts)
}

/// Merges the parts of a folder.
pub(crate) fn merge_folder(arguments: &MergeArguments) -> Result<(), String> {
    let output = Output::create("-o", &arguments.output)?;
    merge(&arguments.folder, output, arguments.anonymise)
}
