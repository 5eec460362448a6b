//! The logs that a run leaves in the memory of its world, for a reader that has the world's file
//! after the ranks have ended. The memory belonged to arbitrary programs, so its contents are not
//! trusted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use datatype::local_work::{LocalWork, Rates};
use sim::log;

use super::record::{
    MOST, MOST_NAMES, MOST_NOTES, MOST_STEPS, MOST_WORK, NAME, NAMES, NOTE, NOTES, ROW, SPANS,
    STEP, STEPS, WORK,
};
use super::span::{SPAN, Span};
use super::trace::Record;

impl Record {
    /// Reads the record of activity from the file of a world.
    pub fn read(world: &File) -> io::Result<Record> {
        let kept = log::read::<SPAN>(world, SPANS, MOST)?;
        Ok(Record {
            spans: kept.entries.into_iter().filter_map(Span::decode).collect(),
            names: names(world)?,
            lost: kept.lost,
        })
    }
}

/// Reads the names of calls from the file of a world.
fn names(world: &File) -> io::Result<Vec<String>> {
    let kept = log::read::<NAME>(world, NAMES, MOST_NAMES)?;
    let name = |words: [u64; NAME]| -> String {
        let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
        let named = bytes.take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        named.map(char::from).collect()
    };
    Ok(kept.entries.into_iter().map(name).collect())
}

/// The times of the ranks' work on their own memory, as rates, from the file of a world.
pub fn local_work(world: &File) -> io::Result<Rates> {
    let kept = log::read::<ROW>(world, WORK, MOST_WORK)?;
    let mut sums: BTreeMap<(u64, u32), [u64; 2]> = BTreeMap::new();
    for [kind, class, amount, picos] in kept.entries {
        // A length has fewer than 64 classes.
        let sums = sums.entry((kind, class.min(62) as u32)).or_default();
        *sums = [
            sums[0].saturating_add(amount),
            sums[1].saturating_add(picos),
        ];
    }
    let mut rates = Rates::none();
    for ((kind, class), [amount, picos]) in sums {
        if let Some(work) = LocalWork::decode(kind) {
            rates.set_sum(work, class, amount, picos);
        }
    }
    Ok(rates)
}

/// The virtual times at which each of `ranks` ranks began the steps that its trace marks, in
/// picoseconds.
pub fn steps(world: &File, ranks: usize) -> io::Result<Vec<Vec<u64>>> {
    let kept = log::read::<STEP>(world, STEPS, MOST_STEPS)?;
    let mut times = vec![Vec::new(); ranks];
    for [rank, time] in kept.entries {
        if let Some(times) = times.get_mut(rank as usize) {
            times.push(time);
        }
    }
    Ok(times)
}

/// The notes of all ranks of a run.
#[derive(Debug, Default)]
pub struct Notes {
    /// The notes, each with its time in picoseconds and the number of its call's name, in the order
    /// of recording. The notes of one rank are in the order of time.
    pub entries: Vec<(u64, u32, device::Note)>,
    /// The names of calls, by number.
    pub names: Vec<String>,
    /// The number of notes that did not fit into the log.
    pub lost: u64,
}

impl Notes {
    /// Reads the notes from the file of a world.
    pub fn read(world: &File) -> io::Result<Notes> {
        let kept = log::read::<NOTE>(world, NOTES, MOST_NOTES)?;
        let entry = |[time, call, note @ ..]: [u64; NOTE]| (time, call as u32, note);
        Ok(Notes {
            entries: kept.entries.into_iter().map(entry).collect(),
            names: names(world)?,
            lost: kept.lost,
        })
    }
}
