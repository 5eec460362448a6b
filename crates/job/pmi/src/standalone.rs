//! The bootstrap of a rank that no launcher started.

use std::sync::OnceLock;

use secret::Secret;

use crate::{Bootstrap, Hosts, KvsError, LauncherGone, Notice};

/// A rank that no launcher started. It knows its rank number, and has neither a key-value store nor
/// a launcher to report to: `abort` and `notify` always fail, so that the rank prints its messages
/// itself.
#[derive(Debug, Clone)]
pub struct Standalone {
    rank: usize,
    hosts: Hosts,
    /// The secret, drawn when it is first requested. `None` if the system gives no random bytes.
    secret: OnceLock<Option<Secret>>,
}

impl Standalone {
    /// Makes the only rank of a job.
    pub fn alone() -> Self {
        Standalone::new(0, Hosts::one(1))
    }

    /// Makes one of several ranks that are connected without a launcher, as in tests.
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

    /// The only rank of a job draws its own secret; several ranks have none in common.
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
