//! The memory that ranks attach to dynamic windows. Other ranks name it by its addresses in the
//! recorded run, and here by those that it has here.
//!
//! Unlike buffers, attached memory does not overlap: a window refuses that.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use mpi::comm::Core;
use trace::{Call, Signature, Value};

use crate::scratch::Scratch;

/// The distance of the memory of two regions is a multiple of this number of bytes.
const ALIGNED: u64 = 64;

/// The memory that all ranks have attached to dynamic windows.
#[derive(Clone)]
pub(crate) struct Regions(Rc<RefCell<Vec<Vec<Region>>>>);

/// A dynamic window, in terms that are equal on all of its ranks: the context of the communicator,
/// and the number of dynamic windows that this communicator had before.
type Window = (u64, usize);

/// A region of memory that is attached to dynamic windows.
struct Region {
    window: Window,
    /// The number of the trace's buffer to which the memory belongs.
    buffer: i64,
    /// The region's first address in the recorded run.
    recorded: u64,
    size: u64,
    /// The region's first address in the replay.
    address: u64,
}

impl Regions {
    /// A table for `ranks` ranks, none of which has attached memory.
    pub(crate) fn new(ranks: usize) -> Regions {
        let none = (0..ranks).map(|_| Vec::new()).collect();
        Regions(Rc::new(RefCell::new(none)))
    }
}

/// The dynamic windows of one rank, with the memory attached to them.
pub(crate) struct Attached<'a> {
    regions: &'a Regions,
    scratch: &'a Scratch,
    rank: usize,
    /// The dynamic windows of the rank by their numbers in the trace, each with its members.
    windows: HashMap<i64, (Window, Arc<Core>)>,
    /// The number of windows that each communicator's context has made.
    made: HashMap<u64, usize>,
    /// The recorded address of the memory that the next call attaches.
    had: u64,
}

impl<'a> Attached<'a> {
    /// The state of a rank that has no dynamic windows yet.
    pub(crate) fn new(regions: &'a Regions, scratch: &'a Scratch, rank: usize) -> Attached<'a> {
        Attached {
            regions,
            scratch,
            rank,
            windows: HashMap::new(),
            made: HashMap::new(),
            had: 0,
        }
    }

    /// Keeps the recorded address of the memory that the next call attaches.
    pub(crate) fn had(&mut self, address: u64) {
        self.had = address;
    }

    /// Keeps a window that a call has made, with its members.
    pub(crate) fn made(&mut self, win: i64, members: Arc<Core>) {
        let before = self.made.entry(members.context).or_insert(0);
        let window = (members.context, *before);
        *before += 1;
        self.windows.insert(win, (window, members));
    }

    /// The address of the memory that a call attaches or detaches, and which is buffer number
    /// `buffer` in the trace.
    pub(crate) fn base(
        &self,
        signature: &Signature,
        call: &Call,
        buffer: i64,
    ) -> Result<u64, String> {
        let number = |name: &str| call.values[signature.position(name)?].number();
        let known = number("win").and_then(|win| self.windows.get(&win));
        let window = known.ok_or("its window is not dynamic")?.0;
        let mut all = self.regions.0.borrow_mut();
        let own = &mut all[self.rank];
        let Some(size) = number("size") else {
            let is_it = |one: &Region| one.window == window && one.buffer == buffer;
            let at = own.iter().position(is_it).ok_or("it is not attached")?;
            return Ok(own.swap_remove(at).address);
        };
        let size = u64::try_from(size).map_err(|_| "a negative size")?;
        let apart = self.scratch.apart(self.rank);
        let last = own.iter().map(|one| one.address + one.size.max(1)).max();
        let address = last.unwrap_or(apart.start).next_multiple_of(ALIGNED);
        let end = address.checked_add(size);
        if end.is_none_or(|end| end > apart.end) {
            return Err("more attached memory than a replay can have".into());
        }
        own.push(Region {
            window,
            buffer,
            recorded: self.had,
            size,
            address,
        });
        Ok(address)
    }

    /// The displacement at the target for a recorded one: in a dynamic window, the replay's
    /// address.
    pub(crate) fn target(
        &self,
        signature: &Signature,
        call: &Call,
        recorded: i64,
    ) -> Result<i64, String> {
        let value = |name: &str| Some(&call.values[signature.position(name)?]);
        let Some(win) = value("win").and_then(Value::number) else {
            return Ok(recorded);
        };
        let Some((window, members)) = self.windows.get(&win) else {
            return Ok(recorded);
        };
        let target = value("target_rank").and_then(Value::number);
        let target = target.and_then(|rank| usize::try_from(rank).ok());
        let Some(world) = target.and_then(|rank| members.members.world(rank)) else {
            return Ok(recorded);
        };
        let all = self.regions.0.borrow();
        let place = |one: &Region, end: u64| {
            let offset = (recorded as u64).checked_sub(one.recorded)?;
            let is_held = one.window == *window && offset < end;
            is_held.then_some((one.address + offset) as i64)
        };
        let held = all[world].iter().find_map(|one| place(one, one.size));
        // An access of no bytes may begin at the end.
        let held = held.or_else(|| all[world].iter().find_map(|one| place(one, one.size + 1)));
        held.ok_or_else(|| format!("rank {world} has not attached memory that the call reaches"))
    }
}
