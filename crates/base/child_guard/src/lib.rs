//! Commands that end with the command above them, and folders that are removed with it.
//!
//! The system ends a command *below* another ([`command`]) with it, also after SIGKILL. A process
//! beside the command makes a [`WatchedFolder`], and removes it when the command is gone.
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

/// The first word of a command that ends with its parent, whose number follows.
const WITH_PARENT: &str = "--with-parent";
/// The first word of the process that makes a folder and watches over it.
const WATCH: &str = "--watch-folder";
/// The beginning of the name of a folder.
const PREFIX: &str = "fishplate-";
/// The time for processes that still write into a folder to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time in which a process that ends, too, may still make the folder anew.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// The interval between attempts.
const AGAIN: Duration = Duration::from_millis(20);

/// A command of this program, the executable `program`. It gets SIGTERM when the calling *thread*
/// ends, which must live until the command has ended.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([WITH_PARENT, &std::process::id().to_string()]);
    command
}

/// The words of a command line behind those of this module. None: this was the process of a
/// watched folder, which has ended.
///
/// # Errors
/// The parent is gone, or the words are wrong.
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
        // It may have ended before.
        if getppid().map(Pid::as_raw_pid) != Some(parent) {
            return Err("the command that has started this one is gone".into());
        }
        words.drain(1..3);
    }
    Ok(Some(words))
}

/// A temporary folder that no other user can enter, whatever the umask. It is removed with this
/// value.
///
/// # Errors
/// The system makes no folder.
pub fn private_folder() -> io::Result<TempDir> {
    let private = Permissions::from_mode(0o700);
    tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(private)
        .tempdir()
}

/// A temporary folder that is removed with this value, or when this process is killed.
pub struct WatchedFolder {
    folder: PathBuf,
    /// The process that has made the folder. Its standard input is a pipe that ends with this
    /// process. Without it, if the system refuses another process, the folder is removed with this
    /// value alone.
    watch: Option<Child>,
}

impl WatchedFolder {
    /// Makes the folder; `program` is the executable of this program.
    ///
    /// # Errors
    /// The system makes no folder.
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

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }
}

/// Starts a process that makes a folder and watches over it: so there is no moment at which this
/// process can be killed and leave it.
fn watched(program: &Path) -> Option<(Child, PathBuf)> {
    let mut watch = Command::new(program);
    watch.arg(WATCH).stdin(Stdio::piped());
    watch.stdout(Stdio::piped()).stderr(Stdio::null());
    // Signals to the group of the command are not for this process, from its start.
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
            // Nothing is left for it to do.
            let _ = watch.kill();
            let _ = watch.wait();
        }
    }
}

/// Makes a folder, says its name, and removes it when the process above has ended.
fn watch() {
    let _ = SigSet::all().thread_block();
    let Ok(folder) = private_folder() else {
        return;
    };
    let folder = folder.keep();
    let name = folder.as_os_str().as_bytes();
    let said = rustix::io::write(rustix::stdio::stdout(), name);
    // The process above reads until the end.
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

/// Gives up standard output.
fn closes_its_output() -> bool {
    let nothing = std::fs::File::options().write(true).open("/dev/null");
    nothing.is_ok_and(|nothing| rustix::stdio::dup2_stdout(nothing).is_ok())
}

/// Removes a folder into which processes that end may still write.
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
