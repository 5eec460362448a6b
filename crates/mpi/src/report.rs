//! Telling the launcher what this rank waits for, and noticing that the launcher is gone.

use pmi::{End, Unexpected, Wait};

use crate::comm::{AGREEMENT, bare};
use crate::rank::{Rank, State};
use crate::request::{Operation, RequestId};
use crate::wait::Waiting;
use crate::{ANY_SOURCE, ANY_TAG, Class, Error, Result};

/// Lines of one kind in a report; more would tell nobody more.
const LINES: usize = 20;

impl Rank {
    /// Answers the launcher if it has asked. An error when it is gone.
    #[cold]
    pub(crate) fn attend(&self, waiting: &Waiting) -> Result<()> {
        let mut state = self.lock();
        let Some(mut control) = state.control.take() else {
            return Ok(());
        };
        let answered = loop {
            match control.report_asked() {
                Ok(false) => break Ok(()),
                Ok(true) => {
                    if let Err(gone) = control.status(&state.report(waiting)) {
                        break Err(gone);
                    }
                }
                Err(gone) => break Err(gone),
            }
        };
        drop(state);
        match answered {
            Ok(()) => {
                self.lock().control = Some(control);
                Ok(())
            }
            // Without its launcher a rank has no job; nobody would ever end it.
            Err(gone) => Err(Error::new(
                Class::OTHER,
                format!("{gone}, so this rank ends"),
            )),
        }
    }
}

impl State {
    /// The error of a rank that waits for what will never come. The launcher hears of it first, and then it is the turn of
    /// the other ranks to say so: time stands still until each has.
    #[cold]
    pub(crate) fn deadlock(&mut self, waiting: &Waiting) -> Error {
        let report = self.report(waiting);
        if let Some(control) = &mut self.control {
            // A launcher that is gone has nothing left to be told.
            let _ = control.status(&report);
        }
        self.router.leave();
        let detail = format!(
            "deadlock: all ranks wait and nothing is on its way; this one is in {}",
            report.sentence()
        );
        Error::new(Class::OTHER, detail)
    }

    fn report(&self, waiting: &Waiting) -> pmi::Status {
        let waits = waiting
            .requests
            .iter()
            .flat_map(|&id| self.waits_of(id))
            .take(LINES)
            .collect();
        let unexpected = self
            .messages
            .unexpected()
            // The library's own messages are waited for as soon as their operation is called.
            .filter(|(key, _)| key.context & AGREEMENT == 0)
            .take(LINES)
            .map(|(key, message)| Unexpected {
                from: key.source as usize,
                tag: key.tag,
                communicator: self.name_of(key.context),
                bytes: message.body.bytes(),
            });
        pmi::Status {
            operation: waiting.operation.to_string(),
            progress: self.moved,
            waits,
            unexpected: unexpected.collect(),
        }
    }

    fn waits_of(&self, id: RequestId) -> Option<Wait> {
        let request = self
            .messages
            .requests
            .get(id)
            .filter(|request| request.status.is_none())?;
        let (end, context) = match &request.operation {
            Operation::Receive(receive) => {
                let peer =
                    (receive.key.source != ANY_SOURCE).then_some(receive.key.source as usize);
                let tag = (receive.key.tag != ANY_TAG).then_some(receive.key.tag);
                (End::From { peer, tag }, receive.key.context)
            }
            Operation::Send(send) => {
                let peer = self.rank_in(send.envelope.key.context, send.peer);
                (
                    End::To {
                        peer,
                        tag: send.envelope.key.tag,
                    },
                    send.envelope.key.context,
                )
            }
            Operation::Persistent(persistent) => return self.waits_of(persistent.active?),
            Operation::Collective { context } => (End::All, context.unwrap_or_default()),
            Operation::Generalized => (End::All, 0),
        };
        Some(Wait {
            end,
            communicator: self.name_of(context),
        })
    }

    fn name_of(&self, context: u64) -> String {
        let comm = self
            .comms
            .iter()
            .find(|comm| comm.core.context == bare(context));
        let name = comm
            .map(|comm| comm.name.as_str())
            .filter(|name| !name.is_empty());
        name.map_or_else(
            || format!("communicator {:#x}", bare(context)),
            str::to_string,
        )
    }

    fn rank_in(&self, context: u64, world: usize) -> usize {
        let comm = self
            .comms
            .iter()
            .find(|comm| comm.core.context == bare(context));
        comm.and_then(|comm| comm.core.members.rank_of(world))
            .unwrap_or(world)
    }
}
