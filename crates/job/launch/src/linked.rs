//! The check that the MPI libraries of a program's ranks are ours, or can be replaced by ours.
//!
//! A program of another ABI, or one whose own search path finds another library first, would run as
//! many jobs of one rank. That can be detected in its files before it starts, or in its memory
//! while it runs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::Program;
use crate::library::{LIBRARY, OTHER_ABIS, own_libraries, own_library};
use crate::needs::{Abi, MpiNeed, MpiNeeds, family};
use crate::processes;

/// Advice for the user of a program of another ABI.
const REBUILD: &str =
    "build it again with mpicc (mpi4py: MPICC=mpicc pip install --no-binary mpi4py mpi4py)";
const REBUILD_FORTRAN: &str = "build it again with mpifort";

/// The MPI libraries of a program, and the reason if its ranks cannot use ours instead.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkedLibraries {
    pub needs: MpiNeeds,
    /// Libraries that the program's own search path would find, each with our library of the same
    /// name, which is preloaded instead.
    pub overridden: Vec<(PathBuf, PathBuf)>,
    /// The reason why the ranks cannot use our libraries, if there is one.
    pub obstacle: Option<Obstacle>,
}

/// The reason why a program cannot use our libraries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// We have no library of the needed name.
    Missing(MpiNeed),
    /// This file of the program contains MPI_Init, as after a static link.
    Static(PathBuf),
    /// The program's own search path finds the library `found`, and ours cannot be preloaded,
    /// because of characters in the name of its folder.
    Fixed { found: PathBuf, own: PathBuf },
}

impl LinkedLibraries {
    /// Examines a program whose ranks get these values of LD_LIBRARY_PATH and LD_PRELOAD. `own` is
    /// the folder of our library.
    pub(crate) fn of(
        program: &Program,
        own: Option<&Path>,
        library_path: &OsStr,
        preloaded: &OsStr,
    ) -> Self {
        let needs = MpiNeeds::of(program, library_path, preloaded);
        let mut linked = LinkedLibraries::default();
        for need in &needs.needs {
            let ours = own.and_then(|own| own_library(own, need.library.as_ref()));
            match ours {
                Some(ours) => linked.override_fixed(need, ours),
                None if need.library == LIBRARY => {}
                None => linked.add(Obstacle::Missing(need.clone())),
            }
        }
        if let Some(file) = needs.with_own_mpi() {
            linked.add(Obstacle::Static(file));
        }
        LinkedLibraries { needs, ..linked }
    }

    fn override_fixed(&mut self, need: &MpiNeed, own: PathBuf) {
        let found = need.found.as_ref().filter(|_| need.is_fixed);
        let Some(found) = found.filter(|found| !is_same(found, &own)) else {
            return;
        };
        let found = found.clone();
        match can_be_preloaded(&own) {
            true => self.overridden.push((found, own)),
            false => self.add(Obstacle::Fixed { found, own }),
        }
    }

    fn add(&mut self, obstacle: Obstacle) {
        self.obstacle.get_or_insert(obstacle);
    }

    /// The error message for a program that cannot use our libraries. `None` if it can.
    pub(crate) fn refusal(&self, program: &Program, own: Option<&Path>) -> Option<String> {
        let program = shown(Path::new(&program.program));
        let text = match self.obstacle.as_ref()? {
            Obstacle::Missing(need) => {
                let family = need.family();
                let (library, contents) = (terminal_text::line(&need.library), family.contents);
                let needs = format!(
                    "{program} is linked with {library} ({contents}){}",
                    self.through(&need.by)
                );
                let advice = match family.is_fortran {
                    true => REBUILD_FORTRAN,
                    false => REBUILD,
                };
                format!(
                    "{needs}, which is none of the MPI libraries here ({}): each of its processes would be a job of \
                     one rank; {advice}",
                    own_libraries(own).join(", ")
                )
            }
            Obstacle::Static(file) => format!(
                "{program} has MPI_Init in itself{}, as after a static link of an MPI library: each of its processes \
                 would be a job of one rank; link it with the shared library, by mpicc",
                self.through(file)
            ),
            Obstacle::Fixed { found, own } => format!(
                "{program} loads {} by its own DT_RPATH, and {} cannot be preloaded before it, because the name of its \
                 folder has blanks or colons: install Fishplate elsewhere",
                shown(found),
                shown(own)
            ),
        };
        Some(text)
    }

