//! The files of our `libmpi_abi.so.1`, and of our libraries of other ABIs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::needs::family;

/// The name of our library for the standard ABI, as programs are linked against it.
pub(crate) const LIBRARY: &str = "libmpi_abi.so.1";

/// Other names of that library, needed by programs that were linked with a stub of the ABI.
const ALIASES: [&str; 2] = ["libmpi_abi.so", "libmpi_abi.so.0"];

/// True if the name is one of our library for the standard ABI.
pub(crate) fn is_library(name: &OsStr) -> bool {
    name == LIBRARY || ALIASES.iter().any(|alias| name == *alias)
}

/// The subfolder, in the folder of our library, with libraries of other ABIs, which call ours. They
/// are in a separate folder because packages of other MPI libraries install files with the same
/// names.
pub(crate) const OTHER_ABIS: &str = "fishplate";

/// The name of the library of MPICH's ABI (crate `mpich_abi`).
pub(crate) const MPICH_LIBRARY: &str = "libmpi.so.12";

/// The name of the library that makes the system's clocks show virtual time (crate `clocks`).
pub(crate) const CLOCK_LIBRARY: &str = "libfishplate_clock.so";

/// The name of the library that records programs of any MPI library (crate `recorder`).
pub const RECORDER_LIBRARY: &str = "libfishplate_record.so";

/// The name of the library with its entry points with large counts (crate `recorder_large`). It is
/// preloaded before the recorder.
pub const LARGE_RECORDER_LIBRARY: &str = "libfishplate_record_large.so";

/// The file of our library of this name, if it exists. `own` is the folder of our library.
pub(crate) fn own_library(own: &Path, name: &OsStr) -> Option<PathBuf> {
    let folder = match is_library(name) {
        true => own.to_path_buf(),
        false => own.join(OTHER_ABIS),
    };
    Some(folder.join(name)).filter(|library| library.exists())
}

/// The names of our libraries, for messages. `own` is the folder of our library.
pub(crate) fn own_libraries(own: Option<&Path>) -> Vec<String> {
    let others = own.map(|own| std::fs::read_dir(own.join(OTHER_ABIS)));
    let others = others.and_then(Result::ok).into_iter().flatten().flatten();
    let names = others.map(|file| file.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| family(name).is_some()).collect();
    names.sort();
    names.insert(0, LIBRARY.to_string());
    names
}

/// The folder of our library, derived from the path of the command: `../lib` in an installed tree,
/// `build/lib` in a checkout whose command is in `target/PROFILE/`.
pub fn library_directory(command: &Path) -> Option<PathBuf> {
    let beside = command.parent()?;
    let candidates = [beside.join("../lib"), beside.join("../../build/lib")];
    let found = candidates
        .into_iter()
        .find(|directory| directory.join(LIBRARY).exists())?;
    found.canonicalize().ok()
}
