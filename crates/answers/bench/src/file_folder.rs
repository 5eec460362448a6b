//! The folder for the file of a file benchmark. No other user can enter it, so nobody can plant a
//! link or a file under the name that the ranks open.
//!
//! The driver makes the folder, with a random name. It is removed when the driver ends, for any
//! reason, with all files that a failed job has left in it. On a host that does not share the
//! driver's temporary folder, the ranks make a folder with the same name.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use child_guard::WatchedFolder;

/// The permissions of the folder: access for its owner only.
const PRIVATE: u32 = 0o700;

/// Makes the folder, in the driver, whose executable is `command`.
pub(crate) fn new(command: &Path) -> Result<WatchedFolder> {
    WatchedFolder::new(command).with_context(|| {
        let folder = std::env::temp_dir();
        let folder = folder.display();
        format!("cannot make a folder in {folder} (TMPDIR names another one)")
    })
}

/// The folder of a file benchmark in a rank. Dropping this value removes the folder if it is empty.
pub(crate) struct RankFolder(PathBuf);

impl RankFolder {
    /// Opens the folder that the plan names, or makes it on a host that does not have the driver's.
    pub(crate) fn open(path: &Path) -> Result<RankFolder> {
        let wrong = || format!("the folder {} for the file", path.display());
        match DirBuilder::new().mode(PRIVATE).create(path) {
            Ok(()) => {}
            Err(why) if why.kind() == ErrorKind::AlreadyExists => {
                check(path).with_context(wrong)?;
            }
            Err(why) => return Err(why).with_context(wrong),
        }
        Ok(RankFolder(path.to_owned()))
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("file")
    }
}

impl Drop for RankFolder {
    fn drop(&mut self) {
        // This fails while other ranks have files in it: the last rank or the driver removes it.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Refuses a folder that another user can access. Its name is random, but other users can read the
/// name on the driver's host while the ranks of another host start.
fn check(path: &Path) -> Result<()> {
    let facts = fs::symlink_metadata(path)?;
    let own = nix::unistd::geteuid().as_raw();
    let is_private = facts.is_dir() && facts.uid() == own && facts.mode() & 0o077 == 0;
    if !is_private {
        bail!("it is not this user's alone, so somebody else has made it: start again");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_rank_uses_only_a_private_folder() {
        let made = new(Path::new("true")).unwrap();
        assert_eq!(fs::metadata(made.path()).unwrap().mode() & 0o777, PRIVATE);
        // The driver's folder, and a folder that is missing on this host.
        for path in [made.path().to_owned(), made.path().join("missing")] {
            let folder = RankFolder::open(&path).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, PRIVATE);
            fs::write(folder.file(), "7").unwrap();
            drop(folder);
            // The file of another rank is still in the folder.
            assert!(path.exists());
            fs::remove_file(path.join("file")).unwrap();
            if path != made.path() {
                drop(RankFolder::open(&path).unwrap());
                assert!(!path.exists());
            }
        }
        let (open, link) = (made.path().join("open"), made.path().join("link"));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        symlink(made.path(), &link).unwrap();
        for planted in [open, link] {
            let why = RankFolder::open(&planted).err().unwrap();
            assert!(format!("{why:#}").contains("somebody else"), "{why:#}");
        }
    }
}
