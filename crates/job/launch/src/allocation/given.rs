//! An allocation, and the sources from which it is read.

use std::io;
use std::path::Path;

use crate::host_list::HostList;
use crate::host_table::{HostTable, ListedHost};

/// The default command to reach another host. It never asks for a password, and it ends when the
/// host has not answered for 30 s.
pub(crate) const SSH: &str =
    "ssh -o BatchMode=yes -o ServerAliveInterval=10 -o ServerAliveCountMax=3 {host}";

/// The sources from which an allocation is read.
pub struct Surroundings<'a> {
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file.
    pub file: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The standard output of a command that has succeeded.
    pub command: &'a dyn Fn(&[&str]) -> io::Result<String>,
}

impl Surroundings<'_> {
    /// The value of a variable that is not empty.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// The value of the first of these variables that is set, with its name.
    pub(super) fn first(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        names.iter().find_map(|&name| Some((name, self.get(name)?)))
    }

    /// The text of the file that a variable names. An error is the text for the user.
    pub(super) fn file_of(&self, variable: &str, path: &str) -> Result<String, String> {
        (self.file)(Path::new(path))
            .map_err(|why| format!("{variable}={path}: {}", crate::error::why_text(&why)))
    }
}

/// The hosts and places that a batch system has given to this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The system and its name for the job: `Slurm job 17`.
    pub(super) name: String,
    /// The hosts, each with its places if they are known.
    pub(super) hosts: HostTable,
    /// The number of ranks that the user has asked the system for, where places are unknown.
    ranks: Option<usize>,
    /// The way to a host.
    pub(super) reach: Reach,
}

/// The way in which a process is started on a host of an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reach {
    /// The words before the program, with `{host}` for the host and `{index}` for its number. None:
    /// ssh.
    pub words: Option<Vec<String>>,
    /// Variables that would change the meaning of this command.
    pub unset: &'static [&'static str],
}

impl Allocation {
    /// An allocation from hosts of which the user may have asked for a number of ranks.
    pub(super) fn new(
        name: String,
        hosts: Vec<ListedHost>,
        ranks: Option<usize>,
        reach: Reach,
    ) -> Result<Option<Allocation>, String> {
        let mut table = HostTable::default();
        for host in hosts {
            if host.name.is_empty() || host.name.starts_with('-') {
                return Err(format!("{name}: `{}` is no name of a host", host.name));
            }
            table.add(host);
        }
        match table.is_empty() {
            true => Err(format!("{name} names no host")),
            false => Ok(Some(Allocation {
                name,
                hosts: table,
                ranks,
                reach,
            })),
        }
    }

    /// The number of ranks where the user names none.
    pub fn ranks(&self) -> Option<usize> {
        self.ranks
    }

    /// The way to its hosts.
    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Its hosts as a list, to place ranks on.
    pub fn list(&self) -> HostList {
        let mut list = HostList::empty(self.name.clone());
        list.hosts.clone_from(&self.hosts);
        list.is_allocated = true;
        list
    }

    /// The user's list within this allocation: each host must belong to it and gets its places, and
    /// no more, unless `oversubscribe` allows it. An error is the text for the user.
    pub fn restrict(&self, list: &HostList, oversubscribe: bool) -> Result<HostList, String> {
        let mut hosts = HostTable::default();
        for host in list.hosts.iter() {
            let Some(known) = self.hosts.find(&host.name) else {
                return Err(format!(
                    "{}: {} does not belong to {}, which has {}; --allocation none leaves it aside",
                    list.source,
                    host.name,
                    self.name,
                    self.shown()
                ));
            };
            hosts.add(ListedHost {
                name: known.name.clone(),
                index: known.index,
                ..host.clone()
            });
        }
        for host in hosts.each_mut() {
            let given = self.hosts.find(&host.name).and_then(|own| own.places);
            match (host.places, given) {
                (Some(wanted), Some(given)) if wanted > given && !oversubscribe => {
                    return Err(format!(
                        "{}: {wanted} ranks on {}, for which {} has {given} places; --oversubscribe allows more",
                        list.source, host.name, self.name
                    ));
                }
                (None, given) => host.places = given,
                _ => {}
            }
        }
        Ok(HostList {
            hosts,
            ..list.clone()
        })
    }

    /// The hosts with their places: `a:2,b:2`; of many the first and the last.
    pub fn shown(&self) -> String {
        const FEW: usize = 8;
        let word = |host: &ListedHost| match host.places {
            Some(places) => format!("{}:{places}", host.name),
            None => host.name.clone(),
        };
        match &*self.hosts {
            hosts if hosts.len() <= FEW => hosts.iter().map(word).collect::<Vec<_>>().join(","),
            hosts => {
                let first: Vec<String> = hosts[..FEW - 1].iter().map(word).collect();
                let last = word(&hosts[hosts.len() - 1]);
                format!("{},...,{last} ({} hosts)", first.join(","), hosts.len())
            }
        }
    }

    /// The system, the hosts, and the command that reaches them, in a line.
    pub fn describe(&self) -> String {
        let words = self.reach.words.as_ref().and_then(|words| words.first());
        let by = words.map_or("ssh", String::as_str);
        format!("{}: {} (agents start by {by})", self.name, self.shown())
    }
}
