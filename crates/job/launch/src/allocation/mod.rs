//! The hosts that a batch system has allocated to this process, and the command by which the system
//! starts a process on one of them.
//!
//! All functions here depend only on [`Surroundings`]: variables, files, and the output of
//! commands. So they are tested with recorded environments.

mod flux;
mod given;
mod hostlist;
mod lists;
mod operator;
mod slurm;

use std::io;

pub(crate) use given::SSH;
pub use given::{Allocation, Surroundings};

/// A batch system: its names on the command line, and the function that finds its allocation.
struct System {
    names: &'static [&'static str],
    find: fn(&Surroundings<'_>) -> Result<Option<Allocation>, String>,
}

/// The batch systems in the order of the search. Flux comes first, as it runs inside the others. A
/// hostfile comes last, as its variable may be set in a shell profile.
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

/// The user's choice of an allocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AllocationChoice {
    /// The first allocation that is found in the order of the search.
    #[default]
    Any,
    /// No allocation: hosts are read from the command line only.
    None,
    /// The allocation of the batch system that has this index.
    Of(usize),
}

impl AllocationChoice {
    /// Parses `auto`, `none`, or the name of a batch system. The error describes valid words.
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
    /// Finds the allocation that these sources describe. `None`: the process is in no allocation.
    /// An error is the text for the user.
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

    /// Finds the allocation of this process in its own environment.
    pub fn of_this_process(choice: AllocationChoice) -> Result<Option<Allocation>, String> {
        let surroundings = Surroundings {
            variable: &|name| std::env::var(name).ok(),
            file: &|path| std::fs::read_to_string(path),
            command: &output_of,
        };
        Allocation::find(choice, &surroundings)
    }
}

/// Runs a command, and returns its standard output. A failure of the command is an error.
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
