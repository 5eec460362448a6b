//! Reports to the launcher: failed rails, strangers, and what this rank waits for.

use pmi::{Notice, UnexpectedMessage, WaitCondition, WaitReason};

use super::Engine;
use crate::comm::{AGREEMENT, Comms, bare};
use crate::request::{Operation, RequestId, Waiting};
use crate::{ANY_SOURCE, ANY_TAG, Class, Error};

/// The greatest number of lines of one kind in a report.
const LINES: usize = 20;

impl Engine {
    /// Reports rails that have failed, and strangers, to the launcher; counts strangers and outages
    /// in the profile.
    #[cold]
    pub(crate) fn report_rails(&mut self) {
        for (topic, text) in self.router.report().take_messages() {
            self.warn(&topic, &text);
        }
        for (rail, _, count) in self.router.report().strangers() {
            self.messages.count_strangers(rail, count);
        }
        let outages = self.router.report().outages();
        if outages.count > 0 {
            self.messages.count_outages(outages.count, outages.nanos);
        }
    }

    /// Reports the number of all strangers to the launcher. Must be called at the end of the rank.
    #[cold]
    pub(crate) fn report_strangers(&mut self) {
        let strangers = self.router.report().strangers().into_iter();
        let counts: Vec<String> = strangers
            .map(|(_, device, count)| format!("{count} on {device}"))
            .collect();
        if !counts.is_empty() {
            let topic = format!("strangers-of-{}", self.bootstrap.rank());
            let counts = counts.join(", ");
            self.warn(
                &topic,
                &format!("connections and datagrams of strangers that were dropped: {counts}"),
            );
        }
    }

    pub(crate) fn warn(&self, topic: &str, text: &str) {
        // A launcher that is gone needs no report.
        let _ = self.bootstrap.notify(Notice::Warning { topic, text });
    }

    /// The error of a rank in a deadlock. The rank reports it to the launcher before it leaves the
    /// modelled machine: virtual time stands still until every rank has reported.
    #[cold]
    pub(crate) fn deadlock(&mut self, comms: &Comms, waiting: &Waiting) -> Error {
        let report = self.report(comms, waiting);
        // A launcher that is gone needs no report.
        let _ = self.bootstrap.notify(Notice::Deadlock(&report));
        self.router.leave();
        let detail = format!(
            "deadlock: all ranks wait and nothing is on its way; this one is in {}",
            report.sentence()
        );
        Error::new(Class::OTHER, detail)
    }

    pub(crate) fn report(&self, comms: &Comms, waiting: &Waiting) -> pmi::RankStatus {
        let waits = waiting
            .requests
            .iter()
            .flat_map(|&id| self.waits_of(comms, id))
            .take(LINES)
            .collect();
        let unexpected = self
            .messages
            .unexpected()
            // Messages of the library itself are received by its own operations, once these are
            // called.
            .filter(|(key, _)| key.context & AGREEMENT == 0)
            .take(LINES)
            .map(|(key, message)| {
                let (from, is_remote) = number_of(comms, key.context, key.source as usize);
                UnexpectedMessage {
                    from,
                    tag: key.tag,
                    communicator: name_of(comms, key.context),
                    is_remote,
                    bytes: message.body.bytes(),
                }
            });
        pmi::RankStatus {
            operation: waiting.operation.to_string(),
            progress: self.moved,
            waits,
            unexpected: unexpected.collect(),
        }
    }

    fn waits_of(&self, comms: &Comms, id: RequestId) -> Option<WaitReason> {
        let request = self
            .messages
            .requests
            .get(id)
            .filter(|request| request.is_open())?;
        let (condition, context) = match &request.operation {
            Operation::Receive(receive) => {
                let peer =
                    (receive.key.source != ANY_SOURCE).then_some(receive.key.source as usize);
                let tag = (receive.key.tag != ANY_TAG).then_some(receive.key.tag);
                (WaitCondition::From { peer, tag }, receive.key.context)
            }
            Operation::Send(send) => {
                let peer = rank_in(comms, send.envelope.key.context, send.peer);
                (
                    WaitCondition::To {
                        peer,
                        tag: send.envelope.key.tag,
                    },
                    send.envelope.key.context,
                )
            }
            Operation::Persistent(persistent) => return self.waits_of(comms, persistent.active?),
            Operation::Collective { context } => (WaitCondition::All, context.unwrap_or_default()),
            // The access belongs to an operation of the library, not to the user.
            Operation::Access { .. } => return None,
            Operation::Generalized => {
                return Some(WaitReason {
                    condition: WaitCondition::User,
                    communicator: String::new(),
                    is_remote: false,
                });
            }
        };
        let comm = comms.of_context(context);
        // A request of the user names a peer in the remote group.
        let is_remote = comm.is_some_and(|comm| comm.core.is_inter())
            && !matches!(condition, WaitCondition::All);
        Some(WaitReason {
            condition,
            communicator: name_of(comms, context),
            is_remote,
        })
    }
}

fn name_of(comms: &Comms, context: u64) -> String {
    let comm = comms.of_context(context);
    let name = comm
        .map(|comm| comm.name.as_str())
        .filter(|name| !name.is_empty());
    name.map_or_else(
        || format!("communicator {:#x}", bare(context)),
        str::to_string,
    )
}

fn rank_in(comms: &Comms, context: u64, world: usize) -> usize {
    let comm = comms.of_context(context);
    let rank = comm.and_then(|comm| comm.core.numbered(context).rank_of(world));
    rank.unwrap_or(world)
}

/// The rank, in its own group, of the process that messages with this context call `number`. True:
/// that group is the remote group.
fn number_of(comms: &Comms, context: u64, number: usize) -> (usize, bool) {
    let Some(comm) = comms
        .of_context(context)
        .filter(|comm| comm.core.is_inter())
    else {
        return (number, false);
    };
    let core = &comm.core;
    if context == bare(context) {
        return (number, true);
    }
    let is_remote = core.theirs().contains(&number);
    let group = if is_remote {
        core.theirs()
    } else {
        core.ours()
    };
    (number - group.start, is_remote)
}
