//! The parts of a conversion of one parameter.

use tables::table::Access;

/// Statements before the call of the standard ABI, the argument, and statements after it.
#[derive(Default)]
pub(crate) struct Conversion {
    pub(crate) before: Vec<String>,
    pub(crate) argument: String,
    pub(crate) after: Vec<String>,
}

impl Conversion {
    /// The argument alone.
    pub(crate) fn argument(argument: String) -> Conversion {
        Conversion {
            argument,
            ..Conversion::default()
        }
    }

    /// A pointer that is written needs no cast.
    pub(crate) fn with_mutable(mut self, access: Access) -> Conversion {
        if access == Access::InOut {
            self.argument = self.argument.replace(".cast_mut()", "");
        }
        self
    }
}
