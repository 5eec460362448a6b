//! The transfer of parts of a profile between files: ranks on another host write to a file on that
//! host, whose pieces are sent to the file of the job.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// The length of the longest piece of a profile in one frame, in bytes.
const PIECE: u64 = 64 << 10;

/// The used pieces of a profile's file, each with its offset in bytes. Holes are left out.
///
/// # Errors
/// The file cannot be read.
pub fn pieces(file: &File) -> io::Result<Vec<(u64, Vec<u8>)>> {
    let mut pieces = Vec::new();
    let mut end = 0;
    loop {
        let start = match seek(file, SeekFrom::Data(end)) {
            Ok(start) => start,
            // No data follow.
            Err(Errno::NXIO) => return Ok(pieces),
            Err(why) => return Err(why.into()),
        };
        end = seek(file, SeekFrom::Hole(start))?;
        let mut at = start;
        while at < end {
            let mut bytes = vec![0; (end - at).min(PIECE) as usize];
            file.read_exact_at(&mut bytes, at)?;
            let next = at + bytes.len() as u64;
            pieces.push((at, bytes));
            at = next;
        }
    }
}

/// Writes a piece at its offset `at` into the file of a job.
///
/// # Errors
/// The piece exceeds the file, or the file cannot be written.
pub fn put_piece(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    let ends = file.metadata()?.len();
    if at
        .checked_add(bytes.len() as u64)
        .is_none_or(|end| end > ends)
    {
        return Err(io::Error::other("it exceeds the job's profile"));
    }
    file.write_all_at(bytes, at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RankProfile, create, read};

    #[test]
    fn what_ranks_have_counted_elsewhere_is_put_together() {
        let there = create(40).unwrap();
        for number in [3, 39] {
            let rank = RankProfile::open(&there, number).unwrap();
            rank.begin("MPI_Init", 5);
            rank.sent(number + 1, 1000);
        }
        let (there, here) = (File::from(there), File::from(create(40).unwrap()));
        let pieces = pieces(&there).unwrap();
        let bytes: usize = pieces.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(bytes <= 512 << 10, "{bytes} bytes for two ranks");
        for (at, bytes) in &pieces {
            put_piece(&here, *at, bytes).unwrap();
        }
        assert_eq!(read(&here, 40).unwrap(), read(&there, 40).unwrap());
        assert!(put_piece(&here, 1 << 40, &[1]).is_err());
        assert!(put_piece(&here, u64::MAX, &[1]).is_err());
    }
}
