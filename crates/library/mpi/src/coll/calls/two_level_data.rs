//! Movement of data in two levels: barrier, broadcast, gather, scatter, allgather, alltoall.

use datatype::Buffer;

use super::barrier;
use super::bcast;
use super::blocks::Blocks;
use super::both::both;
use super::call::Call;
use super::gather::{self, block_bytes, gather_linear, scatter_linear};
use super::two_level::{Column, Levels, inside};
use super::{allgather, alltoall};
use crate::Result;
use crate::algorithms::{Collective, LEVEL_PIECE as PIECE};

/// The ranks of a host report to its leader, the leaders synchronise, and each releases its host.
pub(super) async fn barrier(call: &Call<'_>) -> Result<()> {
    let levels = Levels::new(call);
    let inside = levels.inside(call);
    barrier::collect(&inside).await?;
    if let Some(across) = levels.across(call) {
        barrier::dissemination(&across).await?;
    }
    barrier::release(&inside).await
}

/// Broadcasts to the leader of each host, and within each host, in pieces that overlap.
pub(super) async fn bcast(call: &Call<'_>, buffer: &Buffer, root: usize) -> Result<()> {
    let levels = Levels::rooted(call, root);
    let (inside, across) = (levels.inside(call), levels.across(call));
    let (leader, of_root) = (levels.leader(), levels.shape.host_of(root));
    let piece = |number: usize| buffer.slice(number * PIECE, PIECE);
    let whole = buffer.len();
    let cross = async |number: usize| match &across {
        Some(across) => {
            let algorithm = across.choose(Collective::Bcast, across.case(whole));
            bcast::run(across, algorithm, &piece(number), of_root).await
        }
        None => Ok(()),
    };
    let pieces = buffer.len().div_ceil(PIECE);
    cross(0).await?;
    for number in 0..pieces {
        let next = async {
            match number + 1 < pieces {
                true => cross(number + 1).await,
                false => Ok(()),
            }
        };
        both(next, bcast::flat(&inside, &piece(number), leader)).await?;
    }
    Ok(())
}

/// The root's host scatters the message among its first ranks, each of which broadcasts its part to
/// the ranks with its index in the other hosts; then each host collects the parts.
pub(super) async fn bcast_parts(call: &Call<'_>, buffer: &Buffer, root: usize) -> Result<()> {
    let shape = call.shape();
    let parts = shape.spread().least;
    let inside = inside(call);
    let each = buffer.len().div_ceil(parts);
    let block = |place: usize| match place < parts {
        true => buffer.slice(place * each, each),
        false => Buffer::empty(),
    };
    let blocks = Blocks::Each((0..inside.size()).map(block).collect());
    let host = shape.host_of(root);
    if shape.host_of(call.me()) == host {
        let at_root = call.me() == root;
        let own = blocks.part(inside.me());
        let all = at_root.then_some(&blocks);
        scatter_linear(&inside, all, (!at_root).then_some(&own), shape.place(root)).await?;
    }
    if let Some(column) = Column::of(call, parts) {
        bcast::flat(&column.across(call), &blocks.part(inside.me()), host).await?;
    }
    allgather::flat(&inside, None, &blocks).await
}

/// The blocks of all members in the order of hosts, in contiguous memory.
struct Packed {
    room: Buffer,
    /// The position and length of each member's block, in bytes.
    places: Vec<(usize, usize)>,
}

impl Packed {
    /// Memory for blocks as long as those of `all`: `whole`, or new memory.
    fn new(
        call: &Call<'_>,
        levels: &Levels<'_>,
        all: &Blocks,
        whole: Option<Buffer>,
    ) -> Result<Packed> {
        let mut places = vec![(0, 0); call.size()];
        let mut at = 0;
        for &member in levels.hosts().iter().flatten() {
            let len = all.len(member as usize);
            places[member as usize] = (at, len);
            at += len;
        }
        Ok(Packed {
            room: whole.map_or_else(|| call.bytes(at), Ok)?,
            places,
        })
    }

    fn block(&self, member: usize) -> Buffer {
        let (at, len) = self.places[member];
        self.room.slice(at, len)
    }

