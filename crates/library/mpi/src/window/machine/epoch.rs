//! The rules of epochs (MPI 5.0 §12.5): which synchronisation may follow which, and which targets a
//! rank may access. A pure state machine: it sends nothing.
//!
//! A fence opens an access epoch only if accesses follow it, so another kind of epoch may begin
//! directly after a fence.

use std::collections::BTreeMap;

use super::locks::LockKind;
use crate::{Class, Error, Result};

/// The access and exposure epochs of one window at one rank.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    access: Access,
    /// The origins to which the window is exposed by `MPI_Win_post`.
    exposure: Option<Vec<u32>>,
}

/// The access epoch of a window in which a rank is.
#[derive(Debug, Default)]
enum Access {
    #[default]
    None,
    /// `MPI_Win_fence` has been called. `used`: accesses have followed.
    Fence { used: bool },
    /// `MPI_Win_start` named these targets.
    Start(Vec<u32>),
    /// `MPI_Win_lock` has locked these targets.
    Locks(BTreeMap<u32, Held>),
    /// `MPI_Win_lock_all` has locked all targets, shared.
    LockAll { nocheck: bool },
}

/// A lock that the origin has requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) kind: LockKind,
    /// True for `MPI_MODE_NOCHECK`: nobody holds a conflicting lock, so none is acquired.
    pub(crate) nocheck: bool,
}

impl Epochs {
    /// Checks that the epoch allows an access to a target, and records the access.
    ///
    /// # Errors
    /// No open epoch allows it.
    #[inline]
    pub(crate) fn access(&mut self, target: u32) -> Result<()> {
        let allowed = match &mut self.access {
            Access::None => false,
            Access::Fence { used } => {
                *used = true;
                true
            }
            Access::Start(group) => group.contains(&target),
            Access::Locks(locks) => locks.contains_key(&target),
            Access::LockAll { .. } => true,
        };
        match allowed {
            true => Ok(()),
            false => Err(self.refused(target)),
        }
    }

    #[cold]
    fn refused(&self, target: u32) -> Error {
        wrong(format!(
            "rank {target} of the window cannot be accessed {}: first call MPI_Win_fence, \
             MPI_Win_start with that rank in the group, MPI_Win_lock or MPI_Win_lock_all",
            self.now()
        ))
    }

    /// The epoch in which a target is accessed, for notes.
    pub(crate) fn noted(&self, target: u32) -> Option<rma_check::Epoch> {
        match (&self.access, self.lock_of(target)) {
            (Access::Fence { .. }, _) => Some(rma_check::Epoch::Fence),
            (Access::Start(_), _) => Some(rma_check::Epoch::Start),
            (_, Some(held)) => Some(match held.kind {
                LockKind::Shared => rma_check::Epoch::Shared,
                LockKind::Exclusive => rma_check::Epoch::Exclusive,
            }),
            (_, None) => None,
        }
    }

    /// The lock under which a target is accessed; `None` outside of lock epochs.
    pub(crate) fn lock_of(&self, target: u32) -> Option<Held> {
        match &self.access {
            Access::Locks(locks) => locks.get(&target).copied(),
            Access::LockAll { nocheck } => Some(Held {
                kind: LockKind::Shared,
                nocheck: *nocheck,
            }),
            _ => None,
        }
    }

    /// True if the epoch is one of `MPI_Win_lock` at this target, and begins only when the lock is
    /// granted.
    pub(crate) fn awaits_lock(&self, target: u32) -> bool {
        matches!(&self.access, Access::Locks(locks)
            if locks.get(&target).is_some_and(|held| !held.nocheck))
    }

    /// Checks that `MPI_Win_fence` may be called.
    pub(crate) fn check_fence(&self) -> Result<()> {
        self.outside("MPI_Win_fence")?;
        match self.exposure {
            None => Ok(()),
            Some(_) => Err(wrong(
                "MPI_Win_fence between MPI_Win_post and MPI_Win_wait".into(),
            )),
        }
    }

    /// Records that a fence has ended. `succeeds`: accesses may follow.
    pub(crate) fn fence(&mut self, succeeds: bool) {
        self.access = match succeeds {
            true => Access::Fence { used: false },
            false => Access::None,
        };
    }

    /// Begins the access epoch of `MPI_Win_start`.
    pub(crate) fn start(&mut self, group: Vec<u32>) -> Result<()> {
        self.begin("MPI_Win_start")?;
        self.access = Access::Start(group);
        Ok(())
    }

    /// Ends the access epoch of `MPI_Win_complete`, and returns its targets.
    pub(crate) fn complete(&mut self) -> Result<Vec<u32>> {
        match std::mem::take(&mut self.access) {
            Access::Start(group) => Ok(group),
            other => {
                self.access = other;
                Err(wrong(format!(
                    "MPI_Win_complete without MPI_Win_start: it was called {}",
                    self.now()
                )))
            }
        }
    }

