//! Our own options, as the parser of arguments defines them, for the translation of other
//! launchers' command lines.

use std::ffi::OsStr;

use clap::{Arg, Args, Command};

use crate::run::{ProgramArguments, RunArguments};

/// The options that an argument parser defines.
pub(super) struct Options(Command);

impl Options {
    /// The options of a whole job, including those of its first program.
    pub(super) fn of_a_job() -> Self {
        Options(RunArguments::augment_args(Command::new("run")))
    }

    /// The options of one program.
    pub(super) fn of_a_program() -> Self {
        Options(ProgramArguments::augment_args(Command::new("program")))
    }

    /// The option that a word in our spelling names: `-n`, `--ranks`, `--ranks=4`.
    pub(super) fn find(&self, word: &OsStr) -> Option<&Arg> {
        let word = word.to_str()?;
        match word.strip_prefix("--") {
            Some(long) => self.long(long.split('=').next()?),
            None => self.short(word.strip_prefix('-')?.chars().next()?),
        }
    }

    /// The option with this name or alias after two hyphens.
    pub(super) fn long(&self, name: &str) -> Option<&Arg> {
        self.0.get_arguments().find(|option| {
            let aliases = option.get_all_aliases().unwrap_or_default();
            option.get_long() == Some(name) || aliases.contains(&name)
        })
    }

    /// The option with this letter after one hyphen.
    pub(super) fn short(&self, letter: char) -> Option<&Arg> {
        let mut options = self.0.get_arguments();
        options.find(|option| option.get_short() == Some(letter))
    }

    /// True if the parser defines `option`.
    pub(super) fn has(&self, option: &Arg) -> bool {
        self.0
            .get_arguments()
            .any(|own| own.get_id() == option.get_id())
    }

    /// All names and aliases of the options, without the two hyphens.
    pub(super) fn longs(&self) -> impl Iterator<Item = &str> {
        let options = self.0.get_arguments();
        options.flat_map(|option| {
            let aliases = option.get_all_aliases().unwrap_or_default();
            option.get_long().into_iter().chain(aliases)
        })
    }
}

/// True if the value of an option is the word after it.
pub(super) fn takes_next_word(option: &Arg) -> bool {
    option.get_action().takes_values() && !option.is_require_equals_set()
}
