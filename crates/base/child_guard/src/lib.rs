//! Child processes that end with the process that started them, and temporary folders that are
//! removed with it, also after SIGKILL.
//!
//! The kernel signals a child made by [`command`] when its parent ends. For a [`WatchedFolder`] a
//! helper process makes the folder, and removes it when the process that wanted it is gone.
//!
//! Never here: jobs.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tempfile::TempDir;

/// The first argument of a command that ends with its parent. The parent's process ID follows.
const WITH_PARENT: &str = "--with-parent";
/// The first argument of the helper process that makes and watches a folder.
const WATCH: &str = "--watch-folder";
/// The beginning of the names of temporary folders.
const PREFIX: &str = "fishplate-";
/// The longest time to wait for processes that are ending and still write into the folder.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time after the parent's end in which another process that is ending may make the folder
/// anew.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// The interval between two attempts to remove a temporary folder.
const AGAIN: Duration = Duration::from_millis(20);

/// A command that runs `program`, the executable of this program. The kernel sends it SIGTERM when
/// the calling *thread* ends, so that thread must live until the command has ended.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([WITH_PARENT, &std::process::id().to_string()]);
    command
}

/// Handles the arguments that this module adds to a command line, and returns the line without
/// them. `None`: this process was the helper of a watched folder, and its work is done.
///
/// # Errors The parent is gone, or the arguments of this module are invalid.
pub fn begin<W: AsRef<std::ffi::OsStr> + Clone>(
    mut words: Vec<W>,
) -> Result<Option<Vec<W>>, String> {
    let word = |at: usize| words.get(at).map(|word: &W| word.as_ref().to_owned());
    let (Some(first), second) = (word(1), word(2)) else {
        return Ok(Some(words));
    };
    if first == WATCH {
        watch();
        return Ok(None);
    }
    if first == WITH_PARENT {
        let parent = second.and_then(|pid| pid.to_str()?.parse().ok());
        let parent: i32 = parent.ok_or_else(|| format!("{WITH_PARENT} needs a process"))?;
        set_parent_process_death_signal(Some(Signal::TERM))
            .map_err(|why| format!("cannot end with the parent process: {why}"))?;
        // The parent may have ended before the call above.
        if getppid().map(Pid::as_raw_pid) != Some(parent) {
            return Err("the command that has started this one is gone".into());
        }
        words.drain(1..3);
    }
    Ok(Some(words))
}

/// A temporary folder that no other user can enter, whatever the umask. It is removed when this
/// value is dropped.
///
/// # Errors The system cannot make a folder.
pub fn private_folder() -> io::Result<TempDir> {
    let private = Permissions::from_mode(0o700);
    tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(private)
        .tempdir()
}

/// A temporary folder that is removed when this value is dropped, or when this process is killed.
pub struct WatchedFolder {
    folder: PathBuf,
    /// The helper process that has made the folder. Its standard input is a pipe from this process,
    /// which reports end of file when this process ends. `None` if the helper could not be started:
    /// then only the drop of this value removes the folder.
    watch: Option<Child>,
}

impl WatchedFolder {
    /// Makes the folder; `program` is the executable of this program.
    ///
    /// # Errors
    /// The system cannot make a folder.
    pub fn new(program: &Path) -> io::Result<WatchedFolder> {
        if let Some((watch, folder)) = watched(program) {
            let watch = Some(watch);
            return Ok(WatchedFolder { folder, watch });
        }
        Ok(WatchedFolder {
            folder: private_folder()?.keep(),
            watch: None,
        })
    }

    /// The path of the temporary folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }
}

/// Starts a helper process that makes a folder and watches over it. As the helper makes it, this
/// process cannot be killed at a moment that leaves the folder behind.
fn watched(program: &Path) -> Option<(Child, PathBuf)> {
    let mut watch = Command::new(program);
    watch.arg(WATCH).stdin(Stdio::piped());
    watch.stdout(Stdio::piped()).stderr(Stdio::null());
    // Signals to the process group of the command must not reach the helper, from its start.
    let mut watch = watch.process_group(0).spawn().ok()?;
    let mut said = Vec::new();
    let read = watch.stdout.take()?.read_to_end(&mut said);
    let folder = PathBuf::from(OsString::from_vec(said));
    if read.is_err() || !folder.is_dir() {
        let _ = watch.kill();
        let _ = watch.wait();
        return None;
    }
    Some((watch, folder))
}

impl AsRef<Path> for WatchedFolder {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

impl Drop for WatchedFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        if let Some(watch) = &mut self.watch {
            // The folder is removed already.
            let _ = watch.kill();
            let _ = watch.wait();
        }
    }
}

/// The work of the helper process: makes a folder, writes its path to standard output, and removes
/// it when the parent process has ended.
fn watch() {
    let _ = SigSet::all().thread_block();
    let Ok(folder) = private_folder() else {
        return;
    };
    let folder = folder.keep();
    let name = folder.as_os_str().as_bytes();
    let said = rustix::io::write(rustix::stdio::stdout(), name);
    // The parent process reads until end of file.
    if said != Ok(name.len()) || !closes_its_output() {
        remove(&folder);
        return;
    }
    let mut byte = [0];
    while matches!(
        rustix::io::read(rustix::stdio::stdin(), &mut byte),
        Ok(1..) | Err(rustix::io::Errno::INTR)
    ) {}
    let until = Instant::now() + AFTERWARDS;
    while Instant::now() < until {
        remove(&folder);
        std::thread::sleep(AGAIN);
    }
}

/// Closes standard output by opening `/dev/null` in its stead. True if that worked.
fn closes_its_output() -> bool {
    let nothing = std::fs::File::options().write(true).open("/dev/null");
    nothing.is_ok_and(|nothing| rustix::stdio::dup2_stdout(nothing).is_ok())
}

/// Removes a folder into which processes that are ending may still write: repeats it for a while.
pub fn remove(folder: &Path) {
    let until = Instant::now() + PATIENCE;
    while std::fs::remove_dir_all(folder).is_err_and(|why| why.kind() != io::ErrorKind::NotFound)
        && Instant::now() < until
    {
        std::thread::sleep(AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_command_lines_stay_as_they_are() {
        for words in [
            vec!["fishplate"],
            vec!["fishplate", "run", WITH_PARENT, "7"],
        ] {
            assert_eq!(begin(words.clone()), Ok(Some(words)));
        }
        assert!(begin(vec!["fishplate", WITH_PARENT, "x"]).is_err());
        let own = std::process::id().to_string();
        let why = begin(vec!["fishplate", WITH_PARENT, &own]);
        assert!(why.unwrap_err().contains("is gone"));
        let _ = set_parent_process_death_signal(None);
    }

    #[test]
    fn a_folder_is_removed_with_all_that_is_in_it() {
        let folder = TempDir::new().unwrap().keep();
        std::fs::write(folder.join("file"), "7").unwrap();
        remove(&folder);
        assert!(!folder.exists());
        remove(&folder);
    }
}
