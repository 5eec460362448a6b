//! The notes of a rank about its messages and collective calls, for a check after the job (crate
//! `message_check`). Only a modelled machine keeps them, and only if the user requests the check:
//! they are taken where calls are announced (`call_guard`), beside the path of other runs.

use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use crate::constants::*;
use crate::status::Status;
use message_check::{Data, End, Event, FIRST_TYPE, Kind, MOST_RUNS, Origin, PARTS, Run, USER_OP};
use mpi::comm::{Core, SELF, WORLD};
use recording::RECORDED;
use trace::{Access, Length, Signature};

/// The most members of a communicator whose blocks are noted one by one.
const MOST_BLOCKS: usize = 256;

/// Procedures that all members of a communicator call, beside those that move data.
const MAKERS: [&str; 10] = [
    "MPI_Barrier",
    "MPI_Ibarrier",
    "MPI_Comm_dup",
    "MPI_Comm_dup_with_info",
    "MPI_Comm_split",
    "MPI_Comm_split_type",
    "MPI_Comm_create",
    "MPI_Win_create",
    "MPI_Win_allocate",
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
            _statuses: Vec::new(),
            statuses: 0,
        };
        // SAFETY: the caller's promise.
        unsafe {
            begun.prepare();
            inner.calls(rank, &begun);
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
            return note(rank, Event::Failed { has_matched });
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
        if let Some(at) = self.at("status", Access::Out) {
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
        if name == "MPI_Start" || name == "MPI_Startall" {
            let all = begun.requests.iter();
            return all.for_each(|one| {
                let request = *one as u32;
                note(rank, Event::Start { request });
            });
        }
        let comm = begun.word("comm").map(|comm| comm as u32);
        let Some((comm, core)) = comm.and_then(|comm| self.comm(rank, comm)) else {
            return self.claimed(rank, begun);
        };
        let names = |one: &str| begun.signature.position(one).is_some();
        let is_moving = names("recvbuf") || name.to_lowercase().contains("bcast");
        match names("dest") || names("source") {
            true => self.message(rank, begun, (comm, &core)),
            false if name.to_lowercase().contains("neighbor") => {}
            // SAFETY: the caller's promise.
            false if is_moving => unsafe { self.collective(rank, begun, (comm, &core)) },
            false if MAKERS.contains(&name) => note(rank, plain(comm)),
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
            note(rank, Event::ReceiveClaimed { message, data });
        }
    }

    fn message(&mut self, rank: &mpi::Rank, begun: &Begun, (comm, core): (u64, &Core)) {
        let name = begun.signature.name.as_str();
        if name.contains("probe") || name.contains("Psend") || name.contains("Precv") {
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
                note(rank, event);
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
                note(rank, event);
            }
        }
    }

    /// Notes a collective call that moves data.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    unsafe fn collective(&mut self, rank: &mpi::Rank, begun: &Begun, (comm, core): (u64, &Core)) {
        let root = begun.int("root").map(|root| root as c_int);
        let is_root = root
            .is_none_or(|root| root == MPI_ROOT || !core.is_inter() && root == core.rank as c_int);
        let is_idle = root == Some(MPI_PROC_NULL);
        let lower = begun.signature.name.to_lowercase();
        let significant =
            |is_given: bool| match (lower.contains("gather"), lower.contains("scatter")) {
                _ if is_idle => false,
                _ if root.is_none() => true,
                (true, _) => is_given != (is_root && core.is_inter()) && (is_given || is_root),
                (_, true) => is_given == is_root || !is_given && !core.is_inter(),
                _ => true,
            };
        let in_place = MPI_IN_PLACE.addr() as u64;
        let has = |buffer: &str| begun.word(buffer).is_none_or(|word| word != in_place);
        let side = |inner: &mut Inner, words: [&str; 3], is_given: bool| {
            let [buffer, count, ty] = words;
            (has(buffer) && significant(is_given))
                .then(|| Some(inner.data(rank, begun.word(ty)?, begun.int(count)?)))
                .flatten()
        };
        let is_reduction = begun.signature.position("op").is_some();
        let vector = begun
            .signature
            .position("recvcounts")
            .filter(|_| is_reduction);
        let one = match is_reduction || lower.contains("bcast") {
            true if is_idle => None,
            true => {
                let count = begun.int("count").or(begun.int("recvcount")).unwrap_or(1);
                Some(self.data(rank, begun.word("datatype").unwrap_or(0), count))
            }
            false => side(self, ["sendbuf", "sendcount", "sendtype"], true),
        };
        let gets =
            side(self, ["recvbuf", "recvcount", "recvtype"], false).filter(|_| !is_reduction);
        // SAFETY: the caller's promise.
        let counts = vector.map_or(0, |at| unsafe { digest(&begun.array(at, core.size())) });
        for (are_given, counts, types) in [
            (true, "sendcounts", "sendtype"),
            (false, "recvcounts", "recvtype"),
        ] {
            let at = begun.signature.position(counts).filter(|_| !is_reduction);
            let Some(at) =
                at.filter(|_| significant(are_given) && core.peers().len() <= MOST_BLOCKS)
            else {
                continue;
            };
            if are_given && !has("sendbuf") {
                continue;
            }
            // SAFETY: the caller's promise.
            unsafe { self.blocks(rank, begun, (at, types), are_given, core.peers().len()) };
        }
        let op = begun.word("op").map_or(0, |op| op as u32);
        let event = Event::Collective {
            comm,
            root: root.and_then(|root| match (core.is_inter(), root) {
                (true, MPI_ROOT) => Some(rank.rank() as u32),
                (true, root) => core
                    .peers()
                    .world(root as usize)
                    .filter(|_| root >= 0)
                    .map(|root| root as u32),
                (false, root) => u32::try_from(root).ok(),
            }),
            op: match datatype::Op::from_handle(op as usize) {
                Some(_) => op,
                None if op == 0 || is_idle => 0,
                None => USER_OP,
            },
            gives: one,
            gets,
            counts,
        };
        note(rank, event);
    }

    /// Notes the blocks of a collective call that have a count each.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    unsafe fn blocks(
        &mut self,
        rank: &mpi::Rank,
        begun: &Begun,
        (at, types): (usize, &str),
        are_given: bool,
        len: usize,
    ) {
        // SAFETY: the caller's promise.
        let counts = unsafe { begun.array(at, len) };
        let array = begun.signature.position(&format!("{types}s"));
        // SAFETY: the caller's promise.
        let types: Vec<u64> = match array {
            Some(at) => unsafe { begun.array(at, len) }
                .into_iter()
                .map(|one| one as u64)
                .collect(),
            None => vec![begun.word(types).unwrap_or(0); counts.len()],
        };
        let all: Vec<Data> = counts
            .iter()
            .zip(types)
            .map(|(count, ty)| self.data(rank, ty, *count))
            .collect();
        for (at, part) in all.chunks(PARTS).enumerate() {
            let mut blocks = [None; PARTS];
            part.iter()
                .zip(&mut blocks)
                .for_each(|(data, block)| *block = Some(*data));
            let first = (at * PARTS) as u32;
            let event = Event::Blocks {
                are_given,
                first,
                blocks,
            };
            note(rank, event);
        }
    }

    /// Notes what a call has done.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them, after the call.
    unsafe fn results(&mut self, rank: &mpi::Rank, begun: &Begun) {
        let name = begun.signature.name.as_str();
        if begun.at("datatype", Access::Out).is_some()
            || begun.at("datatype", Access::InOut).is_some()
        {
            self.types.clear();
        }
        let first = |at: usize| {
            // SAFETY: C promises the address of a value, which the call has set.
            unsafe { begun.array(at, 1) }.first().copied().unwrap_or(0)
        };
        let comm = begun.word("comm").map_or(0, |comm| comm as u32);
        if let Some(at) = begun.at("comm", Access::Out)
            && !name.contains("idup")
        {
            let _ = self.comm(rank, first(at) as u32);
        }
        if let Some(at) = begun.at("request", Access::Out) {
            let handle = first(at) as u64;
            let is_persistent = name.contains("_init");
            self.receives.insert(handle, comm);
            match is_persistent {
                true => _ = self.persistent.insert(handle),
                false => _ = self.persistent.remove(&handle),
            }
            let request = handle as u32;
            note(
                rank,
                Event::Request {
                    request,
                    is_persistent,
                },
            );
        } else if begun.signature.position("source").is_some() {
            self.received(rank, begun, comm, &first);
        } else if name.starts_with("MPI_Mrecv") {
            let (request, end) = (0, End::Complete);
            note(
                rank,
                Event::Done {
                    request,
                    met: None,
                    end,
                },
            );
        }
        // Types of Fortran's kinds are not freed (MPI 5.0 §19.1.9).
        if !name.contains("_f90_") {
            let made = begun.objects(Access::Out).into_iter();
            made.for_each(|(_, kind, handle)| note(rank, Event::Made { kind, handle }));
        }
        for &(at, kind, handle) in &begun.objects {
            if first(at) != i64::from(handle) {
                note(rank, Event::Freed { kind, handle });
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.completions(rank, begun) };
    }

    /// Notes the message of a blocking receive, or of a matched probe.
    fn received(
        &mut self,
        rank: &mpi::Rank,
        begun: &Begun,
        comm: u32,
        first: &impl Fn(usize) -> i64,
    ) {
        let is_found = begun
            .signature
            .position("flag")
            .is_none_or(|at| first(at) as c_int == 1);
        let Some((comm, core)) = self
            .comm(rank, comm)
            .filter(|_| is_found && begun.statuses != 0)
        else {
            return;
        };
        // SAFETY: the call has set its status, in the program's memory or in ours.
        let status = unsafe { (begun.statuses as usize as *const Status).read() };
        let from = core
            .peers()
            .world(status.source as usize)
            .filter(|_| status.source >= 0);
        let met = from.map(|from| (from as u32, status.tag));
        match (begun.at("message", Access::Out), met) {
            (Some(at), Some((from, tag))) => {
                let message = first(at) as u32;
                note(
                    rank,
                    Event::Claimed {
                        comm,
                        from,
                        tag,
                        message,
                    },
                );
            }
            (None, Some(_)) if !begun.signature.name.contains("robe") => {
                let (request, end) = (0, End::Complete);
                note(rank, Event::Done { request, met, end });
            }
            _ => {}
        }
    }

    /// Notes the requests that a call has completed or freed.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them, after the call.
    unsafe fn completions(&mut self, rank: &mpi::Rank, begun: &Begun) {
        let name = begun.signature.name.as_str();
        let Some(at) = begun
            .at("request", Access::InOut)
            .filter(|_| !name.starts_with("MPI_Start") && name != "MPI_Cancel")
        else {
            return;
        };
        let int = |name: &str| {
            let at = begun.signature.position(name)?;
            // SAFETY: the caller's promise.
            unsafe { begun.array(at, 1) }
                .first()
                .map(|one| *one as c_int)
        };
        if int("flag") == Some(0) {
            return;
        }
        // SAFETY: the caller's promise.
        let after = unsafe { begun.array(at, begun.requests.len()) };
        let places: Vec<usize> = match (
            int("indx"),
            int("outcount"),
            begun.signature.position("array_of_indices"),
        ) {
            (Some(index), ..) => usize::try_from(index).into_iter().collect(),
            // SAFETY: the caller's promise: as many indices are set.
            (_, Some(count), Some(at)) => unsafe { begun.array(at, count.max(0) as usize) }
                .into_iter()
                .map(|one| one as c_int as usize)
                .collect(),
            _ => (0..begun.requests.len()).collect(),
        };
        let is_one = int("indx").is_some();
        for (place, index) in places.into_iter().enumerate() {
            let (Some(before), Some(now)) = (begun.requests.get(index), after.get(index)) else {
                continue;
            };
            let is_kept = self.persistent.contains(before);
            if *before == MPI_REQUEST_NULL.0 as u64 || *now as u64 == *before && !is_kept {
                continue;
            }
            let request = *before as u32;
            let (mut met, mut end) = (None, End::Complete);
            if name == "MPI_Request_free" {
                end = End::Freed;
            } else if begun.statuses != 0 {
                let place = if is_one { 0 } else { place };
                // SAFETY: the caller's promise: there is a status for each completed request.
                let status =
                    unsafe { (begun.statuses as usize as *const Status).add(place).read() };
                let comm = self.receives.get(before).copied();
                let core = comm.and_then(|comm| self.comm(rank, comm));
                let from = core.and_then(|(_, core)| core.peers().world(status.source as usize));
                met = from
                    .filter(|_| status.source >= 0)
                    .map(|from| (from as u32, status.tag));
                if status.cancelled() {
                    end = End::Cancelled;
                }
            }
            note(rank, Event::Done { request, met, end });
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

/// A digest of counts, which is not 0.
fn digest(counts: &[i64]) -> u32 {
    let step = |sum: u64, count: &i64| (sum ^ *count as u64).wrapping_mul(0x100_0000_01b3);
    let sum = counts.iter().fold(0xcbf2_9ce4_8422_2325, step);
    (sum >> 32) as u32 | 1
}
