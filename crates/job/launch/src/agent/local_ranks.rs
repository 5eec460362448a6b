//! The ranks of one host in their agent, which forwards their packets, output and ends to the
//! launcher, and the launcher's input and commands to them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, wait};

use super::beating::beating;
use super::frame::{FromAgent, PIECE, ToAgent};
use super::link::{FrameLink, polled};
use super::liveness::Liveness;
use super::order::StartOrder;
use super::rank_input::RankInput;
use super::start_ranks::start_ranks;
use crate::binding::{HostBinding, ReleaseWatch};
use crate::exchange::agent::Exchange;
use crate::guard::{Guard, JobMark};
use crate::kill_sequence::KillSequence;
use crate::output::{OutputTarget, ReadOutcome};
use crate::rank::RankProcess;
use crate::rank_state::RankEvent;
use crate::signals::Signals;
use crate::start::StartedRanks;
use crate::{Error, processes, timespec};

/// The number of unsent bytes to the launcher from which on the agent receives nothing from ranks.
const BACKLOG: usize = 4 << 20;
/// The time within which an agent's last frames must have been sent.
const LAST_FRAMES: Duration = Duration::from_secs(1);

/// The ranks of this host, with their output and input.
pub(super) struct LocalRanks {
    link: FrameLink,
    /// The process that ends all processes of the ranks if the agent is killed.
    guard: Option<Guard>,
    signals: Signals,
    /// The world rank of the first rank of this host.
    first: usize,
    ranks: Vec<RankProcess>,
    /// The binding of the ranks, kept because it contains the claims of cores.
    _binding: HostBinding,
    /// The checks that release the ranks of this host from a soft binding.
    watch: Option<ReleaseWatch>,
    /// The file in which the ranks record the job's profile.
    profile: Option<Arc<OwnedFd>>,
    /// The signals still to be sent to end the ranks.
    ending: Option<KillSequence>,
    /// True if the ranks are ended without waiting until their output has been read.
    hurry: bool,
    /// True if no process of the ranks is left.
    childless: bool,
    /// The number of bytes of each output stream in flight: sent, and not confirmed by the
    /// launcher.
    under_way: [usize; 2],
    /// The most bytes of each output stream that may be in flight.
    window: usize,
    liveness: Liveness,
    input: RankInput,
    exchange: Exchange,
}

impl LocalRanks {
    pub(super) fn start(mut link: FrameLink, order: StartOrder) -> Result<Self, Error> {
        processes::reap_orphans()?;
        let mark = JobMark::new();
        let guard = Guard::start(&mark, false, None);
        let signals = Signals::take()?;
        let (first, window, patience) = (order.first, order.window, order.patience);
        let placed = order.placed();
        let exchange = match &placed {
            Ok(hosts) => Exchange::new(first..first + order.count, hosts.ranks()),
            // In this case no rank is started.
            Err(_) => Exchange::new(0..0, 0),
        };
        let explains = order.explain;
        // Without the file the ranks record nothing, and the profile shows that.
        let counts = order.counts && order.check().is_ok();
        let profile = counts.then(|| profile::create(order.ranks).ok());
        let profile = profile.flatten().map(Arc::new);
        let (started, outcome) = beating(&mut link, patience, || {
            start_ranks(order, placed, profile.clone(), mark, &signals)
        });
        let StartedRanks {
            mut ranks, binding, ..
        } = started;
        let refused = outcome.is_err();
        match outcome {
            Ok(()) => {
                let pids = ranks.iter().filter_map(|rank| rank.pid);
                let pids = pids.map(|pid| pid.as_raw_nonzero().get()).collect();
                link.post(&FromAgent::Started(pids));
            }
            Err(error) => link.post(&FromAgent::Refused {
                why: error.to_string(),
                code: error.exit_code(),
            }),
        }
        let pipe = ranks.iter_mut().find_map(|rank| rank.input.take());
        let mut local = LocalRanks {
            link,
            guard,
            signals,
            first,
            ranks,
            watch: binding.watch(),
            _binding: binding,
            profile,
            ending: None,
            hurry: false,
            childless: false,
            under_way: [0; 2],
            window,
            liveness: Liveness::new(patience, Instant::now()),
            input: RankInput {
                pipe,
                ..RankInput::default()
            },
            exchange,
        };
        // The launcher reads rank 0's explanation from the store at the end of the job, so values
        // are sent to it at once.
        if explains {
            local.exchange.open();
        }
        if refused {
            local.end(vec![Signal::SIGKILL], true);
        }
        Ok(local)
    }

