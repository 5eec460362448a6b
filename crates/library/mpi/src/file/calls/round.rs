//! The agreements in a collective call on a file: it fails on all ranks of the file or on none.
//!
//! Every collective procedure begins with an exchange in which also a rank with invalid arguments
//! takes part. It ends with another exchange if its own work can fail. So no rank waits for one
//! that has left, and each gets an error before an error handler is called.

use std::sync::Arc;

use crate::comm::calls::agreement::Agreement;
use crate::file::SharedFile;
use crate::rank::Rank;
use crate::{Class, Error, Result};

/// The greatest number of bytes of an error text that the other ranks get.
const TEXT: usize = 240;

/// A collective call on a file, from the view of one of its ranks.
pub(super) struct FileRound {
    pub(super) rank: Arc<Rank>,
    pub(super) file: Arc<SharedFile>,
    agreement: Agreement,
    /// The tag of the messages of this collective call.
    pub(super) tag: i32,
}

/// The procedure and the arguments of a collective call that a rank sends to the others, so that
/// they detect a different call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Said {
    pub(super) procedure: Procedure,
    /// Arguments that must be equal on all ranks.
    pub(super) same: [u64; 3],
    /// Further numbers for all ranks, which may differ: those of an access, or hints.
    pub(super) others: [u64; OTHERS],
}

impl Said {
    pub(super) fn new(procedure: Procedure) -> Said {
        Said {
            procedure,
            same: [0; 3],
            others: [0; OTHERS],
        }
    }

    fn words(&self) -> Vec<u64> {
        let mut words = vec![self.procedure as u64];
        words.extend(self.same);
        words.extend(self.others);
        words
    }
}

/// The number of words of each rank in the first exchange of a call; the first `SAME` of them must
/// be equal on all ranks.
const WORDS: usize = SAME + OTHERS;
const SAME: usize = 4;
pub(super) const OTHERS: usize = 6;

/// The collective procedures of files. Calls of one procedure in different forms do not match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(super) enum Procedure {
    Read = 1,
    Write,
    Close,
    SetView,
    SetSize,
    Preallocate,
    SetInfo,
    SetAtomicity,
    Sync,
    SeekShared,
}

/// Numbers for all other ranks, padded with zeros.
pub(super) fn told(numbers: &[u64]) -> [u64; OTHERS] {
    std::array::from_fn(|at| numbers.get(at).copied().unwrap_or(0))
}

/// The first `COUNT` of the numbers that each rank has sent.
pub(super) fn heard<const COUNT: usize>(all: &[[u64; OTHERS]]) -> Vec<[u64; COUNT]> {
    let first = |numbers: &[u64; OTHERS]| std::array::from_fn(|at| numbers[at]);
    all.iter().map(first).collect()
}

impl Rank {
    /// Begins a collective call on a file that is open.
    pub(super) fn begin_round(self: &Arc<Rank>, file: u32) -> Result<FileRound> {
        let mut state = self.lock();
        let shared = state.objects.files.get(file)?.shared.clone();
        let tag = state.objects.comms.get_mut(shared.comm)?.collective_tag();
        drop(state);
        Ok(FileRound {
            agreement: Agreement::all(self, &shared.core, tag),
            rank: self.clone(),
            file: shared,
            tag,
        })
    }
}

impl FileRound {
    /// The context of the file's communicator.
    pub(super) fn context(&self) -> u64 {
        self.file.core.context
    }

    /// Exchanges the procedure and arguments of all ranks. Returns `others` of each, in the order
    /// of ranks.
    ///
    /// # Errors
    /// A rank reports an error, or procedures or arguments differ. All ranks fail together.
    pub(super) async fn exchange(&self, mine: Result<Said>) -> Result<Vec<[u64; OTHERS]>> {
        let words = mine.map(|said| said.words());
        let all = exchange(&self.agreement, words, WORDS).await?;
        let differs = |words: &&Vec<u64>| words[..SAME] != all[0][..SAME];
        if let Some(other) = all.iter().find(differs) {
            let detail = match other[0] != all[0][0] {
                true => "the ranks of the file call different collective procedures",
                false => "an argument that must not differ differs between the ranks of the file",
            };
            return Err(Error::new(Class::NOT_SAME, detail));
        }
        let others = |words: &Vec<u64>| std::array::from_fn(|at| words[SAME + at]);
        Ok(all.iter().map(others).collect())
    }

    /// Ends a call, or a part of it: an error of one rank is returned on all.
    pub(super) async fn agree<T>(&self, mine: Result<T>) -> Result<T> {
        agree(&self.agreement, mine).await
    }

    /// Waits until all ranks of the file have made this call.
    pub(super) async fn synchronise(&self) -> Result<()> {
        exchange(&self.agreement, Ok(Vec::new()), 0).await.map(drop)
    }