    /// Begins the exposure epoch of `MPI_Win_post`.
    pub(crate) fn post(&mut self, group: Vec<u32>, me: u32) -> Result<()> {
        if self.exposure.is_some() {
            return Err(wrong(
                "MPI_Win_post twice: call MPI_Win_wait between the two".into(),
            ));
        }
        if matches!(&self.access, Access::Fence { used: true }) {
            return Err(wrong(
                "MPI_Win_post within a fence epoch: call MPI_Win_fence first".into(),
            ));
        }
        if self.lock_of(me).is_some() {
            return Err(wrong(
                "MPI_Win_post while this rank has locked its own window: call MPI_Win_unlock first"
                    .into(),
            ));
        }
        self.exposure = Some(group);
        Ok(())
    }

    /// The origins of the open exposure epoch. An error if there is none.
    pub(crate) fn exposed(&self, call: &str) -> Result<&[u32]> {
        match &self.exposure {
            Some(group) => Ok(group),
            None => Err(wrong(format!("{call} without MPI_Win_post"))),
        }
    }

    /// Records that the exposure epoch has ended.
    pub(crate) fn end_exposure(&mut self) {
        self.exposure = None;
    }

    /// Begins the epoch of `MPI_Win_lock`, or adds a target to it.
    pub(crate) fn lock(&mut self, target: u32, held: Held, me: u32) -> Result<()> {
        if let Access::Locks(locks) = &mut self.access {
            if locks.contains_key(&target) {
                return Err(wrong(format!("rank {target} is locked already")));
            }
            locks.insert(target, held);
            return Ok(());
        }
        self.begin("MPI_Win_lock")?;
        if self.exposure.is_some() && target == me {
            return Err(wrong(
                "MPI_Win_lock of this rank's own window between MPI_Win_post and MPI_Win_wait"
                    .into(),
            ));
        }
        self.access = Access::Locks(BTreeMap::from([(target, held)]));
        Ok(())
    }

    /// Checks that `MPI_Win_unlock` may be called for a target.
    pub(crate) fn check_locked(&self, target: u32) -> Result<()> {
        match &self.access {
            Access::Locks(locks) if locks.contains_key(&target) => Ok(()),
            _ => Err(wrong(format!(
                "MPI_Win_unlock of rank {target}, which MPI_Win_lock has not locked"
            ))),
        }
    }

    /// Records that a target has been unlocked.
    pub(crate) fn unlock(&mut self, target: u32) {
        if let Access::Locks(locks) = &mut self.access {
            locks.remove(&target);
            if locks.is_empty() {
                self.access = Access::None;
            }
        }
    }

    /// Begins the epoch of `MPI_Win_lock_all`.
    pub(crate) fn lock_all(&mut self, nocheck: bool) -> Result<()> {
        self.begin("MPI_Win_lock_all")?;
        self.access = Access::LockAll { nocheck };
        Ok(())
    }

    /// Checks that `MPI_Win_unlock_all` may be called.
    pub(crate) fn check_locked_all(&self) -> Result<()> {
        match self.access {
            Access::LockAll { .. } => Ok(()),
            _ => Err(wrong(
                "MPI_Win_unlock_all without MPI_Win_lock_all".to_string(),
            )),
        }
    }

    /// Records that all targets have been unlocked.
    pub(crate) fn unlock_all(&mut self) {
        self.access = Access::None;
    }

    /// Checks that `MPI_Win_flush` of a target, or of all (`None`), may be called.
    pub(crate) fn check_flush(&self, target: Option<u32>) -> Result<()> {
        let allowed = match (&self.access, target) {
            (Access::LockAll { .. }, _) | (Access::Locks(_), None) => true,
            (Access::Locks(locks), Some(target)) => locks.contains_key(&target),
            _ => false,
        };
        match allowed {
            true => Ok(()),
            false => Err(wrong(format!(
                "a flush needs MPI_Win_lock or MPI_Win_lock_all; it was called {}",
                self.now()
            ))),
        }
    }

    /// Checks that the window may be freed.
    pub(crate) fn check_free(&self) -> Result<()> {
        if self.exposure.is_some() {
            return Err(wrong(
                "MPI_Win_free between MPI_Win_post and MPI_Win_wait".into(),
            ));
        }
        match &self.access {
            Access::None | Access::Fence { used: false } => Ok(()),
            _ => Err(wrong(format!("MPI_Win_free {}", self.now()))),
        }
    }