    pub(super) fn watch(mut self) -> Result<u8, Error> {
        while !self.is_over() {
            self.sleep()?;
            self.take_signals();
            self.follow_orders()?;
            self.relay();
            self.reap();
            self.exchange_words();
            self.move_output();
            self.input.move_to_rank(&mut self.link);
            self.send_due_signals();
            self.check_binding();
            self.check_launcher();
            self.link.flush();
        }
        self.send_counted();
        self.link.post(&FromAgent::Done);
        self.link.drain(Instant::now() + LAST_FRAMES);
        Ok(0)
    }

    /// Sends the part of the job's profile that the ranks of this host have recorded.
    fn send_counted(&mut self) {
        let Some(profile) = self.profile.take() else {
            return;
        };
        let file = profile.try_clone().map(File::from);
        // If the file cannot be read, this part is missing in the profile, which shows that.
        let pieces = file.and_then(|file| profile::pieces(&file));
        for (at, bytes) in pieces.unwrap_or_default() {
            self.link.post(&FromAgent::Counted(at, bytes));
        }
    }

    fn is_over(&self) -> bool {
        let mut streams = self.ranks.iter().flat_map(|rank| &rank.streams);
        let quiet = streams.all(|stream| stream.reader().is_none()) && self.link.has_sent_all();
        // Processes that ranks have left running need this agent until the launcher ends the job.
        self.childless && (quiet || self.hurry)
    }

