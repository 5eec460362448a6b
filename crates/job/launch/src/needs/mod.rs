//! The MPI libraries that a program needs: those that its own file names, and those that other
//! libraries loaded by the dynamic linker name.
//!
//! For a script, the program in its first line is examined. Binaries that a script or an
//! interpreter starts later are not known here.

mod cache;
mod clocks;
pub(crate) mod elf;
mod families;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
#[cfg(test)]
pub(crate) mod made_up;
mod script;
mod search;

pub use clocks::real_clocks;
pub use families::Abi;
pub(crate) use families::{Family, family};

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use cache::Cache;
use elf::{Symbols, object_in, symbols_in};
use search::{Loaded, Rule, Search};

use crate::Program;
use crate::library::{LARGE_RECORDER_LIBRARY, RECORDER_LIBRARY};

/// The most objects (programs and libraries) that are read for one program.
const MOST_OBJECTS: usize = 2048;
/// The most scripts that are followed in a row: the kernel's limit.
const MOST_SCRIPTS: usize = 5;
/// Names that a program defines if a static MPI library is linked into it: at least one of them.
const STARTS: [&[u8]; 4] = [
    b"MPI_Init",
    b"PMPI_Init",
    b"MPI_Init_thread",
    b"PMPI_Init_thread",
];

/// The MPI libraries of a program, and its other objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MpiNeeds {
    /// The file of the program, or of a script's interpreter. `None` if it cannot be read.
    pub file: Option<PathBuf>,
    /// The script, if the program is one; `file` is its interpreter.
    pub script: Option<PathBuf>,
    /// The needed MPI libraries, each once, in the order in which the linker loads them.
    pub needs: Vec<MpiNeed>,
    /// The program and the libraries that the linker loads, without MPI libraries.
    pub objects: Vec<PathBuf>,
    /// Needed libraries that the dynamic linker would not find.
    pub absent: Vec<String>,
}

/// An MPI library that a program needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiNeed {
    /// The name of the library, as in the file that needs it.
    pub library: String,
    /// The file that needs the library: the program, or a library.
    pub by: PathBuf,
    /// The file that the linker would load for this name. `None`: it would find none.
    pub found: Option<PathBuf>,
    /// True if LD_LIBRARY_PATH does not affect which file is loaded, because the file is named by a
    /// path or found by a DT_RPATH.
    pub is_fixed: bool,
}

impl MpiNeed {
    /// The ABI of the needed library.
    pub fn abi(&self) -> Abi {
        self.family().abi
    }

    /// A description of the library's contents, for messages.
    pub fn contents(&self) -> &'static str {
        self.family().contents
    }

    pub(crate) fn family(&self) -> Family {
        family(&self.library).expect("an MPI library, by its name")
    }
}

/// True for the libraries that record calls: they have the names of all procedures, and are no
/// MPI libraries.
fn is_recorder(preloaded: &str) -> bool {
    let name = Path::new(preloaded).file_name();
    [RECORDER_LIBRARY, LARGE_RECORDER_LIBRARY]
        .map(OsStr::new)
        .map(Some)
        .contains(&name)
}

impl MpiNeeds {
    /// Finds the MPI libraries that a program needs, if its ranks have these values of
    /// LD_LIBRARY_PATH and LD_PRELOAD.
    pub(crate) fn of(program: &Program, library_path: &OsStr, preloaded: &OsStr) -> MpiNeeds {
        let directory = program.directory.clone().unwrap_or(PathBuf::from("."));
        let mut needs = MpiNeeds::default();
        let Some((file, opened)) = needs.binary(program) else {
            return needs;
        };
        // The linker derives `$ORIGIN` of the program from /proc/self/exe.
        needs.file = Some(file.canonicalize().unwrap_or(file));
        let file = needs.file.clone().unwrap_or_default();
        let Some(object) = object_in(&opened) else {
            return needs;
        };
        let cache = match object.needed.is_empty() {
            true => Cache::default(),
            false => Cache::of_this_system(),
        };
        let search = Search::new(library_path, directory, cache);
        let loads = object.has_interpreter || !object.needed.is_empty();
        let mut loaded = vec![Loaded {
            file,
            object,
            loader: None,
        }];
        if loads {
            let words = preloaded.to_string_lossy();
            let preloads: Vec<String> = words
                .split([':', ' '])
                .filter(|word| !word.is_empty() && !is_recorder(word))
                .map(str::to_string)
                .collect();
            needs.load(&search, &mut loaded, &preloads);
        }
        needs.objects = loaded.into_iter().map(|one| one.file).collect();
        needs
    }

