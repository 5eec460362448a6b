//! The environment of the compared program's runs: their standard input, and files in their folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{IsTerminal, Read, Write, stderr, stdout};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use results::MemoryFile;
use rustix::fs::fstat;

/// The greatest length of standard input that can be kept for the runs, in bytes.
const LONGEST: u64 = 256 << 20;
/// The time after which the user is informed that standard input is awaited.
const PATIENCE: Duration = Duration::from_secs(2);

/// The standard input of every run: a copy of this process's input, or nothing.
#[derive(Default)]
pub(crate) struct Input(Option<MemoryFile>);

impl Input {
    /// Reads this process's standard input to its end, unless it is a terminal: each run gets the
    /// same bytes. `waits` is called once if the end does not come soon.
    pub(crate) fn read(waits: impl FnOnce()) -> Result<Input> {
        if std::io::stdin().is_terminal() {
            return Ok(Input::default());
        }
        let (done, read) = mpsc::channel();
        let reads = move || {
            let mut bytes = Vec::new();
            let taken = std::io::stdin()
                .lock()
                .take(LONGEST + 1)
                .read_to_end(&mut bytes);
            // The receiver waits for this without a limit.
            let _ = done.send(taken.map(|_| bytes));
        };
        let thread = thread::Builder::new().spawn(reads);
        thread.context("cannot start a thread")?;
        let taken = match read.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) => {
                waits();
                read.recv()?
            }
            taken => taken?,
        };
        match taken {
            Ok(bytes) => Input::of(&bytes),
            // A closed file descriptor counts as empty input.
            Err(why) if why.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) => {
                Ok(Input::default())
            }
            Err(why) => Err(why).context("cannot read standard input for the runs"),
        }
    }

    fn of(bytes: &[u8]) -> Result<Input> {
        if bytes.len() as u64 > LONGEST {
            bail!(
                "standard input is longer than {} MiB; let the program read a file instead",
                LONGEST >> 20
            );
        }
        if bytes.is_empty() {
            return Ok(Input::default());
        }
        let file = MemoryFile::new()?;
        (&file.0)
            .write_all(bytes)
            .context("cannot keep standard input for the runs")?;
        Ok(Input(Some(file)))
    }

    /// The standard input of one run.
    pub(crate) fn stdio(&self) -> Result<Stdio> {
        let Some(file) = &self.0 else {
            return Ok(Stdio::null());
        };
        // Open the file again: runs at the same time must each read from its beginning.
        let opened = File::open(file.path());
        Ok(opened
            .context("cannot open standard input for a run")?
            .into())
    }
}

/// The files of a folder, with their lengths and times of change.
pub(crate) struct FolderState(BTreeMap<String, (u64, Option<SystemTime>)>);

impl FolderState {
    /// The present state of the files in `folder`, except for this process's standard output and
    /// standard error; empty if the folder cannot be read.
    pub(crate) fn of(folder: &Path) -> FolderState {
        let outputs = [fstat(stdout()), fstat(stderr())].into_iter().flatten();
        let outputs: Vec<_> = outputs.map(|facts| (facts.st_dev, facts.st_ino)).collect();
        FolderState::without(folder, &outputs)
    }

    /// The state of the files in `folder`, except for those with these devices and inode numbers.
    fn without(folder: &Path, outputs: &[(u64, u64)]) -> FolderState {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let files = entries.filter_map(|entry| {
            let facts = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            if outputs.contains(&(facts.dev(), facts.ino())) {
                return None;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            Some((name, (facts.len(), facts.modified().ok())))
        });
        FolderState(files.collect())
    }

    /// The names of files of this state that differ in `now`, except for those of `known`.
    pub(crate) fn changed(&self, now: &FolderState, known: &[&Path]) -> Vec<String> {
        let is_known = |name: &str| {
            let mut names = known.iter().filter_map(|file| file.file_name());
            names.any(|file| file.to_string_lossy() == name)
        };
        let changed = self.0.iter().filter(|(name, facts)| {
            now.0.get(*name).is_some_and(|later| later != *facts) && !is_known(name)
        });
        changed.map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_reads_the_same_input_from_its_beginning() {
        let input = Input::of(b"512 20\n").unwrap();
        for _ in 0..2 {
            let cat = std::process::Command::new("cat");
            let read = { cat }.stdin(input.stdio().unwrap()).output().unwrap();
            assert_eq!(read.stdout, b"512 20\n");
        }
        assert!(Input::of(b"").unwrap().0.is_none());
    }

    #[test]
    fn an_output_of_the_comparison_is_no_file_of_the_runs() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["errors", "log"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let errors = fs::metadata(folder.path().join("errors")).unwrap();
        let outputs = [(errors.dev(), errors.ino())];
        let before = FolderState::without(folder.path(), &outputs);
        for name in ["errors", "log"] {
            fs::write(folder.path().join(name), "more").unwrap();
        }
        let now = FolderState::without(folder.path(), &outputs);
        assert_eq!(before.changed(&now, &[]), ["log"]);
    }

    #[test]
    fn a_file_that_runs_wrote_through_is_named() {
        let state = |files: &[(&str, u64)]| {
            let files = files
                .iter()
                .map(|(name, len)| ((*name).into(), (*len, None)));
            FolderState(files.collect())
        };
        let before = state(&[("in", 1), ("log", 5), ("kept", 7)]);
        let after = state(&[("in", 1), ("log", 9), ("kept", 8), ("new", 3)]);
        assert_eq!(before.changed(&after, &[Path::new("a/kept")]), ["log"]);
    }
}
