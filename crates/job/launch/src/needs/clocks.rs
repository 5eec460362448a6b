//! The detection of programs whose clocks the preloaded clock library cannot change.

use super::MpiNeeds;
use super::elf::{has_section, object_in};
use crate::Program;

/// The section that Go's compiler writes into every program.
const GO: &[u8] = b".go.buildinfo";

/// The reason why a program's own clocks show this computer's time on a modelled machine. `None` if
/// the preloaded library makes them show virtual time. For a script the interpreter is examined.
pub fn real_clocks(program: &Program) -> Option<&'static str> {
    let (_, opened) = MpiNeeds::default().binary(program)?;
    let object = object_in(&opened)?;
    match () {
        _ if has_section(&opened, GO) => Some("Go reads them without the C library"),
        _ if !object.has_interpreter => {
            Some("it is linked statically, so the library of virtual clocks cannot be preloaded")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::made_up::MadeUp;

    fn reason(program: &std::path::Path) -> Option<&'static str> {
        real_clocks(&Program {
            program: program.into(),
            ..Program::default()
        })
    }

    #[test]
    fn a_program_without_a_linker_keeps_real_clocks() {
        assert_eq!(reason(&std::env::current_exe().unwrap()), None);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        // A generated library names no dynamic linker, like a statically linked program.
        std::fs::write(&file, MadeUp::default().bytes()).unwrap();
        let why = reason(&file).unwrap();
        assert!(why.contains("linked statically"), "{why}");
        std::fs::write(&file, "no program").unwrap();
        assert_eq!(reason(&file), None);
    }
}
