//! The hosts that a batch system has allocated to this process ([`Allocation`]), and the sources
//! from which they are read ([`Surroundings`]).

use std::io;
use std::path::Path;

use crate::host_list::HostList;
use crate::host_table::{HostTable, ListedHost};

/// The default command that starts a program on another host. It never asks for a password, and it
/// ends if the host does not respond for 30 s.
pub(crate) const SSH: &str =
    "ssh -o BatchMode=yes -o ServerAliveInterval=10 -o ServerAliveCountMax=3 {host}";

/// The sources from which the allocation of a batch system is read.
pub struct Surroundings<'a> {
    /// A function that returns the value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// A function that returns the text of a file.
    pub file: &'a dyn Fn(&Path) -> io::Result<String>,
    /// Returns the standard output of a command, or an error if the command fails.
    pub command: &'a dyn Fn(&[&str]) -> io::Result<String>,
}

impl Surroundings<'_> {
    /// The value of a variable, if it is set and not empty.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// The first of these environment variables that is set: its name and value.
    pub(super) fn first(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        names.iter().find_map(|&name| Some((name, self.get(name)?)))
    }

    /// The text of the file `path`, which `variable` names. An error is the text for the user.
    pub(super) fn file_of(&self, variable: &str, path: &str) -> Result<String, String> {
        (self.file)(Path::new(path))
            .map_err(|why| format!("{variable}={path}: {}", crate::error::why_text(&why)))
    }
}

/// The hosts and slots that a batch system has allocated to this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The name of the batch system and of the job: `Slurm job 17`.
    pub(super) name: String,
    /// The hosts, each with its slots if they are known.
    pub(super) hosts: HostTable,
    /// The number of ranks that the user has requested from the batch system, if slots are unknown.
    ranks: Option<usize>,
    /// The command by which the hosts of the allocation are reached.
    pub(super) reach: Reach,
}

/// The command by which a process is started on a host of an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reach {
    /// The words before the program, with `{host}` for the name of the host and `{index}` for its
    /// number. `None`: ssh.
    pub words: Option<Vec<String>>,
    /// Environment variables to remove for this command, as they would change its meaning.
    pub unset: &'static [&'static str],
}

impl Allocation {
    /// Makes an allocation of these hosts. `ranks` is the number of ranks that the user has
    /// requested from the batch system, if any.
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

    /// The default number of ranks: the one requested from the batch system, if slots are unknown.
    pub fn ranks(&self) -> Option<usize> {
        self.ranks
    }

    /// The command by which the hosts of the allocation are reached.
    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The hosts of the allocation as a host list, for the placement of ranks.
    pub fn list(&self) -> HostList {
        let mut list = HostList::empty(self.name.clone());
        list.hosts.clone_from(&self.hosts);
        list.is_allocated = true;
        list
    }

    /// Restricts the allocation to the user's list. Each host in the list must belong to the
    /// allocation, and gets at most its slots there, unless `oversubscribe` is true. An error is
    /// the text for the user.
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

    /// The hosts with their slots, such as `a:2,b:2`; of many hosts only the first ones and the
    /// last.
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

    /// A line for the user: the batch system, the hosts, and the command that reaches them.
    pub fn describe(&self) -> String {
        let words = self.reach.words.as_ref().and_then(|words| words.first());
        let by = words.map_or("ssh", String::as_str);
        format!("{}: {} (agents start by {by})", self.name, self.shown())
    }
}
