//! Section 3.7.5: errors of requests that a call completes.

use crate::args::Statuses;
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::object::Object;
use crate::status::Status;
use mpi::request::Finished;
use mpi::{Answer, Class, State};

/// Errors of several requests (MPI 5.0 §3.7.5): each status carries its own, and the call returns
/// MPI_ERR_IN_STATUS.
#[derive(Default)]
pub(super) struct Failures {
    first: Option<Failure>,
}

struct Failure {
    at: usize,
    error: Error,
    /// The context of the communicator whose error handler is called.
    context: Option<u64>,
}

impl Failures {
    /// An operation has failed because of a lost peer.
    #[inline(always)]
    pub(super) fn is_loss(&self) -> bool {
        self.first
            .as_ref()
            .is_some_and(|first| first.error.is_loss())
    }

    /// Writes the status of an operation.
    #[inline(always)]
    pub(super) fn tell(&self, at: usize, finished: mpi::Status, statuses: Statuses) {
        if let Some(status) = statuses.get(at) {
            if self.first.is_some() {
                status.set(Status::from(finished))
            } else {
                status.fill(finished.into())
            }
        }
    }

    /// Writes the status of an operation that may have failed, and records its error.
    pub(super) fn note(
        &mut self,
        state: &mut State,
        at: usize,
        finished: Finished,
        statuses: Statuses,
    ) {
        self.tell(at, finished.status, statuses);
        if finished.status.error != Class::SUCCESS {
            let error = state.result_of(finished.status);
            let error = error.expect_err("it carries one");
            self.fail(at, error, finished.context, statuses);
        }
    }

    /// As [`Failures::note`], without the lock.
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

    /// Writes the status of a generalised request, and records the error of its functions.
    pub(super) fn note_answer(&mut self, at: usize, answer: Answer, statuses: Statuses) {
        self.tell(at, answer.status, statuses);
        if let Some(error) = answer.error {
            self.fail(at, error, None, statuses);
        }
    }

    /// Notes the answers of generalised requests, after the statuses of all `of` operations have
    /// been written.
    pub(super) fn note_answers(
        &mut self,
        answers: impl Iterator<Item = (usize, Answer)>,
        of: usize,
        statuses: Statuses,
    ) {
        for (at, answer) in answers {
            if answer.error.is_some() && self.first.is_none() {
                // Until now no status has an error field.
                let others = (0..of).filter_map(|other| statuses.get(other));
                others.for_each(|other| other.set_error(MPI_SUCCESS));
            }
            self.note_answer(at, answer, statuses);
        }
    }

    /// Writes the status of an operation that is not complete.
    pub(super) fn pending(&mut self, at: usize, statuses: Statuses) {
        if let Some(status) = statuses.get(at) {
            status.set(Status::from(mpi::Status {
                error: Class::PENDING,
                ..mpi::Status::EMPTY
            }));
        }
    }

    /// The result of a wait that itself has failed, at the request `at` of `of`: this one has the
    /// error, those behind it are pending.
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
            // After the first error every status carries one, so the earlier ones get MPI_SUCCESS.
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

    /// The result of the call: the first failure, raised on its communicator.
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

/// Hands errors of the call to the communicator, the window or the file of the request.
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
