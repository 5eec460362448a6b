//! `--scratch`: a temporary folder for one job, in which the program finds the files of the current
//! folder and leaves its own.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use child_guard::private_folder;
use tempfile::TempDir;

/// The most entries of a folder for which links are made in the temporary folder.
const MOST: usize = 4096;
/// The number of folders above the current one that get links too: paths may have that many `../`.
const ABOVE: usize = 3;

/// A temporary folder with a link to each entry of the current folder. The folders around it have
/// links to the entries of those above the current one. All are removed when this value is dropped.
pub(crate) struct ScratchFolder {
    /// The outermost temporary folder; its drop removes all of them.
    all: TempDir,
    folder: PathBuf,
}

impl ScratchFolder {
    /// Makes the temporary folder that shows the contents of the current folder.
    pub(crate) fn new() -> Result<ScratchFolder, String> {
        let here = std::env::current_dir().map_err(|why| format!("--scratch: {why}"))?;
        ScratchFolder::of(&here)
    }

    fn of(here: &Path) -> Result<ScratchFolder, String> {
        let all = private_folder().map_err(|why| failed(&std::env::temp_dir(), why))?;
        let mut shown: Vec<&Path> = here.ancestors().take(1 + ABOVE).collect();
        shown.reverse();
        let mut folder = all.path().to_owned();
        for two in shown.windows(2) {
            let within = two[1].file_name().unwrap_or_default();
            // If the links for a folder above cannot all be made (it is unreadable, or has too many
            // entries), that is no error: the program does not find the rest.
            let _ = show(two[0], &folder, Some(Path::new(within)))?;
            folder.push(within);
            std::fs::create_dir(&folder).map_err(|why| failed(&folder, why))?;
        }
        match show(here, &folder, None)? {
            Shown::All => Ok(ScratchFolder { all, folder }),
            Shown::Crowded => Err(format!(
                "--scratch: {} has more than {MOST} entries; run in a folder that has only what the program reads",
                here.display()
            )),
            Shown::Unreadable(why) => Err(failed(here, why)),
        }
    }

    /// The path of the outermost folder, which contains all others.
    pub(crate) fn all(&self) -> &Path {
        self.all.path()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// The path by which a program, named relative to the folder `here`, is started: as it is
    /// named, unless the path only exists from `here`.
    pub(crate) fn program(&self, here: &Path, named: &Path) -> PathBuf {
        let is_path = named.as_os_str().as_encoded_bytes().contains(&b'/');
        match is_path && !self.folder.join(named).exists() {
            true => here.join(named),
            false => named.to_owned(),
        }
    }
}

fn failed(what: &Path, why: std::io::Error) -> String {
    format!("--scratch: {}: {why}", what.display())
}

/// The outcome of the attempt to link all entries of a folder.
enum Shown {
    All,
    /// The folder has more entries than get links; only the first ones have them.
    Crowded,
    Unreadable(std::io::Error),
}

/// Makes links in `to` to the entries of `folder`, except to the entry named `but`.
fn show(folder: &Path, to: &Path, but: Option<&Path>) -> Result<Shown, String> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(why) => return Ok(Shown::Unreadable(why)),
    };
    let others = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        but != Some(Path::new(&name))
    });
    for (number, entry) in others.enumerate() {
        if number == MOST {
            return Ok(Shown::Crowded);
        }
        let link = to.join(entry.file_name());
        symlink(entry.path(), &link).map_err(|why| failed(&link, why))?;
    }
    Ok(Shown::All)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_folder_shows_what_is_there_and_keeps_what_comes() {
        let here = TempDir::new().unwrap();
        fs::write(here.path().join("input"), "7").unwrap();
        fs::create_dir(here.path().join("data")).unwrap();
        let scratch = ScratchFolder::of(here.path()).unwrap();
        let of = scratch.path().to_owned();
        let root = scratch.all().to_owned();
        assert_eq!(fs::read_to_string(of.join("input")).unwrap(), "7");
        assert!(of.join("data").is_dir());
        fs::write(of.join("output"), "49").unwrap();
        drop(scratch);
        // The temporary folders are removed, and the files of the current folder are left.
        assert!(!root.exists() && !here.path().join("output").exists());
        assert!(here.path().join("input").exists() && here.path().join("data").exists());
    }

    #[test]
    fn folders_above_are_shown_and_get_nothing_new() {
        let top = TempDir::new().unwrap();
        let here = top.path().join("runs/first");
        fs::create_dir_all(&here).unwrap();
        fs::write(top.path().join("runs/input"), "7").unwrap();
        fs::write(top.path().join("mesh"), "8").unwrap();
        let scratch = ScratchFolder::of(&here).unwrap();
        let read = |path: &str| fs::read_to_string(scratch.path().join(path)).unwrap();
        assert_eq!(
            (read("../input"), read("../../mesh")),
            ("7".into(), "8".into())
        );
        assert!(scratch.path().ends_with("runs/first"));
        fs::write(scratch.path().join("../output"), "49").unwrap();
        assert_eq!(read("../../runs/output"), "49");
        assert!(!top.path().join("runs/output").exists());
    }

    #[test]
    fn a_program_further_up_is_found_from_the_current_folder() {
        let top = TempDir::new().unwrap();
        let here = top.path().join("a/b/c/d");
        fs::create_dir_all(&here).unwrap();
        fs::write(top.path().join("deep-program"), "").unwrap();
        fs::write(here.join("program"), "").unwrap();
        let scratch = ScratchFolder::of(&here).unwrap();
        let far = Path::new("../../../../deep-program");
        assert_eq!(scratch.program(&here, far), here.join(far));
        for named in ["./program", "../../../b/c/d/program", "sh"] {
            assert_eq!(scratch.program(&here, Path::new(named)), Path::new(named));
        }
    }

    #[test]
    fn a_crowded_folder_is_refused() {
        let here = TempDir::new().unwrap();
        for number in 0..=MOST {
            fs::write(here.path().join(number.to_string()), "").unwrap();
        }
        let why = ScratchFolder::of(here.path()).err().unwrap();
        assert!(why.contains("more than 4096 entries"), "{why}");
    }
}
