//! The traditional spelling of options of `mpiexec` and `mpirun`, such as `-np` with one dash, and
//! errors for options that only other launchers have.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::{refuse, run};

#[derive(Parser)]
#[command(version)]
struct Mpiexec {
    #[command(flatten)]
    run: run::RunArguments,
}

/// The command under the name `mpiexec` or `mpirun`.
pub(crate) fn main(name: &'static str, words: Vec<OsString>) -> ExitCode {
    let words = match translate(words) {
        Ok(words) => words,
        Err(why) => return refuse(&why),
    };
    let command = Mpiexec::command().name(name).bin_name(name);
    let matches = command.get_matches_from(std::iter::once(OsString::from(name)).chain(words));
    match Mpiexec::from_arg_matches(&matches) {
        Ok(Mpiexec { run }) => run::main(run),
        Err(error) => error.exit(),
    }
}

const COMPUTE: &str = "--compute";

/// Other launchers' spellings, and ours.
const SPELLINGS: &[(&str, &str)] = &[
    ("-np", "--np"),
    ("-wdir", "--wdir"),
    ("-wd", "--wdir"),
    ("-tag-output", "--tag-output"),
    ("-timeout", "--timeout"),
    ("-H", "--hosts"),
    ("-host", "--hosts"),
    ("--host", "--hosts"),
    ("-hosts", "--hosts"),
    ("-ppn", "--ppn"),
    ("-npernode", "--ppn"),
    ("--npernode", "--ppn"),
    ("-bind-to", "--bind-to"),
    ("-map-by", "--map-by"),
    ("-cpu-set", "--cpu-set"),
    ("-report-bindings", "--report-bindings"),
    ("-cpus-per-proc", "--cpus-per-proc"),
    ("-cpus-per-rank", "--cpus-per-proc"),
    ("--cpus-per-rank", "--cpus-per-proc"),
];

/// Options whose value is the next word.
const WITH_VALUE: &[&str] = &[
    "--fabric",
    "--hosts",
    "--bind-to",
    "--map-by",
    "--cpu-set",
    "--cpus-per-proc",
    "--launch-with",
    "--ppn",
    "--seed",
    "--faults",
    "--fault",
    "--predict",
    "--set",
    COMPUTE,
    "--trace",
    "--summary",
    "--intra-host",
    "-n",
    "--np",
    "--ranks",
    "-x",
    "--wdir",
    "--timeout",
    "--report-stuck",
];

/// Options of other launchers that place ranks: host files.
const PLACEMENT: &[&str] = &[
    "-f",
    "-hostfile",
    "--hostfile",
    "-machinefile",
    "--machinefile",
    "-machine",
    "-configfile",
    "--configfile",
];

/// Rewrites the options before the program. An error names an option that is not supported.
pub(crate) fn translate(words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let mut translated = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        let name = text.split('=').next().unwrap_or_default();
        if PLACEMENT.contains(&name) {
            return Err(format!(
                "{name} is not supported: name the hosts with --hosts a,b:2; ranks fill them in that order"
            ));
        }
        let ours = SPELLINGS
            .iter()
            .find(|(theirs, _)| *theirs == text)
            .map_or(text, |(_, ours)| ours);
        let takes_next = WITH_VALUE.contains(&ours);
        let is_program = !text.starts_with('-') || text == "--";
        translated.push(if ours == text {
            word.clone()
        } else {
            ours.into()
        });
        if is_program {
            break;
        }
        if takes_next {
            let mut value = words.next();
            // `--compute record FILE` becomes the single value `record:FILE`.
            if ours == COMPUTE
                && let Some(how) = &mut value
                && ["record", "replay"].contains(&how.to_str().unwrap_or_default())
                && let Some(file) = words.next()
            {
                how.push(":");
                how.push(file);
            }
            translated.extend(value);
        }
    }
    let rest: Vec<OsString> = words.collect();
    // A lone colon may be an argument of the program; before an option it begins another program.
    let another = rest
        .windows(2)
        .any(|pair| pair[0] == ":" && pair[1].as_encoded_bytes().starts_with(b"-"));
    if another {
        return Err("several programs separated by `:` are not supported: start one program that branches on its rank, such as a \
                    script that reads FISHPLATE_RANK"
            .into());
    }
    translated.extend(rest);
    Ok(translated)
}
