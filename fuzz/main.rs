//! One target of crate `fuzzed` under libFuzzer: the one that `FUZZ_TARGET` names.

#![no_main]

use std::sync::LazyLock;

use fuzzed::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    fuzzed::target(&name).unwrap_or_else(|| panic!("FUZZ_TARGET={name}: there is no such target"))
});

fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
