//! Operations of reductions, predefined and the user's (MPI 5.0 §6.9).

use std::sync::Arc;

use datatype::local_work::LocalWork;
use datatype::reduce::{Function, reduce_elements};
use datatype::{Elements, Op, Type};

use crate::handle::{ObjectKind, Slab};
use crate::{Class, Error, Result};

/// The operation of a reduction.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A predefined operation.
    Predefined(Op),
    /// An operation that the user made.
    User {
        /// The user's function that combines two vectors.
        function: Arc<Function>,
        /// True if the order of operands does not matter.
        commutative: bool,
        /// The handle of the elements' datatype, an argument of the function.
        datatype: usize,
    },
}

impl Operation {
    /// True if the order of operands does not matter.
    #[inline]
    pub fn is_commutative(&self) -> bool {
        match self {
            Operation::Predefined(op) => op.is_commutative(),
            Operation::User { commutative, .. } => *commutative,
        }
    }

    /// Checks that collectives may use the operation on this type.
    #[inline(always)]
    pub fn check(&self, ty: &Type) -> Result<()> {
        match (self, ty.predefined()) {
            (Operation::User { .. }, _) => Ok(()),
            (Operation::Predefined(op), Some(basic))
                if !op.is_accumulate_only() && op.permits(basic) =>
            {
                Ok(())
            }
            (Operation::Predefined(op), _) => Err(refused(*op, ty)),
        }
    }

    /// Checks that `MPI_Reduce_local` may combine these vectors.
    pub(crate) fn check_local(&self, input: &Elements, inout: &Elements) -> Result<()> {
        self.check(input.ty())?;
        if input.is(inout) && input.bytes() > 0 {
            return Err(Error::new(
                Class::BUFFER,
                "inbuf and inoutbuf are the same memory; they must not overlap",
            ));
        }
        Ok(())
    }

    /// The kind of work of a predefined operation on elements of this type. `None`: a user's
    /// operation.
    pub(crate) fn local_work(&self, ty: &Type) -> Option<LocalWork> {
        match self {
            Operation::Predefined(op) => Some(LocalWork::Combine(*op, ty.predefined()?)),
            Operation::User { .. } => None,
        }
    }

    /// Computes inout\[i\] = input\[i\] op inout\[i\]; `input` is the first operand where the order
    /// matters.
    #[inline]
    pub fn combine(&self, input: &Elements, inout: &Elements) -> Result<()> {
        match self {
            Operation::Predefined(op) => Ok(reduce_elements(*op, input, inout)?),
            Operation::User {
                function, datatype, ..
            } => {
                function.combine(input, inout, *datatype);
                Ok(())
            }
        }
    }
}

/// The reduction operations that users of a rank made, by handle.
pub struct Ops {
    users: Slab<UserOp>,
    /// The number of users' operations made so far, freed ones included.
    made: u32,
}

struct UserOp {
    function: Arc<Function>,
    commutative: bool,
}

impl Default for Ops {
    fn default() -> Self {
        Ops {
            users: Slab::new(ObjectKind::Op),
            made: 0,
        }
    }
}

impl Ops {
    /// The number of users' operations made so far, which is the number of the next one.
    pub fn made(&self) -> u32 {
        self.made
    }

    /// `MPI_Op_create`.
    pub fn create(&mut self, function: Function, commutative: bool) -> Result<u32> {
        let op = UserOp {
            function: Arc::new(function),
            commutative,
        };
        self.made = self.made.wrapping_add(1);
        self.users.insert(op).ok_or_else(|| {
            Error::new(
                Class::NO_MEM,
                "there are a million operations already: free some with MPI_Op_free",
            )
        })
    }

    /// `MPI_Op_free`. Reductions in flight keep the operation.
    pub fn free(&mut self, handle: u32) -> Result<()> {
        if Op::from_handle(handle as usize).is_some() {
            return Err(Error::new(
                Class::OP,
                "a predefined operation cannot be freed",
            ));
        }
        self.users
            .remove(handle)
            .map(drop)
            .ok_or_else(|| unknown(handle))
    }

    /// The operation with this handle, for elements of the datatype with handle `datatype`.
    #[inline]
    pub fn get(&self, handle: u32, datatype: usize) -> Result<Operation> {
        if let Some(op) = Op::from_handle(handle as usize) {
            return Ok(Operation::Predefined(op));
        }
        let UserOp {
            function,
            commutative,
        } = self.users.get(handle).ok_or_else(|| unknown(handle))?;
        Ok(Operation::User {
            function: function.clone(),
            commutative: *commutative,
            datatype,
        })
    }
}

#[cold]
fn unknown(handle: u32) -> Error {
    let detail = match handle {
        0x20 => "MPI_OP_NULL is not an operation that can be used".to_string(),
        _ => format!("{handle:#x} is not an operation: it was never one, or it has been freed"),
    };
    Error::new(Class::OP, detail)
}

/// The error of an operation that collectives may not use on this type.
#[cold]
fn refused(op: Op, ty: &Type) -> Error {
    if op.is_accumulate_only() {
        let detail = format!(
            "{} is for one-sided communication only (MPI 5.0 §12.3.4)",
            op.name()
        );
        return Error::new(Class::OP, detail);
    }
    match ty.predefined() {
        Some(ty) => datatype::Error::Operation { op, ty }.into(),
        None => datatype::Error::Derived { op }.into(),
    }
}
