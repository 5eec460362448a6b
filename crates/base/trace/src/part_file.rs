//! Files to which the processes of a host append the blocks of their parts, and the reading of
//! these files after the job. A block is *sealed*: it has a mark, the number of its process and a
//! sum. So the reader finds the next whole block behind one that is cut off, where a process was
//! killed, and tells jobs apart that ran one after another.

use std::collections::BTreeMap;

use crate::raw::{BLOCK_HEAD, Part};

/// The beginning of a sealed block, with the version of the entries in it. Blocks of another
/// version are no whole blocks.
const MARK: [u8; 8] = *b"fpblock7";
/// The bytes of a sealed block before the block.
const SEAL: usize = MARK.len() + 16;

/// A block with its mark, process and sum. `process`: a number that no other process has.
pub fn sealed(process: u64, block: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(SEAL + block.len());
    sealed.extend(MARK);
    sealed.extend((process ^ sum(block)).to_le_bytes());
    sealed.extend(process.to_le_bytes());
    sealed.extend(block);
    sealed
}

/// The parts of all processes in the files of all hosts.
#[derive(Default)]
pub struct Parts {
    /// The rank and the part of each process.
    parts: BTreeMap<u64, (usize, Part)>,
    /// The number of bytes that belong to no whole block.
    pub lost: u64,
}

/// The greatest number of ranks in a recording.
const MOST_RANKS: usize = 1 << 20;

impl Parts {
    /// Adds the blocks of a file.
    pub fn add(&mut self, mut file: &[u8]) {
        while !file.is_empty() {
            match whole(file) {
                Some((process, rank, bytes)) => {
                    let part = self.parts.entry(process).or_default();
                    part.0 = rank;
                    part.1.extend(bytes);
                    file = &file[SEAL + BLOCK_HEAD + bytes.len()..];
                }
                None => {
                    let next = file[1..].windows(MARK.len()).position(|at| *at == MARK);
                    let lost = next.map_or(file.len(), |next| next + 1);
                    self.lost += lost as u64;
                    file = &file[lost..];
                }
            }
        }
    }

    /// The parts, each with its rank.
    pub fn all(&self) -> impl Iterator<Item = (usize, &Part)> {
        self.parts.values().map(|(rank, part)| (*rank, part))
    }
}

/// The process, the rank and the bytes of the sealed block at the beginning of `file`, if it is
/// whole.
fn whole(file: &[u8]) -> Option<(u64, usize, &[u8])> {
    let rest = file.strip_prefix(&MARK)?;
    let (wanted, rest) = rest.split_first_chunk::<8>()?;
    let (process, rest) = rest.split_first_chunk::<8>()?;
    let [wanted, process] = [wanted, process].map(|word| u64::from_le_bytes(*word));
    let (head, _) = rest.split_first_chunk::<BLOCK_HEAD>()?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (rank, length) = (word(0) as usize, word(4) as usize);
    let block = rest.get(..BLOCK_HEAD.checked_add(length)?)?;
    let is_whole = process ^ sum(block) == wanted && rank < MOST_RANKS;
    is_whole.then(|| (process, rank, &block[BLOCK_HEAD..]))
}

/// A sum of the bytes (FNV-1a), which finds what is cut off or overwritten.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, RawWriter};

    fn blocks(rank: u32, calls: u64) -> Vec<Vec<u8>> {
        let mut writer = RawWriter::new(rank);
        let mut blocks = Vec::new();
        for nanos in 0..calls {
            writer.call("MPI_Barrier", Vec::new(), nanos);
            blocks.extend(writer.flush());
        }
        blocks.push(writer.end(""));
        blocks
    }

    #[test]
    fn blocks_of_several_ranks_are_found_behind_one_that_is_cut_off() {
        let [first, second] = [0, 1].map(|rank| blocks(rank, 3));
        let mut file = Vec::new();
        for (one, other) in first.iter().zip(&second) {
            file.extend(sealed(7, one));
            file.extend(&sealed(9, other)[..20]);
            file.extend(sealed(9, other));
        }
        let mut parts = Parts::default();
        parts.add(&file);
        assert_eq!(parts.lost, 80);
        let mut builder = Builder::new("test".into());
        for (rank, (found, part)) in parts.all().enumerate() {
            assert_eq!(rank, found);
            assert!(part.add_to(&mut builder).unwrap().is_whole);
        }
        let trace = builder.finish();
        assert_eq!(trace.ranks.len(), 2);
        assert_eq!(trace.calls_of(1).map(|call| call.1).sum::<u64>(), 3);
    }

    #[test]
    fn a_changed_block_is_lost() {
        let block = blocks(2, 1).concat();
        let whole = sealed(3, &block);
        for at in 0..whole.len() {
            let mut file = whole.clone();
            file[at] ^= 1;
            let mut parts = Parts::default();
            parts.add(&file);
            assert_eq!((parts.all().count(), parts.lost), (0, file.len() as u64));
            let why = crate::merged(&parts, false).unwrap_err();
            assert!(why.contains("no whole block"), "{why}");
        }
    }
}
