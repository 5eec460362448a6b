//! A conflict as text: what, where, why, and what to do.

use std::fmt;

use crate::event::{Epoch, Kind};
use crate::machine::{Action, Conflict, Side};

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (first, end) = self.bytes;
        writeln!(
            f,
            "bytes {first} to {} of rank {}'s part of window {} ({}) are accessed twice without order:",
            end.saturating_sub(1),
            self.target,
            self.window,
            match self.made_by.as_str() {
                "" => "no call",
                call => call,
            },
        )?;
        for side in &self.sides {
            writeln!(f, "  {side}")?;
        }
        writeln!(f, "  why: {}", self.why())?;
        write!(f, "  remedy: {}", self.remedy())?;
        match self.repeated {
            0 => Ok(()),
            1 => write!(f, "\n  One more such pair follows."),
            many => write!(f, "\n  {many} more such pairs follow."),
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let call = match (self.call.as_str(), self.action) {
            ("", Action::Remote(Kind::Put)) => "MPI_Put",
            ("", Action::Remote(Kind::Get)) => "MPI_Get",
            ("", Action::Remote(_)) => "MPI_Accumulate",
            ("", _) => "a call",
            (call, _) => call,
        };
        let micros = self.time / 1_000_000;
        let nanos = self.time / 1000 % 1000;
        write!(f, "rank {} at {micros}.{nanos:03} us: {call}", self.rank)?;
        match self.action {
            Action::Remote(Kind::Accumulate { op, ty, .. }) => {
                write!(f, " with {} on {}", op.name(), ty.name())?;
            }
            Action::Remote(_) => {}
            Action::Read => write!(f, " reads this memory")?,
            Action::Write => write!(f, " writes this memory")?,
        }
        let own = matches!(self.action, Action::Read | Action::Write);
        f.write_str(match self.epoch {
            Some(Epoch::Fence) => ", between two fences",
            Some(Epoch::Start) if own => ", between MPI_Win_post and MPI_Win_wait",
            Some(Epoch::Start) => ", between MPI_Win_start and MPI_Win_complete",
            Some(Epoch::Shared) => ", under a shared lock",
            Some(Epoch::Exclusive) => ", under an exclusive lock",
            None => ", outside of any epoch",
        })
    }
}

impl Conflict {
    fn why(&self) -> &'static str {
        let [one, other] = self.sides.each_ref().map(|side| side.action);
        match (one, other) {
            (
                Action::Remote(Kind::Accumulate { ty, .. }),
                Action::Remote(Kind::Accumulate { ty: other, .. }),
            ) if ty != other => {
                "accumulates are atomic only with those of the same datatype at the same place \
                 (MPI 5.0 §12.7.1)"
            }
            (
                Action::Remote(Kind::Accumulate { op, .. }),
                Action::Remote(Kind::Accumulate { op: other, .. }),
            ) if op != other => {
                "concurrent accumulates to one place must use one operation, or MPI_NO_OP, as \
                 accumulate_ops says (MPI 5.0 §12.2.1)"
            }
            (Action::Remote(Kind::Accumulate { .. }), Action::Remote(Kind::Accumulate { .. })) => {
                "accumulates are atomic element by element, and these elements overlap in part \
                 (MPI 5.0 §12.7.1)"
            }
            (Action::Remote(Kind::Put), Action::Remote(Kind::Put)) => {
                "of two puts either may be the last, or parts of both (MPI 5.0 §12.7)"
            }
            (Action::Remote(Kind::Get), Action::Remote(_))
            | (Action::Remote(_), Action::Remote(Kind::Get)) => {
                "the get may return old bytes, new ones, or a mixture (MPI 5.0 §12.7)"
            }
            (Action::Remote(_), Action::Remote(_)) => {
                "a put is not atomic with accumulates: either may be lost (MPI 5.0 §12.7)"
            }
            _ => {
                "the target uses the memory while an operation accesses it \
                 (MPI 5.0 §12.7)"
            }
        }
    }

    fn remedy(&self) -> String {
        let [one, other] = self.sides.each_ref();
        let own = |side: &Side| matches!(side.action, Action::Read | Action::Write);
        let accumulates =
            |side: &Side| matches!(side.action, Action::Remote(Kind::Accumulate { .. }));
        let apart = match (one.epoch, other.epoch) {
            (Some(Epoch::Fence), Some(Epoch::Fence)) => "call MPI_Win_fence between the two",
            (Some(Epoch::Start), _) | (_, Some(Epoch::Start)) if own(one) || own(other) => {
                "use the memory before MPI_Win_post or after MPI_Win_wait"
            }
            (Some(Epoch::Start), _) => "let the target expose its window for each in turn",
            _ if own(one) || own(other) => {
                "lock the own part by MPI_Win_lock with MPI_LOCK_EXCLUSIVE for this call"
            }
            _ if one.rank == other.rank => "call MPI_Win_flush between the two",
            _ => {
                "call MPI_Win_flush or MPI_Win_unlock after the first and synchronise the ranks, or \
                 use MPI_LOCK_EXCLUSIVE"
            }
        };
        match (
            own(one) || own(other),
            accumulates(one) && accumulates(other),
        ) {
            (false, true) => format!("{apart}, or use one operation, datatype and alignment"),
            (false, false) if one.rank != other.rank => {
                format!("{apart}; or use accumulates (MPI_REPLACE, MPI_NO_OP)")
            }
            _ => apart.to_string(),
        }
    }
}
