//! The description of a modelled machine, as a rank gets it.
//!
//! The promise: bytes that are read are those that the description is written with.

use model::config::MachineConfig;

pub(crate) fn run(bytes: &[u8]) {
    if let Ok(machine) = MachineConfig::decode(bytes) {
        let again = MachineConfig::decode(&machine.encode());
        assert!(again.is_ok_and(|again| again == machine));
    }
}