    /// The binary of a program and the opened file. For a script it is the interpreter.
    fn binary(&mut self, program: &Program) -> Option<(PathBuf, File)> {
        let mut file = program.file()?;
        for _ in 0..MOST_SCRIPTS {
            let opened = File::open(&file).ok()?;
            let Some(interpreter) = script::interpreter(&opened) else {
                return Some((file, opened));
            };
            self.script.get_or_insert(file);
            let starts = Program {
                program: interpreter,
                ..program.clone()
            };
            file = starts.file()?;
        }
        None
    }

    /// Finds all objects in the order of the linker: `preloads`, and then those that each object
    /// needs.
    fn load(&mut self, search: &Search, loaded: &mut Vec<Loaded>, preloads: &[String]) {
        let mut known = HashSet::new();
        let mut at = 0;
        while at < loaded.len() && loaded.len() < MOST_OBJECTS {
            let first = if at == 0 { preloads } else { &[] };
            let needed: Vec<String> = first
                .iter()
                .chain(&loaded[at].object.needed)
                .cloned()
                .collect();
            for name in needed {
                if known.insert(name.clone()) {
                    self.find(search, loaded, at, name);
                }
            }
            at += 1;
        }
    }

    fn find(&mut self, search: &Search, loaded: &mut Vec<Loaded>, by: usize, name: String) {
        let found = search.find(loaded, by, &name);
        let base = Path::new(&name)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        if family(&base).is_some() {
            if self.needs.iter().all(|known| known.library != base) {
                self.needs.push(MpiNeed {
                    library: base.into_owned(),
                    by: loaded[by].file.clone(),
                    is_fixed: found
                        .as_ref()
                        .is_some_and(|(_, _, rule)| *rule != Rule::Later),
                    found: found.map(|(file, _, _)| file),
                });
            }
            return;
        }
        let Some((file, object, _)) = found else {
            self.absent.push(name);
            return;
        };
        // Different names may lead to the same file.
        let soname = object.soname.as_ref();
        let is_known = loaded.iter().any(|one| {
            one.file == file || soname.is_some() && one.object.soname.as_ref() == soname
        });
        if !is_known {
            loaded.push(Loaded {
                file,
                object,
                loader: Some(by),
            });
        }
    }

    /// The ABIs of the MPI libraries that the program needs.
    pub fn abis(&self) -> BTreeSet<Abi> {
        self.needs.iter().map(MpiNeed::abi).collect()
    }

    /// A file of the program that defines MPI_Init itself, as after a static link. `None` if an MPI
    /// library is needed: a program may define its own MPI_Init to wrap that of a library.
    pub fn with_own_mpi(&self) -> Option<PathBuf> {
        if !self.needs.is_empty() {
            return None;
        }
        let is_start = |name: &[u8]| STARTS.contains(&name);
        let mut files = self.objects.iter();
        let found = files.find(|file| {
            let opened = File::open(file);
            opened.is_ok_and(|opened| !symbols_in(&opened, is_start).defined.is_empty())
        });
        found.cloned()
    }

    /// The MPI names that each object imports. Objects that import none are omitted.
    pub fn imports(&self) -> Vec<(PathBuf, Vec<String>)> {
        let of_file = |file: &PathBuf| {
            let names = mpi_names(file)?.imported;
            (!names.is_empty()).then(|| (file.clone(), names))
        };
        self.objects.iter().filter_map(of_file).collect()
    }
}

