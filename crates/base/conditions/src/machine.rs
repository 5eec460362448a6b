//! The description of this machine and this process, for the header of measured results.

use std::fs::read_to_string;

use serde::Serialize;

use crate::date;

/// The machine, the cores of this process, and the date.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// The name of the host.
    pub host: String,
    /// The model name of the processor.
    pub cpu: String,
    /// The kernel and its release.
    pub kernel: String,
    /// The version of this program.
    pub version: &'static str,
    /// The date and time in Coordinated Universal Time, written as in ISO 8601.
    pub date: String,
    /// The hardware threads that this process may use, such as `0-3,8`.
    pub cpus: String,
}

impl Machine {
    /// Reads the facts of this machine, with the present date.
    pub fn now() -> Machine {
        let system = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        Machine {
            host: text(system.nodename()),
            cpu: processor(),
            kernel: format!("{} {}", text(system.sysname()), text(system.release())),
            version: env!("CARGO_PKG_VERSION"),
            date: date::now(),
            cpus: own_cpus(),
        }
    }
}

/// The hardware threads that this process may use, such as `0-3,8`. Empty where the kernel hides
/// them.
pub fn own_cpus() -> String {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    allowed_list(&status).unwrap_or_default().to_owned()
}

/// The list of allowed hardware threads, from the text of `/proc/PID/status`.
fn allowed_list(status: &str) -> Option<&str> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim())
}

/// The name of this machine's processor.
fn processor() -> String {
    let text = read_to_string("/proc/cpuinfo").unwrap_or_default();
    model_name(&text).unwrap_or(std::env::consts::ARCH).into()
}

/// The model name of the processor, from the text of `/proc/cpuinfo`.
fn model_name(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then_some(value.trim())
    })
}

/// The model name of the processor and the number of hardware threads that this process may use,
/// for captions of figures that were measured on this host.
pub fn this_host() -> String {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    format!("{}, {threads} hardware threads", processor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_understood() {
        let status = "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\nThreads:\t1\n";
        assert_eq!(allowed_list(status), Some("0-1"));
        assert_eq!(allowed_list("Name:\tx\n"), None);
        let cpuinfo = "processor\t: 0\nmodel name\t: A Processor @ 2 GHz\nflags : x\n";
        assert_eq!(model_name(cpuinfo), Some("A Processor @ 2 GHz"));
        assert_eq!(model_name("processor : 0\n"), None);
    }

    #[test]
    fn this_machine_has_all_names() {
        let machine = Machine::now();
        for name in [machine.host, machine.cpu, machine.kernel, machine.cpus] {
            assert!(!name.is_empty());
        }
        assert!(this_host().ends_with("hardware threads"));
    }
}
