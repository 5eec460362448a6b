//! Output of this process that its launcher has not yet read.
//!
//! Some launchers end a job on the request to abort before they have read the last words of the
//! rank that sends it. MPICH's mpiexec lost the message in 3 of 100 aborted jobs.

use std::io::{stderr, stdout};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;

/// The time between two questions about a pipe. A launcher reads it within some microseconds.
const INTERVAL: Duration = Duration::from_micros(200);

/// The most intervals that a rank waits: half a second. A launcher that does not read, such as a
/// stopped one, must not prevent the end of the job.
const MOST_INTERVALS: usize = 2_500;

/// Waits until the launcher has read what this process has written to its standard output and
/// error, if these are pipes. Bytes in the buffers of the program are not awaited.
pub(super) fn wait_until_read() {
    let (out, err) = (stdout(), stderr());
    let files = [out.as_fd(), err.as_fd()];
    let mut waited = 0;
    while files.iter().any(|file| unread(*file) > 0) && waited < MOST_INTERVALS {
        sleep(INTERVAL);
        waited += 1;
    }
}

/// The number of bytes in a pipe, seen from either end; 0 for any other file.
fn unread(file: BorrowedFd<'_>) -> u64 {
    let is_pipe = fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_fifo());
    match is_pipe {
        true => ioctl_fionread(file).unwrap_or(0),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use rustix::io::{read, write};
    use rustix::pipe::pipe;

    #[test]
    fn bytes_in_a_pipe_are_counted_at_the_end_that_wrote_them() {
        let (reader, writer) = pipe().unwrap();
        assert_eq!(unread(writer.as_fd()), 0);
        write(&writer, b"four").unwrap();
        assert_eq!(unread(writer.as_fd()), 4);
        read(&reader, &mut [0; 3]).unwrap();
        assert_eq!(unread(writer.as_fd()), 1);
    }

    #[test]
    fn other_files_have_nothing_unread() {
        let file = tempfile::tempfile().unwrap();
        write(&file, b"four").unwrap();
        assert_eq!(unread(file.as_fd()), 0);
    }
}
