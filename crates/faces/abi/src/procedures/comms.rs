//! Section 7.4: communicators, and their names and hints.

use super::info::info_of;
use crate::args::{Flag, Out, OutText};
use crate::call_guard::Running;
use crate::constants::MPI_COMM_NULL;
use crate::error::{Done, Error};
use crate::handle::{Comm, Group, Info, Request};
use crate::making::arguments;
use crate::state::LIBRARY;
use mpi::RemoteLeader;
use std::ffi::{CStr, c_int};

/// `MPI_Comm_size` (MPI 5.0, chapter 7).
#[inline]
pub fn comm_size(call: &Running, comm: Comm, size: Out<c_int>) -> Done {
    size.set(call.rank.objects().comms().get(comm.id())?.core.size() as c_int);
    Ok(())
}

/// `MPI_Comm_rank` (MPI 5.0, chapter 7).
#[inline]
pub fn comm_rank(call: &Running, comm: Comm, rank: Out<c_int>) -> Done {
    rank.set(call.rank.objects().comms().get(comm.id())?.core.rank as c_int);
    Ok(())
}

/// `MPI_Comm_compare` (MPI 5.0, chapter 7).
pub fn comm_compare(call: &Running, comm1: Comm, comm2: Comm, result: Out<c_int>) -> Done {
    let state = call.rank.lock();
    result.set(state.objects().comms().compare(comm1.id(), comm2.id())? as c_int);
    Ok(())
}

/// `MPI_Comm_group` (MPI 5.0, chapter 7).
pub fn comm_group(call: &Running, comm: Comm, group: Out<Group>) -> Done {
    group.set(call.rank.objects().comm_group(comm.id())?);
    Ok(())
}

/// `MPI_Comm_dup` (MPI 5.0, chapter 7).
pub fn comm_dup(call: &Running, comm: Comm, new: Out<Comm>) -> Done {
    set_new(new, call.rank.comm_dup(call.procedure, comm.id(), &[]))
}

/// `MPI_Comm_dup_with_info` (MPI 5.0, chapter 7).
pub fn comm_dup_with_info(call: &Running, comm: Comm, info: Info, new: Out<Comm>) -> Done {
    let info = arguments(call.procedure, comm, pairs(info))?;
    set_new(new, call.rank.comm_dup(call.procedure, comm.id(), &info))
}

/// `MPI_Comm_idup` (MPI 5.0, chapter 7).
pub fn comm_idup(call: &Running, comm: Comm, new: Out<Comm>, request: Out<Request>) -> Done {
    let (handle, id) = call.rank.comm_idup(comm.id(), &[])?;
    new.set(handle);
    request.set(id.0);
    Ok(())
}

/// `MPI_Comm_idup_with_info` (MPI 5.0, chapter 7).
pub fn comm_idup_with_info(
    call: &Running,
    comm: Comm,
    info: Info,
    new: Out<Comm>,
    request: Out<Request>,
) -> Done {
    let info = arguments(call.procedure, comm, pairs(info))?;
    let (handle, id) = call.rank.comm_idup(comm.id(), &info)?;
    new.set(handle);
    request.set(id.0);
    Ok(())
}

/// `MPI_Comm_create` (MPI 5.0, chapter 7).
pub fn comm_create(call: &Running, comm: Comm, group: Group, new: Out<Comm>) -> Done {
    set_new(
        new,
        call.rank.comm_create(call.procedure, comm.id(), group.id()),
    )
}

/// `MPI_Comm_create_group` (MPI 5.0, chapter 7).
pub fn comm_create_group(
    call: &Running,
    comm: Comm,
    group: Group,
    tag: c_int,
    new: Out<Comm>,
) -> Done {
    set_new(
        new,
        call.rank
            .comm_create_group(call.procedure, comm.id(), group.id(), tag),
    )
}

/// `MPI_Comm_split` (MPI 5.0, chapter 7).
pub fn comm_split(call: &Running, comm: Comm, color: c_int, key: c_int, new: Out<Comm>) -> Done {
    set_new(
        new,
        call.rank.comm_split(call.procedure, comm.id(), color, key),
    )
}

/// `MPI_Comm_split_type` (MPI 5.0, chapter 7).
pub fn comm_split_type(
    call: &Running,
    comm: Comm,
    split_type: c_int,
    key: c_int,
    info: Info,
    new: Out<Comm>,
) -> Done {
    let info = arguments(call.procedure, comm, pairs(info))?;
    set_new(
        new,
        call.rank
            .comm_split_type(call.procedure, comm.id(), split_type, key, &info),
    )
}

