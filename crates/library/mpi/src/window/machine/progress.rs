//! The agents that make progress for the operations of a window at their target (MPI 5.0 §12.7.3).

use channel::ProgressThread;

/// A kind of operations on a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// `MPI_Put` and its relatives.
    Put,
    /// `MPI_Get` and its relatives.
    Get,
    /// Accumulates of all kinds.
    Accumulate,
    /// Window locks.
    Lock,
}

impl AccessKind {
    /// All kinds.
    pub const ALL: [AccessKind; 4] = [
        AccessKind::Put,
        AccessKind::Get,
        AccessKind::Accumulate,
        AccessKind::Lock,
    ];

    /// Name of the kind in texts.
    pub fn name(self) -> &'static str {
        match self {
            AccessKind::Put => "put",
            AccessKind::Get => "get",
            AccessKind::Accumulate => "accumulate",
            AccessKind::Lock => "lock",
        }
    }
}

/// The part of a target that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progressor {
    /// None: the origin loads and stores.
    Memory,
    /// Its progress thread, while it makes no calls itself.
    Thread,
    /// Its MPI calls.
    Calls,
}

impl Progressor {
    /// Name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Progressor::Memory => "memory",
            Progressor::Thread => "thread",
            Progressor::Calls => "calls",
        }
    }
}

/// The progress thread of a rank.
#[derive(Default)]
pub(crate) enum Assistance {
    /// None runs.
    #[default]
    None,
    /// It runs.
    Thread(Box<ProgressThread>),
    /// Virtual time has one, which the rank's process plays while it computes.
    Modelled,
}

/// The progressors of all kinds of operations, as in [`AccessKind::ALL`].
pub type Progressors = [Progressor; AccessKind::ALL.len()];
