//! Files for the output of ranks, one for each rank.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The pattern for the name of each rank's file, in which `%r` stands for the rank's number and
/// `%h` for the name of its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    pattern: String,
}

impl OutputFile {
    /// Parses a pattern of file names. The error describes valid patterns.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        let mut rest = pattern.chars();
        let mut is_valid = !pattern.is_empty();
        while let Some(letter) = rest.next() {
            is_valid &= letter != '%' || matches!(rest.next(), Some('r' | 'h' | '%'));
        }
        match is_valid {
            true => Ok(OutputFile {
                pattern: pattern.into(),
            }),
            false => Err(
                "valid are names in which %r stands for the rank, %h for its host, and %% for %"
                    .into(),
            ),
        }
    }

    /// The pattern for files `NAME.RANK`.
    pub fn numbered(name: &str) -> Self {
        OutputFile {
            pattern: format!("{}.%r", name.replace('%', "%%")),
        }
    }

    /// The name of a rank's output file.
    pub(crate) fn name(&self, rank: usize, host: &str) -> String {
        let mut name = String::new();
        let mut rest = self.pattern.chars();
        while let Some(letter) = rest.next() {
            match letter {
                '%' => match rest.next() {
                    Some('r') => name.push_str(&rank.to_string()),
                    Some('h') => name.push_str(host),
                    _ => name.push('%'),
                },
                letter => name.push(letter),
            }
        }
        name
    }

    /// Creates the file for a rank, with its folders. The error has the name of the file.
    pub(crate) fn create(&self, rank: usize) -> Result<File, (String, io::Error)> {
        let own = rustix::system::uname();
        let name = self.name(rank, &own.nodename().to_string_lossy());
        let folder = Path::new(&name)
            .parent()
            .filter(|folder| *folder != Path::new(""));
        let made = folder.map_or(Ok(()), std::fs::create_dir_all);
        let mut options = OpenOptions::new();
        // Append mode, because standard output and standard error may share the file.
        options.create(true).append(true);
        let file = made.and_then(|()| options.open(&name));
        let file = file.map_err(|why| (name, why))?;
        // This fails on a device such as /dev/null, which does not matter.
        let _ = file.set_len(0);
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_names() {
        for (pattern, name) in [("out.%r", "out.7"), ("%h/%r%%", "a/7%"), ("plain", "plain")] {
            assert_eq!(OutputFile::parse(pattern).unwrap().name(7, "a"), name);
        }
        assert_eq!(OutputFile::numbered("50%").name(7, "a"), "50%.7");
        for pattern in ["", "%", "%g", "a%"] {
            assert!(OutputFile::parse(pattern).is_err(), "{pattern}");
        }
    }
}
