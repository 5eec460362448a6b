//! The command. It reads arguments, calls the library that does the work, and prints; it holds no logic that another
//! crate could own.
//!
//! Installed as `mpiexec` or `mpirun`, it is `fishplate run` with those names' spelling of options.

/// Lines go to standard output; whoever reads may have seen enough.
macro_rules! say {
    ($($word:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($word)*);
    }};
}

mod bench;
mod fabric;
mod faults;
mod info;
mod mpiexec;
mod perf;
mod run;
mod settings;
mod stage;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// MPI programs: start them, and see why they behave as they do.
#[derive(Parser)]
#[command(name = "fishplate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Bench(bench::Arguments),
    Perf(perf::Arguments),
    Fabric(fabric::Arguments),
    Study(study::Arguments),
    Knobs(settings::Arguments),
    Info(info::Arguments),
}

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let name = words
        .first()
        .and_then(|word| Path::new(word).file_name()?.to_str());
    let other_name = ["mpiexec", "mpirun"]
        .into_iter()
        .find(|other| name == Some(other));
    if let Some(name) = other_name {
        return mpiexec::main(name, words.split_off(1));
    }
    if words.get(1).is_some_and(|word| word == bench::WORKER) {
        return bench::worker(words.split_off(2));
    }
    if words.get(1).is_some_and(|word| word == launch::AGENT) {
        return ExitCode::from(launch::agent());
    }
    let Cli { command } = match words.get(1).is_some_and(|word| word == "run") {
        true => match mpiexec::translate(words.split_off(2)) {
            Ok(rest) => Cli::parse_from(words.into_iter().chain(rest)),
            Err(why) => return refuse(&why),
        },
        false => Cli::parse_from(words),
    };
    match command {
        Command::Run(arguments) => run::main(arguments),
        Command::Bench(arguments) => bench::main(arguments),
        Command::Perf(arguments) => perf::main(&arguments),
        Command::Fabric(arguments) => fabric::main(arguments),
        Command::Study(arguments) => study::main(&arguments),
        Command::Knobs(arguments) => settings::main(arguments),
        Command::Info(arguments) => info::main(arguments),
    }
}

/// For what cannot be done as asked.
fn refuse(why: &str) -> ExitCode {
    eprintln!("fishplate: {why}");
    ExitCode::from(2)
}
