//! Section 3.7.5: errors of requests that a call completes.

use crate::args::Statuses;
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::object::Object;
use crate::status::Status;
use mpi::request::Finished;
use mpi::{Answer, Class, State};

/// The errors of several requests (MPI 5.0 §3.7.5): the status of each request carries its error,
/// and the call returns MPI_ERR_IN_STATUS.
#[derive(Default)]
pub(super) struct Failures {
    first: Option<Failure>,
}

struct Failure {
    at: usize,
    error: Error,
    /// The context of the communicator, window or file whose error handler is called. `None`: the
    /// request belongs to none of them.
    context: Option<u64>,
}

impl Failures {
    /// True if the first failure is the loss of a peer.
    #[inline(always)]
    pub(super) fn is_loss(&self) -> bool {
        self.first
            .as_ref()
            .is_some_and(|first| first.error.is_loss())
    }

    /// Writes the status of the operation with index `at`.
    #[inline(always)]
    pub(super) fn write_status(&self, at: usize, finished: mpi::Status, statuses: Statuses) {
        if let Some(status) = statuses.get(at) {
            if self.first.is_some() {
                status.set(Status::from(finished))
            } else {
                status.fill(finished.into())
            }
        }
    }

    /// Writes the status of the operation with index `at`, and records its error if it has failed.
    pub(super) fn note(
        &mut self,
        state: &mut State,
        at: usize,
        finished: Finished,
        statuses: Statuses,
    ) {
        self.write_status(at, finished.status, statuses);
        if finished.status.error != Class::SUCCESS {
            let error = state.result_of(finished.status);
            let error = error.expect_err("it carries one");
            self.fail(at, error, finished.context, statuses);
        }
    }

    /// Writes the status and records the error like [`Failures::note`]; the caller does not hold
    /// the lock.
    #[cold]
    pub(super) fn note_one(
        &mut self,
        call: &Running,
        at: usize,
        finished: Finished,
        statuses: Statuses,
    ) {
        if finished.status.is_by_query() {
            let answer = call.rank.end_generalized(finished.status);
            return self.note_answer(at, answer, statuses);
        }
        self.note(&mut call.rank.lock(), at, finished, statuses);
    }

    /// Writes the status of a generalized request, and records the error of its functions.
    pub(super) fn note_answer(&mut self, at: usize, answer: Answer, statuses: Statuses) {
        self.write_status(at, answer.status, statuses);
        if let Some(error) = answer.error {
            self.fail(at, error, None, statuses);
        }
    }

    /// Writes the statuses of generalized requests and records their errors, after the statuses of
    /// all `of` operations have been written.
    pub(super) fn note_answers(
        &mut self,
        answers: impl Iterator<Item = (usize, Answer)>,
        of: usize,
        statuses: Statuses,
    ) {
        for (at, answer) in answers {
            if answer.error.is_some() && self.first.is_none() {
                // Until now no status has its error field set.
                let others = (0..of).filter_map(|other| statuses.get(other));
                others.for_each(|other| other.set_error(MPI_SUCCESS));
            }
            self.note_answer(at, answer, statuses);
        }
    }

    /// Writes the status of an operation that is not complete: MPI_ERR_PENDING.
    pub(super) fn pending(&mut self, at: usize, statuses: Statuses) {
        if let Some(status) = statuses.get(at) {
            status.set(Status::from(mpi::Status {
                error: Class::PENDING,
                ..mpi::Status::EMPTY
            }));
        }
    }

    /// The result of a wait that has itself failed, at request `at` of `of`: this request gets the
    /// error, and the requests behind it are pending.
    #[cold]
    pub(super) fn broken(
        mut self,
        call: &Running,
        (at, of): (usize, usize),
        error: Error,
        statuses: Statuses,
    ) -> Done {
        if error.class == Class::REQUEST {
            return Err(error);
        }
        let class = error.class;
        self.fail(at, error, None, statuses);
        for at in at..of {
            self.pending(at, statuses);
        }
        if let Some(status) = statuses.get(at) {
            status.set_error(class.0);
        }
        self.result(call, of)
    }

    #[cold]
    fn fail(&mut self, at: usize, error: Error, context: Option<u64>, statuses: Statuses) {
        if self.first.is_none() {
            // After the first error, every status carries an error field, so the earlier ones get
            // MPI_SUCCESS.
            for before in 0..at {
                if let Some(status) = statuses.get(before) {
                    status.set_error(MPI_SUCCESS);
                }
            }
            if let Some(status) = statuses.get(at) {
                status.set_error(error.class.0);
            }
            self.first = Some(Failure { at, error, context });
        }
    }

    /// The result of the call on `of` requests: the first failure, which is raised on its
    /// communicator.
    pub(super) fn result(self, call: &Running, of: usize) -> Done {
        match self.first {
            None => Ok(()),
            Some(Failure { at, error, context }) => {
                blame(call, context);
                let detail = format!("request {at} of {of} failed: {error}");
                Err(Error::new(MPI_ERR_IN_STATUS, detail).standing_for(&error))
            }
        }
    }
}

/// Directs errors of the call to the communicator, the window or the file of the request.
#[cold]
pub(super) fn blame(call: &Running, context: Option<u64>) {
    let state = call.rank.lock();
    if let Some(win) = context.and_then(|context| state.objects().window_of(context)) {
        call.raise_on(Object::Win(win.into()));
    } else if let Some(comm) =
        context.and_then(|context| state.objects().comms().handle_of(context))
    {
        call.raise_on(match state.objects().files().of_comm(comm) {
            Some(file) => Object::File(file.into()),
            None => Object::Comm(comm.into()),
        });
    }
}
