//! The file of costs in a user's cache: read with care, and replaced whole.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::lines::CostLines;

/// The mode bits by which others may write.
const OTHERS_WRITE: u32 = 0o022;

/// The file of costs for one kind of host.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// The kind of host, as [`host_name`](crate::host_name) gives it.
    host: String,
}

impl Cache {
    /// The file of the user with these variables of the environment, for this kind of host. `None`:
    /// neither `XDG_CACHE_HOME` nor `HOME` is an absolute path.
    pub fn of_user(variable: impl Fn(&str) -> Option<OsString>, host: String) -> Option<Cache> {
        let absolute = |name: &str| {
            let path = PathBuf::from(variable(name)?);
            path.is_absolute().then_some(path)
        };
        let caches = absolute("XDG_CACHE_HOME");
        let caches = caches.or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(Cache {
            folder: caches.join("fishplate"),
            host,
        })
    }

    /// The path of the file of costs.
    pub fn path(&self) -> PathBuf {
        let hash = self.host.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        self.folder.join(format!("costs-{hash:016x}"))
    }

    /// The costs in the file. `None`: there is no file that this process should trust.
    pub fn read(&self) -> Option<CostLines> {
        let file = open(OpenOptions::new().read(true), &self.path()).ok()?;
        if !is_own(&file) {
            return None;
        }
        let mut text = String::new();
        let most = CostLines::LONGEST as u64 + 1;
        file.take(most).read_to_string(&mut text).ok()?;
        CostLines::parse(&text, &self.host)
    }

    /// Replaces the file. While another process replaces it, nothing happens: one of many jobs that
    /// end at once is enough.
    ///
    /// # Errors
    /// The folder cannot be made, or the file cannot be written.
    pub fn replace(&self, lines: &CostLines) -> io::Result<()> {
        let path = self.path();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        // The next job reuses the file that a killed one has left.
        let new = path.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600);
        let mut file = open(&mut options, &new)?;
        if !is_own(&file) || !locks(&file) || !is_at(&file, &new) {
            return Ok(());
        }
        file.set_len(0)?;
        let written = file.write_all(lines.text(&self.host).as_bytes());
        let replaced = written.and_then(|()| fs::rename(&new, &path));
        if replaced.is_err() {
            let _ = fs::remove_file(&new);
        }
        replaced
    }
}

/// Opens a file. A link is an error, and a pipe does not block.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    options.custom_flags(flags).open(path)
}

/// True for a regular file of this user's that nobody else may write.
fn is_own(file: &File) -> bool {
    // SAFETY: the call has no arguments, and cannot fail.
    let user = unsafe { libc::geteuid() };
    file.metadata()
        .is_ok_and(|data| data.is_file() && data.uid() == user && data.mode() & OTHERS_WRITE == 0)
}

/// Locks the file until it is closed. False: another process has locked it.
fn locks(file: &File) -> bool {
    // SAFETY: the call takes numbers.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// True if the file still has this name: the process that had locked it before has not renamed it.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(own), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    (own.dev(), own.ino()) == (there.dev(), there.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// A folder for one test, removed at its end.
    struct Home(PathBuf);

    impl Home {
        fn new(name: &str) -> Home {
            let path = std::env::temp_dir();
            let path = path.join(format!("fishplate-costs-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Home(path)
        }

        fn cache(&self, host: &str) -> Cache {
            let home = |name: &str| (name == "HOME").then(|| self.0.clone().into());
            Cache::of_user(home, host.into()).unwrap()
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn lines(cost: u32) -> CostLines {
        let mut lines = CostLines::default();
        lines.set("read", cost);
        lines
    }

    #[test]
    fn a_job_finds_what_the_one_before_has_kept() {
        let home = Home::new("kept");
        let cache = home.cache("a host");
        assert_eq!(cache.read(), None);
        for cost in [7, 8] {
            cache.replace(&lines(cost)).unwrap();
            assert_eq!(cache.read(), Some(lines(cost)));
        }
        // Unlike hosts may share a home.
        assert_eq!(home.cache("another host").read(), None);
        let files: Vec<_> = fs::read_dir(&cache.folder).unwrap().collect();
        let mode = fs::metadata(cache.path()).unwrap().mode() & 0o777;
        assert_eq!((files.len(), mode), (1, 0o600));
    }

    #[test]
    fn files_that_others_may_have_written_are_not_believed() {
        let home = Home::new("others");
        let cache = home.cache("a host");
        cache.replace(&lines(1)).unwrap();
        let path = cache.path();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        assert_eq!(cache.read(), None);
        cache.replace(&lines(2)).unwrap();
        assert_eq!(cache.read(), Some(lines(2)));
        // A link is not followed, in either direction.
        let elsewhere = home.0.join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert_eq!(cache.read(), None);
        symlink(&elsewhere, path.with_extension("new")).unwrap();
        assert!(cache.replace(&lines(3)).is_err());
        assert!(fs::read_to_string(&elsewhere).unwrap().contains("read 2"));
    }

    #[test]
    fn a_file_that_another_process_writes_is_left_alone() {
        let home = Home::new("busy");
        let cache = home.cache("a host");
        cache.replace(&lines(1)).unwrap();
        let new = cache.path().with_extension("new");
        let other = File::create(&new).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(locks(&other));
        cache.replace(&lines(2)).unwrap();
        assert_eq!(cache.read(), Some(lines(1)));
        // It was killed: what it has left is used.
        drop(other);
        cache.replace(&lines(3)).unwrap();
        assert_eq!(cache.read(), Some(lines(3)));
    }

    #[test]
    fn many_jobs_that_end_at_once_leave_one_whole_file() {
        let home = Home::new("many");
        let cache = home.cache("a host");
        std::thread::scope(|scope| {
            for job in 1..=64 {
                let cache = &cache;
                scope.spawn(move || {
                    let mut lines = lines(job);
                    lines.set("packets", job);
                    cache.replace(&lines).unwrap();
                    let seen = cache.read();
                    let whole = |seen: &CostLines| seen.get("read") == seen.get("packets");
                    assert!(seen.is_none_or(|seen| whole(&seen)));
                });
            }
        });
        let kept = cache.read().unwrap();
        assert_eq!(kept.get("read"), kept.get("packets"));
        assert!(!cache.path().with_extension("new").exists());
    }

    #[test]
    fn without_a_home_there_is_no_cache_and_an_unwritable_one_is_an_error() {
        let of = |home: Option<&str>| {
            let home = home.map(OsString::from);
            Cache::of_user(|name| home.clone().filter(|_| name == "HOME"), "a".into())
        };
        assert!(of(None).is_none() && of(Some("relative")).is_none());
        let nowhere = of(Some("/proc/nowhere")).unwrap();
        assert!(nowhere.read().is_none() && nowhere.replace(&lines(1)).is_err());
    }
}
