//! Where our `libmpi_abi.so.1` is.

use std::path::{Path, PathBuf};

/// The name that programs are linked with.
const LIBRARY: &str = "libmpi_abi.so.1";

/// The folder with our library, as seen from the command: `../lib` where it is installed, and the staged tree `build/lib`
/// of a checkout where the command still lies in `target/PROFILE/`.
pub fn library_directory(command: &Path) -> Option<PathBuf> {
    let beside = command.parent()?;
    let candidates = [beside.join("../lib"), beside.join("../../build/lib")];
    let found = candidates
        .into_iter()
        .find(|directory| directory.join(LIBRARY).exists())?;
    found.canonicalize().ok()
}
