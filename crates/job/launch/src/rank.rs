//! The process of one rank, as its launcher or agent knows it: the rank's state, and descriptors.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::os::fd::OwnedFd;

use pmi::{FromLauncher, FromRank};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::budget::Budget;
use crate::output::{OutputOptions, OutputStream, OutputTarget};
use crate::process_exit::ProcessExit;
use crate::rank_state::{RankEvent, RankState};
use crate::verdict::Cause;

/// The most packets that are received from one rank before the next rank is served.
const PACKETS_AT_ONCE: usize = 64;

/// The limit on the bytes that wait to be sent to a rank. [`OUTBOX_OF_A_RANK`] is added for each
/// rank of the job. Above the limit nothing is received from the rank.
const OUTBOX_LIMIT: usize = 1 << 20;

/// The bytes that each rank of the job adds to [`OUTBOX_LIMIT`]: room for one value of that rank.
const OUTBOX_OF_A_RANK: usize = 4 << 10;

/// The process of one rank.
pub(crate) struct RankProcess {
    state: RankState,
    /// The pipe to the rank's standard input. `None` if the rank reads the launcher's own, or
    /// nothing.
    pub input: Option<OwnedFd>,
    /// Bytes of input that are queued for the pipe to the rank's standard input.
    pub unread: Vec<u8>,
    /// True if the rank leads a process group. Otherwise it is in the launcher's group, where it
    /// can read from the terminal.
    pub own_group: bool,
    /// The control socket. `None` once the rank has closed it.
    pub control: Option<OwnedFd>,
    /// Packets that are queued for the control socket.
    outbox: VecDeque<String>,
    /// The length of the packets that are queued for the control socket, in bytes.
    outbox_bytes: usize,
    /// The length of queued packets, in bytes, from which on nothing is received from the rank.
    outbox_limit: usize,
    pub streams: Vec<OutputStream>,
    /// A pidfd of the process that completed MPI_Init, if a wrapper started that process.
    pub program: Option<OwnedFd>,
    /// True if the process that completed MPI_Init died before a pidfd of it could be opened.
    pub program_is_gone: bool,
}

impl RankProcess {
    /// The state of a rank that this process has started.
    pub(crate) fn new(
        number: usize,
        pid: Pid,
        own_group: bool,
        control: OwnedFd,
        streams: Vec<OutputStream>,
    ) -> Self {
        let mut rank = RankProcess::at(number, streams);
        rank.pid = Some(pid);
        RankProcess {
            own_group,
            control: Some(control),
            ..rank
        }
    }

    /// Sets the limit on queued packets for a job of `ranks` ranks.
    pub(crate) fn among(mut self, ranks: usize) -> Self {
        self.outbox_limit = OUTBOX_LIMIT + OUTBOX_OF_A_RANK * ranks;
        self
    }

    /// The state of a rank that an agent will start.
    pub(crate) fn remote(number: usize, host: usize, output: &OutputOptions) -> Self {
        let streams = [OutputTarget::Stdout, OutputTarget::Stderr]
            .map(|target| OutputStream::remote(number, target, output));
        let mut rank = RankProcess::at(number, streams.into());
        rank.host = Some(host);
        rank.own_group = true;
        rank
    }

    /// The initial state of a rank: no process, and nothing received.
    fn at(number: usize, streams: Vec<OutputStream>) -> Self {
        RankProcess {
            state: RankState::new(number),
            input: None,
            unread: Vec::new(),
            own_group: false,
            control: None,
            outbox: VecDeque::new(),
            outbox_bytes: 0,
            outbox_limit: OUTBOX_LIMIT,
            streams,
            program: None,
            program_is_gone: false,
        }
    }

