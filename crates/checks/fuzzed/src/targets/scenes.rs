//! Fuzz target: the parser of the description of a modelled machine, as a rank gets it. The input
//! is any bytes, or a description of which some bytes are changed.
//!
//! The promise: a description that is read is written so that it is read again as the same.

use std::sync::LazyLock;

use fabric::catalogue::Catalogue;
use model::config::MachineConfig;
use model::fault_file::parse;
use fuzz_input::Script;

/// Faults of every kind.
const FAULTS: &str = r#"
loss = 0.1
scatter = "2us"
delay = { share = 0.5, up_to = "20 us" }
ports = [{ host = 1, flap = "1us@10us..1ms" }, { host = 0, rate = "0.1@2ms.." }]
slow = { host = 0, percent = 300 }
"#;

/// Descriptions, of which a script changes bytes.
static MACHINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let catalogue = Catalogue::builtin();
    let names = ["qdr", "edr", "ndr"];
    let machine = |name: &str| {
        let system = catalogue.system(name).expect("a system of the catalogue");
        let mut machine = MachineConfig::new(&system, 4, 2, 1).expect("two hosts");
        machine.faults = parse(FAULTS).expect("faults");
        machine.encode()
    };
    names.map(machine).to_vec()
});

pub(crate) fn run(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut described = match script.below(4) {
        0 => script.bytes(4096).to_vec(),
        known => MACHINES[known - 1].clone(),
    };
    while !script.is_over() {
        match script.below(8) {
            0 => described.truncate(script.below(1 << 12)),
            1 => described.extend(script.bytes(20)),
            _ => {
                let at = script.below(described.len().clamp(1, 1 << 16));
                let new = script.bytes(8);
                for (to, from) in described.iter_mut().skip(at).zip(new) {
                    *to = *from;
                }
            }
        }
    }
    if let Ok(machine) = MachineConfig::decode(&described) {
        let again = MachineConfig::decode(&machine.encode());
        assert!(again.is_ok_and(|again| again == machine));
    }
}
