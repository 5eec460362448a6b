//! The user's functions of a generalised request (MPI 5.0 §13.2), and the outcome of calling them.

use crate::{Class, Error, Result, Status};

/// The user's functions of a generalised request.
pub trait Functions: Send + Sync {
    /// The status of the complete operation, and the error of the query function.
    fn query(&self) -> Answer;

    /// Frees the user's resources of the operation.
    ///
    /// # Errors
    /// The free function gave an error code.
    fn free(&self) -> Result<()>;

    /// Cancels the operation. `complete`: it is complete already.
    ///
    /// # Errors
    /// The cancel function gave an error code.
    fn cancel(&self, complete: bool) -> Result<()>;
}

/// The outcome of the user's functions for a complete request.
#[derive(Debug)]
pub struct Answer {
    /// The status of the operation. Its error field has the class of `error`.
    pub status: Status,
    /// The error of the query or free function, if one failed.
    pub error: Option<Error>,
}

impl Answer {
    /// The outcome with this status, and with the error of `result` if that is one.
    pub fn new(status: Status, result: Result<()>) -> Answer {
        let error = result.err();
        let class = error.as_ref().map_or(Class::SUCCESS, |error| error.class);
        let status = Status {
            error: class,
            ..status
        };
        Answer { status, error }
    }
}
