//! Headings in registered memory: those of a queue of requests, or of a queue of receives.

use crate::wr_table::Receives;
use crate::{Access, Device, Error, Region, Result, Slice};

/// The length of the heading that stands for an immediate, in bytes.
pub(super) const HEADING: usize = 8;
/// The greatest number of slices of a request or a receive, including the heading.
const PIECES: usize = 9;

/// Kind of a heading, in its upper two bits: a message without an immediate follows it.
pub(super) const PLAIN: u64 = 1 << 62;
/// Kind of a heading: a message follows it, with the immediate in the lower half.
pub(super) const IMMEDIATE: u64 = 2 << 62;
/// Kind of a heading: the end of a write, with its length and the immediate in the lower half.
pub(super) const WRITTEN: u64 = 3 << 62;
/// The mask of the bits of a heading that contain its kind.
pub(super) const KIND: u64 = 3 << 62;
/// The longest write with an immediate, in bytes: its length has 30 bits, behind those of the kind.
pub(super) const LONGEST: u64 = (1 << 30) - 1;

/// Registered memory for the headings that replace the immediates of one queue.
pub(super) struct Headings {
    words: Box<[u64]>,
    pub region: Region,
}

impl Headings {
    pub(super) fn new(device: &mut dyn Device, count: usize, access: Access) -> Result<Headings> {
        let mut words = vec![0; count.next_power_of_two()].into_boxed_slice();
        // SAFETY: the memory outlives the device's use of it, and is read only where no request
        // uses it.
        let region =
            unsafe { device.register(words.as_mut_ptr().cast(), size_of_val(&*words), access)? };
        Ok(Headings { words, region })
    }

    fn place(&self, slot: u32) -> usize {
        slot as usize & (self.words.len() - 1)
    }

    pub(super) fn slice(&self, slot: u32) -> Slice {
        Slice {
            address: self.region.address + (HEADING * self.place(slot)) as u64,
            len: HEADING as u32,
            lkey: self.region.lkey,
        }
    }

    pub(super) fn write(&mut self, slot: u32, heading: u64) -> Slice {
        let place = self.place(slot);
        self.words[place] = heading.to_le();
        self.slice(slot)
    }

    pub(super) fn read(&self, slot: u32) -> u64 {
        // SAFETY: within the memory; the completion ends the device's use of this heading.
        u64::from_le(unsafe { std::ptr::read_volatile(&raw const self.words[self.place(slot)]) })
    }
}

/// The posted receives of a queue, with the memory for their headings.
pub(super) struct Incoming {
    pub receives: Receives,
    pub headings: Headings,
}

impl Incoming {
    pub(super) fn new(device: &mut dyn Device, depth: usize) -> Result<Incoming> {
        let access = Access {
            local_write: true,
            ..Access::default()
        };
        Ok(Incoming {
            receives: Receives::new(depth),
            headings: Headings::new(device, depth, access)?,
        })
    }
}

/// The slices of a request: that of the heading, and those behind it; and their number.
pub(super) fn pieces(heading: Slice, behind: &[Slice]) -> Result<([Slice; PIECES], usize)> {
    let mut all = [heading; PIECES];
    let count = 1 + behind.len();
    match all.get_mut(1..count) {
        Some(place) => place.copy_from_slice(behind),
        None => {
            let most = PIECES - 1;
            return Err(Error::Invalid(format!(
                "a request with {} pieces of memory; it takes at most {most}",
                behind.len()
            )));
        }
    }
    Ok((all, count))
}
