//! A rank without a launcher.

use crate::{Bootstrap, Hosts, KvsError, LauncherGone, Notice};

/// A rank that no launcher started. It knows its identity, has no key-value store, and has nobody
/// to report to: `abort` and `notify` always fail, so that the rank shows its messages itself.
#[derive(Debug, Clone)]
pub struct Standalone {
    rank: usize,
    hosts: Hosts,
}

impl Standalone {
    /// The only rank of its job.
    pub fn alone() -> Self {
        Standalone::new(0, Hosts::one(1))
    }

    /// One of several ranks that were tied together without a launcher, as in tests.
    pub fn new(rank: usize, hosts: Hosts) -> Self {
        debug_assert!(rank < hosts.ranks());
        Standalone { rank, hosts }
    }
}

impl Bootstrap for Standalone {
    fn rank(&self) -> usize {
        self.rank
    }

    fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    fn put(&self, _key: &str, _value: &str) -> Result<(), KvsError> {
        Err(KvsError::None)
    }

    fn get(&self, _key: &str) -> Result<(), KvsError> {
        Err(KvsError::None)
    }

    fn next_value(&self) -> Result<Option<(String, String)>, KvsError> {
        Err(KvsError::None)
    }

    fn get_waits(&self) -> bool {
        false
    }

    fn enter_fence(&self) -> Result<(), KvsError> {
        Err(KvsError::None)
    }

    fn fence_is_complete(&self) -> Result<bool, KvsError> {
        Err(KvsError::None)
    }

    fn abort(&self, _code: i32, _message: &str) -> Result<(), LauncherGone> {
        Err(LauncherGone::Dead)
    }

    fn notify(&self, _notice: Notice<'_>) -> Result<(), LauncherGone> {
        Err(LauncherGone::Dead)
    }
}