    /// A clause of a message that names the file `by`, which needs the library. Empty if `by` is
    /// the program itself.
    fn through(&self, by: &Path) -> String {
        match (&self.needs.file, &self.needs.script) {
            (Some(file), None) if file == by => String::new(),
            _ => format!(" by {}", shown(by)),
        }
    }

    /// The messages for the user about a program that is started.
    pub(crate) fn remarks(&self, program: &Program) -> Vec<String> {
        let program = shown(Path::new(&program.program));
        let overridden = self.overridden.iter().map(|(found, _)| {
            format!(
                "{program} would load {} by its own DT_RPATH; its ranks load this library instead (LD_PRELOAD)",
                shown(found)
            )
        });
        overridden.chain(self.mixture(&program)).collect()
    }

    /// The message about a program that needs libraries of two ABIs, which export equal names.
    fn mixture(&self, program: &str) -> Option<String> {
        let first = self.needs.needs.first()?;
        let second = self
            .needs
            .needs
            .iter()
            .find(|need| need.abi() != first.abi())?;
        let name = |need: &MpiNeed| {
            let (library, by) = (terminal_text::line(&need.library), shown(&need.by));
            format!("{library} ({}) by {by}", need.contents())
        };
        Some(format!(
            "{program} needs MPI libraries of two ABIs, {} and {}: they export the same names, so calls reach the first one \
             with handles of the other",
            name(first),
            name(second)
        ))
    }

    /// The lines of `--verbose`: the ABI, the file that needs it, and the folders that are searched
    /// first.
    pub(crate) fn verbose(&self, program: &Program, own: Option<&Path>) -> Vec<String> {
        let program = shown(Path::new(&program.program));
        let mut found = Vec::new();
        for need in &self.needs.needs {
            let library = terminal_text::line(&need.library);
            found.push(format!(
                "{library} ({}) by {}",
                need.contents(),
                shown(&need.by)
            ));
        }
        let own_mpi = match &self.obstacle {
            Some(Obstacle::Static(file)) => Some(file),
            _ => None,
        };
        let what = match (&self.needs.file, own_mpi, &found[..]) {
            (None, _, _) => format!("{program} has no file that can be read"),
            (_, Some(file), _) => format!("{program} has MPI_Init in itself, in {}", shown(file)),
            (Some(_), _, []) if self.needs.objects.is_empty() => {
                format!("{program} is neither a program of 64 bits nor a script")
            }
            (Some(file), _, []) => format!(
                "{program} needs no MPI library at its start ({} and {} libraries)",
                shown(file),
                self.needs.objects.len().saturating_sub(1)
            ),
            (_, _, [..]) => format!("{program} needs {}", found.join(", ")),
        };
        let Some(own) = own else {
            return vec![what];
        };
        let others = own.join(OTHER_ABIS);
        let folders = [Some(own), Some(&*others).filter(|folder| folder.is_dir())];
        let folders: Vec<String> = folders.into_iter().flatten().map(shown).collect();
        let mut first = format!("searched first: {}", folders.join(", "));
        let preloaded = self.overridden.iter().map(|(_, own)| shown(own));
        let preloaded: Vec<String> = preloaded.collect();
        if !preloaded.is_empty() {
            first.push_str(&format!("; preloaded: {}", preloaded.join(", ")));
        }
        vec![what, first]
    }
}

fn is_same(left: &Path, right: &Path) -> bool {
    let (left, right) = (left.canonicalize(), right.canonicalize());
    left.is_ok() && left.ok() == right.ok()
}

/// True if a library can be listed in LD_PRELOAD, where blanks and colons separate names.
pub(crate) fn can_be_preloaded(library: &Path) -> bool {
    let separates = |byte: &u8| byte.is_ascii_whitespace() || *byte == b':';
    let bytes = library.as_os_str().as_encoded_bytes();
    !bytes.iter().any(separates) && !has_token(bytes)
}

/// True if a folder can be listed in LD_LIBRARY_PATH and DT_RUNPATH, as the linker parses them.
pub(crate) fn can_be_searched(folder: &Path) -> bool {
    let bytes = folder.as_os_str().as_encoded_bytes();
    !bytes.iter().any(|byte| b":;".contains(byte)) && !has_token(bytes)
}

/// True if the linker would replace a part of a name, such as `$LIB` or `${LIB}`.
fn has_token(name: &[u8]) -> bool {
    const TOKENS: [&[u8]; 3] = [b"ORIGIN", b"LIB", b"PLATFORM"];
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let begins = |rest: &[u8]| {
        let (braced, rest) = match rest.strip_prefix(b"{") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let ends = |rest: &[u8]| match braced {
            true => rest.first() == Some(&b'}'),
            false => !rest.first().is_some_and(is_name),
        };
        let mut known = TOKENS.iter().filter_map(|token| rest.strip_prefix(*token));
        known.any(ends)
    };
    name.split(|byte| *byte == b'$').skip(1).any(begins)
}

