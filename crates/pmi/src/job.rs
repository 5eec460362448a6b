//! Who this rank is.

use std::os::fd::{OwnedFd, RawFd};

use knobs::{COMPUTED_FD, CONTROL_FD, HOSTS, RANK, SCENE_FD, SEGMENT_FD, SIZE, WORLD_FD};

use crate::inherit::{Inherited, Kind};
use crate::{Control, Error, Hosts, foreign, hosts};

/// What a launcher told this process.
#[derive(Debug)]
pub struct Job {
    /// From 0.
    pub rank: usize,
    /// How many ranks the job has; more than `rank`.
    pub size: usize,
    /// Which rank is on which host.
    pub hosts: Hosts,
    /// The memory that the ranks of this host share: a place for each of [`Hosts::beside`], in that order.
    pub segment: OwnedFd,
    /// The socket to the launcher.
    pub control: Control,
    /// The modelled machine, if the job runs on one.
    pub stage: Option<Stage>,
}

/// A job's place in virtual time: two files of memory that all its ranks share.
#[derive(Debug)]
pub struct Stage {
    /// What the machine is, as the launcher wrote it.
    pub scene: OwnedFd,
    /// What happens on it.
    pub world: OwnedFd,
    /// What the ranks compute between their calls, if that is to be as it was once.
    pub computed: Option<OwnedFd>,
}

impl Job {
    /// Reads the contract from `vars` and adopts the two descriptors it names; they are close-on-exec from then on.
    ///
    /// `None`: no launcher started this process, so it is the only rank. An error: our launcher's variables are there
    /// but not usable, or another launcher started this process as one of several.
    pub fn from_env(vars: impl Iterator<Item = (String, String)>) -> Result<Option<Job>, Error> {
        let vars: Vec<(String, String)> = vars.filter(|(_, value)| !value.is_empty()).collect();
        let find = |name: &str| {
            vars.iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
        };
        let contract = [RANK, SIZE, SEGMENT_FD, CONTROL_FD];
        if contract.iter().all(|name| find(name).is_none()) {
            return foreign::check(find).map(|()| None);
        }
        let want = |name: &'static str| find(name).ok_or(Error::Missing { variable: name });
        let size = number(SIZE, want(SIZE)?)?;
        let rank = number(RANK, want(RANK)?)?;
        if rank >= size {
            return Err(Error::RankBeyondSize { rank, size });
        }
        let hosts = match find(HOSTS) {
            None => Hosts::one(size),
            Some(text) => Hosts::parse(text, size)?,
        };
        let segment = want(SEGMENT_FD)?;
        let control = want(CONTROL_FD)?;
        if segment == control {
            return Err(Error::SameDescriptor {
                number: segment.to_string(),
            });
        }
        // Both are looked at before either is taken, so that an error changes nothing.
        let control = Inherited::find(CONTROL_FD, control, Kind::Socket)?;
        let segment = Inherited::find(SEGMENT_FD, segment, Kind::Memory)?;
        let stage = match (find(SCENE_FD), find(WORLD_FD)) {
            (None, None) => None,
            _ => {
                let memory = |name| Inherited::find(name, want(name)?, Kind::Memory);
                let computed = find(COMPUTED_FD).map(|_| memory(COMPUTED_FD));
                Some((memory(SCENE_FD)?, memory(WORLD_FD)?, computed.transpose()?))
            }
        };
        let (control, segment) = (Control::new(control.take()?), segment.take()?);
        let stage = match stage {
            None => None,
            Some((scene, world, computed)) => Some(Stage {
                scene: scene.take()?,
                world: world.take()?,
                computed: computed.map(Inherited::take).transpose()?,
            }),
        };
        Ok(Some(Job {
            stage,
            rank,
            size,
            hosts,
            segment,
            control,
        }))
    }
}

/// What the launcher tells a rank of itself: names and values. The files that all share come beside it.
pub fn variables(rank: usize, hosts: &Hosts, control: RawFd) -> Vec<(&'static str, String)> {
    let always = [
        (RANK, rank.to_string()),
        (SIZE, hosts.ranks().to_string()),
        (CONTROL_FD, control.to_string()),
    ];
    always.into_iter().chain(hosts::variable(hosts)).collect()
}

fn number(variable: &'static str, value: &str) -> Result<usize, Error> {
    value.parse().map_err(|_| Error::NotANumber {
        variable,
        value: value.to_string(),
    })
}
