//! The sizes of the data that calls move.

use std::collections::HashMap;

use datatype::{Predefined, Type};
use trace::{Call, Fact, Signature, Value};

/// The sizes of the datatypes of one rank. The sizes of datatypes that the program has made are
/// facts of the trace.
#[derive(Default)]
pub(crate) struct Sizes(HashMap<i64, u64>);

/// The elements that a call moves: their number, and the number of their datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    count: u64,
    datatype: i64,
}

impl Moved {
    /// The number of elements of the first buffer of a call that has one such number. `None`: it
    /// has no such buffer.
    pub(crate) fn of(signature: &Signature, call: &Call) -> Option<Moved> {
        if Fact::of(signature).is_some() {
            return None;
        }
        let kinds = signature.parameters.windows(2);
        let mut all = kinds.zip(call.values.windows(2));
        all.find_map(|(parameters, values)| {
            let kinds = [&parameters[0].kind, &parameters[1].kind];
            let count = values[0]
                .number()
                .filter(|_| kinds == ["count", "datatype"])?;
            Some(Moved {
                count: u64::try_from(count).unwrap_or(0),
                datatype: values[1].number().unwrap_or(0),
            })
        })
    }
}

impl Sizes {
    /// Keeps the size of a datatype, if the line of the trace gives it.
    pub(crate) fn keep(&mut self, signature: &Signature, line: &Call) {
        if let [Value::Number(datatype), Value::Number(size)] = line.values[..]
            && Fact::of(signature) == Some(Fact::TypeSize)
        {
            self.0.insert(datatype, size as u64);
        }
    }

    /// The bytes of these elements. Elements of a datatype whose size is unknown count as bytes.
    pub(crate) fn of(&self, moved: &Moved) -> u64 {
        let made = || self.0.get(&moved.datatype).copied();
        let size = size_of(moved.datatype).or_else(made).unwrap_or(1);
        moved.count.saturating_mul(size)
    }
}

/// The size in bytes of a datatype with this number, if it is predefined.
pub fn size_of(datatype: i64) -> Option<u64> {
    let handle = usize::try_from(datatype).ok()?;
    Some(Type::Predefined(Predefined::from_handle(handle)?).size() as u64)
}
