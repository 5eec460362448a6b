//! The bootstrap of a rank that our own launcher started: its identity from environment variables,
//! and the launcher's services over the control socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

use knobs::{
    APPNUM, CONTROL_FD, HOSTS, MOST_RANKS, PROFILE_FD, RANK, RECORD_FD, SCENE_FD, SECRET_FD,
    SEGMENT_FD, SIZE, WORLD_FD,
};
use secret::Secret;

use crate::control::Control;
use crate::inherit::{Inherited, InheritedKind};
use crate::secret_file::read_secret;
use crate::{Bootstrap, Error, Hosts, KvsError, LauncherGone, Notice, hosts};

/// One rank of a job that our own launcher started: [`Bootstrap`] over environment variables and
/// the control socket.
#[derive(Debug)]
pub struct Job {
    rank: usize,
    /// The host of each rank. On a modelled machine these are its modelled hosts.
    pub hosts: Hosts,
    /// The files of the modelled machine, if the job runs on one.
    pub model: Option<ModelFiles>,
    /// The file of the job's profile, if the ranks are to record one.
    pub profile: Option<OwnedFd>,
    /// The file to which the ranks append their parts of a trace, if they are recorded.
    pub record: Option<OwnedFd>,
    segment: Mutex<Option<OwnedFd>>,
    secret: Option<Secret>,
    /// The index of this rank's program.
    program: usize,
    control: Arc<Control>,
}

/// The memory files that all ranks on a modelled machine share.
#[derive(Debug)]
pub struct ModelFiles {
    /// The description of the machine, written by the launcher.
    pub scene: OwnedFd,
    /// The world: the memory in which the machine and its clock live.
    pub world: OwnedFd,
}

impl Job {
    /// Makes a rank whose connection to its launcher is `control`, a connected socket of type
    /// SEQPACKET.
    pub fn new(rank: usize, hosts: Hosts, control: OwnedFd, segment: Option<OwnedFd>) -> Job {
        debug_assert!(rank < hosts.ranks());
        Job {
            rank,
            hosts,
            model: None,
            profile: None,
            record: None,
            program: 0,
            segment: Mutex::new(segment),
            secret: None,
            control: Arc::new(Control::new(control)),
        }
    }

    /// The connection to the launcher, for reports of a start that fails.
    pub(crate) fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// Parses the launcher's variables, whose values `find` returns, and adopts the descriptors
    /// that they name. These become close-on-exec.
    pub(crate) fn from_variables<'a>(find: impl Fn(&str) -> Option<&'a str>) -> Result<Job, Error> {
        let want = |name: &'static str| find(name).ok_or(Error::Missing { variable: name });
        let size = number(SIZE, want(SIZE)?)?;
        if size > MOST_RANKS {
            return Err(Error::TooManyRanks { size });
        }
        let rank = number(RANK, want(RANK)?)?;
        if rank >= size {
            return Err(Error::RankBeyondSize { rank, size });
        }
        let hosts = match find(HOSTS) {
            None => Hosts::one(size),
            Some(text) => Hosts::parse(text, size)?,
        };
        let program = find(APPNUM).map_or(Ok(0), |value| number(APPNUM, value))?;
        let segment = want(SEGMENT_FD)?;
        let control = want(CONTROL_FD)?;
        if segment == control {
            return Err(Error::SameDescriptor {
                number: control.to_string(),
            });
        }
        // All descriptors are checked before any is adopted, so an error leaves them unchanged.
        let memory = |name| Inherited::find(name, want(name)?, InheritedKind::Memory);
        let control = Inherited::find(CONTROL_FD, control, InheritedKind::Socket)?;
        let segment = memory(SEGMENT_FD)?;
        let model = match (find(SCENE_FD), find(WORLD_FD)) {
            (None, None) => None,
            _ => Some((memory(SCENE_FD)?, memory(WORLD_FD)?)),
        };
        let profile = find(PROFILE_FD).map(|_| memory(PROFILE_FD)).transpose()?;
        let record = find(RECORD_FD).map(|_| memory(RECORD_FD)).transpose()?;
        let secret = find(SECRET_FD).map(|_| memory(SECRET_FD)).transpose()?;
        let (control, segment) = (control.take()?, segment.take()?);
        let mut job = Job::new(rank, hosts, control, Some(segment));
        if let Some((scene, world)) = model {
            job.model = Some(ModelFiles {
                scene: scene.take()?,
                world: world.take()?,
            });
        }
        job.program = program;
        job.secret = secret.map(adopt_secret).transpose()?;
        job.profile = profile.map(Inherited::take).transpose()?;
        job.record = record.map(Inherited::take).transpose()?;
        Ok(job)
    }
}

impl Bootstrap for Job {
    fn rank(&self) -> usize {
        self.rank
    }

    fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    fn program(&self) -> usize {
        self.program
    }

    fn secret(&self) -> Option<Secret> {
        self.secret.clone()
    }

    fn take_segment(&self) -> Option<OwnedFd> {
        let mut segment = self.segment.lock().unwrap_or_else(PoisonError::into_inner);
        segment.take()
    }

    fn put(&self, key: &str, value: &str) -> Result<(), KvsError> {
        self.control.put(key, value)
    }

    fn get(&self, key: &str) -> Result<(), KvsError> {
        self.control.get(key)
    }

    fn next_value(&self) -> Result<Option<(String, String)>, KvsError> {
        self.control.next_value()
    }

    fn get_waits(&self) -> bool {
        true
    }

    fn enter_fence(&self) -> Result<(), KvsError> {
        self.control.enter_fence()
    }

    fn fence_is_complete(&self) -> Result<bool, KvsError> {
        self.control.fence_is_complete()
    }

    fn abort(&self, code: i32, message: &str) -> Result<(), LauncherGone> {
        self.control.abort(code, message)
    }

    fn notify(&self, notice: Notice<'_>) -> Result<(), LauncherGone> {
        self.control.notify(notice)
    }

    fn status_requested(&self) -> Result<bool, LauncherGone> {
        self.control.status_requested()
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.control.as_fd())
    }
}

/// The environment variables by which the launcher identifies one rank: names and values. Variables
/// that name files of all ranks are not among them.
pub fn variables(rank: usize, hosts: &Hosts, control: RawFd) -> Vec<(&'static str, String)> {
    let always = [
        (RANK, rank.to_string()),
        (SIZE, hosts.ranks().to_string()),
        (CONTROL_FD, control.to_string()),
    ];
    always.into_iter().chain(hosts::variable(hosts)).collect()
}

/// Reads the job's secret from its file, and closes the descriptor.
fn adopt_secret(file: Inherited) -> Result<Secret, Error> {
    let number = file.number();
    let refuse = |why: String| Error::Descriptor {
        variable: SECRET_FD,
        number,
        why,
    };
    let file = file.take()?;
    let secret = read_secret(&file).map_err(|errno| refuse(errno.to_string()))?;
    secret.ok_or_else(|| refuse(format!("it does not hold {} bytes", Secret::LENGTH)))
}

fn number(variable: &'static str, value: &str) -> Result<usize, Error> {
    value.parse().map_err(|_| Error::NotANumber {
        variable,
        value: value.to_string(),
    })
}
