//! Fuzz target: the parsers of files of faults, and of faults of ports on a command line.
//!
//! The promise: faults that are read come back as they were from the form that ranks get, unless
//! the machine has no such port.

use fabric::catalogue::Catalogue;
use model::Faults;
use model::config::MachineConfig;
use model::fault_file::{parse, port};
use std::sync::LazyLock;

static MACHINE: LazyLock<MachineConfig> = LazyLock::new(|| {
    let system = Catalogue::builtin().system("qdr");
    let system = system.expect("a system of the catalogue");
    MachineConfig::new(&system, 2, 1, 1).expect("two hosts")
});

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(fault) = port(&text) {
        let mut faults = Faults::default();
        if faults.ports.push(fault).is_ok() {
            comes_back(faults);
        }
    }
    match parse(&text) {
        Ok(faults) => comes_back(faults),
        Err(why) => assert!(!why.is_empty()),
    }
}

fn comes_back(faults: Faults) {
    let machine = MachineConfig {
        faults,
        ..MACHINE.clone()
    };
    match MachineConfig::decode(&machine.encode()) {
        Ok(again) => assert_eq!(again, machine),
        Err(_) => assert!(machine.faults.ports.check(&machine.system).is_err()),
    }
}
