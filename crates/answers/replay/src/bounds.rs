//! The memory that a call may reach from the address of its buffers, so that no trace makes a
//! replay use other memory than its own.

use mpi::State;
use trace::{Call, Signature, Value};

/// The parameters that count bytes, although their kinds count elements.
const BYTES: [&str; 3] = ["insize", "outsize", "position"];

/// An upper bound on the bytes before and behind the address of a buffer that a call reaches.
/// `datatypes`: the handles of its datatypes. `ranks`: the ranks of its communicator.
pub(crate) fn reach(
    state: &State,
    signature: &Signature,
    call: &Call,
    datatypes: &[u32],
    ranks: u64,
) -> u128 {
    let (mut count, mut displacement, mut bytes) = (1u128, 0u128, 0u128);
    for (parameter, value) in signature.parameters.iter().zip(&call.values) {
        let largest = match value {
            Value::Number(number) => number.unsigned_abs(),
            Value::Numbers(numbers) => {
                let all = numbers.iter().map(|number| number.unsigned_abs());
                all.max().unwrap_or(0)
            }
            _ => 0,
        };
        match parameter.kind.as_str() {
            _ if BYTES.contains(&parameter.name.as_str()) => bytes = bytes.max(largest.into()),
            "bytes" | "size" => bytes = bytes.max(largest.into()),
            "count" | "count_at_root" | "xcount" => {
                count = count.max(largest.into());
            }
            // A displacement at a target is no part of this: the target has bounds of its own.
            "displ" | "extent" | "stride" => {
                displacement = displacement.max(largest.into());
            }
            _ => (),
        }
    }
    let mut extent = 1u128;
    for &datatype in datatypes {
        // A datatype that does not exist is an error of the call, or the call does not read it.
        if let Ok(ty) = state.objects().types().get(datatype) {
            let parts = [ty.extent(), ty.lb(), ty.true_lb(), ty.true_extent()];
            let parts = parts.iter().map(|part| part.unsigned_abs() as u128);
            extent = extent.max(parts.sum::<u128>() + ty.size() as u128);
        }
    }
    (count * u128::from(ranks.max(1)) + displacement + 1).saturating_mul(extent) + bytes
}
