//! The sizes of the datatypes that a rank makes.

use std::collections::HashMap;

use crate::comms::Step;
use crate::value::FIRST_MADE;
use crate::{Access, Trace};

/// The sizes of the datatypes of a rank, in bytes, by their numbers.
#[derive(Default)]
pub(super) struct Sizes(HashMap<i64, u64>);

/// The size of a predefined datatype by its number in the ABI.
pub(super) type Predefined<'a> = dyn Fn(i64) -> Option<u64> + 'a;

impl Sizes {
    /// The size of a datatype in bytes. `None`: it is unknown.
    pub(super) fn get(&self, datatype: i64, predefined: &Predefined) -> Option<u64> {
        match datatype {
            FIRST_MADE.. => self.0.get(&datatype).copied(),
            _ => predefined(datatype),
        }
    }

    /// Records the datatype that a call makes, if it makes one.
    pub(super) fn follow(&mut self, trace: &Trace, step: &Step, predefined: &Predefined) {
        let signature = trace.signature(step.call);
        let values = &trace.calls[step.call as usize].values;
        let made = |one: &crate::Parameter| one.kind == "datatype" && one.access == Access::Out;
        let Some(at) = signature.parameters.iter().position(made) else {
            return;
        };
        let Some(new) = values[at].number() else {
            return;
        };
        let value = |name: &str| signature.position(name).map(|at| &values[at]);
        let number = |name: &str| value(name)?.number();
        let numbers = |name: &str| value(name).map_or(&[][..], |value| value.numbers());
        let old = number("oldtype").and_then(|old| self.get(old, predefined));
        let lengths = numbers("array_of_blocklengths");
        let sum: i64 = lengths.iter().fold(0, |all, one| all.saturating_add(*one));
        let name = signature.name.strip_prefix("MPI_Type_").unwrap_or_default();
        let name = name.strip_suffix("_c").unwrap_or(name);
        let elements = match name.strip_prefix("create_").unwrap_or(name) {
            "contiguous" => number("count"),
            "vector" | "hvector" | "indexed_block" | "hindexed_block" => number("count")
                .zip(number("blocklength"))
                .map(|(count, length)| count.saturating_mul(length)),
            "indexed" | "hindexed" => Some(sum),
            "dup" | "resized" => Some(1),
            "subarray" => {
                let sides = numbers("array_of_subsizes").iter();
                Some(sides.fold(1, |all: i64, side| all.saturating_mul(*side)))
            }
            _ => None,
        };
        let size = match name {
            "create_struct" => {
                let types = numbers("array_of_types").iter();
                let parts = types.zip(lengths).map(|(old, length)| {
                    let size = self.get(*old, predefined)?;
                    size.checked_mul(u64::try_from(*length).ok()?)
                });
                parts.sum::<Option<u64>>()
            }
            _ => elements
                .and_then(|count| u64::try_from(count).ok())
                .zip(old)
                .and_then(|(count, size)| count.checked_mul(size)),
        };
        match size {
            Some(size) => self.0.insert(new, size),
            None => self.0.remove(&new),
        };
    }
}
