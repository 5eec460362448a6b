//! The state that all parts of a machine share during a run: the machine's description and faults,
//! the messages in flight, their events, and the record of activity.

use fabric::System;
use sim::Time;
use sim::memory::WorldMemory;

use super::event::{Clocked, Event};
use super::faults::Faults;
use super::lookahead::Lookahead;
use super::message::{Messages, RequestKind};
use super::record::Record;
use super::span::{Doing, Track};
use super::sums::Sums;

/// The state of a modelled machine's run that all parts share.
pub(crate) struct Run {
    pub memory: WorldMemory,
    pub system: System,
    pub faults: Faults,
    pub messages: Messages,
    pub record: Record,
    pub sums: Sums,
    /// The lookahead by which ranks run ahead of each other. `None`: ranks run in lockstep.
    pub lookahead: Option<Lookahead>,
    /// The numbers of the queue pairs whose requests are probes, sorted.
    probing: sim::memory::Vec<u32>,
}

impl Run {
    pub(crate) fn new(memory: WorldMemory, system: &System, faults: Faults) -> Run {
        Run {
            memory,
            system: *system,
            faults,
            messages: Messages::new(memory),
            record: Record::new(memory),
            sums: Sums::new(memory),
            lookahead: None,
            probing: sim::memory::Vec::new_in(memory),
        }
    }

    /// Schedules an event. Events of probes are idle.
    #[inline]
    pub(crate) fn schedule(&mut self, at: Time, event: Event, clock: &mut Clocked) {
        self.expect(at, &event);
        match !self.probing.is_empty() && self.is_probe(&event) {
            true => clock.at_idle(at, event),
            false => clock.at(at, event),
        }
    }

    #[cold]
    fn is_probe(&self, event: &Event) -> bool {
        let requester = event.requester(&self.messages);
        requester.is_some_and(|q| self.probing.binary_search(&q).is_ok())
    }

    /// Sets whether the requests of a queue pair are probes.
    pub(crate) fn set_probing(&mut self, q: u32, probing: bool) {
        match (self.probing.binary_search(&q), probing) {
            (Err(at), true) => self.probing.insert(at, q),
            (Ok(at), false) => {
                self.probing.remove(at);
            }
            _ => {}
        }
    }

    /// Records in the lookahead that an event has been scheduled.
    #[inline]
    fn expect(&mut self, at: Time, event: &Event) {
        let Some(lookahead) = &mut self.lookahead else {
            return;
        };
        if let Event::Serve { message } = *event
            && self.messages[message].kind != RequestKind::Read
        {
            // An atomic changes memory at once.
            lookahead.keep_in_step();
        }
        if let Some(rank) = event.near_to(&self.messages) {
            lookahead.expect(rank, at);
        }
    }

    /// Records in the lookahead that an event happens.
    #[inline]
    pub(crate) fn happens(&mut self, event: &Event) {
        if let Some(lookahead) = &mut self.lookahead
            && let Some(rank) = event.near_to(&self.messages)
        {
            lookahead.happens(rank);
        }
    }

    /// Keeps ranks from running ahead, from now on.
    pub(crate) fn keep_in_step(&mut self) {
        if let Some(lookahead) = &mut self.lookahead {
            lookahead.keep_in_step();
        }
    }

    /// Records an activity of a resource, if activity is recorded.
    #[inline]
    pub(crate) fn note(
        &mut self,
        (host, track): (u32, Track),
        (start, end): (Time, Time),
        doing: Doing,
    ) {
        if self.record.is_on() {
            self.record
                .note(&self.messages, (host, track), (start, end), doing);
        }
    }
}
