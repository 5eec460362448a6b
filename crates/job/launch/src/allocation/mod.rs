//! The hosts that a batch system has given to this process, and the command by which the system
//! starts a process on one of them.
//!
//! Everything here is a function of [`Surroundings`]: variables, files, and the output of commands.
//! So a recorded environment tests it.

mod flux;
mod hostlist;
mod lists;
mod operator;
mod slurm;

use std::io;
use std::path::Path;

use crate::host_table::{HostTable, ListedHost};
use crate::hosts::HostList;

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
    fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// The value of the first of these variables that is set, with its name.
    fn first(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        names.iter().find_map(|&name| Some((name, self.get(name)?)))
    }

    /// The text of the file that a variable names. An error is the text for the user.
    fn file_of(&self, variable: &str, path: &str) -> Result<String, String> {
        (self.file)(Path::new(path))
            .map_err(|why| format!("{variable}={path}: {}", crate::error::why_text(&why)))
    }
}

/// The hosts and places that a batch system has given to this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The system and its name for the job: `Slurm job 17`.
    name: String,
    /// The hosts, each with its places if they are known.
    hosts: HostTable,
    /// The number of ranks that the user has asked the system for, where places are unknown.
    ranks: Option<usize>,
    /// The way to a host.
    reach: Reach,
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

/// A batch system: its names on the command line, and its reader.
struct System {
    names: &'static [&'static str],
    find: fn(&Surroundings<'_>) -> Result<Option<Allocation>, String>,
}

/// The systems in the order of the search. Flux runs inside the others. A hostfile in the
/// environment may come from a profile of the shell, so it is last.
const SYSTEMS: &[System] = &[
    System {
        names: &["flux"],
        find: flux::find,
    },
    System {
        names: &["slurm"],
        find: slurm::find,
    },
    System {
        names: &["pbs"],
        find: lists::pbs,
    },
    System {
        names: &["lsf"],
        find: lists::lsf,
    },
    System {
        names: &["sge", "grid-engine"],
        find: lists::grid_engine,
    },
    System {
        names: &["hostfile"],
        find: operator::find,
    },
];

/// The user's choice among allocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AllocationChoice {
    /// The first that is found.
    #[default]
    Any,
    /// None: hosts come from the command line alone.
    None,
    /// That of the system with this number.
    Of(usize),
}

impl AllocationChoice {
    /// Reads `auto`, `none`, or the name of a system. An error says what is valid.
    pub fn parse(word: &str) -> Result<Self, String> {
        let system = SYSTEMS
            .iter()
            .position(|system| system.names.contains(&word));
        match (word, system) {
            ("auto" | "user", _) => Ok(AllocationChoice::Any),
            ("none", _) => Ok(AllocationChoice::None),
            (_, Some(system)) => Ok(AllocationChoice::Of(system)),
            _ => {
                let names: Vec<&str> = SYSTEMS.iter().map(|system| system.names[0]).collect();
                Err(format!("valid are auto, none, {}", names.join(", ")))
            }
        }
    }
}

impl Allocation {
    /// The allocation of this process. None outside of one. An error is the text for the user.
    pub fn find(
        choice: AllocationChoice,
        surroundings: &Surroundings<'_>,
    ) -> Result<Option<Allocation>, String> {
        let wanted = match choice {
            AllocationChoice::None => return Ok(None),
            AllocationChoice::Any => SYSTEMS,
            AllocationChoice::Of(number) => &SYSTEMS[number..=number],
        };
        for system in wanted {
            if let Some(allocation) = (system.find)(surroundings)? {
                return Ok(Some(allocation));
            }
        }
        match choice {
            AllocationChoice::Of(number) => Err(format!(
                "--allocation {}: the environment shows no such allocation",
                SYSTEMS[number].names[0]
            )),
            _ => Ok(None),
        }
    }

    /// The allocation of this process by its own environment.
    pub fn of_this_process(choice: AllocationChoice) -> Result<Option<Allocation>, String> {
        let surroundings = Surroundings {
            variable: &|name| std::env::var(name).ok(),
            file: &|path| std::fs::read_to_string(path),
            command: &output_of,
        };
        Allocation::find(choice, &surroundings)
    }

    /// An allocation from hosts of which the user may have asked for a number of ranks.
    fn new(
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

/// The standard output of a command.
fn output_of(words: &[&str]) -> io::Result<String> {
    let output = std::process::Command::new(words[0])
        .args(&words[1..])
        .stdin(std::process::Stdio::null())
        .output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(said.trim().to_string()))
        }
    }
}

#[cfg(test)]
mod tests;
