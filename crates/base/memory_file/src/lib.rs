//! Anonymous files in memory, in spite of the limit on the size of files (RLIMIT_FSIZE). The limit
//! is meant for disks; such a file takes memory only for the pages that are touched.
//!
//! A process that extends a file beyond its limit gets SIGXFSZ, which ends it without a message. So
//! every change of the length of a file in memory goes through this crate. It raises the soft limit
//! during the change; above the hard limit it returns an error, and no signal comes.
//!
//! Limits belong to the process, so no two threads may be in this crate at once. Its callers ensure
//! that: the launcher has one thread when it makes its files, and a rank holds its lock.
//!
//! Never here: files with a name.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, ftruncate, memfd_create};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Makes a file of `len` zero bytes. The descriptor is close-on-exec.
///
/// # Errors
/// The system cannot make the file, or the hard limit on the size of files is lower than `len`.
pub fn of_length(name: &str, len: u64) -> io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC)?;
    set_len(&file, len)?;
    Ok(file)
}

/// Makes a file with these contents. The descriptor is close-on-exec.
///
/// # Errors
/// Those of [`of_length`].
pub fn with_contents(name: &str, contents: &[u8]) -> io::Result<OwnedFd> {
    let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    write(&file, contents)?;
    Ok(file.into())
}

/// Changes the length of a file in memory to `len` bytes.
///
/// # Errors
/// Those of `ftruncate`, or the hard limit on the size of files is lower than `len`.
pub fn set_len(file: impl AsFd, len: u64) -> io::Result<()> {
    in_spite_of_the_limit(len, || Ok(ftruncate(file, len)?))
}

/// Writes `contents` at the beginning of a file in memory. The file's offset does not change.
///
/// # Errors
/// Those of [`set_len`].
pub fn write(file: &File, contents: &[u8]) -> io::Result<()> {
    in_spite_of_the_limit(contents.len() as u64, || file.write_all_at(contents, 0))
}

/// Appends `contents` to a file in memory to which other processes append too, as one piece.
///
/// # Errors
/// Those of [`set_len`].
pub fn append(file: &File, contents: &[u8]) -> io::Result<()> {
    let flags = fcntl_getfl(file)?;
    if !flags.contains(OFlags::APPEND) {
        fcntl_setfl(file, flags | OFlags::APPEND)?;
    }
    let len = file.metadata()?.len().saturating_add(contents.len() as u64);
    in_spite_of_the_limit(len, || (&*file).write_all(contents))
}

fn in_spite_of_the_limit(len: u64, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let limit = getrlimit(Resource::Fsize);
    if limit.current.is_none_or(|current| current >= len) {
        return change();
    }
    if let Some(most) = limit.maximum.filter(|&most| most < len) {
        let why = format!(
            "the hard limit on file sizes (`ulimit -f`, {most} bytes) holds for files in memory too: \
             raise it to {len} bytes, of which only what is touched takes memory"
        );
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    let raised = Rlimit {
        current: Some(len),
        ..limit
    };
    setrlimit(Resource::Fsize, raised)?;
    let done = change();
    // This cannot fail: the limit was valid before.
    setrlimit(Resource::Fsize, limit)?;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1000;

    /// One test, because limits belong to the process.
    #[test]
    fn a_soft_limit_does_not_matter_and_a_hard_one_is_named() {
        let before = getrlimit(Resource::Fsize);
        let limited = |maximum| {
            let current = Some(LIMIT);
            setrlimit(Resource::Fsize, Rlimit { current, maximum }).unwrap();
        };
        limited(before.maximum);
        let file = File::from(of_length("test", 64 << 30).unwrap());
        assert_eq!(file.metadata().unwrap().len(), 64 << 30);
        let file = File::from(with_contents("test", &[7; 2 * LIMIT as usize]).unwrap());
        assert_eq!(file.metadata().unwrap().len(), 2 * LIMIT);
        assert_eq!(getrlimit(Resource::Fsize).current, Some(LIMIT));
        setrlimit(Resource::Fsize, before).unwrap();
        if before.maximum.is_none() {
            // Only a privileged process could raise a hard limit again, so a child process gets it.
            let hard = std::process::Command::new("sh")
                .args([
                    "-c",
                    "ulimit -f 1; exec \"$0\" --ignored --exact tests::hard",
                ])
                .arg(std::env::current_exe().unwrap())
                .output();
            let hard = hard.unwrap();
            assert!(hard.status.success(), "{hard:?}");
        }
    }

    #[test]
    #[ignore = "run under a hard limit, by the test above"]
    fn hard() {
        let limit = getrlimit(Resource::Fsize).maximum.unwrap();
        let why = of_length("test", limit + 1).unwrap_err().to_string();
        assert!(why.contains(&format!("{limit} bytes")), "{why}");
        assert!(of_length("test", limit).is_ok());
    }
}
