//! The MPI library of a program: whether it is ours.
//!
//! A program of another ABI, or one whose own search path finds another library first, would run as
//! many jobs of one rank. Its file shows that before it starts, or its memory while it runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::Program;
use crate::elf::dynamic_section;
use crate::library::{LIBRARY, OTHER_ABIS, own_library};
use crate::processes;

/// The libraries of other ABIs: the beginnings of their names, and whose they are.
const FOREIGN: &[(&str, &str)] = &[
    ("libmpi.so.12", "the ABI of MPICH and Intel MPI"),
    ("libmpi.so.40", "the ABI of Open MPI"),
    ("libmpi.so", "an ABI of another library"),
    ("libmpich.so", "an ABI of MPICH"),
    ("libmpi_mpifh.so", "Open MPI's Fortran"),
    ("libmpi_usempi", "Open MPI's Fortran"),
    ("libmpifort.so", "MPICH's Fortran"),
    ("libmpi_cxx.so", "Open MPI's C++"),
    ("libmpicxx.so", "MPICH's C++"),
];

/// Advice to the user of a program of another ABI.
const REBUILD: &str =
    "build it again with mpicc (mpi4py: MPICC=mpicc pip install --no-binary mpi4py mpi4py)";

/// The library that a program would load.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LinkedLibrary {
    /// Ours, of the standard ABI or of another, or none that can be seen in its file.
    Own,
    /// A library of another ABI, by name.
    OtherAbi(String),
    /// A library of the name of one of ours, which the program's own search path finds first.
    Elsewhere(PathBuf),
}

/// The MPI library that the file of a program names. `own` is the folder of ours.
pub(crate) fn linked_library(program: &Program, own: Option<&Path>) -> LinkedLibrary {
    let file = program.file();
    let opened = file.as_ref().and_then(|file| File::open(file).ok());
    let section = opened.as_ref().and_then(dynamic_section);
    let (Some(file), Some(section)) = (file, section) else {
        return LinkedLibrary::Own;
    };
    let known = |name: &String| own.is_some_and(|own| own_library(own, name.as_ref()).is_some());
    let mut others = section.needed.iter().filter(|name| abi(name).is_some());
    if let Some(name) = others.find(|name| !known(name)) {
        return LinkedLibrary::OtherAbi(name.clone());
    }
    let mpi = section
        .needed
        .iter()
        .filter(|name| *name == LIBRARY || abi(name).is_some());
    let mut elsewhere = mpi.filter_map(|name| {
        let own = own_library(own?, name.as_ref())?.canonicalize().ok()?;
        let found = searched_first(&file, section.rpath.as_deref()?, name)?;
        (found.canonicalize().ok()? != own).then_some(found)
    });
    elsewhere
        .next()
        .map_or(LinkedLibrary::Own, LinkedLibrary::Elsewhere)
}

/// The library of this name that a program's own search path finds.
fn searched_first(file: &Path, rpath: &str, name: &str) -> Option<PathBuf> {
    let origin = file.canonicalize().unwrap_or(file.to_path_buf());
    let origin = origin
        .parent()
        .unwrap_or(Path::new("/"))
        .to_string_lossy()
        .into_owned();
    let folders = rpath.split(':').filter(|folder| !folder.is_empty());
    let mut libraries = folders.map(|folder| {
        let folder = folder
            .replace("${ORIGIN}", &origin)
            .replace("$ORIGIN", &origin);
        Path::new(&folder).join(name)
    });
    libraries.find(|library| library.exists())
}

/// The text for the user about a program's library, if it is not ours.
pub(crate) fn remark(program: &Program, library: &LinkedLibrary) -> Option<String> {
    let program = plain::line(&program.program.to_string_lossy());
    match library {
        LinkedLibrary::Own => None,
        LinkedLibrary::OtherAbi(name) => Some(format!(
            "{program} is linked with {name} ({}), and this is {LIBRARY}, the standard ABI: each of its processes would be \
             a job of one rank; {REBUILD}",
            abi(name).unwrap_or_default()
        )),
        LinkedLibrary::Elsewhere(found) => Some(format!(
            "{program} would load {} by its own DT_RPATH; its ranks load this library instead (LD_PRELOAD)",
            plain::line(&found.to_string_lossy())
        )),
    }
}

fn abi(name: &str) -> Option<&'static str> {
    let row = FOREIGN
        .iter()
        .find(|(beginning, _)| name.starts_with(beginning));
    row.map(|(_, abi)| *abi)
}

/// MPI libraries that are not `own` in the memory of ranks and of processes in their groups.
pub(crate) fn mapped_libraries(ranks: &[Pid], own: Option<&Path>) -> BTreeSet<PathBuf> {
    let is_own = |file: &Path| {
        own.is_some_and(|own| file == own.join(LIBRARY) || file.starts_with(own.join(OTHER_ABIS)))
    };
    let mut found = BTreeSet::new();
    for pid in processes::in_groups(ranks) {
        let pid = pid.as_raw_nonzero();
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let files = maps
            .lines()
            .filter_map(|line| Some(Path::new(&line[line.find('/')?..])));
        let is_other = |file: &&Path| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            !is_own(file) && (name.starts_with("libmpi_abi.so") || abi(&name).is_some())
        };
        found.extend(files.filter(is_other).map(Path::to_path_buf));
    }
    found
}

/// The text for the user about several ranks that did not call this library, and had others in
/// their memory.
pub(crate) fn late_remark(ranks: usize, mapped: &BTreeSet<PathBuf>) -> Option<String> {
    let first = mapped.first()?;
    let name = first.file_name().unwrap_or_default().to_string_lossy();
    let whose = abi(&name).unwrap_or("another library of the standard ABI");
    Some(format!(
        "none of the {ranks} ranks called MPI_Init of this library, and they had {} in memory ({whose}): each was a job of \
         one rank; {REBUILD}",
        plain::line(&first.to_string_lossy())
    ))
}
