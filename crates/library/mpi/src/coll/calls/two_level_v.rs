//! Gather and scatter in two levels of blocks whose sizes only the root and their owners know.
//!
//! A short block travels through the leader of its host, in one message with those of the host's
//! other ranks. A long block travels directly between its owner and the root: the copy at the
//! leader would cost more than the saved message. The table decides on each block by its length:
//! the block is short if a call whose blocks all have that length would use the two-level
//! algorithm. So the block's owner, the leader and the root agree on its path, and nobody else
//! needs to know its size.
//!
//! Invariants:
//! - a host's bundle has a record for each of its ranks: the length of the block, then the block if
//!   it is short, so lengths that do not fit together are an error;
//! - ranks on the root's host, and those alone on theirs, exchange with the root directly.

use std::ops::Range;

use datatype::Buffer;

use super::blocks::Blocks;
use super::call::Call;
use super::pending::wrong_length;
use super::two_level::Levels;
use crate::Result;
use crate::algorithms::{Algorithm, Collective};

/// Bytes of the length with which each rank's record in a bundle begins.
const LENGTH: usize = size_of::<u64>();

/// True if a block of `bytes` bytes travels through the leader of its host.
fn is_short(call: &Call<'_>, of: Collective, bytes: usize) -> bool {
    let case = call.case(bytes.next_power_of_two());
    call.choose(of, case) == Algorithm::TwoLevel
}

fn length(of: &Buffer) -> usize {
    let mut bytes = [0; LENGTH];
    of.pack(0, &mut bytes);
    u64::from_ne_bytes(bytes) as usize
}

fn set_length(of: &Buffer, bytes: usize) {
    of.unpack(0, &(bytes as u64).to_ne_bytes());
}

/// The records of a host's ranks, in adjacent memory: for each the length of its block, then the
/// block if it is short.
struct Bundle {
    room: Buffer,
    /// The position of each rank's record, in bytes.
    records: Vec<Range<usize>>,
    /// For each rank: true if its block is short, so that its record contains the block.
    short: Vec<bool>,
}

impl Bundle {
    /// A bundle with room for short blocks of these lengths, in which all lengths are already
    /// written.
    fn new(
        call: &Call<'_>,
        of: Collective,
        lengths: impl Iterator<Item = usize> + Clone,
    ) -> Result<Bundle> {
        let short: Vec<bool> = lengths
            .clone()
            .map(|bytes| is_short(call, of, bytes))
            .collect();
        let mut end = 0;
        let record = |(bytes, &short): (usize, &bool)| {
            let start = end;
            end += LENGTH + if short { bytes } else { 0 };
            start..end
        };
        let records: Vec<Range<usize>> = lengths.clone().zip(&short).map(record).collect();
        let bundle = Bundle {
            room: call.bytes(end)?,
            records,
            short,
        };
        for (place, bytes) in lengths.enumerate() {
            set_length(&bundle.record(place), bytes);
        }
        Ok(bundle)
    }

    fn record(&self, place: usize) -> Buffer {
        let Range { start, end } = self.records[place].clone();
        self.room.slice(start, end - start)
    }

    /// The block in a rank's record; `None` if the block is long.
    fn block(&self, place: usize) -> Option<Buffer> {
        let whole = || self.record(place).slice(LENGTH, usize::MAX);
        self.short[place].then(whole)
    }
}

/// True if the short blocks of a host go through the host's leader.
fn is_bundled(levels: &Levels<'_>, host: usize, of_root: usize) -> bool {
    host != of_root && levels.hosts()[host].len() > 1
}

/// A gather in which each leader sends the short blocks of its host to the root in one message.
pub(super) async fn gather(
    call: &Call<'_>,
    ours: Option<&Buffer>,
    all: Option<&Blocks>,
    root: usize,
) -> Result<()> {
    let levels = Levels::rooted(call, root);
    let of_root = levels.shape.host_of(root);
    match (ours, all) {
        (_, Some(all)) if call.me() == root => take_all(call, &levels, ours, all).await,
        (Some(ours), _) if is_bundled(&levels, levels.host, of_root) => {
            hand_in(call, &levels, ours, root).await
        }
        (Some(ours), _) => call.send(root, ours.clone())?.await,
        _ => Ok(()),
    }
}

