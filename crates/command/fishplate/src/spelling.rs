//! Long options with one hyphen, as launchers take them: `-np 8`.
//!
//! Invariant: only words before the first that is no option change, so a program keeps its
//! arguments.

use std::ffi::OsString;

use clap::{Arg, Command};

/// Options that users of launchers write with one hyphen.
const ONE_HYPHEN: [&str; 2] = ["np", "ppn"];

/// The arguments of a subcommand with two hyphens before its options in [`ONE_HYPHEN`]. `words`
/// begins with the names of the command and of the subcommand.
pub(crate) fn with_two_hyphens(mut words: Vec<OsString>, command: &Command) -> Vec<OsString> {
    let name = words.get(1).and_then(|word| word.to_str());
    let Some(command) = name.and_then(|name| command.find_subcommand(name)) else {
        return words;
    };
    let mut at = 2;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        let Some(option) = word.strip_prefix('-').filter(|option| *option != "-") else {
            break;
        };
        let option = option.strip_prefix('-').unwrap_or(option).to_owned();
        let name = option.split('=').next().unwrap_or_default();
        let is_ours = ONE_HYPHEN.contains(&name) && find(command, name).is_some();
        if is_ours && !word.starts_with("--") {
            words[at] = format!("--{option}").into();
        }
        at += 1;
        let is_short = !words[at - 1].to_string_lossy().starts_with("--");
        let has_value = option.contains('=') || (is_short && option.len() > 1);
        if !has_value && find(command, name).is_some_and(takes_next) {
            at += 1;
        }
    }
    words
}

/// The option with this name, without hyphens.
fn find<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let mut letters = name.chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    command.get_arguments().find(|argument| {
        let names = argument.get_long_and_visible_aliases().unwrap_or_default();
        names.contains(&name) || (letter.is_some() && argument.get_short() == letter)
    })
}

/// True if the next word is the option's value.
fn takes_next(option: &Arg) -> bool {
    option.get_action().takes_values() && !option.is_require_equals_set()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    fn spelled(words: &str) -> String {
        let words = words.split(' ').map(OsString::from).collect();
        let words = with_two_hyphens(words, &Cli::command());
        let words: Vec<String> = words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        words.join(" ")
    }

    #[test]
    fn options_of_launchers_get_a_second_hyphen() {
        for (given, expected) in [
            ("f compare -np 8 a", "f compare --np 8 a"),
            (
                "f compare -np=8,16 -ppn 4 a",
                "f compare --np=8,16 --ppn 4 a",
            ),
            (
                "f compare -q --fabrics qdr -np 8 a",
                "f compare -q --fabrics qdr --np 8 a",
            ),
            ("f compare --vary -np 8 a", "f compare --vary --np 8 a"),
            ("f compare -n 8 -ppn 4 a", "f compare -n 8 --ppn 4 a"),
            ("f compare -n8 -ppn 4 a", "f compare -n8 --ppn 4 a"),
        ] {
            assert_eq!(spelled(given), expected);
        }
    }

    #[test]
    fn words_of_the_program_and_of_other_commands_stay() {
        for words in [
            "f compare --fabrics qdr a -np 8",
            "f compare -- -np 8",
            "f compare --host -np a",
            "f info -np 8",
            "f zzz -np 8",
            "f",
        ] {
            assert_eq!(spelled(words), words);
        }
    }
}