    fn sleep(&self) -> Result<(), Error> {
        // Frames, or the end of the stream, may have arrived together with the order.
        if self.link.has_frame() || (self.link.is_at_end() && !self.hurry) {
            return Ok(());
        }
        let mut wanted = polled(&self.link);
        wanted.push(PollFd::new(&self.signals, PollFlags::IN));
        for rank in &self.ranks {
            wanted.extend(rank.wanted().filter(|_| self.may_relay()));
            let streams = rank
                .streams
                .iter()
                .filter(|stream| self.under_way[stream.target as usize] < self.window);
            let readers = streams.filter_map(|stream| stream.reader());
            wanted.extend(readers.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        let pipe = self.input.pipe.as_ref();
        let pipe = pipe.filter(|_| !self.input.pending.is_empty());
        wanted.extend(pipe.map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        let release = self.watch.as_ref().and_then(|watch| watch.next);
        let time = self.ending.as_ref().and_then(KillSequence::next);
        let look = self.liveness.next().filter(|_| !self.hurry);
        let time = time.into_iter().chain(release).chain(look).min();
        match poll(&mut wanted, time.map(timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::system("wait for the ranks")(errno)),
        }
    }

    fn check_binding(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.check(&self.ranks, Instant::now());
        }
    }

    /// Sends a heartbeat if one is due, and ends the ranks if the launcher has been silent for too
    /// long.
    fn check_launcher(&mut self) {
        if self.hurry {
            return;
        }
        let outlook = self.liveness.check(Instant::now());
        if outlook.beat {
            self.link.post(&FromAgent::Beat);
        }
        if outlook.is_dead {
            let patience = self.liveness.patience().as_secs_f64();
            let why = format!("has not heard from the launcher for {patience} s");
            // The launcher may be unreachable; then only this host shows the reason.
            let _ = writeln!(
                io::stderr(),
                "fishplate: the agent {why} and ends its ranks"
            );
            self.leave(why);
        }
    }

    /// True if the launcher reads fast enough for more lines of ranks.
    fn may_relay(&self) -> bool {
        self.link.backlog() < BACKLOG
    }

    /// Handles signals to the agent: one that would end it ends its ranks.
    fn take_signals(&mut self) {
        while let Some(received) = self.signals.read() {
            if matches!(
                received.signal,
                Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP
            ) {
                self.leave(format!("was ended by {}", received.signal));
            }
        }
    }

    fn leave(&mut self, why: String) {
        self.link.post(&FromAgent::Leaving(why));
        self.end(vec![Signal::SIGKILL], true);
    }

    fn follow_orders(&mut self) -> Result<(), Error> {
        if self.link.pull() {
            self.liveness.heard(Instant::now());
        }
        loop {
            match self.link.next() {
                Ok(Some(frame)) => self.handle_frame(frame),
                Ok(None) => break,
                Err(why) => {
                    self.end(vec![Signal::SIGKILL], true);
                    return Err(Error::BadFrame { why });
                }
            }
        }
        // The launcher has closed its end, but may still read this frame.
        if self.link.is_at_end() && !self.hurry {
            self.leave("lost the connection to the launcher".into());
        }
        Ok(())
    }

    fn handle_frame(&mut self, frame: ToAgent) {
        match frame {
            ToAgent::Start(_) | ToAgent::Beat => {}
            ToAgent::Suspended => self.liveness.suspend(),
            ToAgent::RequestStatus(rank) => {
                if let Some(rank) = self.rank(rank) {
                    rank.request_status();
                }
            }
            ToAgent::Down(down) => {
                if let Err(why) = self.exchange.handle(down) {
                    self.leave(format!("has heard from the launcher that {why}"));
                }
            }
            ToAgent::Input(bytes) => self.input.pending.extend_from_slice(&bytes),
            ToAgent::EndOfInput => self.input.at_end = true,
            ToAgent::Taken(target, bytes) => {
                let under_way = &mut self.under_way[target as usize];
                *under_way = under_way.saturating_sub(bytes);
            }
            ToAgent::Closed(target) => {
                let streams = self.ranks.iter_mut().flat_map(|rank| &mut rank.streams);
                streams
                    .filter(|stream| stream.target == target)
                    .for_each(|stream| stream.stop_reading());
            }
            ToAgent::Signal(number) => {
                if let Ok(signal) = Signal::try_from(number) {
                    processes::to_ranks(&self.ranks, signal, false);
                }
            }
            ToAgent::End { signals, hurry } => {
                let signals = signals.into_iter();
                let signals = signals.filter_map(|number| Signal::try_from(number).ok());
                self.end(signals.collect(), hurry);
            }
        }
    }

    fn rank(&mut self, number: usize) -> Option<&mut RankProcess> {
        self.ranks.get_mut(number.checked_sub(self.first)?)
    }

    fn end(&mut self, signals: Vec<Signal>, hurry: bool) {
        self.hurry |= hurry;
        self.ending = Some(KillSequence::new(signals, Instant::now()));
        self.send_due_signals();
    }

    fn send_due_signals(&mut self) {
        let now = Instant::now();
        let Some(steps) = &mut self.ending else {
            return;
        };
        while let Some(signal) = steps.take(now) {
            if self.childless {
                continue;
            }
            let guard = self.guard.as_ref().map(Guard::pid);
            processes::to_all(&self.ranks, guard, signal, false);
            if signal == Signal::SIGKILL {
                steps.repeat(signal, now);
            }
        }
    }

    fn relay(&mut self) {
        for at in 0..self.ranks.len() {
            if !self.may_relay() {
                return;
            }
            let gone = self.ranks[at].program_has_ended();
            self.relay_rank(at);
            let rank = &mut self.ranks[at];
            rank.flush();
            let gone = gone || rank.program_is_gone;
            if gone && rank.program_ended().is_some() {
                self.link.post(&FromAgent::ProgramGone(rank.number));
            }
        }
    }

    /// Forwards the packets of a rank, and handles its lines of the key-value store's exchange.
    fn relay_rank(&mut self, at: usize) {
        let (packets, events) = self.ranks[at].relay();
        let number = self.first + at;
        for packet in packets {
            self.link.post(&FromAgent::Packet(number, packet));
        }
        for event in events {
            match event {
                RankEvent::Put { key, value } => self.exchange.put(number, key, value),
                RankEvent::Get { key } => self.exchange.get(number, &key),
                RankEvent::Fence => self.exchange.enter_fence(number),
                RankEvent::Failure(_)
                | RankEvent::Warning { .. }
                | RankEvent::Unsupported { .. } => {}
            }
        }
    }

    fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    let is_it = |rank: &RankProcess| rank.pid == Some(pid) && rank.is_running();
                    let Some(at) = self.ranks.iter().position(is_it) else {
                        continue;
                    };
                    self.relay_rank(at);
                    let rank = &mut self.ranks[at];
                    rank.exit = Some(status.into());
                    rank.program = None;
                    let fences = self.exchange.end(rank.number);
                    let ended = FromAgent::Ended(rank.number, status.into(), fences);
                    self.link.post(&ended);
                }
                Ok(None) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    /// Sends pending messages of the key-value store's exchange to the launcher and to ranks.
    fn exchange_words(&mut self) {
        let outbox = self.exchange.take();
        for misuse in outbox.misuses {
            let misused = FromAgent::Misused(misuse.rank, misuse.why);
            self.link.post(&misused);
        }
        if !outbox.up.is_empty() {
            for up in outbox.up.frames() {
                self.link.post(&FromAgent::Up(up));
            }
        }
        for (rank, line) in outbox.lines {
            if let Some(rank) = self.rank(rank) {
                rank.send(format!("{line}\n"));
            }
        }
    }

    fn move_output(&mut self) {
        for rank in &mut self.ranks {
            let number = rank.number;
            for stream in &mut rank.streams {
                let target: OutputTarget = stream.target;
                let under_way = &mut self.under_way[target as usize];
                while *under_way < self.window {
                    match stream.read(PIECE) {
                        ReadOutcome::Bytes(bytes) => {
                            *under_way += bytes.len();
                            self.link.post(&FromAgent::Output(number, target, bytes));
                        }
                        ReadOutcome::Nothing => break,
                        ReadOutcome::End => {
                            stream.stop_reading();
                            self.link.post(&FromAgent::EndOfOutput(number, target));
                            break;
                        }
                    }
                }
            }
        }
    }
}