/// The root's part of a gather: receives the short blocks of each host in a bundle, and long
/// blocks.
async fn take_all(
    call: &Call<'_>,
    levels: &Levels<'_>,
    ours: Option<&Buffer>,
    all: &Blocks,
) -> Result<()> {
    let (me, Some(across)) = (call.me(), levels.across(call)) else {
        return Ok(());
    };
    let (mut bundles, mut direct) = (Vec::new(), Vec::new());
    for (host, members) in levels.hosts().iter().enumerate() {
        let lengths = members.iter().map(|&member| all.len(member as usize));
        let bundle = match is_bundled(levels, host, levels.host) {
            true => Some(Bundle::new(call, Collective::Gather, lengths)?),
            false => None,
        };
        for (place, member) in members.iter().map(|&member| member as usize).enumerate() {
            let is_in = |bundle: &Bundle| bundle.short[place];
            if member != me && !bundle.as_ref().is_some_and(is_in) {
                direct.push(call.receive(member, all.part(member))?);
            }
        }
        if let Some(bundle) = bundle {
            let receiving = across.receive(host, bundle.room.clone())?;
            bundles.push((members, bundle, receiving));
        }
    }
    if let Some(ours) = ours {
        call.copy(ours, &all.part(me));
    }
    for (members, bundle, receiving) in bundles {
        receiving.await?;
        for (place, member) in members.iter().map(|&member| member as usize).enumerate() {
            let (sent, part) = (length(&bundle.record(place)), all.part(member));
            if sent != part.len() {
                return Err(wrong_length(member, sent, part.len()));
            }
            if let Some(block) = bundle.block(place) {
                call.copy(&block, &part);
            }
        }
    }
    for receiving in direct {
        receiving.await?;
    }
    Ok(())
}

/// A rank's part in a gather, if the short blocks of its host go through the leader in a bundle.
async fn hand_in(call: &Call<'_>, levels: &Levels<'_>, ours: &Buffer, root: usize) -> Result<()> {
    let inside = levels.inside(call);
    // A long block is sent meanwhile.
    let own_way = match is_short(call, Collective::Gather, ours.len()) {
        true => None,
        false => Some(call.send(root, ours.clone())?),
    };
    match levels.across(call) {
        Some(across) => {
            let bundle = collect(call, &inside, ours).await?;
            let of_root = levels.shape.host_of(root);
            across.send(of_root, bundle.room)?.await?;
        }
        None => {
            let announced = call.bytes(LENGTH)?;
            set_length(&announced, ours.len());
            let announcing = inside.send(levels.leader(), announced)?;
            if own_way.is_none() {
                inside.send(levels.leader(), ours.clone())?.await?;
            }
            announcing.await?;
        }
    }
    match own_way {
        Some(sending) => sending.await,
        None => Ok(()),
    }
}

/// Collects the lengths and short blocks of this leader's host in a bundle.
async fn collect(call: &Call<'_>, inside: &Call<'_>, ours: &Buffer) -> Result<Bundle> {
    let others = (0..inside.size()).filter(|&place| place != inside.me());
    let lengths = call.bytes(inside.size() * LENGTH)?;
    let of = |place: usize| lengths.slice(place * LENGTH, LENGTH);
    set_length(&of(inside.me()), ours.len());
    let announced: Result<Vec<_>> = others
        .clone()
        .map(|place| inside.receive(place, of(place)))
        .collect();
    for receiving in announced? {
        receiving.await?;
    }
    let known: Vec<usize> = (0..inside.size()).map(|place| length(&of(place))).collect();
    let bundle = Bundle::new(call, Collective::Gather, known.into_iter())?;
    let blocks: Result<Vec<_>> = others
        .filter_map(|place| Some((place, bundle.block(place)?)))
        .map(|(place, block)| inside.receive(place, block))
        .collect();
    if let Some(own) = bundle.block(inside.me()) {
        call.copy(ours, &own);
    }
    for receiving in blocks? {
        receiving.await?;
    }
    Ok(bundle)
}