/// The MPI names that a library defines.
pub fn defined_names(library: &Path) -> Vec<String> {
    mpi_names(library).unwrap_or_default().defined
}

/// The MPI names in an object's symbol tables, without the versions that linkers append.
fn mpi_names(file: &Path) -> Option<Symbols> {
    const BEGINNINGS: [&[u8]; 8] = [
        b"MPI_", b"PMPI_", b"MPIX_", b"PMPIX_", b"mpi_", b"pmpi_", b"ompi_", b"OMPI_",
    ];
    let is_mpi =
        |name: &[u8]| BEGINNINGS.iter().any(|start| name.starts_with(start)) || is_of_cxx(name);
    let mut names = symbols_in(&File::open(file).ok()?, is_mpi);
    for list in [&mut names.imported, &mut names.defined] {
        for name in list.iter_mut() {
            let end = name.find('@').unwrap_or(name.len());
            name.truncate(end);
        }
        list.dedup();
    }
    Some(names)
}

/// True if a mangled name belongs to the C++ namespace MPI, which contains all C++ bindings: a
/// function, an object, or a table of a class.
fn is_of_cxx(name: &[u8]) -> bool {
    const TABLES: [&[u8]; 5] = [b"TV", b"TI", b"TS", b"TT", b"GV"];
    let Some(rest) = name.strip_prefix(b"_Z") else {
        return false;
    };
    let mut tables = TABLES.iter();
    let nested = tables.find_map(|table| rest.strip_prefix(*table));
    let Some(rest) = nested.unwrap_or(rest).strip_prefix(b"N") else {
        return false;
    };
    let qualifiers = rest.iter().take_while(|byte| b"rVKRO".contains(byte));
    rest[qualifiers.count()..].starts_with(b"3MPI")
}

#[cfg(test)]
mod tests {
    use super::made_up::MadeUp;
    use super::*;

    /// A folder of libraries that a test generates.
    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Folder {
            Folder(tempfile::tempdir().unwrap())
        }

