//! Operations of origins and the elements that they access at targets, with the checks that need no
//! message to a peer.

use datatype::{Buffer, Elements, Op, Predefined, Type};

use crate::{Class, Error, Result};

/// An access to a window, with the memory of its origin.
#[derive(Clone, Debug)]
pub enum Access {
    /// `MPI_Put`.
    Put(Buffer),
    /// `MPI_Get`.
    Get(Buffer),
    /// `MPI_Accumulate`.
    Accumulate {
        /// The operands in the memory of the origin.
        origin: Elements,
        /// The operation that combines operands and target.
        op: Op,
    },
    /// `MPI_Get_accumulate` and `MPI_Fetch_and_op`.
    GetAccumulate {
        /// The operands. They are not read with `MPI_NO_OP`, and may then be absent.
        origin: Option<Elements>,
        /// Memory for the old contents of the target.
        result: Elements,
        /// The operation that combines operands and target.
        op: Op,
    },
    /// `MPI_Compare_and_swap`; every value has one element.
    CompareAndSwap {
        /// The value that the target must have.
        compare: Elements,
        /// The new value for the target.
        origin: Elements,
        /// Memory for the old value of the target.
        result: Elements,
    },
}

/// The elements of a target's part that an operation accesses.
#[derive(Clone, Debug)]
pub struct Place {
    /// The target's rank in the window, or `MPI_PROC_NULL`.
    pub rank: i32,
    /// Displacement in the target's units, or an address in a dynamic window.
    pub disp: i64,
    /// The number of elements that are accessed.
    pub count: usize,
    /// The datatype of the elements.
    pub ty: Type,
}

impl Place {
    /// The number of bytes of data in these elements.
    ///
    /// # Errors
    /// The number does not fit into an address space.
    pub(super) fn bytes(&self) -> Result<usize> {
        let bytes = self.count.checked_mul(self.ty.size());
        bytes.ok_or_else(|| {
            let detail = format!("{} elements at the target do not fit memory", self.count);
            Error::new(Class::COUNT, detail)
        })
    }
}

impl Access {
    /// Checks the operation, and returns the number of bytes that it moves to or from `place`.
    ///
    /// # Errors
    /// Types, lengths or the operation do not fit together.
    pub(super) fn check(&self, place: &Place) -> Result<usize> {
        let target = place.bytes()?;
        match self {
            Access::Put(origin) => fits("origin", origin.len(), "target", target),
            Access::Get(origin) => fits("target", target, "origin", origin.len()),
            Access::Accumulate { origin, .. } if origin.bytes() == 0 => Ok(0),
            Access::Accumulate { origin, op } => {
                computes(*op, &place.ty, &[origin])?;
                fits("origin", origin.bytes(), "target", target)
            }
            Access::GetAccumulate { origin, result, op } => {
                let operands = origin.as_ref().filter(|_| *op != Op::NoOp);
                if operands.map_or(target, Elements::bytes) == 0 {
                    return Ok(0);
                }
                let all: Vec<&Elements> = operands.into_iter().chain([result]).collect();
                computes(*op, &place.ty, &all)?;
                if let Some(operands) = operands {
                    fits("origin", operands.bytes(), "target", target)?;
                }
                let moved = operands.map_or(target, Elements::bytes);
                fits("target", moved, "result", result.bytes())
            }
            Access::CompareAndSwap { .. } => {
                compares(&place.ty)?;
                Ok(target)
            }
        }
    }
}

/// Returns `len` if data of this length fit into memory of `room` bytes.
fn fits(from: &str, len: usize, to: &str, room: usize) -> Result<usize> {
    match len <= room {
        true => Ok(len),
        false => Err(Error::new(
            Class::TRUNCATE,
            format!("the {from} has {len} bytes, the {to} room for {room}"),
        )),
    }
}

/// The basic type on which an operation computes at the target.
///
/// # Errors
/// The operation is not defined for a type of the operands, or their basic types have different
/// sizes.
fn computes(op: Op, target: &Type, operands: &[&Elements]) -> Result<()> {
    let basic = operand(op, target)?;
    for elements in operands.iter().filter(|elements| elements.count() > 0) {
        let ty = operand(op, elements.ty())?;
        if ty.size() != basic.size() {
            let detail = format!(
                "the origin has elements of {}, the target of {}: they must be alike",
                ty.name(),
                basic.name()
            );
            return Err(Error::new(Class::TYPE, detail));
        }
    }
    Ok(())
}

/// The basic type of an operand of an accumulate.
pub(super) fn operand(op: Op, ty: &Type) -> Result<Predefined> {
    match ty.basic() {
        Some(basic) if op.permits(basic) => Ok(basic),
        Some(ty) => Err(datatype::Error::Operation { op, ty }.into()),
        None => Err(Error::new(
            Class::TYPE,
            "an accumulate needs a datatype with one basic type (MPI 5.0 §12.3.4)",
        )),
    }
}

/// The type of a compare-and-swap, if it can be compared.
pub(super) fn compares(ty: &Type) -> Result<Predefined> {
    // Integers, multi-language types and bytes are compared by bits, logical types by truth values.
    let allowed = |basic: &Predefined| Op::Band.permits(*basic) || Op::Land.permits(*basic);
    ty.predefined().filter(allowed).ok_or_else(|| {
        Error::new(
            Class::TYPE,
            "a compare-and-swap needs a predefined integer, logical, multi-language or byte type \
             (MPI 5.0 §12.3.4)",
        )
    })
}
