//! Two-phase collective accesses: ranks exchange their data with aggregators, which access the file
//! for all in long runs.
//!
//! All ranks make the same plan, from the numbers that they have exchanged. An aggregator whose
//! access fails continues with the exchange, so that nobody waits; the ranks agree on the error at
//! the end.
//!
//! For each window a rank sends its runs there, each an offset in the window and a length, and the
//! data of a write: short data behind the runs, longer data as a separate message, without a copy.
//! An answer has the number of bytes before the end of the file, and the data of a read.
//!
//! In each round, every aggregator accesses one window of its domain. If data are few in a long
//! file ([`Plan::is_sparse`]), ranks agree on the next round with data before each round, so a
//! round costs nothing if no rank has data there.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use ::file_io::joined;
use datatype::{Buffer, Predefined};

use crate::coll::calls::parcels::{Parcel, Parcels};
use crate::file::Direction;
use crate::file::calls::access::FileAccess;
use crate::file::calls::plan::{Plan, overlap};
use crate::file::calls::round::FileRound;
use crate::file::calls::window_access::{Request, VALID, WindowAccess};
use crate::rank::Rank;
use crate::{Class, Error, Result};

/// Bytes of the description of a run, and (`HEAD`) of the head of a request.
const RUN: usize = 8;
const HEAD: usize = 24;
/// Bytes of data from which on they are a separate message.
const LONG_DATA: usize = 16 << 10;

/// A two-phase collective access, as one rank executes it.
pub(super) struct TwoPhase<'a> {
    pub(super) round: &'a FileRound,
    pub(super) access: &'a Arc<FileAccess>,
    pub(super) plan: &'a Plan,
    /// The position of the access in the view, in bytes.
    pub(super) position: u64,
    /// The bytes of the access in the representation of the file.
    pub(super) memory: &'a Buffer,
    /// True if the worker thread accesses the file.
    pub(super) is_apart: bool,
}

/// This rank's bytes in one window of an aggregator.
struct Share {
    aggregator: usize,
    /// The position of this rank's bytes in its own memory.
    at: usize,
    len: usize,
}

