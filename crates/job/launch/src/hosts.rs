//! The hosts of a job: their names, the number of ranks on each, and the command that reaches each.

use std::ffi::OsString;
use std::net::IpAddr;

use crate::allocation::{Allocation, SSH};
use crate::host_list::HostList;
use crate::host_table::{ListedHost, is_same};

/// A host of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobHost {
    /// The name of the host, as the user gave it.
    pub name: String,
    /// The number of ranks on the host, at least one.
    pub ranks: usize,
    /// The command, as words, that reaches the host: it starts on the host the program that is
    /// appended as its last arguments. Empty for this machine.
    pub command: Vec<OsString>,
    /// Environment variables that the command to the host must not inherit.
    pub unset: &'static [&'static str],
}

/// The placeholder for the name of the host in a command.
const NAME: &str = "{host}";

/// The placeholder for the number of the host in its allocation, in a command.
const INDEX: &str = "{index}";

/// The user's options that determine how many ranks each host gets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Places<'a> {
    /// The number of ranks. `None`: as many as there are slots, or one on each host.
    pub ranks: Option<usize>,
    /// The most ranks on a host.
    pub per_host: Option<usize>,
    /// True if a host may get more ranks than slots.
    pub oversubscribe: bool,
    /// The command that starts a program on a host, with `{host}` in it. `None`: that of the
    /// allocation, or ssh.
    pub launch_with: Option<&'a str>,
    /// The allocation that the hosts belong to, with its own command to start programs.
    pub allocation: Option<&'a Allocation>,
}

/// Places ranks on hosts, which are filled in order. Hosts without ranks are left out. If no number
/// of slots is given, all hosts get equal shares. An error is the text for the user.
pub fn place(list: &HostList, wanted: Places<'_>) -> Result<Vec<JobHost>, String> {
    let given = wanted.launch_with.map(words).transpose()?;
    let reach = wanted.allocation.map(Allocation::reach);
    let reach = reach.filter(|_| given.is_none());
    let places = places(list, wanted)?;
    let ranks = wanted.ranks.unwrap_or_else(|| total(&places));
    let used = places.iter().scan(ranks, |left, &places| {
        let taken = places.min(*left);
        *left -= taken;
        Some(taken)
    });
    let used: Vec<(&ListedHost, usize)> = list.hosts.iter().zip(used).collect();
    let used: Vec<_> = used.into_iter().filter(|(_, ranks)| *ranks > 0).collect();
    let names = |words: &Vec<String>| words.iter().any(|word| word.contains(NAME));
    if used.len() > 1 && given.as_ref().is_some_and(|words| !names(words)) {
        return Err(format!(
            "--launch-with {}: {NAME} has to stand where the command wants the name of the host",
            wanted.launch_with.unwrap_or_default()
        ));
    }
    let hosts = used.into_iter().map(|(host, ranks)| JobHost {
        command: match (&given, reach.and_then(|reach| reach.words.as_ref())) {
            (None, Some(words)) if !is_here(&host.name) => with_names(host, words),
            _ => command(host, given.as_deref()),
        },
        name: host.name.clone(),
        ranks,
        unset: reach.map_or(&[], |reach| reach.unset),
    });
    Ok(hosts.collect())
}

/// The slots of each host, enough for the requested number of ranks.
fn places(list: &HostList, wanted: Places<'_>) -> Result<Vec<usize>, String> {
    let (source, hosts) = (&list.source, &list.hosts);
    let given = hosts.iter().any(|host| host.places.is_some());
    let each = |count: usize| {
        let places = hosts.iter().map(|host| host.places.unwrap_or(count));
        places.map(|places| places.min(count)).collect()
    };
    let mut places: Vec<usize> = match wanted.per_host {
        Some(0) => return Err("--ppn 0: a host needs at least one rank".into()),
        Some(count) => each(count),
        None if given => hosts.iter().map(|host| host.places.unwrap_or(1)).collect(),
        None => shares(wanted.ranks.unwrap_or(hosts.len()), hosts.len()),
    };
    let ranks = wanted.ranks.unwrap_or(0);
    if wanted.oversubscribe {
        add_places(&mut places, hosts, ranks);
    }
    let room = total(&places);
    match room < ranks {
        false => Ok(places),
        true if list.is_allocated => Err(format!(
            "{source}: {ranks} ranks, and places for {room} ({}); ask it for more tasks, or let hosts take more ranks \
             than places (--oversubscribe)",
            wanted.allocation.map(Allocation::shown).unwrap_or_default()
        )),
        true => Err(format!(
            "{source}: {ranks} ranks, and places for {room}; name more hosts, give them more places (a:8), or let them \
             take more ranks than places (--oversubscribe)"
        )),
    }
}

