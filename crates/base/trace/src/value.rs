//! The values of a call's parameters, in terms that hold outside the process that made the call.

use crate::bytes::{Bytes, Result, put, put_bytes, put_signed};
use crate::signature::{Access, Parameter, Signature};

/// The number of the first object that a rank makes, in each class of handles. Below it are the
/// predefined handles of the standard ABI.
pub const FIRST_MADE: i64 = 4096;
/// The number of the first buffer of a rank; further buffers are numbered in the order of their
/// first use. Smaller numbers are addresses that no program has: NULL, and constants such as
/// MPI_IN_PLACE.
pub const NUMBER_OF_MEMORY: i64 = 4096;

/// The value of a parameter, in terms that hold outside its process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// No value: one that the trace does not keep, or an array that the call does not read.
    Absent,
    /// A number, or the number of a handle.
    Number(i64),
    /// A rank, as its distance from the calling rank in the communicator of the call. Ranks of a
    /// regular program have equal distances to their peers.
    Relative(i64),
    /// Any source, which was the rank at this distance in the recorded run.
    Met(i64),
    /// An array of numbers.
    Numbers(Vec<i64>),
    /// A text, or the pairs of an info object, each part of which ends with a zero byte.
    Text(Vec<u8>),
}

/// A call: a procedure and the values of its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The number of the procedure's signature.
    pub signature: u32,
    /// A value for each parameter.
    pub values: Vec<Value>,
}

impl Value {
    /// The number that the value is, if it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The numbers of an array; none, if the value is not an array.
    pub fn numbers(&self) -> &[i64] {
        match self {
            Value::Numbers(numbers) => numbers,
            _ => &[],
        }
    }

    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Value::Absent => to.push(0),
            Value::Number(number) => {
                to.push(1);
                put_signed(to, *number);
            }
            Value::Relative(distance) => {
                to.push(2);
                put_signed(to, *distance);
            }
            Value::Met(distance) => {
                to.push(5);
                put_signed(to, *distance);
            }
            Value::Numbers(numbers) => {
                to.push(3);
                let runs = numbers.chunk_by(|a, b| a == b);
                put(to, runs.clone().count() as u64);
                for run in runs {
                    put_signed(to, run[0]);
                    put(to, run.len() as u64);
                }
            }
            Value::Text(text) => {
                to.push(4);
                put_bytes(to, text);
            }
        }
    }

    fn read(from: &mut Bytes) -> Result<Value> {
        Ok(match from.take(1)?[0] {
            0 => Value::Absent,
            1 => Value::Number(from.signed()?),
            2 => Value::Relative(from.signed()?),
            3 => {
                let mut numbers = Vec::new();
                for _ in 0..from.count()? {
                    let (number, run) = (from.signed()?, from.number()?);
                    let Some(left) = from.numbers.checked_sub(run) else {
                        return from.wrong("an array that is too long");
                    };
                    from.numbers = left;
                    numbers.resize(numbers.len() + run as usize, number);
                }
                Value::Numbers(numbers)
            }
            4 => Value::Text(from.bytes()?.to_vec()),
            5 => Value::Met(from.signed()?),
            _ => return from.wrong("a value of an unknown form"),
        })
    }

    /// True if the value can be that of the parameter.
    fn fits(&self, parameter: &Parameter) -> bool {
        match self {
            Value::Absent => true,
            Value::Text(_) => ["str", "info"].contains(&parameter.kind.as_str()),
            Value::Numbers(_) => parameter.is_array(),
            Value::Relative(_) => ["dest", "source"].contains(&parameter.kind.as_str()),
            Value::Met(_) => parameter.kind == "source",
            Value::Number(_) => !parameter.is_array() || parameter.access == Access::In,
        }
    }
}

impl Call {
    /// The values of a receive from any source whose message came from the rank at this distance.
    pub(crate) fn met(&self, signature: &Signature, distance: i64) -> Vec<Value> {
        let mut values = self.values.clone();
        if let Some(at) = signature.first_of("source") {
            values[at] = Value::Met(distance);
        }
        values
    }

    /// The call that receives from the recorded source, if the original one receives from any
    /// source.
    pub(crate) fn frozen(&self) -> Call {
        let frozen = |value: &Value| match value {
            Value::Met(distance) => Value::Relative(*distance),
            other => other.clone(),
        };
        Call {
            signature: self.signature,
            values: self.values.iter().map(frozen).collect(),
        }
    }

    /// Appends the values. Their number follows from the signature.
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put(to, self.signature.into());
        self.values.iter().for_each(|value| value.put(to));
    }

    pub(crate) fn read(from: &mut Bytes, signatures: &[Signature]) -> Result<Call> {
        let signature = from.below(signatures.len(), "the signature")?;
        let parameters = &signatures[signature as usize].parameters;
        let mut values = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            let value = Value::read(from)?;
            if !value.fits(parameter) {
                return from.wrong(&format!("a value that {} cannot have", parameter.name));
            }
            values.push(value);
        }
        Ok(Call { signature, values })
    }
}