    /// Exchanges one number of each rank. Returns those of all ranks, in order.
    pub(super) async fn words(&self, mine: u64) -> Result<Vec<u64>> {
        let all = exchange(&self.agreement, Ok(vec![mine]), 1).await?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Broadcasts numbers of the first rank.
    pub(super) async fn words_of_first<const COUNT: usize>(
        &self,
        mine: [u64; COUNT],
    ) -> Result<[u64; COUNT]> {
        let bytes = mine.map(u64::to_ne_bytes).concat();
        let bytes = self.agreement.bcast(bytes, 8 * COUNT).await?;
        let mut words = bytes.as_chunks::<8>().0.iter();
        Ok(std::array::from_fn(|_| {
            words.next().map_or(0, |word| u64::from_ne_bytes(*word))
        }))
    }

    /// Broadcasts a number of the first rank, or its error.
    pub(super) async fn word_of_first(&self, mine: Result<u64>) -> Result<u64> {
        word_of_first(&self.agreement, mine).await
    }

    /// True if this rank is the first of the ranks that opened the file.
    pub(super) fn is_first(&self) -> bool {
        self.file.core.rank == 0
    }
}

/// Exchanges `count` words of each rank. Returns those of all ranks, in order.
///
/// # Errors
/// A rank passes an error. All ranks fail together.
pub(super) async fn exchange(
    agreement: &Agreement,
    mine: Result<Vec<u64>>,
    count: usize,
) -> Result<Vec<Vec<u64>>> {
    let mut bytes = Vec::with_capacity(8 * (count + 1));
    match &mine {
        Ok(words) => {
            bytes.extend([0; 8]);
            bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        }
        Err(error) => {
            bytes.extend(u64::from(error.class.0.unsigned_abs()).to_ne_bytes());
            bytes.resize(8 * (count + 1), 0);
        }
    }
    let all = agreement.allgather(bytes).await?;
    let words = all.as_chunks::<8>().0.iter().copied();
    let words: Vec<u64> = words.map(u64::from_ne_bytes).collect();
    let rows: Vec<&[u64]> = words.chunks(count + 1).collect();
    if let Some(failed) = rows.iter().position(|row| row[0] != 0) {
        return Err(common_error(agreement, mine.err(), failed, rows[failed][0]).await);
    }
    Ok(rows.into_iter().map(|row| row[1..].to_vec()).collect())
}

/// Returns on all ranks the error of one of them, if there is any.
pub(super) async fn agree<T>(agreement: &Agreement, mine: Result<T>) -> Result<T> {
    let (value, words) = match mine {
        Ok(value) => (Some(value), Ok(Vec::new())),
        Err(error) => (None, Err(error)),
    };
    exchange(agreement, words, 0).await?;
    value.ok_or_else(|| Error::new(Class::INTERN, "a failure was not agreed on"))
}

/// Broadcasts a number of the first rank, or its error.
pub(super) async fn word_of_first(agreement: &Agreement, mine: Result<u64>) -> Result<u64> {
    let (class, value) = match &mine {
        Ok(value) => (0, *value),
        Err(error) => (u64::from(error.class.0.unsigned_abs()), 0),
    };
    let bytes = [class, value].map(u64::to_ne_bytes).concat();
    let bytes = agreement.bcast(bytes, 16).await?;
    let words = bytes.as_chunks::<8>().0;
    match words {
        [class, value] if u64::from_ne_bytes(*class) == 0 => Ok(u64::from_ne_bytes(*value)),
        [class, _] => Err(common_error(agreement, mine.err(), 0, u64::from_ne_bytes(*class)).await),
        _ => Err(Error::new(
            Class::INTERN,
            "an agreement has the wrong length",
        )),
    }
}

/// The error of a call that has failed: this rank's own, or that of the first rank that has failed.
#[cold]
async fn common_error(
    agreement: &Agreement,
    mine: Option<Error>,
    failed: usize,
    class: u64,
) -> Error {
    let mut text = mine.as_ref().map_or("", |error| &error.detail).as_bytes();
    text = &text[..text.len().min(TEXT)];
    let mut bytes = text.to_vec();
    bytes.resize(TEXT, 0);
    let all = match agreement.allgather(bytes).await {
        Ok(all) => all,
        Err(error) => return error,
    };
    mine.unwrap_or_else(|| {
        let text = all.chunks(TEXT).nth(failed).unwrap_or_default();
        let end = text.iter().position(|byte| *byte == 0);
        let text = String::from_utf8_lossy(&text[..end.unwrap_or(TEXT)]);
        let detail = format!("rank {failed} of the file's has failed: {text}");
        Error::new(i32::try_from(class).unwrap_or(Class::OTHER.0), detail)
    })
}
