//! Making intercommunicators, and intracommunicators of them (MPI 5.0 §7.6).
//!
//! The leaders of the groups exchange descriptions of these, in a separate context of their peer
//! communicator, and each sends the result to its own group. The group of the leader with the lower
//! number in the peer communicator comes first in the joint group, and its leader creates the
//! context.

use std::ops::Range;
use std::sync::Arc;

use crate::comm::calls::agreement::Agreement;
use crate::comm::calls::making::{Making, Parent};
use crate::comm::{self, Core, Members};
use crate::rank::Rank;
use crate::request::Waiting;
use crate::{Class, Error, Result};

/// The remote leader of the new intercommunicator, as the local leader names it.
#[derive(Clone, Copy, Debug)]
pub struct RemoteLeader {
    /// A communicator that contains both leaders.
    pub peer_comm: u32,
    /// The remote leader's rank in `peer_comm`.
    pub rank: i32,
    /// The tag that distinguishes this exchange from others between the same leaders.
    pub tag: i32,
}

/// The facts of a new intercommunicator that the leader of a group passes to its members.
#[derive(Clone, PartialEq, Debug)]
struct Found {
    context: u64,
    /// True if the group of this leader comes first in the joint group.
    is_first: bool,
    remote: Vec<u32>,
}

impl Found {
    /// Length in bytes of the encoding before the remote group: the context, and one number of 64
    /// bits with the order and the size of the remote group.
    const HEAD: usize = 16;

    fn head(&self) -> Vec<u8> {
        let word = (self.remote.len() as u64) << 1 | u64::from(self.is_first);
        [self.context.to_ne_bytes(), word.to_ne_bytes()].concat()
    }
}

impl Rank {
    /// `MPI_Intercomm_create`. `leader` is the rank of the local leader in `comm`. `remote` is
    /// significant at the local leader only.
    pub fn intercomm_create(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        leader: i32,
        remote: RemoteLeader,
    ) -> Result<u32> {
        let parent = self.begin_intra(comm)?;
        let core = parent.core.clone();
        let known = core.peer(leader).and_then(|peer| match peer {
            Some(_) => self.with_room(Ok(())),
            None => Err(core.no_such_rank(leader)),
        });
        if let Err(error) = known {
            return Err(self.refuse_between(operation, &parent, error));
        }
        let (leader, size) = (leader as usize, core.size());
        let ranks = (0..size).map(|step| ((leader + step) % size) as u32);
        let place = (core.rank + size - leader) % size;
        let agreement = Agreement::some(self, &core, ranks.collect(), place, parent.tag);
        let waiting = Waiting::in_call(operation);
        let ready = self.block_on(&waiting, None, agreement.gather_failures(Ok(())))?;
        let found = match place {
            0 => Some(self.leaders(operation, &core.members, remote, ready)),
            _ => None,
        };
        let told = self.block_on(&waiting, None, report(&agreement, found))?;
        if told
            .remote
            .iter()
            .any(|&world| core.members.rank_of(world as usize).is_some())
        {
            let detail =
                "the groups of an intercommunicator must be disjoint: some rank is in both";
            return Err(Error::new(Class::COMM, detail));
        }
        let (members, place) = (core.members.clone(), core.rank);
        let new = Core::between(
            told.context,
            members,
            place,
            told.remote.into(),
            told.is_first,
        );
        self.add_comm(parent.child(new))
    }

    /// Exchanges the description of the groups with the remote leader, or reports the failure of
    /// this group to it.
    fn leaders(
        self: &Arc<Rank>,
        operation: &'static str,
        members: &Members,
        remote: RemoteLeader,
        ready: Result<()>,
    ) -> Result<Found> {
        let peer = self
            .lock()
            .objects
            .comms
            .get(remote.peer_comm)?
            .core
            .clone();
        if remote.tag < 0 {
            let detail = format!(
                "tag {} is not allowed: tags are 0 to {}",
                remote.tag,
                crate::TAG_UB
            );
            return Err(Error::new(Class::TAG, detail));
        }
        let joint = peer.joined().unwrap_or(&peer).clone();
        let theirs = match peer.peer(remote.rank)? {
            Some(_) => peer.theirs().start + remote.rank as usize,
            None => return Err(peer.no_such_rank(remote.rank)),
        };
        if theirs == joint.rank {
            let detail = "the remote leader is this rank itself: the groups must be disjoint";
            return Err(Error::new(Class::COMM, detail));
        }
        let is_first = joint.rank < theirs;
        let (low, high) = (joint.rank.min(theirs), joint.rank.max(theirs));
        let place = usize::from(!is_first);
        let ranks = vec![low as u32, high as u32];
        let agreement = Agreement::some(self, &joint, ranks, place, remote.tag);
        let agreement = agreement.between_leaders(remote.tag);
        let context = self.lock().objects.comms.new_context(self.rank());
        let waiting = Waiting::in_call(operation);
        let words = [context, members.len() as u64].map(u64::to_ne_bytes);
        let words = ready.map(|()| words.concat());
        let words = agreement.allgather_agreed(words, LEADER);
        let words = self.block_on(&waiting, None, words)?;
        let words = words_of(&words);
        let theirs = words[2 * (1 - place) + 1] as usize;
        let longest = members.len().max(theirs);
        let mut list: Vec<u32> = members.iter().map(|world| world as u32).collect();
        list.resize(longest, u32::MAX);
        let list = list.into_iter().flat_map(u32::to_ne_bytes).collect();
        let lists = self.block_on(&waiting, None, agreement.allgather(list))?;
        let remote = ranks_of(&lists[4 * longest * (1 - place)..][..4 * theirs]);
        Ok(Found {
            context: words[0],
            is_first,
            remote,
        })
    }

