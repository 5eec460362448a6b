//! The command `fishplate`. It parses arguments, calls the crate that does the work, and prints.
//!
//! Invariant: no logic here that another crate could own.
//!
//! Under the name `mpiexec` or `mpirun` it acts as `fishplate run`, and accepts other launchers'
//! spelling of options.
//!
//! Never here: logic that a library crate could own.

/// Prints a line on standard output. It is no error if the reader has closed the pipe.
macro_rules! say {
    ($($word:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($word)*);
    }};
}

/// Prints text on standard output, broken into lines that fit the terminal.
macro_rules! tell {
    ($($word:tt)*) => { say!("{}", results::terminal::fitted(&format!($($word)*))) };
}

mod algorithms;
mod bench;
mod binding;
mod checked;
#[cfg(feature = "compare")]
mod compare;
#[cfg(feature = "whole")]
mod completions;
mod conflicts;
mod events;
mod explain;
mod fabric;
mod faults;
mod info;
mod modelled;
mod mpiexec;
mod output;
#[cfg(feature = "whole")]
mod pages;
#[cfg(feature = "whole")]
mod perf;
mod record;
mod record_command;
mod run;
mod scratch;
mod settings;
mod spelling;
mod summary;
mod trace_command;
mod trace_file;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Start MPI programs, measure MPI libraries and RDMA devices, and explain the results.
#[derive(Parser)]
#[command(name = "fishplate", version = env!("VERSION_AND_COMMIT"), arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<run::RunArguments>),
    Bench(bench::BenchArguments),
    #[cfg(feature = "whole")]
    Perf(perf::PerfArguments),
    Fabric(fabric::FabricArguments),
    #[cfg(feature = "compare")]
    Compare(compare::CompareArguments),
    #[cfg(feature = "whole")]
    Study(study::StudyArguments),
    Record(record_command::RecordArguments),
    Trace(trace_command::TraceArguments),
    Knobs(settings::KnobsArguments),
    Info(info::InfoArguments),
    #[cfg(feature = "whole")]
    #[command(hide = true)]
    Completions(pages::CompletionArguments),
    #[cfg(feature = "whole")]
    #[command(hide = true)]
    Man(pages::ManArguments),
}

/// The names under which this command acts as `fishplate run`. Packages without links, such as
/// wheels, start it by a script that passes the name as the first argument.
const OTHER_NAMES: [&str; 2] = ["mpiexec", "mpirun"];

fn main() -> ExitCode {
    launch::outlive_file_limit();
    results::terminal::fit_to_terminal();
    let mut words: Vec<OsString> = match child_guard::begin(std::env::args_os().collect()) {
        Ok(Some(words)) => words,
        Ok(None) => return ExitCode::SUCCESS,
        Err(why) => return refuse(&why),
    };
    let name = words
        .first()
        .and_then(|word| Path::new(word).file_name()?.to_str());
    if let Some(name) = OTHER_NAMES.into_iter().find(|other| name == Some(other)) {
        return mpiexec::main(name, words.split_off(1));
    }
    let first = words.get(1);
    if let Some(name) = OTHER_NAMES
        .into_iter()
        .find(|other| first.is_some_and(|word| word == other))
    {
        return mpiexec::main(name, words.split_off(2));
    }
    if words.get(1).is_some_and(|word| word == bench::WORKER) {
        return bench::worker(words.split_off(2));
    }
    if words.get(1).is_some_and(|word| word == launch::AGENT) {
        return ExitCode::from(launch::agent());
    }
    if words.get(1).is_some_and(|word| word == "run") {
        return mpiexec::main("fishplate run", words.split_off(2));
    }
    let words = spelling::with_two_hyphens(words, &<Cli as clap::CommandFactory>::command());
    let Cli { command } = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return parse_error(&error),
    };
    match command {
        Command::Run(arguments) => run::main(*arguments, Vec::new()),
        Command::Bench(arguments) => bench::main(arguments),
        #[cfg(feature = "whole")]
        Command::Perf(arguments) => perf::main(&arguments),
        Command::Fabric(arguments) => fabric::main(arguments),
        #[cfg(feature = "compare")]
        Command::Compare(arguments) => compare::main(arguments),
        #[cfg(feature = "whole")]
        Command::Study(arguments) => study::main(&arguments),
        Command::Record(arguments) => record_command::main(&arguments),
        Command::Trace(arguments) => trace_command::main(arguments),
        Command::Knobs(arguments) => settings::main(arguments),
        Command::Info(arguments) => info::main(arguments),
        #[cfg(feature = "whole")]
        Command::Completions(arguments) => pages::completions(&arguments),
        #[cfg(feature = "whole")]
        Command::Man(arguments) => pages::man(&arguments),
    }
}

/// Prints the help if it was requested, or reports arguments that the parser cannot use.
fn parse_error(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    refuse(text.strip_prefix("error: ").unwrap_or(&text).trim_end())
}

/// Reports an invalid argument. Returns the exit code 2.
fn refuse(why: &str) -> ExitCode {
    eprintln!("fishplate: {}", results::arguments::shown(why));
    ExitCode::from(2)
}
