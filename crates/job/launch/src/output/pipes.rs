//! The output streams of ranks of this host that the launcher reads through pipes.
//!
//! A rank whose output the launcher does not read has the launcher's own stream. It is so on a
//! terminal, where programs write whole lines and some ask for its size, with a single rank, whose
//! lines nobody can interrupt, and on a modelled machine, where the order of all writes is that of
//! virtual time.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, Stat, fstat};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// The most unread writes that a pipe holds, if it delivers each by itself.
pub(crate) const SLOTS: usize = 64;
/// The size of such a pipe, in bytes: a slot is a page.
const SIZE: usize = SLOTS * 4096;

/// The output streams of a rank that are pipes to the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputPipes {
    pub stdout: bool,
    pub stderr: bool,
    /// True if both are one pipe, because both of the launcher's streams are one file. Then the
    /// writes of a rank keep their order.
    pub one: bool,
    /// True if each read returns one write of the rank, or a part of a long one.
    pub by_write: bool,
}

impl OutputPipes {
    /// Pipes for both streams.
    pub(crate) const BOTH: OutputPipes = OutputPipes {
        stdout: true,
        stderr: true,
        one: false,
        by_write: true,
    };
    /// The ranks have the launcher's own streams.
    pub(crate) const NONE: OutputPipes = OutputPipes {
        stdout: false,
        stderr: false,
        one: false,
        by_write: false,
    };

    /// The pipes of a job. `prefix`: lines get prefixes. `joins`: without them, lines are kept
    /// whole all the same.
    pub(crate) fn of(prefix: bool, joins: bool) -> Self {
        match (prefix, joins) {
            (true, _) => Self::BOTH,
            (false, false) => Self::NONE,
            (false, true) => Self::between(rustix::stdio::stdout(), rustix::stdio::stderr()),
        }
    }

    /// The pipes for ranks whose lines go to these streams of the launcher.
    fn between(stdout: BorrowedFd<'_>, stderr: BorrowedFd<'_>) -> Self {
        let (stdout, stderr) = (file(stdout), file(stderr));
        let one = stdout.as_ref().zip(stderr.as_ref());
        OutputPipes {
            one: one.is_some_and(|(a, b)| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)),
            stdout: stdout.is_some(),
            stderr: stderr.is_some(),
            by_write: true,
        }
    }

    /// Makes a pipe with a nonblocking reading end. Returns the reading and the writing end.
    pub(crate) fn make(self) -> io::Result<(File, File)> {
        let by_write = match self.by_write {
            true => PipeFlags::DIRECT,
            false => PipeFlags::empty(),
        };
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | by_write)?;
        rustix::io::ioctl_fionbio(&reader, true)?;
        if self.by_write {
            // Each write takes a slot. The system may refuse more of them, which does no harm.
            let _ = fcntl_setpipe_size(&writer, SIZE);
        }
        Ok((reader.into(), writer.into()))
    }

    /// True if the launcher reads output of ranks.
    pub(crate) fn are_wanted(self) -> bool {
        self.stdout || self.stderr
    }
}

/// The file of a stream, if it is a pipe, a socket or a regular file: not a terminal or another
/// device.
fn file(stream: BorrowedFd<'_>) -> Option<Stat> {
    let stat = fstat(stream).ok()?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let is_file = matches!(
        kind,
        FileType::Fifo | FileType::Socket | FileType::RegularFile
    );
    is_file.then_some(stat)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn files_and_pipes_are_read_and_devices_are_not() {
        let file = tempfile::tempfile().unwrap();
        let other = tempfile::tempfile().unwrap();
        let null = File::open("/dev/null").unwrap();
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        let between = |a: BorrowedFd<'_>, b: BorrowedFd<'_>| {
            let pipes = OutputPipes::between(a, b);
            (pipes.stdout, pipes.stderr, pipes.one)
        };
        assert_eq!(between(null.as_fd(), null.as_fd()), (false, false, false));
        assert_eq!(between(file.as_fd(), null.as_fd()), (true, false, false));
        assert_eq!(between(file.as_fd(), other.as_fd()), (true, true, false));
        let again = writer.try_clone().unwrap();
        assert_eq!(between(writer.as_fd(), again.as_fd()), (true, true, true));
    }

    #[test]
    fn prefixes_need_pipes_in_any_case() {
        assert_eq!(OutputPipes::of(false, false), OutputPipes::NONE);
        assert_eq!(OutputPipes::of(true, false), OutputPipes::BOTH);
        assert_eq!(OutputPipes::of(true, true), OutputPipes::BOTH);
    }
}
