//! The hosts of a job: their names, the number of ranks on each, and the command that reaches each.

use std::ffi::OsString;

/// A host of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobHost {
    /// The name that the user gave.
    pub name: String,
    /// The number of ranks on it, at least one.
    pub ranks: usize,
    /// The command that starts the program given by its last arguments on the host. Empty for this
    /// machine.
    pub command: Vec<OsString>,
}

/// The default command to reach another host. It never asks for a password.
const SSH: &str = "ssh -o BatchMode=yes {host}";

/// The placeholder for the name of the host in a command.
const NAME: &str = "{host}";

/// Places `ranks` ranks on the hosts of a list such as `a,b:4`, in which a number gives the places
/// of a host. `per_host` gives the places of every host. Without either, all hosts get equal
/// shares. Hosts are filled in order; one without ranks is left out. `launch_with` is a command
/// that contains `{host}`. An error is the text for the user.
pub fn place(
    list: &str,
    ranks: usize,
    per_host: Option<usize>,
    launch_with: Option<&str>,
) -> Result<Vec<JobHost>, String> {
    let listed = listed(list)?;
    let given = listed.iter().any(|(_, places)| places.is_some());
    let places: Vec<usize> = match per_host {
        Some(0) => return Err("--ppn 0: a host needs at least one rank".into()),
        Some(_) if given => {
            return Err(format!(
                "--hosts {list} and --ppn both say how many ranks a host gets: leave one out"
            ));
        }
        Some(count) => vec![count; listed.len()],
        None if given => listed
            .iter()
            .map(|(_, places)| places.unwrap_or(1))
            .collect(),
        None => shares(ranks, listed.len()),
    };
    let room = places.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
    if room < ranks {
        return Err(format!(
            "--hosts {list}: {ranks} ranks, and places for {room}; name more hosts, or give them more places (a:8, or \
             --ppn 8)"
        ));
    }
    let words = launch_with.map(words).transpose()?;
    let used = places.iter().scan(ranks, |left, &places| {
        let taken = places.min(*left);
        *left -= taken;
        Some(taken)
    });
    let used: Vec<(String, usize)> = listed.into_iter().map(|(name, _)| name).zip(used).collect();
    let used: Vec<(String, usize)> = used.into_iter().filter(|(_, ranks)| *ranks > 0).collect();
    let names = |words: &Vec<String>| words.iter().any(|word| word.contains(NAME));
    if used.len() > 1 && words.as_ref().is_some_and(|words| !names(words)) {
        return Err(format!(
            "--launch-with {}: {NAME} has to stand where the command wants the name of the host",
            launch_with.unwrap_or_default()
        ));
    }
    let hosts = used.into_iter().map(|(name, ranks)| JobHost {
        command: command(&name, words.as_deref()),
        name,
        ranks,
    });
    Ok(hosts.collect())
}

/// The names of a list, each with its places. The places of a repeated name add up.
fn listed(list: &str) -> Result<Vec<(String, Option<usize>)>, String> {
    let mut hosts: Vec<(String, Option<usize>)> = Vec::new();
    for word in list.split(',') {
        let (name, places) = match word.rsplit_once(':') {
            None => (word, None),
            Some((name, places)) => {
                let places: Option<usize> = places.parse().ok().filter(|&places| places > 0);
                let places = places.ok_or_else(|| {
                    format!("--hosts {list}: `{word}` is not HOST or HOST:RANKS, such as b:2")
                })?;
                (name, Some(places))
            }
        };
        // ssh would read such a name as an option.
        if name.is_empty() || name.starts_with('-') {
            return Err(format!("--hosts {list}: `{word}` names no host"));
        }
        match hosts.iter_mut().find(|(known, _)| known == name) {
            None => hosts.push((name.into(), places)),
            Some((_, known)) => *known = Some(known.unwrap_or(1) + places.unwrap_or(1)),
        }
    }
    Ok(hosts)
}

fn shares(ranks: usize, hosts: usize) -> Vec<usize> {
    let (each, more) = (ranks / hosts, ranks % hosts);
    (0..hosts)
        .map(|host| each + usize::from(host < more))
        .collect()
}

/// Splits a command into words as a shell does.
fn words(command: &str) -> Result<Vec<String>, String> {
    match shlex::split(command) {
        Some(words) if !words.is_empty() => Ok(words),
        _ => Err(format!(
            "--launch-with {command}: not a command: it is empty, or a quote is open"
        )),
    }
}

fn command(host: &str, words: Option<&[String]>) -> Vec<OsString> {
    let own = rustix::system::uname();
    let here = host == "localhost" || own.nodename().to_bytes() == host.as_bytes();
    let ssh: Vec<String> = SSH.split(' ').map(str::to_string).collect();
    let words = match words {
        Some(words) => words,
        None if here => &[],
        None => &ssh,
    };
    words
        .iter()
        .map(|word| word.replace(NAME, host).into())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(list: &str, ranks: usize, ppn: Option<usize>) -> Result<String, String> {
        let hosts = place(list, ranks, ppn, Some("on {host}"))?;
        let hosts = hosts.iter().map(|host| {
            let command = [OsString::from("on"), OsString::from(&host.name)];
            assert_eq!(host.command, command);
            format!("{}={}", host.name, host.ranks)
        });
        Ok(hosts.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn ranks_fill_hosts_in_order() {
        for (list, ranks, ppn, expected) in [
            ("a,b", 4, None, "a=2 b=2"),
            ("a,b,c", 4, None, "a=2 b=1 c=1"),
            ("a,b,c", 2, None, "a=1 b=1"),
            ("a,b:2", 3, None, "a=1 b=2"),
            ("a:3,b:2", 4, None, "a=3 b=1"),
            ("a:3,b:2", 2, None, "a=2"),
            ("a,b", 3, Some(2), "a=2 b=1"),
            ("a,b,a", 3, None, "a=2 b=1"),
            ("u@a.b,::1:2", 3, None, "u@a.b=1 ::1=2"),
        ] {
            assert_eq!(placed(list, ranks, ppn).as_deref(), Ok(expected), "{list}");
        }
    }

    #[test]
    fn what_cannot_be_placed_is_explained() {
        for (list, ranks, ppn, expected) in [
            ("a,b:2", 4, None, "4 ranks, and places for 3"),
            ("a,b", 5, Some(2), "5 ranks, and places for 4"),
            ("a:2,b", 3, Some(2), "leave one out"),
            ("a,b", 3, Some(0), "at least one"),
            ("a,b:x", 3, None, "`b:x` is not HOST"),
            ("a,b:0", 3, None, "`b:0` is not HOST"),
            ("a,,b", 3, None, "`` names no host"),
            ("", 1, None, "names no host"),
            ("-oProxyCommand=x", 1, None, "names no host"),
        ] {
            let why = placed(list, ranks, ppn).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn commands_are_split_as_a_shell_does() {
        let hosts = place("h", 1, None, Some(r#"ssh -o "A B" 'u@{host}'"#)).unwrap();
        assert_eq!(hosts[0].command, ["ssh", "-o", "A B", "u@h"]);
        for (command, expected) in [("", "empty"), ("a 'b", "quote"), ("a b", "{host}")] {
            let why = place("a,b", 2, None, Some(command)).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
        let hosts = place("localhost,elsewhere", 2, None, None).unwrap();
        assert!(hosts[0].command.is_empty());
        assert_eq!(hosts[1].command[0], "ssh");
        assert_eq!(hosts[1].command.last().unwrap(), "elsewhere");
    }
}