/// A scatter in which the root sends the short blocks of each host to the host's leader in one
/// message; the leader passes them on.
pub(super) async fn scatter(
    call: &Call<'_>,
    all: Option<&Blocks>,
    ours: Option<&Buffer>,
    root: usize,
) -> Result<()> {
    let levels = Levels::rooted(call, root);
    let of_root = levels.shape.host_of(root);
    match (all, ours) {
        (Some(all), _) if call.me() == root => give_all(call, &levels, all, ours).await,
        (_, Some(ours)) if is_bundled(&levels, levels.host, of_root) => {
            take_own(call, &levels, ours, root).await
        }
        (_, Some(ours)) => call.receive(root, ours.clone())?.await,
        _ => Ok(()),
    }
}

/// The root's part of a scatter: sends the short blocks of each host in a bundle, and long blocks.
async fn give_all(
    call: &Call<'_>,
    levels: &Levels<'_>,
    all: &Blocks,
    ours: Option<&Buffer>,
) -> Result<()> {
    let (me, Some(across)) = (call.me(), levels.across(call)) else {
        return Ok(());
    };
    let mut sending = Vec::new();
    for (host, members) in levels.hosts().iter().enumerate() {
        let members = members.iter().map(|&member| member as usize);
        let mut bundle = None;
        if is_bundled(levels, host, levels.host) {
            let lengths = members.clone().map(|member| all.len(member));
            let filled = Bundle::new(call, Collective::Scatter, lengths.clone())?;
            let announced = call.bytes(members.len() * LENGTH)?;
            for ((place, member), bytes) in members.clone().enumerate().zip(lengths) {
                set_length(&announced.slice(place * LENGTH, LENGTH), bytes);
                if let Some(block) = filled.block(place) {
                    call.copy(&all.part(member), &block);
                }
            }
            sending.push(across.send(host, announced)?);
            sending.push(across.send(host, filled.room.clone())?);
            bundle = Some(filled);
        }
        for (place, member) in members.enumerate() {
            let is_in = |bundle: &Bundle| bundle.short[place];
            if member != me && !bundle.as_ref().is_some_and(is_in) {
                sending.push(call.send(member, all.part(member))?);
            }
        }
    }
    if let Some(ours) = ours {
        call.copy(&all.part(me), ours);
    }
    for one in sending {
        one.await?;
    }
    Ok(())
}

/// A rank's part in a scatter, if the short blocks of its host go through the leader in a bundle.
async fn take_own(call: &Call<'_>, levels: &Levels<'_>, ours: &Buffer, root: usize) -> Result<()> {
    let inside = levels.inside(call);
    let short = is_short(call, Collective::Scatter, ours.len());
    // A long block is received meanwhile.
    let own_way = match short {
        true => None,
        false => Some(call.receive(root, ours.clone())?),
    };
    let (record, handing_out) = match levels.across(call) {
        Some(across) => {
            let of_root = levels.shape.host_of(root);
            let announced = call.bytes(inside.size() * LENGTH)?;
            across.receive(of_root, announced.clone())?.await?;
            let lengths =
                (0..inside.size()).map(|place| length(&announced.slice(place * LENGTH, LENGTH)));
            let bundle = Bundle::new(call, Collective::Scatter, lengths)?;
            across.receive(of_root, bundle.room.clone())?.await?;
            let handing_out: Result<Vec<_>> = (0..inside.size())
                .filter(|&place| place != inside.me())
                .map(|place| inside.send(place, bundle.record(place)))
                .collect();
            (bundle.record(inside.me()), handing_out?)
        }
        None => {
            let record = call.bytes(LENGTH + if short { ours.len() } else { 0 })?;
            inside.receive(levels.leader(), record.clone())?.await?;
            (record, Vec::new())
        }
    };
    let sent = length(&record);
    for sending in handing_out {
        sending.await?;
    }
    if sent != ours.len() {
        return Err(wrong_length(root, sent, ours.len()));
    }
    match own_way {
        Some(receiving) => receiving.await,
        None => {
            call.copy(&record.slice(LENGTH, usize::MAX), ours);
            Ok(())
        }
    }
}
