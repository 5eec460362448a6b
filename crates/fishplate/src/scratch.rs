//! A folder for one job, in which its program finds the files of the current folder and leaves its
//! own: `--scratch`.

use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

/// The most entries of the current folder that get a link.
const MOST: usize = 4096;

/// A temporary folder with a link to each entry of the current one. It is removed with this value.
pub(crate) struct ScratchFolder(TempDir);

impl ScratchFolder {
    /// Makes the folder.
    pub(crate) fn new() -> Result<ScratchFolder, String> {
        let here = std::env::current_dir().map_err(|why| format!("--scratch: {why}"))?;
        ScratchFolder::of(&here)
    }

    fn of(here: &Path) -> Result<ScratchFolder, String> {
        let failed =
            |what: &Path, why: std::io::Error| format!("--scratch: {}: {why}", what.display());
        let made = tempfile::Builder::new().prefix("fishplate-").tempdir();
        let made = made.map_err(|why| failed(&std::env::temp_dir(), why))?;
        let entries = std::fs::read_dir(here).map_err(|why| failed(here, why))?;
        for (number, entry) in entries.enumerate() {
            if number == MOST {
                return Err(format!(
                    "--scratch: {} has more than {MOST} entries; run in a folder that has only what the program reads",
                    here.display()
                ));
            }
            let entry = entry.map_err(|why| failed(here, why))?;
            let link = made.path().join(entry.file_name());
            symlink(entry.path(), &link).map_err(|why| failed(&link, why))?;
        }
        Ok(ScratchFolder(made))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
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
        assert_eq!(fs::read_to_string(of.join("input")).unwrap(), "7");
        assert!(of.join("data").is_dir());
        fs::write(of.join("output"), "49").unwrap();
        drop(scratch);
        // Nothing is left of it, and nothing is gone here.
        assert!(!of.exists() && !here.path().join("output").exists());
        assert!(here.path().join("input").exists() && here.path().join("data").exists());
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
