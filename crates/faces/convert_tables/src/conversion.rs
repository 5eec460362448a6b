//! The generated code that converts one parameter.

use tables::table::Access;

/// The generated conversion of a parameter: statements before the call of the standard ABI, the
/// argument, and statements after it.
#[derive(Default)]
pub(crate) struct Conversion {
    pub(crate) before: Vec<String>,
    pub(crate) argument: String,
    pub(crate) after: Vec<String>,
}

impl Conversion {
    /// A conversion that needs no statements.
    pub(crate) fn argument(argument: String) -> Conversion {
        Conversion {
            argument,
            ..Conversion::default()
        }
    }

    /// Removes the cast of a pointer that is written, which needs none.
    pub(crate) fn with_mutable(mut self, access: Access) -> Conversion {
        if access == Access::InOut {
            self.argument = self.argument.replace(".cast_mut()", "");
        }
        self
    }
}