    /// `MPI_Comm_create` of an intercommunicator: each group passes a subset of its members.
    pub(super) fn inter_of(
        self: &Arc<Rank>,
        operation: &'static str,
        parent: Parent,
        group: u32,
    ) -> Result<u32> {
        let given = {
            let state = self.lock();
            let group = state.objects.groups.get(group);
            group.map(|group| (group.members.clone(), group.rank))
        };
        let given = given.and_then(|(members, place)| {
            parent.numbers_of(&members)?;
            Ok((members, place))
        });
        let mine = match &given {
            Ok((_, Some(place))) => Ok(*place as u64),
            Ok((_, None)) => Ok(ABSENT),
            Err(error) => Err(error.clone()),
        };
        let joint = parent.joint().clone();
        let context = self.lock().objects.comms.new_context(self.rank());
        let mine = mine.map(|mine| [context, mine].map(u64::to_ne_bytes).concat());
        let words = self.exchange_to_make(operation, &parent, Making::Create, mine)?;
        let words = words_of(&words);
        let (members, place) = given?;
        let core = &parent.core;
        let (ours, theirs) = (chosen(core.ours(), &words), chosen(core.theirs(), &words));
        let at = |ranks: &[usize]| joint.members.at(ranks.iter().copied());
        if at(&ours) != members {
            let detail = "the ranks of the local group gave different groups";
            return Err(Error::new(Class::GROUP, detail));
        }
        let (Some(place), [first, ..]) = (place, &theirs[..]) else {
            return Ok(comm::NULL);
        };
        let is_first = core.is_first();
        let maker = if is_first { ours[0] } else { *first };
        let new = Core::between(words[2 * maker], members, place, at(&theirs), is_first);
        self.add_comm(parent.child(new.made_from(core)))
    }

    /// `MPI_Intercomm_merge`: the group whose ranks pass `high` comes last.
    pub fn intercomm_merge(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        high: bool,
    ) -> Result<u32> {
        if !self.lock().objects.comms.get(comm)?.core.is_inter() {
            let detail = "the communicator has one group: only an intercommunicator can be merged";
            return Err(Error::new(Class::COMM, detail));
        }
        let parent = self.begin(comm)?;
        let joint = parent.joint().clone();
        let context = self.lock().objects.comms.new_context(self.rank());
        let mine = [context, u64::from(high)].map(u64::to_ne_bytes).concat();
        let words = self.exchange_to_make(operation, &parent, Making::Merge, Ok(mine))?;
        let words = words_of(&words);
        let (core, size) = (&parent.core, joint.size());
        let second = match core.is_first() {
            true => core.theirs().start,
            false => core.ours().start,
        };
        let is_high = |member: usize| words[2 * member + 1] != 0;
        // If both groups pass the same value, the first stays first.
        let first = match is_high(0) && !is_high(second) {
            true => second,
            false => 0,
        };
        let order = (0..size).map(|step| (first + step) % size);
        let members = joint.members.at(order);
        let place = (joint.rank + size - first) % size;
        let new = Core::new(words[2 * first], members, place).made_from(core);
        self.add_comm(parent.child(new))
    }
}

/// Length in bytes of a leader's contribution: a context, and the size of its group.
const LEADER: usize = 16;
/// Instead of a rank's number in its new group: the rank is not in that group.
const ABSENT: u64 = u64::MAX;

/// The ranks of a group that are in its new group, in their order there. `words`: for each rank of
/// the joint group, a context and the rank's number in its new group.
fn chosen(group: Range<usize>, words: &[u64]) -> Vec<usize> {
    let place = |rank: &usize| words[2 * rank + 1];
    let mut ranks: Vec<usize> = group.filter(|rank| place(rank) != ABSENT).collect();
    ranks.sort_by_key(place);
    ranks
}

/// Sends the leader's result, or its failure, to all members of its group.
async fn report(agreement: &Agreement, found: Option<Result<Found>>) -> Result<Found> {
    let found = found.transpose();
    let head = match &found {
        Ok(Some(found)) => Ok(found.head()),
        Ok(None) => Ok(Vec::new()),
        Err(error) if error.is_loss() => Err(error.clone()),
        Err(error) => {
            let detail = format!("the leader of the local group has failed: {}", error.detail);
            Err(Error::new(error.class, detail))
        }
    };
    let head = agreement.bcast_result(head, Found::HEAD).await;
    let list = found?.map_or_else(Vec::new, |found| found.remote);
    let head = words_of(&head?);
    let list = list.into_iter().flat_map(u32::to_ne_bytes).collect();
    let bytes = 4 * (head[1] >> 1) as usize;
    let list = agreement.bcast(list, bytes).await?;
    Ok(Found {
        context: head[0],
        is_first: head[1] & 1 != 0,
        remote: ranks_of(&list),
    })
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

fn ranks_of(bytes: &[u8]) -> Vec<u32> {
    let (ranks, _) = bytes.as_chunks();
    ranks.iter().map(|rank| u32::from_ne_bytes(*rank)).collect()
}
