//! Files in memory that child processes write for this process.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// A file in memory that jobs open by its path. No other user can put a file or a link at that
/// path, and nothing is left behind however this process ends.
#[derive(Debug)]
pub struct MemoryFile(pub File);

impl MemoryFile {
    /// Creates an empty file.
    ///
    /// # Errors
    /// The system makes no file, or no descriptor is free.
    pub fn new() -> Result<MemoryFile> {
        let made = memory_file::of_length("fishplate-file", 0);
        let made = made.context("cannot create a file in memory for a job")?;
        Ok(MemoryFile(File::from(made)))
    }

    /// The path by which processes of this user open the file, as long as this value exists.
    pub fn path(&self) -> PathBuf {
        let (process, number) = (std::process::id(), self.0.as_raw_fd());
        format!("/proc/{process}/fd/{number}").into()
    }

    /// The text that a job has written.
    ///
    /// # Errors
    /// The file cannot be read, or has other bytes than text.
    pub fn text(&self) -> Result<String> {
        fs::read_to_string(self.path()).context("cannot read what a job has written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_writes_the_file_by_its_path() {
        let file = MemoryFile::new().unwrap();
        assert_eq!(file.text().unwrap(), "");
        for text in ["a long text", "short"] {
            fs::write(file.path(), text).unwrap();
            assert_eq!(file.text().unwrap(), text);
        }
    }
}