/// `MPI_Comm_free` (MPI 5.0, chapter 7).
pub fn comm_free(call: &Running, comm: &mut Comm) -> Done {
    call.rank.comm_free(comm.id())?;
    *comm = MPI_COMM_NULL;
    Ok(())
}

/// `MPI_Comm_disconnect` (MPI 5.0, chapter 11).
pub fn comm_disconnect(call: &Running, comm: &mut Comm) -> Done {
    call.rank.comm_disconnect(call.procedure, comm.id())?;
    *comm = MPI_COMM_NULL;
    Ok(())
}

/// `MPI_Comm_test_inter` (MPI 5.0, chapter 7).
pub fn comm_test_inter(call: &Running, comm: Comm, flag: Out<Flag>) -> Done {
    flag.set(call.rank.objects().comms().get(comm.id())?.core.is_inter());
    Ok(())
}

/// `MPI_Comm_remote_size` (MPI 5.0, chapter 7).
pub fn comm_remote_size(call: &Running, comm: Comm, size: Out<c_int>) -> Done {
    size.set(call.rank.objects().remote_group(comm.id())?.len() as c_int);
    Ok(())
}

/// `MPI_Comm_remote_group` (MPI 5.0, chapter 7).
pub fn comm_remote_group(call: &Running, comm: Comm, group: Out<Group>) -> Done {
    group.set(call.rank.objects().comm_remote_group(comm.id())?);
    Ok(())
}

/// `MPI_Intercomm_create` (MPI 5.0, chapter 7). The arguments that name the remote leader are
/// significant at the local leader only, so no other rank checks them.
pub fn intercomm_create(
    call: &Running,
    local_comm: Comm,
    local_leader: c_int,
    peer_comm: Comm,
    remote_leader: c_int,
    tag: c_int,
    new: Out<Comm>,
) -> Done {
    let remote = RemoteLeader {
        peer_comm: peer_comm.id(),
        rank: remote_leader,
        tag,
    };
    set_new(
        new,
        call.rank
            .intercomm_create(call.procedure, local_comm.id(), local_leader, remote),
    )
}

/// `MPI_Intercomm_merge` (MPI 5.0, chapter 7).
pub fn intercomm_merge(call: &Running, intercomm: Comm, high: bool, new: Out<Comm>) -> Done {
    set_new(
        new,
        call.rank
            .intercomm_merge(call.procedure, intercomm.id(), high),
    )
}

/// `MPI_Comm_set_name` (MPI 5.0, chapter 7).
pub fn comm_set_name(call: &Running, comm: Comm, name: &CStr) -> Done {
    let name = name.to_string_lossy();
    call.rank
        .objects()
        .comms_mut()
        .get_mut(comm.id())?
        .set_name(&name);
    Ok(())
}

/// `MPI_Comm_get_name` (MPI 5.0, chapter 7). The null handle has a name too, for programs that
/// print handles.
pub fn comm_get_name(call: &Running, comm: Comm, name: OutText, length: Out<c_int>) -> Done {
    if comm == MPI_COMM_NULL {
        length.set(name.set(b"MPI_COMM_NULL") as c_int);
        return Ok(());
    }
    let state = call.rank.lock();
    let text = &state.objects().comms().get(comm.id())?.name;
    length.set(name.set(text.as_bytes()) as c_int);
    Ok(())
}

/// `MPI_Comm_set_info` (MPI 5.0, chapter 7).
pub fn comm_set_info(call: &Running, comm: Comm, info: Info) -> Done {
    let info = pairs(info)?;
    call.rank
        .objects()
        .comms_mut()
        .get_mut(comm.id())?
        .hints
        .update(&info)
}

/// `MPI_Comm_get_info` (MPI 5.0, chapter 7).
pub fn comm_get_info(call: &Running, comm: Comm, info: Out<Info>) -> Done {
    let pairs = call.rank.objects().comms().get(comm.id())?.hints.info();
    info.set(info_of(pairs)?);
    Ok(())
}

/// Writes the handle of a new communicator. A failed call writes the null handle, so that the
/// program uses no stale one.
pub(super) fn set_new(new: Out<Comm>, made: Result<u32, Error>) -> Done {
    new.set(*made.as_ref().unwrap_or(&mpi::comm::NULL));
    made.map(drop)
}

/// The hints in an info object. Keys that are not UTF-8 are no hints and are left out.
pub(super) fn pairs(info: Info) -> Result<Vec<(String, String)>, Error> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut infos = LIBRARY.infos();
    let pairs = infos.pairs(info)?;
    Ok(pairs
        .iter()
        .map(|(key, value)| (text(key), text(value)))
        .collect())
}