    /// Checks that an access epoch other than one of a fence may begin.
    fn begin(&self, call: &str) -> Result<()> {
        match &self.access {
            Access::Fence { used: true } => Err(wrong(format!(
                "{call} within a fence epoch: call MPI_Win_fence first"
            ))),
            _ => self.outside(call),
        }
    }

    /// Checks that no access epoch other than one of a fence is open.
    fn outside(&self, call: &str) -> Result<()> {
        match &self.access {
            Access::None | Access::Fence { .. } => Ok(()),
            _ => Err(wrong(format!("{call} {}", self.now()))),
        }
    }

    /// The current position in the order of epochs, for error messages.
    fn now(&self) -> &'static str {
        match &self.access {
            Access::None => "outside of an access epoch",
            Access::Fence { .. } => "within a fence epoch",
            Access::Start(_) => "between MPI_Win_start and MPI_Win_complete",
            Access::Locks(_) => "between MPI_Win_lock and MPI_Win_unlock",
            Access::LockAll { .. } => "between MPI_Win_lock_all and MPI_Win_unlock_all",
        }
    }
}

#[cold]
fn wrong(detail: String) -> Error {
    Error::new(Class::RMA_SYNC, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Held = Held {
        kind: LockKind::Exclusive,
        nocheck: false,
    };

    fn refused(result: Result<impl std::fmt::Debug>) {
        assert_eq!(result.unwrap_err().class, Class::RMA_SYNC);
    }

    #[test]
    fn accesses_need_an_epoch_with_their_target() {
        let mut epochs = Epochs::default();
        refused(epochs.access(0));
        epochs.fence(true);
        epochs.access(0).unwrap();
        epochs.fence(false);
        refused(epochs.access(0));
        epochs.start(vec![2]).unwrap();
        epochs.access(2).unwrap();
        refused(epochs.access(1));
        assert_eq!(epochs.complete().unwrap(), [2]);
        epochs.lock(1, HELD, 0).unwrap();
        epochs.access(1).unwrap();
        refused(epochs.access(2));
        epochs.unlock(1);
        refused(epochs.access(1));
        epochs.lock_all(false).unwrap();
        epochs.access(7).unwrap();
        assert_eq!(epochs.lock_of(7).unwrap().kind, LockKind::Shared);
        epochs.unlock_all();
        epochs.check_free().unwrap();
    }

    #[test]
    fn a_fence_that_nothing_followed_allows_other_epochs() {
        let mut epochs = Epochs::default();
        for used in [false, true] {
            epochs.fence(true);
            if used {
                epochs.access(0).unwrap();
                refused(epochs.lock(0, HELD, 0));
                refused(epochs.lock_all(false));
                refused(epochs.start(vec![0]));
                refused(epochs.post(vec![0], 0));
                refused(epochs.check_free());
            } else {
                epochs.lock(0, HELD, 0).unwrap();
                epochs.unlock(0);
            }
        }
    }

    #[test]
    fn epochs_of_different_kinds_do_not_mix() {
        let mut epochs = Epochs::default();
        epochs.lock(0, HELD, 0).unwrap();
        refused(epochs.lock(0, HELD, 0));
        epochs.lock(1, HELD, 0).unwrap();
        refused(epochs.check_fence());
        refused(epochs.lock_all(false));
        refused(epochs.start(vec![1]));
        refused(epochs.check_locked_all());
        refused(epochs.post(vec![1], 0));
        refused(epochs.check_free());
        epochs.unlock(0);
        refused(epochs.check_locked(0));
        epochs.check_locked(1).unwrap();
        epochs.check_flush(Some(1)).unwrap();
        epochs.check_flush(None).unwrap();
        refused(epochs.check_flush(Some(0)));
        epochs.unlock(1);
        refused(epochs.check_flush(None));
        epochs.lock_all(true).unwrap();
        refused(epochs.check_locked(0));
        epochs.check_flush(Some(5)).unwrap();
        refused(epochs.complete());
        epochs.unlock_all();
    }

    #[test]
    fn exposure_is_apart_from_access() {
        let mut epochs = Epochs::default();
        refused(epochs.exposed("MPI_Win_wait"));
        epochs.post(vec![1, 2], 0).unwrap();
        refused(epochs.post(vec![1], 0));
        refused(epochs.check_fence());
        refused(epochs.lock(0, HELD, 0));
        epochs.lock(1, HELD, 0).unwrap();
        epochs.unlock(1);
        epochs.start(vec![1]).unwrap();
        refused(epochs.check_free());
        epochs.complete().unwrap();
        assert_eq!(epochs.exposed("MPI_Win_wait").unwrap(), [1, 2]);
        epochs.end_exposure();
        epochs.check_free().unwrap();
        epochs.check_fence().unwrap();
    }
}
