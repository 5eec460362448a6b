//! Hosts from a hostfile and a remote shell that variables name, as an MPI operator of Kubernetes
//! sets them for the launchers of Open MPI, MPICH and Intel MPI.

use std::path::Path;

use super::given::{Allocation, Reach, SSH, Surroundings};
use crate::host_list::HostList;

/// Variables that name a hostfile.
const HOSTFILES: &[&str] = &[
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
    "HYDRA_HOST_FILE",
    "I_MPI_HYDRA_HOST_FILE",
];

/// Variables that name a remote shell: a command whose arguments are a host and a command.
const SHELLS: &[&str] = &[
    "OMPI_MCA_plm_rsh_agent",
    "PRTE_MCA_plm_ssh_agent",
    "HYDRA_LAUNCHER_EXEC",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
];

/// Variables with further arguments for the remote shell.
const ARGUMENTS: &[&str] = &[
    "OMPI_MCA_plm_rsh_args",
    "PRTE_MCA_plm_ssh_args",
    "HYDRA_LAUNCH_EXTRA_ARGS",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
];

pub(super) fn find(from: &Surroundings<'_>) -> Result<Option<Allocation>, String> {
    let Some((variable, path)) = from.first(HOSTFILES) else {
        return Ok(None);
    };
    let text = from.file_of(variable, &path)?;
    let list = HostList::parse_lines(&text, &path)?;
    let reach = Reach {
        words: Some(shell(from)?),
        unset: &[],
    };
    let name = format!("the hostfile {path} of {variable}");
    Allocation::new(name, list.hosts.to_vec(), None, reach)
}

/// The words of the remote shell's command, with `{host}` for the host.
fn shell(from: &Surroundings<'_>) -> Result<Vec<String>, String> {
    let split = |variable: &str, text: &str| {
        let words = shlex::split(text).filter(|words| !words.is_empty());
        words.ok_or_else(|| format!("{variable}={text}: it is no command: a quote is open"))
    };
    let mut words = match from.first(SHELLS) {
        // Open MPI accepts several commands separated by colons, the preferred one first.
        Some((variable, text)) => split(variable, text.split(" : ").next().unwrap_or(&text))?,
        None => {
            let default = SSH.split(' ').filter(|word| *word != "{host}");
            default.map(str::to_string).collect()
        }
    };
    if let Some(script) = with_input(from, &words[0]) {
        words.splice(..1, ["sh".into(), "-c".into(), script, words[0].clone()]);
    }
    if let Some((variable, text)) = from.first(ARGUMENTS) {
        words.extend(split(variable, &text)?);
    }
    words.push("{host}".into());
    Ok(words)
}

/// For a script that runs `kubectl exec` without standard input: its text with standard input.
/// Early operators made such scripts, and an agent needs its standard input. `None` for other
/// files.
fn with_input(from: &Surroundings<'_>, file: &str) -> Option<String> {
    const EXEC: &str = "kubectl exec ";
    if !file.contains('/') {
        return None;
    }
    let text = (from.file)(Path::new(file)).ok()?;
    let is_without = text.starts_with("#!/bin/sh")
        && text.contains(EXEC)
        && !text.contains(" -i")
        && !text.contains("--stdin");
    is_without.then(|| text.replace(EXEC, "kubectl exec -i "))
}
