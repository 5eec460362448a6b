//! A call of the program, as a rank reports it to a machine in virtual time.

/// A call of an MPI procedure by the program, as a machine in virtual time records it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramCall {
    /// The procedure's full name.
    pub name: &'static str,
    /// The time for which the program has computed before the call, in nanoseconds.
    pub computed: u64,
    /// True if the call makes or frees a communicator, a window or a file.
    pub constructs: bool,
}

impl ProgramCall {
    /// A call of the procedure `name`, which makes no object, after `computed` nanoseconds of
    /// computing.
    pub fn after(computed: u64, name: &'static str) -> ProgramCall {
        ProgramCall {
            name,
            computed,
            constructs: false,
        }
    }
}
