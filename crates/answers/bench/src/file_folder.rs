//! The folder for the file of a file benchmark, which no other user can enter: nobody can plant a
//! link or a file at the name that the ranks open.
//!
//! The driver makes it, with a random name, and it is removed with the driver, however that ends,
//! with all that a failed job has left there. On a host that does not share the driver's temporary
//! folder, the ranks make one of this name.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use child_guard::WatchedFolder;

/// The permissions of the folder: its owner's alone.
const PRIVATE: u32 = 0o700;

/// Makes the folder, at the driver, whose executable is `command`.
pub(crate) fn new(command: &Path) -> Result<WatchedFolder> {
    WatchedFolder::new(command).with_context(|| {
        let folder = std::env::temp_dir();
        let folder = folder.display();
        format!("cannot make a folder in {folder} (TMPDIR names another one)")
    })
}

/// The folder, as a rank uses it.
pub(crate) struct RankFolder(PathBuf);

impl RankFolder {
    /// Opens the folder that the plan names; makes it where the driver's is not seen.
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
        // Other ranks may still have files in it: the last one removes it, or the driver does.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Refuses a folder that somebody else can use. The name is random, but others can read it on the
/// driver's host while the ranks of another host start.
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
        // The driver's, and one that is missing on this host.
        for path in [made.path().to_owned(), made.path().join("missing")] {
            let folder = RankFolder::open(&path).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, PRIVATE);
            fs::write(folder.file(), "7").unwrap();
            drop(folder);
            // Another rank still uses it.
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
