//! The state of a rank: the contents of its messages and the end of its process, without
//! descriptors and system calls.

use pmi::{FromRank, RankStatus};
use rustix::process::Pid;

use crate::process_exit::ProcessExit;
use crate::verdict::Cause;

/// A message of a rank that concerns the whole job.
#[derive(Debug)]
pub(crate) enum RankEvent {
    /// The failure of the rank, which ends the job for this cause.
    Failure(Cause),
    Put {
        key: String,
        value: String,
    },
    Get {
        key: String,
    },
    Fence,
    /// The first call of a procedure that the library lacks.
    Unsupported {
        procedure: String,
    },
    /// A warning of the rank, which is printed once for each topic.
    Warning {
        topic: String,
        text: String,
    },
}

impl RankEvent {
    /// True if the event is about values and fences of the key-value store.
    pub(crate) fn is_exchange(&self) -> bool {
        matches!(
            self,
            RankEvent::Put { .. } | RankEvent::Get { .. } | RankEvent::Fence
        )
    }
}

/// The most bytes of one status; further lines of it are discarded.
const STATUS_BYTES: usize = 64 << 10;

/// The state of one rank, as the launcher or agent knows it.
#[derive(Debug, Default)]
pub(crate) struct RankState {
    pub number: usize,
    /// The process ID of the rank. `None` until an agent has started it.
    pub pid: Option<Pid>,
    /// The index of the agent that starts the rank. `None`: this process starts it.
    pub host: Option<usize>,
    /// The process ID of the program that completed MPI_Init: the rank's own process, or one that a
    /// wrapper started.
    pub init: Option<Pid>,
    /// The address of the rank's MPI lock, which is locked while the rank is in MPI, if the rank
    /// has reported it.
    pub lock: Option<u64>,
    /// True if the rank has completed MPI_Finalize.
    pub finalized: bool,
    /// The exit of the rank's process, once it has ended.
    pub exit: Option<ProcessExit>,
    /// True if the exit of the process will never be known, because its agent is gone.
    pub lost: bool,
    /// The rank's answer to the last status request.
    pub answer: Option<RankStatus>,
    /// True if the rank has reported a deadlock, with its status.
    pub deadlocked: bool,
    /// True if the rank has reported a fatal error.
    has_fault: bool,
    /// The received lines of a status that is not complete yet.
    lines: Vec<String>,
    /// The length of the received lines of an incomplete status, in bytes.
    line_bytes: usize,
}

impl RankState {
    /// The initial state of a rank: it has sent nothing.
    pub(crate) fn new(number: usize) -> Self {
        RankState {
            number,
            ..RankState::default()
        }
    }

    /// True if the rank is running, as far as is known.
    pub(crate) fn is_running(&self) -> bool {
        self.exit.is_none() && !self.lost
    }

    /// The status that the rank reported when it ended by a fault, if it did.
    pub(crate) fn last_words(&self) -> Option<&RankStatus> {
        self.answer.as_ref().filter(|_| self.has_fault)
    }

    /// True if the rank is between MPI_Init and MPI_Finalize.
    pub(crate) fn is_in_mpi(&self) -> bool {
        self.is_running() && self.init.is_some() && !self.finalized
    }

    /// Discards the last status, because a new one is requested. A status of a fault or deadlock is
    /// kept.
    pub(crate) fn forget_answer(&mut self) {
        if !self.has_fault && !self.deadlocked {
            self.answer = None;
        }
        self.drop_lines();
    }

    fn drop_lines(&mut self) {
        self.lines = Vec::new();
        self.line_bytes = 0;
    }

    /// Handles the lines of one packet. Returns the events that concern the job.
    pub(crate) fn handle_packet(&mut self, packet: &str) -> Vec<RankEvent> {
        packet
            .lines()
            .filter_map(|line| self.handle_line(line))
            .collect()
    }

    fn handle_line(&mut self, line: &str) -> Option<RankEvent> {
        // Unknown lines are ignored: a program may write to a descriptor that it does not own.
        match line.parse::<FromRank>().ok()? {
            FromRank::Init { pid } => return self.enter_mpi(pid).map(RankEvent::Failure),
            FromRank::Lock { address } => self.lock = Some(address),
            FromRank::Finalize => self.finalized = true,
            FromRank::Abort { code, message } => {
                return Some(RankEvent::Failure(Cause::Abort { code, message }));
            }
            FromRank::Warning { topic, text } => {
                return Some(RankEvent::Warning { topic, text });
            }
            FromRank::Unsupported { procedure } => {
                return Some(RankEvent::Unsupported { procedure });
            }
            FromRank::Fault { code, text } => {
                self.has_fault = true;
                return Some(RankEvent::Failure(Cause::Fault { code, text }));
            }
            FromRank::Status { text } if self.line_bytes + text.len() < STATUS_BYTES => {
                self.line_bytes += text.len() + 1;
                self.lines.push(text);
            }
            FromRank::Status { .. } => {}
            FromRank::StatusEnd => {
                self.answer = self.lines.join("\n").parse().ok();
                self.drop_lines();
            }
            FromRank::Deadlock => self.deadlocked = true,
            FromRank::Put { key, value } => return Some(RankEvent::Put { key, value }),
            FromRank::Get { key } => return Some(RankEvent::Get { key }),
            FromRank::Fence => return Some(RankEvent::Fence),
        }
        None
    }