/// Adds one slot to each host in turn, up to the limit of each host, until there are enough slots
/// for `ranks`.
fn add_places(places: &mut [usize], hosts: &[ListedHost], ranks: usize) {
    let mut missing = ranks.saturating_sub(total(places));
    let mut has_grown = true;
    while missing > 0 && has_grown {
        has_grown = false;
        for (places, host) in places.iter_mut().zip(hosts) {
            if missing > 0 && host.most.is_none_or(|most| *places < most) {
                *places += 1;
                missing -= 1;
                has_grown = true;
            }
        }
    }
}

fn total(places: &[usize]) -> usize {
    places.iter().fold(0, |sum, &n| sum.saturating_add(n))
}

fn shares(ranks: usize, hosts: usize) -> Vec<usize> {
    let (each, more) = (ranks / hosts, ranks % hosts);
    (0..hosts)
        .map(|host| each + usize::from(host < more))
        .collect()
}

/// Splits a command into words by the rules of a shell.
fn words(command: &str) -> Result<Vec<String>, String> {
    match shlex::split(command) {
        Some(words) if !words.is_empty() => Ok(words),
        _ => Err(format!(
            "--launch-with {command}: not a command: it is empty, or a quote is open"
        )),
    }
}

/// True if `host` is a name or a loopback address of this machine.
pub(crate) fn is_here(host: &str) -> bool {
    let own = rustix::system::uname();
    let is_loopback = || {
        host.parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
    };
    host == "localhost" || is_same(&own.nodename().to_string_lossy(), host) || is_loopback()
}

fn command(host: &ListedHost, words: Option<&[String]>) -> Vec<OsString> {
    let ssh: Vec<String> = SSH.split(' ').map(str::to_string).collect();
    let words = match words {
        Some(words) => words,
        None if is_here(&host.name) => &[],
        None => &ssh,
    };
    with_names(host, words)
}

/// The words of a command, with the name and the number of a host in place of the placeholders.
fn with_names(host: &ListedHost, words: &[String]) -> Vec<OsString> {
    let index = host.index.to_string();
    let words = words.iter();
    words
        .map(|word| word.replace(NAME, &host.name).replace(INDEX, &index).into())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(list: &str, ranks: usize, ppn: Option<usize>) -> Result<String, String> {
        placed_with(list, Some(ranks), ppn, false)
    }

    fn placed_with(
        list: &str,
        ranks: Option<usize>,
        per_host: Option<usize>,
        oversubscribe: bool,
    ) -> Result<String, String> {
        let wanted = Places {
            ranks,
            per_host,
            oversubscribe,
            launch_with: Some("on {host}"),
            ..Places::default()
        };
        let hosts = place(&HostList::parse(list)?, wanted)?;
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
            ("a:2,b", 2, Some(1), "a=1 b=1"),
            ("a:2,b", 4, Some(3), "a=2 b=2"),
            ("a:18446744073709551615,b,a", 3, None, "a=3"),
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
            ("a,b", 3, Some(0), "at least one"),
            ("a,b:x", 3, None, "`b:x` is not HOST"),
            ("a,b:0", 3, None, "`b:0` is not HOST"),
            ("a,,b", 3, None, "`` is not HOST"),
            ("", 1, None, "`` is not HOST"),
            ("-oProxyCommand=x", 1, None, "is not HOST"),
        ] {
            let why = placed(list, ranks, ppn).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn without_a_number_of_ranks_places_are_filled() {
        for (list, ppn, expected) in [
            ("a:2,b", None, "a=2 b=1"),
            ("a,b", None, "a=1 b=1"),
            ("a,b", Some(3), "a=3 b=3"),
        ] {
            assert_eq!(placed_with(list, None, ppn, false).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn hosts_take_more_ranks_than_places_where_they_may() {
        let placed = |list, ranks| placed_with(list, Some(ranks), None, true);
        assert_eq!(placed("a:1,b:2", 6).as_deref(), Ok("a=3 b=3"));
        assert_eq!(placed("a:1,b:2", 2).as_deref(), Ok("a=1 b=1"));
    }

    #[test]
    fn commands_are_split_as_a_shell_does() {
        let place = |list: &str, ranks, command| {
            let wanted = Places {
                ranks: Some(ranks),
                launch_with: command,
                ..Places::default()
            };
            place(&HostList::parse(list)?, wanted)
        };
        let hosts = place("h", 1, Some(r#"ssh -o "A B" 'u@{host}'"#)).unwrap();
        assert_eq!(hosts[0].command, ["ssh", "-o", "A B", "u@h"]);
        for (command, expected) in [("", "empty"), ("a 'b", "quote"), ("a b", "{host}")] {
            let why = place("a,b", 2, Some(command)).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
        let list = "localhost,127.0.0.1,127.0.1.1:1,elsewhere,128.0.0.1";
        let hosts = place(list, 5, None).unwrap();
        let names: Vec<_> = hosts.iter().map(|host| host.command.last()).collect();
        let [elsewhere, address] = ["elsewhere", "128.0.0.1"].map(OsString::from);
        assert_eq!(names, [None, None, None, Some(&elsewhere), Some(&address)]);
        assert_eq!(hosts[3].command[0], "ssh");
    }
}
