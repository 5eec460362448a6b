//! The command line of a job in the syntax of other launchers: their spellings of options, several
//! programs separated by `:`, and files that list programs.
//!
//! Invariant: each option is ours, or has a row in the table of [`habits`], or leads to an error
//! that names the whole word as the user typed it.

mod configfile;
mod habits;
mod options;

#[cfg(feature = "whole")]
pub(crate) use habits::names as habits;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::info::InfoArguments;
use crate::run::{self, ProgramArguments, RunArguments};
use crate::{parse_error, refuse};
use options::Options;

#[derive(Parser)]
#[command(version = VERSION)]
struct Mpiexec {
    #[command(flatten)]
    run: RunArguments,
}

/// The text after the command's name in the output of `--version`. The version is its last word.
const VERSION: &str = concat!("(Fishplate, MPI 5.0) ", env!("CARGO_PKG_VERSION"));

/// A program of a job after the first.
#[derive(Parser)]
struct FurtherProgram {
    #[command(flatten)]
    program: ProgramArguments,
}

/// Runs a job with these arguments. `name` is the command's name: `fishplate run`, `mpiexec` or
/// `mpirun`.
pub(crate) fn main(name: &'static str, words: Vec<OsString>) -> ExitCode {
    let Translated {
        mut programs,
        notices,
        asks_installation,
    } = match translate(words, name) {
        Ok(translated) => translated,
        Err(why) => return refuse(&why),
    };
    if asks_installation {
        say!("{name} {VERSION}");
        return crate::info::main(InfoArguments::default());
    }
    let further = programs.split_off(1);
    let parsed = parse::<Mpiexec>(name, programs.remove(0)).and_then(|Mpiexec { run }| {
        let further = further
            .into_iter()
            .map(|words| parse::<FurtherProgram>(name, words));
        let further = further.map(|parsed| parsed.map(|FurtherProgram { program }| program));
        Ok((run, further.collect::<Result<Vec<_>, _>>()?))
    });
    match parsed {
        Ok((first, further)) => {
            notices
                .iter()
                .for_each(|notice| eprintln!("fishplate: {}", terminal_text::lines(notice)));
            run::main(first, further)
        }
        Err(error) => parse_error(&error),
    }
}

fn parse<P: CommandFactory + FromArgMatches>(
    name: &'static str,
    words: Vec<OsString>,
) -> Result<P, clap::Error> {
    let command = P::command().name(name).bin_name(name);
    let words = std::iter::once(OsString::from(name)).chain(words);
    P::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// A command line of another launcher, translated to options of ours.
#[derive(Debug, Default, PartialEq)]
struct Translated {
    /// The words of each program. Those of the first include the options of the whole job.
    programs: Vec<Vec<OsString>>,
    /// Remarks for the user on options that have no effect.
    notices: Vec<String>,
    /// True if the user asks for a description of this installation, and starts nothing.
    asks_installation: bool,
}

/// Translates a command line to our spelling. An error is the text for the user.
fn translate(words: Vec<OsString>, name: &str) -> Result<Translated, String> {
    let words = configfile::expand(words)?;
    let (whole_job, one_program) = (Options::of_a_job(), Options::of_a_program());
    let mut translated = Translated::default();
    let mut words = words.into_iter().peekable();
    loop {
        let is_first = translated.programs.is_empty();
        let mut program = Vec::new();
        let mut leaves_colons = false;
        while let Some(word) = words.next() {
            if word == ":" {
                return Err("`:` stands between two programs, and there is none before it".into());
            }
            if !is_option(&word) {
                leaves_colons = word == "--";
                program.push(word);
                break;
            }
            let option = habits::translate(&word, &mut words, &whole_job, name)?;
            if let Some(own) = option.words.first().and_then(|own| whole_job.find(own))
                && !is_first
                && !one_program.has(own)
            {
                return Err(format!(
                    "{} is for the whole job: it stands before the first program",
                    word.to_string_lossy()
                ));
            }
            program.extend(option.words);
            translated.notices.extend(option.notice);
            translated.asks_installation |= option.asks_installation;
        }
        let arguments = words.by_ref();
        let ended = match leaves_colons {
            true => {
                program.extend(arguments);
                true
            }
            false => loop {
                match arguments.next() {
                    None => break true,
                    Some(word) if word == ":" => break false,
                    Some(word) => program.push(word),
                }
            },
        };
        translated.programs.push(program);
        if ended {
            return Ok(translated);
        }
        if words.peek().is_none() {
            return Err("`:` stands between two programs, and there is none after it".into());
        }
    }
}

/// True if a word before the program is an option.
fn is_option(word: &OsStr) -> bool {
    let bytes = word.as_encoded_bytes();
    bytes.starts_with(b"-") && bytes != b"--" && bytes != b"-"
}

#[cfg(test)]
mod tests;
