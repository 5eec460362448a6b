//! The hosts that a batch system has given to this process, and the command by which the system
//! starts a process on one of them.
//!
//! Everything here is a function of [`Surroundings`]: variables, files, and the output of commands.
//! So a recorded environment tests it.

mod flux;
mod given;
mod hostlist;
mod lists;
mod operator;
mod slurm;

use std::io;

pub(crate) use given::SSH;
pub use given::{Allocation, Surroundings};

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
