//! The user's part of generalised requests (MPI 5.0 §13.2), whose operations are the user's.

use crate::{Class, Error, Result, Status};

/// The user's functions of a generalised request.
pub trait Functions: Send + Sync {
    /// The status of the complete operation, and the error of the query function.
    fn query(&self) -> Answer;

    /// Frees what belongs to the operation.
    ///
    /// # Errors
    /// The free function gave an error code.
    fn free(&self) -> Result<()>;

    /// Cancels the operation, which may be complete.
    ///
    /// # Errors
    /// The cancel function gave an error code.
    fn cancel(&self, complete: bool) -> Result<()>;
}

/// The outcome of the user's functions for a complete request.
#[derive(Debug)]
pub struct Answer {
    /// The status of the operation, which carries the class of the error.
    pub status: Status,
    /// The error that a function gave.
    pub error: Option<Error>,
}

impl Answer {
    /// The answer with this status and the error of a function, if it failed.
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
