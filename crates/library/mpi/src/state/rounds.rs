//! Start and advance of collective operations on lanes, and the completion of tasks: operations
//! with several steps.

use super::Engine;
use crate::coll::lanes::Round;
use crate::comm::Comms;
use crate::request::task::{Task, Work};
use crate::request::{Operation, RequestId};
use crate::{Error, Result, Status};

impl Engine {
    /// Starts an operation on a lane without waiting for it. The result is
    /// `messages.requests.done()` if it completes at once.
    ///
    /// # Errors
    /// The members' calls are inconsistent, or too many requests are active.
    pub(crate) fn start_round(&mut self, mut round: Round) -> Result<RequestId> {
        round.turn = self.lanes.issue(&round.lane);
        let over = self
            .lanes
            .step(&round.lane, round.turn, |buffer| (round.step)(buffer));
        if !matches!(over, Ok(false)) {
            self.lanes.end(&round.lane, round.turn, over.is_err());
            return over.map(|_| self.messages.requests.done());
        }
        let context = Some(round.context);
        let operation = Operation::Collective { context };
        let request = self.messages.requests.add(operation)?;
        let work = Work::Round(round);
        self.tasks.add(Task { request, work });
        Ok(request)
    }

    /// Tries the next step of a task that is an operation on a lane. The result is the task, unless
    /// it ended.
    pub(crate) fn advance_round(&mut self, comms: &Comms, task: Task) -> Option<Task> {
        let Work::Round(round) = &task.work else {
            return Some(task);
        };
        match self
            .lanes
            .step(&round.lane, round.turn, |buffer| (round.step)(buffer))
        {
            Ok(false) => Some(task),
            over => {
                self.lanes.end(&round.lane, round.turn, over.is_err());
                self.end_task(comms, task.request, over.map(|_| Status::EMPTY));
                None
            }
        }
    }

    /// Completes the request of a task with the task's result.
    pub(crate) fn end_task(&mut self, comms: &Comms, request: RequestId, result: Result<Status>) {
        let status = result.unwrap_or_else(|error| {
            let class = error.class;
            if let Some(context) = self.messages.requests.context(request) {
                self.leave_collective(comms, context, &error);
            }
            self.last_error = Some(error);
            Status {
                error: class,
                ..Status::EMPTY
            }
        });
        self.messages.requests.complete(request, status);
    }
}

impl Status {
    /// The status; or an error, if the status has an error class.
    ///
    /// # Errors
    /// The operation of the status failed. The text is that of the rank's last error, if that has
    /// the class of the status.
    pub(crate) fn into_result(self, engine: &mut Engine) -> Result<Status> {
        if self.error == crate::Class::SUCCESS {
            return Ok(self);
        }
        let last = engine
            .last_error
            .take()
            .filter(|error| error.class == self.error);
        let loss = || engine.loss_with(self.error);
        Err(last.or_else(loss).unwrap_or_else(|| {
            let detail = match self.dropped {
                0 => "the operation ended with an error".to_string(),
                dropped => format!(
                    "the message from rank {} with tag {} was truncated: it has {} bytes, the \
                     buffer room for {}",
                    self.source,
                    self.tag,
                    self.bytes + dropped,
                    self.bytes
                ),
            };
            Error::new(self.error, detail)
        }))
    }
}
