//! The origin of results, for pages and for captions of plots: command, version, machine and date.

use std::ffi::OsString;
use std::path::Path;

/// The origin of a page or a plot: command, version, machine and date of its results.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// The command that made the output, with its arguments, quoted for a shell.
    pub command: String,
    /// The version of the program that made the output.
    pub version: String,
    /// The measured machine, or a text for modelled ones. Empty if the results name the machine.
    pub machine: String,
    /// The date, if it is to be shown. Without a date, one command gives equal bytes every day.
    pub date: Option<String>,
}

impl Made {
    /// The origin of results of this process: its arguments, its version, no date.
    pub fn here() -> Made {
        Made::by(std::env::args_os())
    }

    /// The origin of results of a command. The folder of the command's path is dropped.
    fn by(words: impl Iterator<Item = OsString>) -> Made {
        let word = |(at, word): (usize, OsString)| {
            let name = Path::new(&word).file_name().filter(|_| at == 0);
            name.unwrap_or(&word).to_string_lossy().replace('\0', "")
        };
        let words: Vec<String> = words.enumerate().map(word).collect();
        let command = shlex::try_join(words.iter().map(String::as_str));
        Made {
            command: command.expect("no word has a NUL"),
            version: env!("CARGO_PKG_VERSION").into(),
            machine: String::new(),
            date: None,
        }
    }

    /// The origin as one line, for a caption.
    pub fn line(&self) -> String {
        let Made {
            command,
            version,
            machine,
            date,
        } = self;
        let program = format!("fishplate {version}");
        let parts = [
            machine.as_str(),
            &program,
            date.as_deref().unwrap_or(""),
            command,
        ];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_a_shell_takes_it() {
        let words = ["/a b/fishplate", "compare", "./my prog", "-n", "4"].map(OsString::from);
        let made = Made::by(words.into_iter());
        assert_eq!(made.command, "fishplate compare './my prog' -n 4");
        let line = Made {
            version: "1.2.3".into(),
            machine: "modelled machines".into(),
            ..made
        };
        assert_eq!(
            line.line(),
            "modelled machines; fishplate 1.2.3; fishplate compare './my prog' -n 4"
        );
    }
}
