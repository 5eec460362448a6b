//! Properties of the program's Fortran compiler, which its bindings set once (MPI 5.0 §20.4): the
//! values of LOGICAL, and the sizes of types.

use crate::info::InfoObject;

/// The greatest number of bytes of a LOGICAL.
pub(crate) const LONGEST_LOGICAL: usize = 16;

/// The bytes of `.TRUE.` and of `.FALSE.` of the default LOGICAL kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booleans {
    yes: Vec<u8>,
    no: Vec<u8>,
}

impl Booleans {
    /// The values `.TRUE.` and `.FALSE.`, which have the same size.
    pub fn new(yes: &[u8], no: &[u8]) -> Booleans {
        debug_assert_eq!(yes.len(), no.len());
        Booleans {
            yes: yes.to_vec(),
            no: no.to_vec(),
        }
    }

    /// The bytes of `.TRUE.` and `.FALSE.`, if their size is `size`.
    pub fn of_size(&self, size: usize) -> Option<(&[u8], &[u8])> {
        (self.yes.len() == size).then_some((&self.yes, &self.no))
    }
}

/// Properties of the program's Fortran compiler. `None` until the bindings set them; they never
/// change after that.
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

/// Stores a value if none is stored yet. Returns false if there was one.
pub(crate) fn set_once<T>(known: &mut Option<T>, fact: T) -> bool {
    let is_new = known.is_none();
    if is_new {
        *known = Some(fact);
    }
    is_new
}
