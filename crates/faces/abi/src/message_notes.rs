//! The notes of a rank about its messages and collective calls, for a check after the job (crate
//! `message_check`). Only a modelled machine keeps them, and only if the user requests the check:
//! they are taken where calls are announced (`call_guard`), beside the path of other runs.

mod collectives;
mod results;

use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use crate::constants::*;
use crate::status::Status;
use message_check::{Data, Event, FIRST_TYPE, Kind, MOST_RUNS, Origin, PARTS, Run};
use mpi::comm::{Core, SELF, WORLD};
use recording::RECORDED;
use trace::{Access, Length, Signature};

/// The most members of a communicator whose blocks are noted one by one.
const MOST_BLOCKS: usize = 256;

/// Procedures that all members of a communicator call, beside those that move data.
const MAKERS: [&str; 20] = [
    "MPI_Barrier",
    "MPI_Ibarrier",
    "MPI_Barrier_init",
    "MPI_Comm_dup",
    "MPI_Comm_dup_with_info",
    "MPI_Comm_idup",
    "MPI_Comm_split",
    "MPI_Comm_split_type",
    "MPI_Comm_create",
    "MPI_Cart_create",
    "MPI_Cart_sub",
    "MPI_Graph_create",
    "MPI_Dist_graph_create",
    "MPI_Dist_graph_create_adjacent",
    "MPI_Intercomm_merge",
    "MPI_Win_create",
    "MPI_Win_create_dynamic",
    "MPI_Win_allocate",
    "MPI_Win_allocate_shared",
    "MPI_File_open",
];

/// Writes a rank's notes of its messages and collective calls.
#[derive(Default)]
pub(crate) struct MessageNotes(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    signatures: HashMap<usize, Arc<Signature>>,
    comms: HashSet<u64>,
    /// The numbers of noted datatypes, by handle.
    types: HashMap<u32, Data>,
    next_type: u32,
    /// The communicators of receives, by request.
    receives: HashMap<u64, u32>,
    persistent: HashSet<u64>,
    /// The requests that the program has tried to cancel.
    cancelled: HashSet<u64>,
    /// The number of operations that have been noted.
    operations: u64,
}

/// A call that has begun: its arguments, and what it may change.
pub(crate) struct Begun {
    /// The arguments, with memory for statuses that the program does not request.
    pub(crate) words: Vec<u64>,
    signature: Arc<Signature>,
    wide: &'static [bool],
    /// The requests before the call.
    requests: Vec<u64>,
    /// The objects that the call may free.
    objects: Vec<(usize, Kind, u32)>,
    /// True if the call has noted an operation, which a failure takes back.
    has_noted: bool,
    _statuses: Vec<Status>,
    statuses: u64,
}

impl Begun {
    fn word(&self, name: &str) -> Option<u64> {
        Some(self.words[self.signature.position(name)?])
    }

    fn int(&self, name: &str) -> Option<i64> {
        self.word(name).map(|word| word as i64)
    }

    fn at(&self, kind: &str, access: Access) -> Option<usize> {
        let mut all = self.signature.parameters.iter();
        all.position(|one| one.kind == kind && one.access == access)
    }

    /// The first elements of an array; none for NULL.
    ///
    /// # Safety
    /// The parameter is NULL or has as many elements, as C promises.
    unsafe fn array(&self, at: usize, len: usize) -> Vec<i64> {
        let start = self.words[at] as usize;
        if start == 0 {
            return Vec::new();
        }
        // SAFETY: the caller's promise; the table has the width of an element.
        let element = |index| unsafe {
            match self.wide[at] {
                true => (start as *const i64).add(index).read(),
                false => i64::from((start as *const c_int).add(index).read()),
            }
        };
        (0..len).map(element).collect()
    }
}

impl MessageNotes {
    /// Notes a call that begins.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    pub(crate) unsafe fn begin(&self, rank: &mpi::Rank, number: usize, words: &[u64]) -> Begun {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parsed = inner.signatures.entry(number).or_insert_with(|| {
            let parsed = Signature::parse(RECORDED[number].line);
            Arc::new(parsed.expect("a line of the generated table is a signature"))
        });
        let mut begun = Begun {
            words: words.to_vec(),
            signature: parsed.clone(),
            wide: RECORDED[number].wide,
            requests: Vec::new(),
            objects: Vec::new(),
            has_noted: false,
            _statuses: Vec::new(),
            statuses: 0,
        };
        // SAFETY: the caller's promise.
        unsafe {
            begun.prepare();
            let before = inner.operations;
            inner.calls(rank, &begun);
            begun.has_noted = inner.operations != before;
        }
        begun
    }

    /// Notes the results of a call.
    ///
    /// # Safety
    /// As for [`MessageNotes::begin`], after the call.
    pub(crate) unsafe fn end(&self, rank: &mpi::Rank, begun: &Begun, code: c_int) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if code != MPI_SUCCESS {
            let has_matched = code == MPI_ERR_TRUNCATE;
            if begun.has_noted {
                note(rank, Event::Failed { has_matched });
            }
            // SAFETY: the caller's promise.
            return unsafe { inner.ended(rank, begun) };
        }
        // SAFETY: the caller's promise.
        unsafe { inner.results(rank, begun) }
    }
}

