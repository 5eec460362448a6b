//! The search for a library as the dynamic linker does it, by the rules of ld.so(8): the DT_RPATH
//! of the object that needs the library and of those that loaded that object, LD_LIBRARY_PATH, the
//! DT_RUNPATH of the object, the cache, the default folders.
//!
//! Subfolders for processors with more instructions (`glibc-hwcaps`) are not searched: a library
//! that exists only there is found in the cache.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::cache::Cache;
use super::elf::{Object, object_in};

/// The folders that the linker searches last. Debian additionally has a folder for each kind of
/// processor.
const DEFAULT_FOLDERS: &[&str] = &["/lib64", "/usr/lib64", "/lib", "/usr/lib"];
/// The possible values of `$LIB` in a search path. A system uses one of them; both are tried.
const LIB_FOLDERS: &[&str] = &["lib64", "lib"];
/// The most folders that are searched of one search path.
const MOST_FOLDERS: usize = 256;
/// The most loaders of an object whose DT_RPATH folders are searched for it.
const MOST_LOADERS: usize = 64;
/// The most files that are tried for one program.
const MOST_FILES: usize = 1 << 18;

/// The rule of the dynamic linker by which a library was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The name contains a slash, so it is a path.
    Path,
    /// The library is in a folder of a DT_RPATH, which precedes LD_LIBRARY_PATH.
    Rpath,
    /// The library is in a folder of LD_LIBRARY_PATH, or one that is searched after it.
    Later,
}

/// An object that the dynamic linker would load.
pub(crate) struct Loaded {
    pub file: PathBuf,
    pub object: Object,
    /// The index of the object that needs this one. `None` for the program itself.
    pub loader: Option<usize>,
}

/// The search for the libraries that one program needs.
pub(crate) struct Search {
    /// The folders of LD_LIBRARY_PATH.
    library_path: Vec<PathBuf>,
    /// The working directory of the process, to which relative folders refer.
    directory: PathBuf,
    cache: Cache,
    /// The number of files that the search may still try.
    left: Cell<usize>,
}

impl Search {
    pub(crate) fn new(library_path: &OsStr, directory: PathBuf, cache: Cache) -> Search {
        Search {
            library_path: library_folders(library_path, &directory),
            directory,
            cache,
            left: Cell::new(MOST_FILES),
        }
    }

    /// The file of the library `name` that the object `by` needs, its contents, and the rule by
    /// which it was found.
    pub(crate) fn find(
        &self,
        loaded: &[Loaded],
        by: usize,
        name: &str,
    ) -> Option<(PathBuf, Object, Rule)> {
        let machine = loaded[0].object.machine;
        if name.contains('/') {
            let file = self.directory.join(name);
            return self
                .readable(&file, machine)
                .map(|object| (file, object, Rule::Path));
        }
        let first = |folders: Vec<PathBuf>, rule: Rule| {
            let files = folders.into_iter().map(|folder| folder.join(name));
            let mut found = files.filter_map(|file| {
                self.readable(&file, machine)
                    .map(|object| (file, object, rule))
            });
            found.next()
        };
        let object = &loaded[by].object;
        let later = || {
            let given = first(self.library_path.clone(), Rule::Later);
            given.or_else(|| {
                let runpath = object.runpath.as_deref().unwrap_or_default();
                first(self.folders(&loaded[by].file, runpath), Rule::Later)
            })
        };
        let last = || {
            if object.no_default {
                return None;
            }
            let mut cached = self.cache.files(name).filter_map(|file| {
                let object = self.readable(&file, machine)?;
                Some((file, object, Rule::Later))
            });
            cached
                .next()
                .or_else(|| first(default_folders(), Rule::Later))
        };
        first(self.rpath(loaded, by), Rule::Rpath)
            .or_else(later)
            .or_else(last)
    }

    /// The DT_RPATH folders for an object: its own and those of its loaders, unless it has a
    /// DT_RUNPATH.
    fn rpath(&self, loaded: &[Loaded], by: usize) -> Vec<PathBuf> {
        if loaded[by].object.runpath.is_some() {
            return Vec::new();
        }
        let loaders = std::iter::successors(Some(by), |&at| loaded[at].loader).take(MOST_LOADERS);
        let paths = loaders.filter_map(|at| {
            let rpath = loaded[at].object.rpath.as_deref()?;
            Some(self.folders(&loaded[at].file, rpath))
        });
        paths.flatten().collect()
    }

    /// The folders of a search path in the object `object`, with tokens such as `$ORIGIN` replaced.
    fn folders(&self, object: &Path, path: &str) -> Vec<PathBuf> {
        let origin = object.parent().unwrap_or(Path::new("/")).to_string_lossy();
        let mut folders = Vec::new();
        let words = path.split(':').filter(|_| !path.is_empty());
        for word in words.take(MOST_FOLDERS) {
            let word = replaced(word, "ORIGIN", &origin);
            let word = replaced(&word, "PLATFORM", std::env::consts::ARCH);
            let of_debian = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
            for lib in LIB_FOLDERS.iter().chain([&&*of_debian]) {
                folders.push(self.directory.join(replaced(&word, "LIB", lib)));
            }
            folders.dedup();
        }
        folders
    }

    /// Reads the object in a file. `None` if it is for another processor. Only regular files are
    /// opened, so no pipe blocks.
    fn readable(&self, file: &Path, machine: u16) -> Option<Object> {
        self.left.set(self.left.get().checked_sub(1)?);
        let is_file = std::fs::metadata(file).is_ok_and(|found| found.is_file());
        let opened = is_file.then(|| File::open(file).ok()).flatten()?;
        object_in(&opened).filter(|object| object.machine == machine)
    }
}

/// The folders in a value of LD_LIBRARY_PATH, where an empty item is the working directory.
fn library_folders(path: &OsStr, directory: &Path) -> Vec<PathBuf> {
    let words = path
        .as_bytes()
        .split(|byte| matches!(byte, b':' | b';'))
        .filter(|_| !path.is_empty());
    let folders = words.map(|word| directory.join(OsStr::from_bytes(word)));
    folders.take(MOST_FOLDERS).collect()
}

/// Replaces `$NAME` and `${NAME}` in a folder's name by `value`.
fn replaced(folder: &str, name: &str, value: &str) -> String {
    let folder = folder.replace(&format!("${{{name}}}"), value);
    folder.replace(&format!("${name}"), value)
}

fn default_folders() -> Vec<PathBuf> {
    let arch = std::env::consts::ARCH;
    let of_debian = ["/lib", "/usr/lib"].map(|lib| format!("{lib}/{arch}-linux-gnu"));
    let others = DEFAULT_FOLDERS.iter().map(PathBuf::from);
    of_debian
        .map(PathBuf::from)
        .into_iter()
        .chain(others)
        .collect()
}