    fn enter_mpi(&mut self, pid: u32) -> Option<Cause> {
        let pid = Pid::from_raw(pid.try_into().ok()?)?;
        if self.init.is_some() {
            return Some(Cause::SecondProgram { pid });
        }
        self.init = Some(pid);
        None
    }

    /// Records the end of the process. Returns the cause if it is a failure. `others_in_mpi`: other
    /// ranks are in MPI, and wait for this rank.
    pub(crate) fn ended(&mut self, exit: ProcessExit, others_in_mpi: bool) -> Option<Cause> {
        self.exit = Some(exit);
        let code = match exit {
            ProcessExit::Code(code) => code,
            ProcessExit::Signal(signal) => return Some(Cause::Signal { signal }),
        };
        match code {
            0 if self.init.is_some() && !self.finalized => Some(Cause::NoFinalize),
            0 if self.init.is_none() && others_in_mpi => Some(Cause::NoInit),
            0 => None,
            code => Some(Cause::Exit { code }),
        }
    }

    /// The failure of a rank whose program has ended below a wrapper that is still running, if it
    /// is one.
    pub(crate) fn program_ended(&self) -> Option<Cause> {
        let pid = self.init.filter(|_| !self.finalized)?;
        Some(Cause::ProgramGone { pid })
    }
}

impl AsRef<RankState> for RankState {
    fn as_ref(&self) -> &RankState {
        self
    }
}

/// The states of these ranks, in order.
pub(crate) fn states(ranks: &[impl AsRef<RankState>]) -> impl Iterator<Item = &RankState> {
    ranks.iter().map(AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(lines: &[&str]) -> (RankState, Vec<RankEvent>) {
        let mut rank = RankState::default();
        let events = rank.handle_packet(&lines.join("\n"));
        (rank, events)
    }

    fn line(line: FromRank) -> String {
        line.to_string()
    }

    #[test]
    fn a_rank_in_mpi_must_finalize() {
        let init = line(FromRank::Init { pid: 7 });
        let finalize = line(FromRank::Finalize);
        let (mut rank_in_mpi, _) = rank(&[&init]);
        assert!(rank_in_mpi.is_in_mpi());
        let cause = rank_in_mpi.program_ended();
        assert!(matches!(cause, Some(Cause::ProgramGone { .. })));
        let cause = rank_in_mpi.ended(ProcessExit::Code(0), false);
        assert!(matches!(cause, Some(Cause::NoFinalize)));
        let (mut done, _) = rank(&[&init, &finalize]);
        assert!(!done.is_in_mpi() && done.program_ended().is_none());
        assert!(done.ended(ProcessExit::Code(0), true).is_none());
        let (mut other, _) = rank(&[]);
        let cause = other.ended(ProcessExit::Code(0), true);
        assert!(matches!(cause, Some(Cause::NoInit)));
    }

    #[test]
    fn a_second_program_is_a_failure_and_strange_lines_are_none() {
        let (first, second) = (
            line(FromRank::Init { pid: 7 }),
            line(FromRank::Init { pid: 8 }),
        );
        let (rank, events) = rank(&["hello", &first, "", &second]);
        assert_eq!(rank.init, Pid::from_raw(7));
        let failed = |event: &RankEvent| matches!(event, RankEvent::Failure(Cause::SecondProgram { pid }) if Some(*pid) == Pid::from_raw(8));
        assert!(events.len() == 1 && failed(&events[0]));
    }

    #[test]
    fn the_status_of_a_fault_outlives_requests() {
        let fault = line(FromRank::Fault {
            code: 3,
            text: "no memory".into(),
        });
        let status = RankStatus::default().to_string();
        let lines = status.lines().map(|text| {
            line(FromRank::Status {
                text: text.to_string(),
            })
        });
        let mut lines: Vec<String> = lines.collect();
        lines.push(line(FromRank::StatusEnd));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (mut usual, _) = rank(&lines);
        assert!(usual.answer.is_some() && usual.last_words().is_none());
        usual.forget_answer();
        assert!(usual.answer.is_none());
        let (mut faulty, _) = rank(&[&[&*fault], &lines[..]].concat());
        faulty.forget_answer();
        assert!(faulty.last_words().is_some());
    }
}