    /// The descriptors to poll for events of this rank, without its output.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = PollFd<'_>> {
        let flags = match (self.outbox.is_empty(), self.is_heard()) {
            (true, _) => PollFlags::IN,
            (false, true) => PollFlags::IN | PollFlags::OUT,
            (false, false) => PollFlags::OUT,
        };
        let control = self.control.iter().map(move |fd| PollFd::new(fd, flags));
        let program = self.program.iter();
        control.chain(program.map(|fd| PollFd::new(fd, PollFlags::IN)))
    }

    /// True if the rank reads its packets fast enough that requests are received from it.
    fn is_heard(&self) -> bool {
        self.outbox_bytes < self.outbox_limit
    }

    /// Drops the packets that are queued for the control socket.
    pub(crate) fn discard_outbox(&mut self) {
        self.outbox.clear();
        self.outbox_bytes = 0;
    }

    /// Requests the rank's status.
    pub(crate) fn request_status(&mut self) {
        self.forget_answer();
        if let Some(control) = &self.control {
            let line = format!("{}\n", FromLauncher::Report);
            // If the socket is full, the rank has unread requests, and will answer those.
            let _ = send(
                control,
                line.as_bytes(),
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            );
        }
    }

    /// Sends the rank a packet, or queues it if the socket is full.
    pub(crate) fn send(&mut self, packet: String) {
        self.outbox_bytes += packet.len();
        self.outbox.push_back(packet);
        self.flush();
    }

    /// Sends queued packets until the socket is full.
    pub(crate) fn flush(&mut self) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while let (Some(control), Some(packet)) = (&self.control, self.outbox.front()) {
            match send(control, packet.as_bytes(), flags) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // The packet was sent, or the rank is gone.
                _ => {
                    self.outbox_bytes -= packet.len();
                    self.outbox.pop_front();
                }
            }
        }
        if self.control.is_none() {
            self.discard_outbox();
        }
    }

    /// Receives a packet and handles its lines, if one has arrived and the budget permits. Returns
    /// the events that concern the job. Send the answers to them before the next call: they count
    /// against the limit on queued packets.
    pub(crate) fn receive_events(&mut self, budget: &mut Budget) -> Option<Vec<RankEvent>> {
        if budget.is_spent() {
            return None;
        }
        let text = self.receive()?;
        budget.spend_lines(&text);
        Some(self.handle_packet(&text))
    }

    /// Handles the lines of one packet. Returns the events that concern the job.
    pub(crate) fn handle_packet(&mut self, packet: &str) -> Vec<RankEvent> {
        let was_in_mpi = self.init.is_some();
        let events = self.state.handle_packet(packet);
        match self.init {
            _ if self.finalized => self.program = None,
            Some(pid) if !was_in_mpi => self.watch_program(pid),
            _ => {}
        }
        events
    }

    /// Opens a pidfd of the process that has completed MPI_Init, if a wrapper started it. On
    /// another host, the agent does that.
    fn watch_program(&mut self, pid: Pid) {
        if self.host.is_none() && self.pid != Some(pid) {
            let watched = pidfd_open(pid, PidfdFlags::empty());
            self.program_is_gone = matches!(watched, Err(Errno::SRCH));
            self.program = watched.ok();
        }
    }

    /// Receives the rank's packets in an agent, for the launcher, which handles them again. Returns
    /// the packets without their lines about the key-value store, and the events of those lines.
    pub(crate) fn relay(&mut self) -> (Vec<String>, Vec<RankEvent>) {
        let packets = std::iter::from_fn(|| self.receive()).take(PACKETS_AT_ONCE);
        let mut packets: Vec<String> = packets.collect();
        let mut events = Vec::new();
        for packet in &mut packets {
            let all = self.handle_packet(packet);
            let before = events.len();
            events.extend(all.into_iter().filter(RankEvent::is_exchange));
            if events.len() > before {
                let is_other = |line: &&str| {
                    !matches!(
                        line.parse(),
                        Ok(FromRank::Put { .. } | FromRank::Get { .. } | FromRank::Fence)
                    )
                };
                let others: Vec<&str> = packet.split_inclusive('\n').filter(is_other).collect();
                *packet = others.concat();
            }
        }
        packets.retain(|packet| !packet.is_empty());
        (packets, events)
    }

    /// Receives a packet, if one has arrived and the rank reads its own packets.
    fn receive(&mut self) -> Option<String> {
        let mut packet = [0; 16 << 10];
        loop {
            let control = self.control.as_ref().filter(|_| self.is_heard())?;
            match recv(control, &mut packet[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => self.control = None,
                Ok((_, length)) => {
                    let packet = &packet[..length.min(packet.len())];
                    return Some(String::from_utf8_lossy(packet).into_owned());
                }
                // The rank has ended with an unread request; its last packets can still be
                // received.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return None,
                Err(_) => self.control = None,
            }
        }
    }

    /// Records the end of the rank's process. Returns the cause if it is a failure.
    /// `others_in_mpi`: other ranks are in MPI, and wait for this rank.
    pub(crate) fn ended(&mut self, exit: ProcessExit, others_in_mpi: bool) -> Option<Cause> {
        self.program = None;
        self.state.ended(exit, others_in_mpi)
    }

    /// True if the program below a wrapper has ended. Its last packets may not have been received
    /// yet.
    pub(crate) fn program_has_ended(&self) -> bool {
        let readable = |fd| {
            let now = Timespec::default();
            poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
        };
        self.program.as_ref().is_some_and(readable)
    }

    /// Records that the program below a wrapper has ended while the wrapper is running. Returns the
    /// cause if it is a failure.
    pub(crate) fn program_ended(&mut self) -> Option<Cause> {
        self.program = None;
        self.program_is_gone = false;
        self.state.program_ended()
    }
}

impl Deref for RankProcess {
    type Target = RankState;

    fn deref(&self) -> &RankState {
        &self.state
    }
}

impl DerefMut for RankProcess {
    fn deref_mut(&mut self) -> &mut RankState {
        &mut self.state
    }
}

impl AsRef<RankState> for RankProcess {
    fn as_ref(&self) -> &RankState {
        &self.state
    }
}