impl TwoPhase<'_> {
    /// Makes the access. Returns the number of its bytes before the end of the file.
    pub(super) async fn run(&self) -> Result<u64> {
        let core = &self.access.file.core;
        let asking = Parcels::new(self.rank(), core, self.round.tag, 0);
        let answering = Parcels::new(self.rank(), core, self.round.tag, 1);
        let (mut failed, mut end) = (Ok(()), self.memory.len());
        let mut next = 0;
        while let Some(round) = self.next_round(next).await? {
            next = round + 1;
            let (shares, mut sends, own) = self.ask(&asking, round)?;
            let requests = self.requests(&asking, round, own).await?;
            let (requests, answers) = self.access_window(requests).await;
            let answers = answers.unwrap_or_else(|error| {
                failed = failed.clone().and(Err(error));
                Vec::new()
            });
            if self.access.direction == Direction::Read {
                let receives = self.receives(&answering, &shares)?;
                let mine = self.answer(&answering, &requests, answers, &mut sends)?;
                end = end.min(self.take(&shares, receives, mine).await?);
            }
            for send in sends {
                send.await?;
            }
        }
        failed.map(|()| end as u64)
    }

    fn rank(&self) -> &Arc<Rank> {
        &self.round.rank
    }

    fn me(&self) -> usize {
        self.access.file.core.rank
    }

    /// The next round of the access, from round `from` on; equal on all ranks.
    async fn next_round(&self, from: u64) -> Result<Option<u64>> {
        let next = match self.plan.is_sparse {
            true => {
                let all = self.round.words(self.next_with_data(from)).await?;
                all.into_iter().min().unwrap_or(u64::MAX)
            }
            false => from,
        };
        Ok(Some(next).filter(|next| *next < self.plan.domains.rounds()))
    }

    /// The next round with data of this rank, from round `from` on.
    fn next_with_data(&self, from: u64) -> u64 {
        let domains = &self.plan.domains;
        let numbers = 0..self.plan.aggregators.len();
        let rounds = numbers.filter_map(|number| {
            let share = self.share(&domains.rest(number, from));
            let position = self.position + share.start as u64;
            let first = (!share.is_empty()).then(|| self.access.view.bytes.offset_of(position));
            Some(domains.round_of(number, from, first??))
        });
        rounds.min().unwrap_or(u64::MAX)
    }

    /// Temporary memory of the access, `len` bytes.
    fn bytes(&self, len: usize) -> Result<Buffer> {
        let byte = Predefined::BYTE.into();
        Ok(self
            .rank()
            .lock()
            .engine
            .scratch
            .elements(len, &byte)?
            .buffer())
    }

    /// The bytes of this rank's view within a window, as a range in its memory.
    fn share(&self, window: &Range<u64>) -> Range<usize> {
        let view = &self.access.view.bytes;
        let len = self.memory.len() as u64;
        let at = |offset| {
            view.bytes_before(offset)
                .saturating_sub(self.position)
                .min(len)
        };
        at(window.start) as usize..at(window.end) as usize
    }

    /// Sends this rank's requests of a round to the aggregators. The last part of the result is the
    /// request to this rank itself.
    #[allow(clippy::type_complexity, reason = "three results of one step")]
    fn ask<'b>(
        &self,
        parcels: &Parcels<'b>,
        round: u64,
    ) -> Result<(Vec<Share>, Vec<Parcel<'b>>, Option<Request>)> {
        let (mut shares, mut sends, mut own) = (Vec::new(), Vec::new(), None);
        let mine = self.plan.extents[self.me()].range();
        for (number, &aggregator) in self.plan.aggregators.iter().enumerate() {
            let window = self.plan.domains.window(number, round);
            if !overlap(&mine, &window) {
                continue;
            }
            let share = self.share(&window);
            let request = self.request(share.clone());
            shares.push(Share {
                aggregator,
                at: share.start,
                len: share.len(),
            });
            if aggregator == self.me() {
                own = Some(request);
                continue;
            }
            let (body, apart) = self.described(&request, window.start)?;
            let head = self.bytes(HEAD)?;
            let words = [request.runs.len(), body.len(), apart.len()];
            let words = words.map(|word| (word as u64).to_ne_bytes());
            head.unpack(0, &words.concat());
            let parts = [head, body, apart].into_iter();
            for part in parts.filter(|part| !part.is_empty()) {
                sends.push(parcels.send(aggregator, part)?);
            }
        }
        Ok((shares, sends, own))
    }

    /// The request of this rank for a window that contains these bytes of its memory.
    fn request(&self, share: Range<usize>) -> Request {
        let mut runs = Vec::new();
        let position = self.position + share.start as u64;
        let view = &self.access.view.bytes;
        let _ = view.runs(position, share.len() as u64, &mut |offset, len| {
            runs.push((offset, len));
            ControlFlow::Continue(())
        });
        let len = match self.access.direction {
            Direction::Write => share.len(),
            Direction::Read => 0,
        };
        Request {
            from: self.me(),
            runs,
            data: self.memory.slice(share.start, len),
        }
    }

    /// The descriptions of the runs of a request, with short data behind them, and separately
    /// longer data. `start` is the offset of the window in the file.
    fn described(&self, request: &Request, start: u64) -> Result<(Buffer, Buffer)> {
        let (data, heads) = (&request.data, request.runs.len() * RUN);
        let (within, apart) = match data.len() < LONG_DATA {
            true => (data.len(), Buffer::empty()),
            false => (0, data.clone()),
        };
        let body = self.bytes(heads + within)?;
        let described = body.with_dense_mut(0, body.len(), |bytes| {
            let (heads, room) = bytes.split_at_mut(heads);
            let heads = heads.as_chunks_mut::<RUN>().0.iter_mut();
            for (head, (offset, len)) in heads.zip(&request.runs) {
                let word = (offset - start) << 32 | len;
                *head = word.to_ne_bytes();
            }
            data.pack(0, room);
        });
        described.ok_or_else(inner)?;
        Ok((body, apart))
    }

    /// Receives the requests of all ranks to this rank in a round, in the order of ranks.
    async fn requests(
        &self,
        parcels: &Parcels<'_>,
        round: u64,
        own: Option<Request>,
    ) -> Result<Vec<Request>> {
        let aggregators = &self.plan.aggregators;
        let Some(number) = aggregators.iter().position(|rank| *rank == self.me()) else {
            return Ok(Vec::new());
        };
        let window = self.plan.domains.window(number, round);
        let mut heads = Vec::new();
        for (from, extent) in self.plan.extents.iter().enumerate() {
            if from != self.me() && overlap(&extent.range(), &window) {
                let head = self.bytes(HEAD)?;
                heads.push((from, head.clone(), parcels.receive(from, head)?));
            }
        }
        let mut bodies = Vec::new();
        for (from, head, parcel) in heads {
            parcel.await?;
            let mut words = [0; HEAD];
            head.pack(0, &mut words);
            let words = words.as_chunks::<8>().0.iter();
            let mut words = words.map(|word| u64::from_ne_bytes(*word) as usize);
            let mut next = || words.next().unwrap_or(0);
            let count = next();
            let (mut parts, mut arrivals) = (Vec::new(), Vec::new());
            for len in [next(), next()] {
                let part = self.bytes(len)?;
                if len > 0 {
                    arrivals.push(parcels.receive(from, part.clone())?);
                }
                parts.push(part);
            }
            bodies.push((from, count, parts, arrivals));
        }
        let mut requests: Vec<Request> = own.into_iter().collect();
        for (from, count, mut parts, arrivals) in bodies {
            for arrival in arrivals {
                arrival.await?;
            }
            let (apart, body) = (parts.pop().ok_or_else(inner)?, parts.pop());
            let body = body.ok_or_else(inner)?;
            let request = described_request(from, count, (body, apart), &window)?;
            let wanted = match self.access.direction {
                Direction::Write => request.len(),
                Direction::Read => 0,
            };
            if request.data.len() != wanted {
                return Err(inner());
            }
            requests.push(request);
        }
        requests.sort_unstable_by_key(|request| request.from);
        Ok(requests)
    }

    /// Accesses the file for all requests. Returns the requests, and for reads the answers in their
    /// order.
    async fn access_window(&self, requests: Vec<Request>) -> (Vec<Request>, Result<Vec<Buffer>>) {
        let window = match self.window_access(&requests) {
            Ok(Some(window)) => window,
            Ok(None) => return (requests, Ok(Vec::new())),
            Err(error) => return (requests, Err(error)),
        };
        let make = move || {
            let made = window.make(&requests);
            (requests, made.map(|()| window.answers))
        };
        if self.is_apart {
            let made = self.rank().by_worker(&self.access.file, make).await;
            self.rank().await_storage().await;
            return made;
        }
        let (requests, made) = make();
        let passed = self
            .rank()
            .pass_storage_time("a collective access to a file");
        (requests, made.and_then(|answers| passed.map(|()| answers)))
    }

    /// Allocates the access to a window. `None`: there is nothing to access and to answer.
    fn window_access(&self, requests: &[Request]) -> Result<Option<WindowAccess>> {
        let mut runs: Vec<(u64, u64)> = requests
            .iter()
            .flat_map(|request| request.runs.iter().copied())
            .collect();
        joined(&mut runs);
        let (start, end) = match (runs.first(), runs.last()) {
            (Some(first), Some(last)) => (first.0, last.0 + last.1),
            _ if requests.is_empty() => return Ok(None),
            _ => (0, 0),
        };
        let answer = |request: &Request| self.bytes(VALID + request.len());
        let answers = match self.access.direction {
            Direction::Write => Vec::new(),
            Direction::Read => requests.iter().map(answer).collect::<Result<_>>()?,
        };
        Ok(Some(WindowAccess {
            access: self.access.clone(),
            runs,
            start,
            stage: self.bytes((end - start) as usize)?,
            answers,
        }))
    }

    /// Posts the receives of the aggregators' answers.
    #[allow(clippy::type_complexity, reason = "a message and its memory")]
    fn receives<'b>(
        &self,
        parcels: &Parcels<'b>,
        shares: &[Share],
    ) -> Result<Vec<Option<(Buffer, Parcel<'b>)>>> {
        let receive = |share: &Share| {
            if share.aggregator == self.me() {
                return Ok(None);
            }
            let answer = self.bytes(VALID + share.len)?;
            let parcel = parcels.receive(share.aggregator, answer.clone())?;
            Ok(Some((answer, parcel)))
        };
        shares.iter().map(receive).collect()
    }

    /// Sends the answers to reads, and returns the answer to this rank. `answers` is empty if the
    /// access has failed; then the ranks get empty ones.
    fn answer<'b>(
        &self,
        parcels: &Parcels<'b>,
        requests: &[Request],
        answers: Vec<Buffer>,
        sends: &mut Vec<Parcel<'b>>,
    ) -> Result<Option<Buffer>> {
        let (mut answers, mut mine) = (answers.into_iter(), None);
        for request in requests {
            let answer = match answers.next() {
                Some(answer) => answer,
                None => {
                    let answer = self.bytes(VALID + request.len())?;
                    answer.unpack(0, &[0; VALID]);
                    answer
                }
            };
            match request.from == self.me() {
                true => mine = Some(answer),
                false => sends.push(parcels.send(request.from, answer)?),
            }
        }
        Ok(mine)
    }

    /// Copies the answers to memory. Returns the position in memory at which the file ends.
    async fn take(
        &self,
        shares: &[Share],
        receives: Vec<Option<(Buffer, Parcel<'_>)>>,
        mut mine: Option<Buffer>,
    ) -> Result<usize> {
        let mut end = self.memory.len();
        for (share, receive) in shares.iter().zip(receives) {
            let answer = match receive {
                Some((answer, parcel)) => {
                    parcel.await?;
                    answer
                }
                None => mine.take().ok_or_else(inner)?,
            };
            let mut valid = [0; VALID];
            answer.pack(0, &mut valid);
            let valid = (u64::from_ne_bytes(valid) as usize).min(share.len);
            let data = answer.slice(VALID, valid);
            let copied = data.copy_to(&self.memory.slice(share.at, valid));
            self.access.count_copy(copied);
            if valid < share.len {
                end = end.min(share.at + valid);
            }
        }
        Ok(end)
    }
}

/// Decodes the request of a rank, after a check that its runs lie in the window.
fn described_request(
    from: usize,
    count: usize,
    (body, apart): (Buffer, Buffer),
    window: &Range<u64>,
) -> Result<Request> {
    let heads = body.len().min(count.saturating_mul(RUN));
    let runs = body.with_dense(0, heads, |bytes| {
        let words = bytes.as_chunks::<RUN>().0.iter();
        let words = words.map(|word| u64::from_ne_bytes(*word));
        words
            .map(|word| (window.start + (word >> 32), word & u64::from(u32::MAX)))
            .collect::<Vec<_>>()
    });
    let runs = runs.ok_or_else(inner)?;
    let data = match apart.is_empty() {
        true => body.slice(heads, body.len() - heads),
        false => apart,
    };
    let is_inside = |run: &(u64, u64)| run.0 + run.1 <= window.end;
    if runs.len() != count || !runs.iter().all(is_inside) {
        return Err(inner());
    }
    Ok(Request { from, runs, data })
}

#[cold]
fn inner() -> Error {
    let detail = "ranks of a file do not understand each other's parts of a collective access";
    Error::new(Class::INTERN, detail)
}