        fn add(&self, file: &str, made: &MadeUp) -> PathBuf {
            let file = self.0.path().canonicalize().unwrap().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, made.bytes()).unwrap();
            file
        }

        fn needs(&self, library_path: &str) -> MpiNeeds {
            let program = Program {
                program: "./program".into(),
                directory: Some(self.0.path().canonicalize().unwrap()),
                ..Program::default()
            };
            MpiNeeds::of(&program, library_path.as_ref(), "".as_ref())
        }
    }

    const ORIGIN: Option<&str> = Some("$ORIGIN");

    #[test]
    fn names_of_the_namespace_mpi_are_those_of_cxx_bindings() {
        for (name, is_one) in [
            ("_ZN3MPI4Comm17Create_errhandlerEPFvRS0_PizE", true),
            ("_ZNK3MPI8Datatype11Get_contentsEiiiPiPlPS0_", true),
            ("_ZTVN3MPI4CommE", true),
            ("_ZN3MPI10COMM_WORLDE", true),
            // An argument type of the namespace MPI does not make a function one of MPI, nor does a
            // longer namespace.
            ("_Z4sendRN3MPI4CommE", false),
            ("_ZN4MPIX4CommE", false),
            ("_ZN3app3MPIE", false),
            ("_ZN", false),
            ("_Z", false),
            ("MPI_Init", false),
        ] {
            assert_eq!(is_of_cxx(name.as_bytes()), is_one, "{name}");
        }
    }

    #[test]
    fn a_library_that_a_library_needs_counts() {
        let folder = Folder::new();
        folder.add(
            "program",
            &MadeUp {
                needed: &["liba.so"],
                rpath: Some("${ORIGIN}/lib"),
                ..MadeUp::default()
            },
        );
        let a = folder.add(
            "lib/liba.so",
            &MadeUp {
                needed: &["libb.so"],
                ..MadeUp::default()
            },
        );
        // The DT_RPATH of the program is also used for the needs of its libraries.
        let b = folder.add(
            "lib/libb.so",
            &MadeUp {
                needed: &["libmpi.so.40"],
                ..MadeUp::default()
            },
        );
        let needs = folder.needs("");
        assert_eq!(needs.objects[1..], [a, b.clone()]);
        let [need] = &needs.needs[..] else {
            panic!("{needs:?}")
        };
        // This computer may or may not have the needed library.
        assert_eq!((need.abi(), &need.by), (Abi::OpenMpi, &b));
        assert!(needs.absent.is_empty() && !need.is_fixed);
    }

    #[test]
    fn only_a_dt_rpath_comes_before_the_variable() {
        for (rpath, runpath, is_fixed) in [
            (ORIGIN, None, true),
            (ORIGIN, ORIGIN, false),
            (None, ORIGIN, false),
        ] {
            let folder = Folder::new();
            folder.add(
                "program",
                &MadeUp {
                    needed: &["libmpi.so.12"],
                    rpath,
                    runpath,
                    ..MadeUp::default()
                },
            );
            let of_program = folder.add("libmpi.so.12", &MadeUp::default());
            let of_variable = folder.add("first/libmpi.so.12", &MadeUp::default());
            let needs = folder.needs("first");
            let found = needs.needs[0].found.as_ref().unwrap();
            let expected = if is_fixed { &of_program } else { &of_variable };
            assert_eq!(
                (found.canonicalize().unwrap(), needs.needs[0].is_fixed),
                (expected.clone(), is_fixed)
            );
        }
    }

    #[test]
    fn a_dt_rpath_without_the_library_fixes_nothing() {
        let folder = Folder::new();
        folder.add(
            "program",
            &MadeUp {
                needed: &["libmpi.so.12"],
                rpath: Some("/nowhere"),
                ..MadeUp::default()
            },
        );
        let needs = folder.needs("");
        assert_eq!(
            (needs.needs[0].abi(), needs.needs[0].is_fixed),
            (Abi::Mpich, false)
        );
    }

    #[test]
    fn a_runpath_holds_for_its_object_alone() {
        let folder = Folder::new();
        folder.add(
            "program",
            &MadeUp {
                needed: &["liba.so"],
                runpath: ORIGIN,
                ..MadeUp::default()
            },
        );
        folder.add(
            "liba.so",
            &MadeUp {
                needed: &["libb.so"],
                ..MadeUp::default()
            },
        );
        folder.add("libb.so", &MadeUp::default());
        assert_eq!(folder.needs("").absent, ["libb.so"]);
    }

    #[test]
    fn libraries_that_need_each_other_have_an_end() {
        let folder = Folder::new();
        let two = ["liba.so", "libb.so"];
        folder.add(
            "program",
            &MadeUp {
                needed: &two,
                rpath: ORIGIN,
                ..MadeUp::default()
            },
        );
        for name in two {
            folder.add(
                name,
                &MadeUp {
                    needed: &two,
                    soname: Some(name),
                    ..MadeUp::default()
                },
            );
        }
        assert_eq!(folder.needs("").objects.len(), 3);
    }

    #[test]
    fn a_script_stands_for_its_interpreter() {
        let folder = Folder::new();
        let binary = folder.add(
            "binary",
            &MadeUp {
                needed: &["libmpi_abi.so.1"],
                ..MadeUp::default()
            },
        );
        let script = folder.add("program", &MadeUp::default());
        std::fs::write(&script, format!("#!{}\n", binary.display())).unwrap();
        let needs = folder.needs("");
        assert_eq!(needs.file, Some(binary));
        assert_eq!(
            needs.script.and_then(|script| script.canonicalize().ok()),
            Some(script)
        );
        assert_eq!(needs.needs[0].abi(), Abi::Standard);
    }
}
