//! The kind of a host: what decides how fast its processors copy. Hosts of one kind may share a
//! home, and the file of costs in it.

use std::fs;

/// Length in bytes of the longest name of a host.
const LONGEST: usize = 256;

/// The name of this kind of host: processor, number of cores, kernel, and `version` of the library.
pub fn host_name(version: &str) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    let cpuinfo = read("/proc/cpuinfo");
    // Those of the host: a rank may be bound to one of them.
    let is_core = |line: &&str| line.starts_with("processor");
    let cores = cpuinfo.lines().filter(is_core).count();
    let (processor, kernel) = (processor(&cpuinfo), kernel.trim());
    let name = format!("{processor}, {cores} cores, Linux {kernel}, {version}");
    let printable = name.chars().filter(|c| !c.is_control());
    let mut name: String = printable.take(LONGEST).collect();
    name.truncate(name.trim_end().len());
    name
}

/// The processor in the text of `/proc/cpuinfo`: the values of the first processor's keys that
/// tell models apart, on x86 and on aarch64.
fn processor(cpuinfo: &str) -> String {
    const KEYS: [&str; 8] = [
        "model name",
        "cpu family",
        "model",
        "stepping",
        "CPU implementer",
        "CPU variant",
        "CPU part",
        "CPU revision",
    ];
    let first = cpuinfo.split("\n\n").next().unwrap_or_default();
    let values = first.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        KEYS.contains(&key.trim()).then(|| value.trim())
    });
    let values: Vec<&str> = values.collect();
    values.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_told_apart() {
        let x86 = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\
                   stepping\t: 1\n\nprocessor\t: 1\nmodel\t: 18\n";
        assert_eq!(processor(x86), "25 17 AMD EPYC 1");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        assert_eq!(processor(arm), "0x41 0xd40");
    }

    #[test]
    fn a_name_is_one_line_with_the_version() {
        let name = host_name("fishplate 1");
        assert!(
            name.ends_with("fishplate 1") && !name.contains('\n'),
            "{name}"
        );
    }
}
