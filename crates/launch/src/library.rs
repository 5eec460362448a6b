//! The location of our `libmpi_abi.so.1`.

use std::path::{Path, PathBuf};

/// The name that programs are linked against.
pub(crate) const LIBRARY: &str = "libmpi_abi.so.1";

/// The name of the library that shows virtual time on the system's clocks (crate `clocks`).
pub(crate) const CLOCK_LIBRARY: &str = "libfishplate_clock.so";

/// The folder of our library, found from the path of the command: `../lib` in an installed tree,
/// `build/lib` in a checkout whose command is in `target/PROFILE/`.
pub fn library_directory(command: &Path) -> Option<PathBuf> {
    let beside = command.parent()?;
    let candidates = [beside.join("../lib"), beside.join("../../build/lib")];
    let found = candidates
        .into_iter()
        .find(|directory| directory.join(LIBRARY).exists())?;
    found.canonicalize().ok()
}
