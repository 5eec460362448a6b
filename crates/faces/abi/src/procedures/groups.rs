//! Section 7.3: groups.

use crate::args::{Out, fill};
use crate::call_guard::Running;
use crate::constants::MPI_GROUP_NULL;
use crate::error::Done;
use crate::handle::Group;
use mpi::UNDEFINED;
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// `MPI_Group_size` (MPI 5.0, chapter 7).
pub fn group_size(call: &Running, group: Group, size: Out<c_int>) -> Done {
    size.set(call.rank.objects().groups().get(group.id())?.members.len() as c_int);
    Ok(())
}

/// `MPI_Group_rank` (MPI 5.0, chapter 7).
pub fn group_rank(call: &Running, group: Group, rank: Out<c_int>) -> Done {
    let own = call.rank.objects().groups().get(group.id())?.rank;
    rank.set(own.map_or(UNDEFINED, |rank| rank as c_int));
    Ok(())
}

/// `MPI_Group_translate_ranks` (MPI 5.0, chapter 7).
pub fn group_translate_ranks(
    call: &Running,
    group1: Group,
    _n: usize,
    ranks1: &[c_int],
    group2: Group,
    ranks2: &mut [MaybeUninit<c_int>],
) -> Done {
    let state = call.rank.lock();
    fill(
        ranks2,
        state
            .objects()
            .groups()
            .translate(group1.id(), ranks1, group2.id())?,
    );
    Ok(())
}

/// `MPI_Group_compare` (MPI 5.0, chapter 7).
pub fn group_compare(call: &Running, group1: Group, group2: Group, result: Out<c_int>) -> Done {
    let state = call.rank.lock();
    result.set(state.objects().groups().compare(group1.id(), group2.id())? as c_int);
    Ok(())
}

/// `MPI_Group_union` (MPI 5.0, chapter 7).
pub fn group_union(call: &Running, group1: Group, group2: Group, new: Out<Group>) -> Done {
    new.set(
        call.rank
            .objects()
            .groups_mut()
            .union(group1.id(), group2.id())?,
    );
    Ok(())
}

/// `MPI_Group_intersection` (MPI 5.0, chapter 7).
pub fn group_intersection(call: &Running, group1: Group, group2: Group, new: Out<Group>) -> Done {
    new.set(
        call.rank
            .objects()
            .groups_mut()
            .intersection(group1.id(), group2.id())?,
    );
    Ok(())
}

/// `MPI_Group_difference` (MPI 5.0, chapter 7).
pub fn group_difference(call: &Running, group1: Group, group2: Group, new: Out<Group>) -> Done {
    new.set(
        call.rank
            .objects()
            .groups_mut()
            .difference(group1.id(), group2.id())?,
    );
    Ok(())
}

/// `MPI_Group_incl` (MPI 5.0, chapter 7).
pub fn group_incl(
    call: &Running,
    group: Group,
    _n: usize,
    ranks: &[c_int],
    new: Out<Group>,
) -> Done {
    new.set(call.rank.objects().groups_mut().incl(group.id(), ranks)?);
    Ok(())
}

/// `MPI_Group_excl` (MPI 5.0, chapter 7).
pub fn group_excl(
    call: &Running,
    group: Group,
    _n: usize,
    ranks: &[c_int],
    new: Out<Group>,
) -> Done {
    new.set(call.rank.objects().groups_mut().excl(group.id(), ranks)?);
    Ok(())
}

/// `MPI_Group_range_incl` (MPI 5.0, chapter 7).
pub fn group_range_incl(
    call: &Running,
    group: Group,
    _n: usize,
    ranges: &[[c_int; 3]],
    new: Out<Group>,
) -> Done {
    new.set(
        call.rank
            .objects()
            .groups_mut()
            .range_incl(group.id(), ranges)?,
    );
    Ok(())
}

/// `MPI_Group_range_excl` (MPI 5.0, chapter 7).
pub fn group_range_excl(
    call: &Running,
    group: Group,
    _n: usize,
    ranges: &[[c_int; 3]],
    new: Out<Group>,
) -> Done {
    new.set(
        call.rank
            .objects()
            .groups_mut()
            .range_excl(group.id(), ranges)?,
    );
    Ok(())
}

/// `MPI_Group_free` (MPI 5.0, chapter 7).
pub fn group_free(call: &Running, group: &mut Group) -> Done {
    call.rank.objects().groups_mut().free(group.id())?;
    *group = MPI_GROUP_NULL;
    Ok(())
}
