//! Lists of hosts from the command line, and from hostfiles in the formats of MPICH, Intel MPI and
//! Open MPI.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::why_text;
use crate::host_table::{HostTable, ListedHost};

/// The valid forms of a line in a hostfile, for error messages.
const FORMS: &str = "a line is HOST, HOST:RANKS, or HOST slots=RANKS max_slots=MOST";

/// The length of the longest file that is read, in bytes: enough for a million hosts with long
/// names.
const LONGEST: u64 = 64 << 20;

/// The hosts that a user has named, each with its number of slots, if it is given.
#[derive(Debug, Clone)]
pub struct HostList {
    /// The option or the file that names the hosts, for error messages.
    pub(crate) source: String,
    pub(crate) hosts: HostTable,
    /// True if a batch system has allocated the hosts; false if the user has named them.
    pub(crate) is_allocated: bool,
}

impl HostList {
    /// Parses a list such as `a,b:4`, where a number is the number of slots of a host. The slots of
    /// a repeated name are added up. An error is the text for the user.
    pub fn parse(list: &str) -> Result<HostList, String> {
        let shown = terminal_text::line(list);
        let mut hosts = HostList::empty(format!("--hosts {shown}"));
        for word in list.split(',') {
            let host = ListedHost::parse(word).ok_or_else(|| {
                let word = terminal_text::line(word);
                format!("--hosts {shown}: `{word}` is not HOST or HOST:RANKS, such as b:2")
            })?;
            hosts.hosts.add(host);
        }
        Ok(hosts)
    }

    pub(crate) fn empty(source: String) -> HostList {
        HostList {
            source,
            hosts: HostTable::default(),
            is_allocated: false,
        }
    }

    /// Reads a hostfile: one host on each line, as `HOST`, `HOST:RANKS` or `HOST slots=RANKS
    /// max_slots=MOST`. Text after `#` is a comment. The slots of a repeated host are added up. An
    /// error is the text for the user.
    pub fn read(file: &Path) -> Result<HostList, String> {
        let name = file.display();
        let wrong = |why: &str| format!("--hostfile {name}: {why}");
        let mut text = String::new();
        let read =
            File::open(file).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
        read.map_err(|why| wrong(&why_text(&why)))?;
        if text.len() as u64 > LONGEST {
            let most = LONGEST >> 20;
            return Err(wrong(&format!("more than {most} MiB are no list of hosts")));
        }
        HostList::parse_lines(&text, &name.to_string())
    }

    /// Parses the text of a hostfile; `name` names the file in error messages.
    pub(crate) fn parse_lines(text: &str, name: &str) -> Result<HostList, String> {
        let mut hosts = HostList::empty(name.into());
        for (line, number) in text.lines().zip(1..) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let host = listed(line).map_err(|why| format!("{name}:{number}: {why}"))?;
            hosts.hosts.add(host);
        }
        match hosts.hosts.is_empty() {
            true => Err(format!("{name} names no host; {FORMS}")),
            false => Ok(hosts),
        }
    }
}

/// Parses a line of a hostfile that is neither empty nor a comment.
fn listed(line: &str) -> Result<ListedHost, String> {
    let spaced = line.replace('=', " = ");
    let mut words = spaced.split_whitespace();
    let wrong = |word: &str| format!("`{word}`: {FORMS}");
    let first = words.next().unwrap_or_default();
    let mut host = ListedHost::parse(first).ok_or_else(|| wrong(first))?;
    while let Some(key) = words.next() {
        let value = match (words.next(), words.next()) {
            (Some("="), Some(value)) => value,
            _ => return Err(wrong(key)),
        };
        let place = match key {
            "slots" => &mut host.places,
            "max_slots" | "max-slots" => &mut host.most,
            _ => return Err(wrong(key)),
        };
        let number = value.parse().ok().filter(|&number: &usize| number > 0);
        *place = Some(number.ok_or_else(|| wrong(&format!("{key}={value}")))?);
    }
    match (host.places, host.most) {
        (places, Some(most)) if places.unwrap_or(1) > most => Err(format!(
            "`{line}`: more places than max_slots={most} allows"
        )),
        _ => Ok(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_file_is_refused() {
        let why = HostList::read(Path::new("/dev/zero")).unwrap_err();
        assert!(
            why.contains("--hostfile /dev/zero: more than 64 MiB"),
            "{why}"
        );
    }

    #[test]
    fn the_forms_of_all_launchers_are_read() {
        let text =
            "# the hosts\n a \nb:2\n\nc slots=3 max_slots=4 # big\nd slots = 2\nb slots=1\n::1:2\n";
        let hosts = HostList::parse_lines(text, "hosts").unwrap().hosts;
        let of = |name: &str, places, most| ListedHost {
            name: name.into(),
            places,
            most,
            index: 0,
        };
        let expected = [
            of("a", None, None),
            of("b", Some(3), None),
            of("c", Some(3), Some(4)),
            of("d", Some(2), None),
            of("::1", Some(2), None),
        ];
        assert_eq!(*hosts, expected);
    }

    #[test]
    fn errors_name_file_and_line() {
        for (text, expected) in [
            ("", "hosts names no host"),
            ("# a\n", "hosts names no host"),
            ("a\nb:0\n", "hosts:2: `b:0`: a line is HOST"),
            ("a slots=x\n", "hosts:1: `slots=x`"),
            ("a slots\n", "hosts:1: `slots`"),
            ("a cpus=2\n", "hosts:1: `cpus`"),
            ("\n\n-o slots=1\n", "hosts:3: `-o`"),
            ("a slots=5 max_slots=4\n", "more places than max_slots=4"),
        ] {
            let why = HostList::parse_lines(text, "hosts").unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
        let why = HostList::read(Path::new("/no/such")).unwrap_err();
        assert_eq!(why, "--hostfile /no/such: no such file or directory");
    }
}