    /// The blocks of each host as one block.
    fn of_hosts(&self, levels: &Levels<'_>) -> Blocks {
        let of_host = |host: &Vec<u32>| {
            let (start, _) = self.places[host[0] as usize];
            let (last, len) = self.places[host[host.len() - 1] as usize];
            self.room.slice(start, last + len - start)
        };
        Blocks::Each(levels.hosts().iter().map(of_host).collect())
    }

    /// Copies the blocks of all members but `except` to their positions in `all`.
    fn unpack(&self, call: &Call<'_>, all: &Blocks, except: Option<usize>) {
        for member in (0..self.places.len()).filter(|&member| Some(member) != except) {
            call.copy(&self.block(member), &all.part(member));
        }
    }
}

/// Each host's leader collects the blocks of its host and sends them to the root in one message.
pub(super) async fn gather(
    call: &Call<'_>,
    ours: Option<&Buffer>,
    all: Option<&Blocks>,
    root: usize,
) -> Result<()> {
    let bytes = block_bytes(call, ours, all, root);
    let levels = Levels::rooted(call, root);
    let (inside, across) = (levels.inside(call), levels.across(call));
    // In place, the root's block is in `all`.
    let own = match (ours, all) {
        (Some(ours), _) => ours.clone(),
        (None, Some(all)) => all.part(root),
        (None, None) => Buffer::empty(),
    };
    let Some(across) = across else {
        return gather::flat(&inside, Some(&own), None, levels.leader()).await;
    };
    if call.me() == root
        && let Some(all) = all
    {
        let packed = Packed::new(call, &levels, all, None)?;
        let of_hosts = packed.of_hosts(&levels);
        let here = Blocks::even(of_hosts.part(levels.host), inside.size());
        let gather_here = gather::flat(&inside, Some(&own), Some(&here), levels.leader());
        both(
            gather_linear(&across, None, Some(&of_hosts), levels.host),
            gather_here,
        )
        .await?;
        packed.unpack(call, all, ours.is_none().then_some(root));
        return Ok(());
    }
    let bundle = call.bytes(bytes * inside.size())?;
    let here = Blocks::even(bundle.clone(), inside.size());
    gather::flat(&inside, Some(&own), Some(&here), levels.leader()).await?;
    let of_root = levels.shape.host_of(root);
    gather_linear(&across, Some(&bundle), None, of_root).await
}

/// The root sends each host's blocks to the host's leader in one message; the leader scatters them.
pub(super) async fn scatter(
    call: &Call<'_>,
    all: Option<&Blocks>,
    ours: Option<&Buffer>,
    root: usize,
) -> Result<()> {
    let bytes = block_bytes(call, ours, all, root);
    let levels = Levels::rooted(call, root);
    let (inside, across) = (levels.inside(call), levels.across(call));
    let Some(across) = across else {
        return gather::scatter_flat(&inside, None, ours, levels.leader()).await;
    };
    let of_root = levels.shape.host_of(root);
    if call.me() == root
        && let Some(all) = all
    {
        let packed = Packed::new(call, &levels, all, None)?;
        for member in 0..call.size() {
            call.copy(&all.part(member), &packed.block(member));
        }
        let of_hosts = packed.of_hosts(&levels);
        let here = Blocks::even(of_hosts.part(levels.host), inside.size());
        return both(
            scatter_linear(&across, Some(&of_hosts), None, of_root),
            gather::scatter_flat(&inside, Some(&here), ours, levels.leader()),
        )
        .await;
    }
    let bundle = call.bytes(bytes * inside.size())?;
    scatter_linear(&across, None, Some(&bundle), of_root).await?;
    let here = Blocks::even(bundle, inside.size());
    gather::scatter_flat(&inside, Some(&here), ours, levels.leader()).await
}

/// Gathers to the leader of each host, exchanges among the leaders, and broadcasts the whole within
/// each host. This rank's block is in `all` already.
pub(super) async fn allgather(call: &Call<'_>, all: &Blocks) -> Result<()> {
    let levels = Levels::new(call);
    let (inside, across) = (levels.inside(call), levels.across(call));
    let whole = match levels.shape.spread().contiguous {
        true => all.range(0, call.size()),
        false => None,
    };
    let in_place = whole.is_some();
    let packed = Packed::new(call, &levels, all, whole)?;
    let own = all.part(call.me());
    let here = Blocks::Each(
        levels
            .members()
            .iter()
            .map(|&member| packed.block(member as usize))
            .collect(),
    );
    match across {
        None => gather_linear(&inside, Some(&own), None, 0).await?,
        Some(across) => {
            let ours = (!in_place).then_some(&own);
            gather_linear(&inside, ours, Some(&here), 0).await?;
            allgather::flat(&across, None, &packed.of_hosts(&levels)).await?;
        }
    }
    bcast::flat(&inside, &packed.room, 0).await?;
    if !in_place {
        packed.unpack(call, all, Some(call.me()));
    }
    Ok(())
}

