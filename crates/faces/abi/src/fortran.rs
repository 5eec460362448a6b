//! Facts of the program's Fortran compiler, which its bindings tell once (MPI 5.0 §20.4): the
//! values of LOGICAL, and the sizes of types.

use crate::info::InfoObject;

/// The most bytes of a LOGICAL.
pub(crate) const LONGEST_LOGICAL: usize = 16;

/// The bytes of `.TRUE.` and of `.FALSE.` of the default kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booleans {
    yes: Vec<u8>,
    no: Vec<u8>,
}

impl Booleans {
    /// Two values of one size.
    pub fn new(yes: &[u8], no: &[u8]) -> Booleans {
        debug_assert_eq!(yes.len(), no.len());
        Booleans {
            yes: yes.to_vec(),
            no: no.to_vec(),
        }
    }

    /// The values, if this is their size.
    pub fn of_size(&self, size: usize) -> Option<(&[u8], &[u8])> {
        (self.yes.len() == size).then_some((&self.yes, &self.no))
    }
}

/// Facts of the program's Fortran. None until the bindings set them; they never change after that.
pub struct Fortran {
    pub booleans: Option<Booleans>,
    pub types: Option<InfoObject>,
}

impl Fortran {
    pub const fn new() -> Fortran {
        Fortran {
            booleans: None,
            types: None,
        }
    }
}

/// Stores a fact that was not known before. False if it was.
pub(crate) fn tell<T>(known: &mut Option<T>, fact: T) -> bool {
    let is_new = known.is_none();
    if is_new {
        *known = Some(fact);
    }
    is_new
}