fn shown(file: &Path) -> String {
    terminal_text::line(&file.to_string_lossy())
}

/// The MPI libraries outside the folder `own` that are mapped by ranks, or by processes in their
/// groups.
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
            !is_own(file) && family(&name).is_some()
        };
        found.extend(files.filter(is_other).map(Path::to_path_buf));
    }
    found
}

/// The message for the user about ranks that have not called our library, and had other MPI
/// libraries in memory.
pub(crate) fn late_remark(ranks: usize, mapped: &BTreeSet<PathBuf>) -> Option<String> {
    let first = mapped.first()?;
    let name = first.file_name().unwrap_or_default().to_string_lossy();
    let whose = match family(&name).map(|family| (family.abi, family.contents)) {
        Some((Abi::Standard, _)) | None => "another library of the standard ABI",
        Some((_, contents)) => contents,
    };
    Some(format!(
        "none of the {ranks} ranks called MPI_Init of this library, and they had {} in memory ({whose}): each was a job of \
         one rank; {REBUILD}",
        terminal_text::line(&first.to_string_lossy())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_the_linker_reads_otherwise_are_known() {
        for folder in [
            "/a b",
            "/a$",
            "/a$x",
            "/$LIBS",
            "/${LIBS}",
            "/{LIB}",
            "/opt/fishplate",
        ] {
            assert!(can_be_searched(Path::new(folder)), "{folder}");
        }
        for folder in [
            "/a:b",
            "/a;b",
            "/$LIB",
            "/$LIB/x",
            "/x${ORIGIN}y",
            "/$$PLATFORM-7",
        ] {
            assert!(!can_be_searched(Path::new(folder)), "{folder}");
        }
        assert!(!can_be_preloaded(Path::new("/a b")) && !can_be_preloaded(Path::new("/$LIB")));
        assert!(can_be_preloaded(Path::new("/a;b")));
    }
    use crate::needs::made_up::MadeUp;

    /// The libraries of a program that needs `library`, and whose DT_RPATH names its own folder,
    /// which has a library of that name. Ours is in the folder `own`. Also returns the refusal, if
    /// any.
    fn linked(library: &str, own: &str) -> (LinkedLibraries, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join(own);
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join(LIBRARY), MadeUp::default().bytes()).unwrap();
        std::fs::write(folder.path().join(library), MadeUp::default().bytes()).unwrap();
        let needed = &[library];
        let made = MadeUp {
            needed,
            rpath: Some("$ORIGIN"),
            ..MadeUp::default()
        };
        std::fs::write(folder.path().join("program"), made.bytes()).unwrap();
        let program = Program {
            program: "./program".into(),
            directory: Some(folder.path().to_path_buf()),
            ..Program::default()
        };
        let path = own.as_os_str();
        let linked = LinkedLibraries::of(&program, Some(&own), path, "".as_ref());
        let refusal = linked.refusal(&program, Some(&own));
        (linked, refusal)
    }

    #[test]
    fn ours_is_preloaded_where_the_programs_own_path_has_another() {
        let (linked, refusal) = linked(LIBRARY, "own");
        let [(found, own)] = &linked.overridden[..] else {
            panic!("{linked:?}");
        };
        assert!(found.ends_with(LIBRARY) && own.ends_with("own/libmpi_abi.so.1"));
        assert_eq!(refusal, None);
    }

    #[test]
    fn a_folder_that_cannot_be_preloaded_is_a_reason_to_refuse() {
        let (linked, refusal) = linked(LIBRARY, "own folder");
        assert!(matches!(linked.obstacle, Some(Obstacle::Fixed { .. })));
        let refusal = refusal.unwrap();
        assert!(
            refusal.contains("DT_RPATH") && refusal.contains("blanks or colons"),
            "{refusal}"
        );
    }

    #[test]
    fn a_fortran_library_that_we_lack_is_named() {
        let (_, refusal) = linked("libmpi_mpifh.so.20", "own");
        let refusal = refusal.unwrap();
        assert!(
            refusal.contains("libmpi_mpifh.so.20 (Open MPI's Fortran)"),
            "{refusal}"
        );
        assert!(
            refusal.ends_with("build it again with mpifort"),
            "{refusal}"
        );
    }
}