impl Begun {
    /// Keeps the requests before the call, and gives it memory for statuses.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    unsafe fn prepare(&mut self) {
        if let Some(at) = self.at("request", Access::InOut) {
            let count = self.int("count").or(self.int("incount")).unwrap_or(1);
            // SAFETY: the caller's promise.
            let all = unsafe { self.array(at, count.max(0) as usize) };
            self.requests = all.into_iter().map(|one| one as u64).collect();
        }
        self.objects = self.objects(Access::InOut);
        let takes_messages =
            !self.requests.is_empty() || self.signature.position("source").is_some();
        if let Some(at) = self.at("status", Access::Out).filter(|_| takes_messages) {
            if self.words[at] == 0 {
                self._statuses = vec![Status::empty(); self.requests.len().max(1)];
                self.words[at] = self._statuses.as_mut_ptr().expose_provenance() as u64;
            }
            self.statuses = self.words[at];
        }
    }
}

impl Begun {
    /// The objects whose handles are behind a pointer of the call, with the numbers of their
    /// parameters. Handles below 4096 are predefined.
    fn objects(&self, access: Access) -> Vec<(usize, Kind, u32)> {
        let all = self.signature.parameters.iter().enumerate();
        let all = all.filter(|(_, one)| one.access == access && one.length == Length::One);
        let objects = all.filter_map(|(at, one)| {
            let kind = kind_of(&one.kind)?;
            // SAFETY: C promises NULL or the address of a handle.
            let handle = *unsafe { self.array(at, 1) }.first()?;
            (handle >= 4096).then_some((at, kind, handle as u32))
        });
        objects.collect()
    }
}

/// The kind of an object. Calls for error handlers and info objects are not noted, because they are
/// allowed while MPI is not running.
fn kind_of(word: &str) -> Option<Kind> {
    Some(match word {
        "comm" => Kind::Comm,
        "datatype" => Kind::Datatype,
        "file" => Kind::File,
        "group" => Kind::Group,
        "op" => Kind::Op,
        "win" => Kind::Win,
        _ => return None,
    })
}

fn note(rank: &mpi::Rank, event: Event) {
    rank.lock().notes().plain(event.encode(rank.rank() as u32));
}

/// The number of a communicator, equal on all members.
fn number(core: &Core) -> u64 {
    let first = core.members.world(0).unwrap_or(0);
    let first = core
        .remote()
        .and_then(|remote| remote.world(0))
        .map_or(first, |other| other.min(first));
    core.context << 20 ^ first as u64
}

impl Inner {
    /// Notes an operation of the present call.
    fn operation(&mut self, rank: &mpi::Rank, event: Event) {
        self.operations += 1;
        note(rank, event);
    }

    /// The communicator of a handle, which is noted if it is new.
    fn comm(&mut self, rank: &mpi::Rank, handle: u32) -> Option<(u64, Arc<Core>)> {
        let core = rank.lock().objects().comms().get(handle).ok()?.core.clone();
        let comm = number(&core);
        if self.comms.insert(comm) {
            let event = Event::Comm {
                comm,
                size: (core.size() + core.remote().map_or(0, |remote| remote.len())) as u32,
                me: core.rank as u32,
                origin: match handle {
                    WORLD => Origin::World,
                    SELF => Origin::Alone,
                    _ => Origin::Made,
                },
                is_inter: core.is_inter(),
            };
            note(rank, event);
        }
        Some((comm, core))
    }

    /// Elements of a datatype, whose runs are noted if it is new.
    fn data(&mut self, rank: &mpi::Rank, handle: u64, count: i64) -> Data {
        let (handle, count) = (handle as u32, count.max(0) as u64);
        let known = self.types.get(&handle).copied();
        let one = known.unwrap_or_else(|| {
            let ty = rank
                .lock()
                .objects()
                .types()
                .get(handle)
                .ok()
                .map(|ty| ty.clone());
            let one = ty.map_or(Data::EMPTY, |ty| self.define(rank, &ty));
            self.types.insert(handle, one);
            one
        });
        Data {
            ty: one.ty,
            count: one.count * count,
        }
    }