/// Gathers among the ranks with one index within their hosts, then within each host. All hosts have
/// the same number of consecutive ranks. This rank's block is in `all` already.
pub(super) async fn allgather_parts(call: &Call<'_>, all: &Blocks) -> Result<()> {
    let shape = call.shape();
    let (hosts, parts) = (shape.hosts(), shape.spread().least);
    let inside = inside(call);
    let each = all.len(0);
    let room = call.bytes(all.total())?;
    let columns = Blocks::even(room, parts);
    let own = Blocks::even(columns.part(inside.me()), hosts.len());
    call.copy(&all.part(call.me()), &own.part(shape.host_of(call.me())));
    if let Some(column) = Column::of(call, parts) {
        allgather::flat(&column.across(call), None, &own).await?;
    }
    allgather::flat(&inside, None, &columns).await?;
    for (number, host) in hosts.iter().enumerate() {
        for (place, &member) in host.iter().enumerate() {
            if member as usize != call.me() {
                let block = columns.part(place).slice(number * each, each);
                call.copy(&block, &all.part(member as usize));
            }
        }
    }
    Ok(())
}

/// The leader of each host gathers all blocks of its ranks, exchanges bundles with the other
/// leaders, and scatters the received blocks. In place there are no levels.
pub(super) async fn alltoall(call: &Call<'_>, give: Option<&Blocks>, take: &Blocks) -> Result<()> {
    let Some(give) = give else {
        return alltoall::in_place(call, take).await;
    };
    let levels = Levels::new(call);
    let (inside, across) = (levels.inside(call), levels.across(call));
    let each = give.len(0);
    let of_rank = call.size() * each;
    let (Some(out), Some(into)) = (give.range(0, call.size()), take.range(0, call.size())) else {
        return alltoall::flat(call, give, take).await;
    };
    let Some(across) = across else {
        gather::flat(&inside, Some(&out), None, 0).await?;
        return gather::scatter_flat(&inside, None, Some(&into), 0).await;
    };
    let here = inside.size();
    let (from, to) = (call.bytes(here * of_rank)?, call.bytes(here * of_rank)?);
    let of_members = Blocks::even(from.clone(), here);
    gather::flat(&inside, Some(&out), Some(&of_members), 0).await?;
    // A bundle has, for each rank of the sending host, a block for each rank of the receiving host.
    let bundles = |room: &Buffer| {
        let mut at = 0;
        let of_host = |host: &Vec<u32>| {
            let len = here * host.len() * each;
            at += len;
            room.slice(at - len, len)
        };
        Blocks::Each(levels.hosts().iter().map(of_host).collect::<Box<[_]>>())
    };
    let (leaving, arriving) = (bundles(&to), bundles(&from));
    for (host, members) in levels.hosts().iter().enumerate() {
        for (sender, (place, &receiver)) in
            (0..here).flat_map(|sender| members.iter().enumerate().map(move |to| (sender, to)))
        {
            let block = of_members
                .part(sender)
                .slice(receiver as usize * each, each);
            let number = sender * members.len() + place;
            call.copy(&block, &leaving.part(host).slice(number * each, each));
        }
    }
    alltoall::flat(&across, &leaving, &arriving).await?;
    let for_members = Blocks::even(to, here);
    for (host, members) in levels.hosts().iter().enumerate() {
        for (receiver, (place, &sender)) in
            (0..here).flat_map(|to| members.iter().enumerate().map(move |from| (to, from)))
        {
            let block = arriving
                .part(host)
                .slice((place * here + receiver) * each, each);
            call.copy(
                &block,
                &for_members
                    .part(receiver)
                    .slice(sender as usize * each, each),
            );
        }
    }
    gather::scatter_flat(&inside, Some(&for_members), Some(&into), 0).await
}
