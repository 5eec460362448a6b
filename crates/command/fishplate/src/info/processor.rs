//! The lines of `fishplate info` about the processor.

use std::path::Path;

use launch::{CpuList, Level, Topology, quota};
use serde_json::{Value, json};

use super::Fact;

/// The cores that ranks may use, and the machine that they belong to.
pub(super) fn facts() -> Vec<Fact> {
    let topology = Topology::of_this_thread();
    let count = |level| {
        topology
            .as_ref()
            .map_or(0, |topology| topology.parts(level).count())
    };
    let list = topology.as_ref().map(Topology::list).unwrap_or_default();
    vec![
        ("processor", "processor", json!(processor())),
        ("cores", "available cores", json!(count(Level::Core))),
        ("sockets", "on sockets", json!(count(Level::Socket))),
        ("numa_nodes", "on NUMA nodes", json!(count(Level::Numa))),
        (
            "affinity",
            "hardware threads",
            json!(list.iter().collect::<Vec<_>>()),
        ),
        ("quota", "processor quota", quota_of_cores()),
    ]
}

fn quota_of_cores() -> Value {
    match quota(Path::new("/")) {
        Some(cores) => json!(format!("{cores:.3} cores, by a cgroup")),
        None => json!("none"),
    }
}

/// The name of the processor in the text of `/proc/cpuinfo`.
fn model_name(cpuinfo: &str) -> Option<&str> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        // The keys of x86, and of some kernels for other processors.
        ["model name", "Processor", "cpu"]
            .contains(&name.trim())
            .then(|| value.trim())
    })
}

/// The model of the processor, and the parts of the whole machine that are online (as in `lscpu`).
fn processor() -> String {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = model_name(&cpuinfo);
    let online = CpuList::parse(&read("/sys/devices/system/cpu/online")).unwrap_or_default();
    let machine = Topology::read(Path::new("/"), &online);
    let parts = [
        (Level::Socket, "socket"),
        (Level::Numa, "NUMA node"),
        (Level::Core, "core"),
        (Level::HardwareThread, "hardware thread"),
    ];
    let parts = parts.map(|(level, name)| {
        let count = machine.parts(level).count();
        format!("{count} {name}{}", if count == 1 { "" } else { "s" })
    });
    let caches: Vec<String> = (0..)
        .map_while(|index| cache(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}")))
        .collect();
    let mut text = format!("{}: {}", model.unwrap_or("unknown model"), parts.join(", "));
    if !caches.is_empty() {
        text.push_str(&format!("; caches {}", caches.join(", ")));
    }
    text
}

/// A description of a cache of the first hardware thread, such as `L1d 48 KiB`.
fn cache(folder: &str) -> Option<String> {
    let read = |file| std::fs::read_to_string(format!("{folder}/{file}")).ok();
    let (level, size) = (read("level")?, read("size")?);
    let kind = match read("type")?.trim() {
        "Data" => "d",
        "Instruction" => "i",
        _ => "",
    };
    let kib: u64 = size.trim().strip_suffix('K')?.parse().ok()?;
    let size = match kib.is_multiple_of(1024) {
        true => format!("{} MiB", kib / 1024),
        false => format!("{kib} KiB"),
    };
    Some(format!("L{}{kind} {size}", level.trim()))
}