    fn define(&mut self, rank: &mpi::Rank, ty: &datatype::Type) -> Data {
        if let Some(basic) = ty.basic() {
            let count = ty.size() / basic.size().unwrap_or(1).max(1);
            return Data {
                ty: basic.handle() as u32,
                count: count as u64,
            };
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut is_cut = false;
        ty.visit_basic(&mut |basic, count| {
            is_cut = runs.len() == MOST_RUNS;
            if is_cut {
                return ControlFlow::Break(());
            }
            let basic = basic.handle() as u16;
            match runs.last_mut() {
                Some(last) if last.basic == basic => last.count += count as u64,
                _ => runs.push(Run {
                    basic,
                    count: count as u64,
                }),
            }
            ControlFlow::Continue(())
        });
        let ty = FIRST_TYPE + self.next_type;
        self.next_type += 1;
        for (at, part) in runs.chunks(PARTS).enumerate() {
            let mut runs = [Run::default(); PARTS];
            runs[..part.len()].copy_from_slice(part);
            let is_first = at == 0;
            let event = Event::Type {
                ty,
                is_first,
                is_cut,
                runs,
            };
            note(rank, event);
        }
        Data { ty, count: 1 }
    }

    /// Notes what a call will do.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    unsafe fn calls(&mut self, rank: &mpi::Rank, begun: &Begun) {
        let name = begun.signature.name.as_str();
        if name == "MPI_Finalize" {
            return note(rank, Event::Finalize);
        }
        if name == "MPI_Cancel" {
            return self.cancelled.extend(&begun.requests);
        }
        if name == "MPI_Start" || name == "MPI_Startall" {
            let all = begun.requests.iter();
            return all.for_each(|one| {
                let request = *one as u32;
                note(rank, Event::Start { request });
            });
        }
        let words = ["comm", "comm_old", "intercomm"];
        let comm = words.into_iter().find_map(|word| begun.word(word));
        let Some((comm, core)) = comm
            .map(|comm| comm as u32)
            .and_then(|comm| self.comm(rank, comm))
        else {
            return self.claimed(rank, begun);
        };
        let names = |one: &str| begun.signature.position(one).is_some();
        let is_moving = names("recvbuf") || name.to_lowercase().contains("bcast");
        match names("dest") || names("source") {
            true => self.message(rank, begun, (comm, &core)),
            false if name.to_lowercase().contains("neighbor") => self.operation(rank, plain(comm)),
            // SAFETY: the caller's promise.
            false if is_moving => unsafe { self.collective(rank, begun, (comm, &core)) },
            false if MAKERS.contains(&name.trim_end_matches("_c")) => {
                self.operation(rank, plain(comm));
            }
            false => {}
        }
    }

    fn claimed(&mut self, rank: &mpi::Rank, begun: &Begun) {
        let is_receive =
            ["MPI_Mrecv", "MPI_Imrecv"].contains(&begun.signature.name.trim_end_matches("_c"));
        if let (true, Some(at), Some(count)) = (
            is_receive,
            begun.signature.position("message"),
            begun.int("count"),
        ) {
            // SAFETY: C promises the address of a handle.
            let message = unsafe { begun.array(at, 1) }
                .first()
                .map_or(0, |one| *one as u32);
            let data = self.data(rank, begun.word("datatype").unwrap_or(0), count);
            self.operation(rank, Event::ReceiveClaimed { message, data });
        }
    }

    fn message(&mut self, rank: &mpi::Rank, begun: &Begun, (comm, core): (u64, &Core)) {
        let name = begun.signature.name.as_str();
        let lower = name.to_lowercase();
        if ["probe", "psend", "precv"]
            .iter()
            .any(|part| lower.contains(part))
        {
            return;
        }
        let is_init = name.contains("_init");
        let world = |peer: i64| core.peers().world(usize::try_from(peer).ok()?);
        let mut is_second = false;
        let own = |one: &'static str, other: &'static str| begun.word(one).or(begun.word(other));
        if let Some(to) = begun.int("dest").map(|dest| dest as c_int) {
            let count = own("sendcount", "count").unwrap_or(0) as i64;
            let data = self.data(rank, own("sendtype", "datatype").unwrap_or(0), count);
            if let Some(to) = world(to.into()) {
                let event = Event::Send {
                    comm,
                    to: to as u32,
                    tag: own("sendtag", "tag").unwrap_or(0) as i32,
                    data,
                    is_init,
                };
                self.operation(rank, event);
                is_second = true;
            }
        }
        if let Some(from) = begun.int("source").map(|source| source as c_int) {
            let count = own("recvcount", "count").unwrap_or(0) as i64;
            let data = self.data(rank, own("recvtype", "datatype").unwrap_or(0), count);
            let source = world(from.into());
            if source.is_some() || from == MPI_ANY_SOURCE {
                let tag = own("recvtag", "tag").unwrap_or(0) as i32;
                let event = Event::Receive {
                    comm,
                    from: source.map(|from| from as u32),
                    tag: Some(tag).filter(|tag| *tag >= 0),
                    data,
                    is_init,
                    is_second,
                };
                self.operation(rank, event);
            }
        }
    }
}

/// A collective call without data.
fn plain(comm: u64) -> Event {
    Event::Collective {
        comm,
        root: None,
        op: 0,
        gives: None,
        gets: None,
        counts: 0,
    }
}
