//! The launcher of tests: a job whose ranks are threads of one process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use secret::Secret;

use crate::{Bootstrap, Hosts, KvsError, LauncherGone, Notice, check_key, check_value};

/// One rank of a job whose ranks are threads of one process. It serves as a launcher for tests, and
/// as the reference implementation of [`Bootstrap`].
#[derive(Debug)]
pub struct InProcess {
    rank: usize,
    hosts: Hosts,
    job: Arc<Mutex<SharedJob>>,
    secret: Option<Secret>,
}

/// The state that the ranks of a job in one process share.
#[derive(Debug, Default)]
struct SharedJob {
    values: HashMap<String, String>,
    ranks: Vec<RankState>,
    /// The number of ranks that have entered the present fence.
    entered: usize,
    aborted: Option<(i32, String)>,
    notices: Vec<(usize, String)>,
}

#[derive(Debug, Clone, Default)]
struct RankState {
    /// Keys whose values this rank has requested and not received yet.
    requested: VecDeque<String>,
    in_fence: bool,
    fence_is_complete: bool,
    status_requests: usize,
}

impl InProcess {
    /// Makes a new job, and returns all of its ranks in order.
    pub fn job(hosts: Hosts) -> Vec<InProcess> {
        let job = Arc::new(Mutex::new(SharedJob {
            ranks: vec![RankState::default(); hosts.ranks()],
            ..SharedJob::default()
        }));
        let secret = Secret::draw().ok();
        let rank = |rank| InProcess {
            rank,
            secret: secret.clone(),
            hosts: hosts.clone(),
            job: Arc::clone(&job),
        };
        (0..hosts.ranks()).map(rank).collect()
    }

    fn job_state(&self) -> MutexGuard<'_, SharedJob> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests the status of every rank, as a launcher does.
    pub fn request_status(&self) {
        let mut job = self.job_state();
        job.ranks
            .iter_mut()
            .for_each(|rank| rank.status_requests += 1);
    }

    /// The exit code and the message of the first abort.
    pub fn aborted(&self) -> Option<(i32, String)> {
        self.job_state().aborted.clone()
    }

    /// All notices that ranks have sent, in order of arrival: the rank, and the notice as text.
    pub fn notices(&self) -> Vec<(usize, String)> {
        self.job_state().notices.clone()
    }
}

impl Bootstrap for InProcess {
    fn rank(&self) -> usize {
        self.rank
    }

    fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    fn secret(&self) -> Option<Secret> {
        self.secret.clone()
    }

    fn put(&self, key: &str, value: &str) -> Result<(), KvsError> {
        check_key(key)?;
        check_value(key, value)?;
        let mut job = self.job_state();
        let known = job.values.entry(key.into()).or_insert(value.into());
        match known == value {
            true => Ok(()),
            false => Err(KvsError::Taken { key: key.into() }),
        }
    }

    fn get(&self, key: &str) -> Result<(), KvsError> {
        check_key(key)?;
        self.job_state().ranks[self.rank]
            .requested
            .push_back(key.into());
        Ok(())
    }

    fn next_value(&self) -> Result<Option<(String, String)>, KvsError> {
        let mut job = self.job_state();
        let SharedJob { values, ranks, .. } = &mut *job;
        let requested = &mut ranks[self.rank].requested;
        let known = requested.iter().position(|key| values.contains_key(key));
        let answer = known.and_then(|at| {
            let key = requested.remove(at)?;
            let value = values.get(&key)?.clone();
            Some((key, value))
        });
        Ok(answer)
    }

    fn get_waits(&self) -> bool {
        true
    }

    fn enter_fence(&self) -> Result<(), KvsError> {
        let mut job = self.job_state();
        let size = job.ranks.len();
        let own = &mut job.ranks[self.rank];
        if own.in_fence {
            return Err(KvsError::InFence);
        }
        own.in_fence = true;
        own.fence_is_complete = false;
        job.entered += 1;
        if job.entered == size {
            job.entered = 0;
            job.ranks
                .iter_mut()
                .for_each(|rank| rank.fence_is_complete = true);
        }
        Ok(())
    }

    fn fence_is_complete(&self) -> Result<bool, KvsError> {
        let mut job = self.job_state();
        let own = &mut job.ranks[self.rank];
        let complete = std::mem::take(&mut own.fence_is_complete);
        own.in_fence &= !complete;
        Ok(complete)
    }

    fn abort(&self, code: i32, message: &str) -> Result<(), LauncherGone> {
        let mut job = self.job_state();
        job.aborted.get_or_insert_with(|| (code, message.into()));
        Ok(())
    }

    fn notify(&self, notice: Notice<'_>) -> Result<(), LauncherGone> {
        let text = match notice {
            Notice::Initialized => "initialized".into(),
            Notice::Lock(address) => format!("lock {address}"),
            Notice::Finalized => "finalized".into(),
            Notice::Warning { topic, text } => format!("warning {topic} {text}"),
            Notice::Unsupported(procedure) => format!("unsupported {procedure}"),
            Notice::Fault { code, text } => format!("fault {code} {text}"),
            Notice::Status(status) => format!("status {status}"),
            Notice::Deadlock(status) => format!("deadlock {status}"),
        };
        self.job_state().notices.push((self.rank, text));
        Ok(())
    }

    fn status_requested(&self) -> Result<bool, LauncherGone> {
        let requests = &mut self.job_state().ranks[self.rank].status_requests;
        let asked = *requests > 0;
        *requests -= usize::from(asked);
        Ok(asked)
    }
}
