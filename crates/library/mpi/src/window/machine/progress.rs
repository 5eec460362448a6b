//! The agents that make progress for the operations of a window at their target (MPI 5.0 §12.7.3).

use channel::ProgressThread;

/// A kind of operations on windows, in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// `MPI_Put` and its relatives.
    Put,
    /// `MPI_Get` and its relatives.
    Get,
    /// Accumulates of all kinds, and compare-and-swap.
    Accumulate,
    /// Window locks.
    Lock,
}

impl AccessKind {
    /// All kinds of operations.
    pub const ALL: [AccessKind; 4] = [
        AccessKind::Put,
        AccessKind::Get,
        AccessKind::Accumulate,
        AccessKind::Lock,
    ];

    /// The name of the kind of operations in reports.
    pub fn name(self) -> &'static str {
        match self {
            AccessKind::Put => "put",
            AccessKind::Get => "get",
            AccessKind::Accumulate => "accumulate",
            AccessKind::Lock => "lock",
        }
    }
}

/// The part of the target's process that must act so that an operation completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progressor {
    /// No part: the origin accesses the memory by loads and stores.
    Memory,
    /// The target's progress thread, while the target makes no MPI calls.
    Thread,
    /// The target's MPI calls, which make progress.
    Calls,
}

impl Progressor {
    /// The name of this means of progress in reports.
    pub fn name(self) -> &'static str {
        match self {
            Progressor::Memory => "memory",
            Progressor::Thread => "thread",
            Progressor::Calls => "calls",
        }
    }
}

/// The state of the progress thread of a rank.
#[derive(Default)]
pub(crate) enum Assistance {
    /// No progress thread runs.
    #[default]
    None,
    /// The progress thread runs.
    Thread(Box<ProgressThread>),
    /// A progress thread of virtual time, which the rank's process simulates while it computes.
    Modelled,
}

/// The progressor for each kind of operations, in the order of [`AccessKind::ALL`].
pub type Progressors = [Progressor; AccessKind::ALL.len()];
