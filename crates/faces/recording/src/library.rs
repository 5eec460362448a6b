//! The library whose calls are recorded.

use std::ffi::c_int;

use crate::standard;
use crate::table::RECORDED;

/// The members of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members {
    /// The rank's own number.
    pub rank: i64,
    /// The number of ranks in the rank's own group.
    pub size: usize,
    /// The number of ranks that the communicator addresses: those of the remote group, if it has
    /// one.
    pub peers: usize,
    /// True if the communicator has a remote group.
    pub is_inter: bool,
}

/// The topology of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The number of dimensions, if it is a grid.
    pub dimensions: Option<usize>,
    /// The number of neighbours from which a rank receives.
    pub sources: usize,
    /// The number of neighbours to which it sends.
    pub destinations: usize,
}

/// A key of an info object, and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// A library whose calls are recorded: what it knows of its objects, and the form of its arguments.
/// Arguments that are no addresses have the values of the standard ABI; handles that a call has
/// made are numbers of the library's own.
pub trait Library {
    /// The members of a communicator.
    ///
    /// # Errors
    /// The communicator is invalid.
    fn members(&self, comm: u64) -> Result<Members, String>;

    /// The topology of a communicator; `None` if it has none, or is invalid.
    fn topology(&self, comm: u64) -> Option<Topology>;

    /// The pairs of an info object.
    ///
    /// # Errors
    /// The object is invalid.
    fn pairs(&self, info: u64) -> Result<Vec<Pair>, String>;

    /// The number of bytes in a datatype; `None` if it is invalid.
    fn type_size(&self, datatype: u64) -> Option<u64>;

    /// The number of datatypes that MPI_Type_get_contents returns for a datatype.
    fn type_members(&self, datatype: u64) -> usize;

    /// The value that the standard ABI has for element `index` of the array behind a parameter, or
    /// for the value behind a pointer.
    ///
    /// # Safety
    /// `start` is the argument of that parameter, whose memory has this element.
    unsafe fn element(
        &self,
        procedure: usize,
        parameter: usize,
        start: *const u8,
        index: usize,
    ) -> i64 {
        // SAFETY: the caller's promise; the table has the width of an element.
        unsafe {
            match RECORDED[procedure].wide[parameter] {
                true => start.cast::<i64>().add(index).read(),
                false => start.cast::<c_int>().add(index).read().into(),
            }
        }
    }

    /// The number of bytes in a status.
    fn status_bytes(&self) -> usize {
        32
    }

    /// The source in a status.
    ///
    /// # Safety
    /// It is the address of a status.
    unsafe fn source(&self, status: *const u8) -> i64 {
        // SAFETY: the caller's promise; the source comes first.
        unsafe { status.cast::<c_int>().read().into() }
    }

    /// The name of a file in the trace.
    fn file_name(&self, name: &[u8]) -> Vec<u8> {
        name.to_vec()
    }

    /// The error class of a code that a call has returned.
    fn class(&self, code: c_int) -> i64 {
        code.into()
    }
}

/// The errors that a call returns before it moves anything: those about its arguments.
pub(crate) const MOVED_NOTHING: [i64; 22] = [
    standard::MPI_ERR_BUFFER,
    standard::MPI_ERR_COUNT,
    standard::MPI_ERR_TYPE,
    standard::MPI_ERR_TAG,
    standard::MPI_ERR_COMM,
    standard::MPI_ERR_RANK,
    standard::MPI_ERR_REQUEST,
    standard::MPI_ERR_ROOT,
    standard::MPI_ERR_GROUP,
    standard::MPI_ERR_OP,
    standard::MPI_ERR_TOPOLOGY,
    standard::MPI_ERR_DIMS,
    standard::MPI_ERR_ARG,
    standard::MPI_ERR_KEYVAL,
    standard::MPI_ERR_INFO,
    standard::MPI_ERR_WIN,
    standard::MPI_ERR_DISP,
    standard::MPI_ERR_AMODE,
    standard::MPI_ERR_ACCESS,
    standard::MPI_ERR_FILE,
    standard::MPI_ERR_FILE_EXISTS,
    standard::MPI_ERR_NO_SUCH_FILE,
];
