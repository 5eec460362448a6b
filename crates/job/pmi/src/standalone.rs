//! A rank without a launcher.

use std::sync::OnceLock;

use secret::Secret;

use crate::{Bootstrap, Hosts, KvsError, LauncherGone, Notice};

/// A rank that no launcher started. It knows its identity, has no key-value store, and has nobody
/// to report to: `abort` and `notify` always fail, so that the rank shows its messages itself.
#[derive(Debug, Clone)]
pub struct Standalone {
    rank: usize,
    hosts: Hosts,
    /// Drawn when it is first asked for. None if the system gives no random bytes.
    secret: OnceLock<Option<Secret>>,
}

impl Standalone {
    /// The only rank of its job.
    pub fn alone() -> Self {
        Standalone::new(0, Hosts::one(1))
    }

    /// One of several ranks that were tied together without a launcher, as in tests.
    pub fn new(rank: usize, hosts: Hosts) -> Self {
        debug_assert!(rank < hosts.ranks());
        Standalone {
            rank,
            hosts,
            secret: OnceLock::new(),
        }
    }
}

impl Bootstrap for Standalone {
    fn rank(&self) -> usize {
        self.rank
    }

    fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// The only rank of a job draws the secret itself; several have none in common.
    fn secret(&self) -> Option<Secret> {
        let is_alone = self.size() == 1;
        let secret = self.secret.get_or_init(|| Secret::draw().ok());
        secret.clone().filter(|_| is_alone)
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
