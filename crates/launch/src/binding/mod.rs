//! The binding of the ranks of one host to cores.
//!
//! A binding by the user's wishes is *hard*: it stays. Without wishes the launcher chooses one,
//! which is *soft*: each rank gets an equal, disjoint share of the cores that no other job has
//! claimed, and a rank that other tasks keep from computing there is released. Ranks are bound
//! before they become the program, so all their threads and memory follow.
//!
//! Invariants:
//! - nothing is bound beyond the affinity mask of the launcher;
//! - a soft binding gives each rank whole cores, and no rank fewer than another;
//! - a job without wishes never fails because it cannot be bound.

mod claims;
mod cpu_list;
#[cfg(test)]
mod made_up;
mod placement;
mod quota;
mod release;
mod request;
mod shares;
mod topology;

use std::io::Write;
use std::path::Path;

use rustix::thread::CpuSet;

use crate::Error;
use crate::error::why_text;
use claims::Claims;
pub use cpu_list::CpuList;
pub use quota::quota;
pub(crate) use release::ReleaseWatch;
pub use request::{BindTo, BindingRequest, MapBy};
pub use topology::{HardwareThread, Level, Topology};

/// The binding of the ranks of this host. Its claims end when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct HostBinding {
    strength: Strength,
    /// The hardware threads of each rank. Empty: no rank is bound.
    shares: Vec<CpuList>,
    /// The hardware threads that the launcher may use. None: the kernel does not say.
    topology: Option<Topology>,
    /// The reason why no rank is bound.
    why_none: String,
    report: bool,
    _claims: Claims,
}

/// The strength of a binding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Strength {
    #[default]
    None,
    Soft,
    Hard,
}

impl HostBinding {
    /// The binding of `ranks` ranks on this host. `unfit` is the reason why the launcher must not
    /// choose one for this job.
    pub(crate) fn choose(
        request: &BindingRequest,
        ranks: usize,
        unfit: Option<&str>,
    ) -> Result<HostBinding, Error> {
        let root = Path::new("/");
        let topology = Topology::of_this_thread();
        let quota = quota(root);
        HostBinding::on(root, topology, quota, request, ranks, unfit)
            .map_err(|why| Error::Binding { why })
    }

    fn on(
        root: &Path,
        topology: Option<Topology>,
        quota: Option<f64>,
        request: &BindingRequest,
        ranks: usize,
        unfit: Option<&str>,
    ) -> Result<HostBinding, String> {
        let is_wished =
            request.bind_to.is_some() || request.map_by.is_some() || request.cpus.is_some();
        let found = match (&topology, unfit) {
            (None, _) if is_wished => {
                return Err("cannot bind ranks: the kernel does not say which cores this process \
                            may use; --bind-to none starts them unbound"
                    .into());
            }
            (None, _) => Err("the kernel does not say which cores may be used".into()),
            (Some(topology), _) if is_wished => hard(root, topology, ranks, request)?,
            (_, Some(why)) => Err(why.to_string()),
            (Some(topology), None) => soft(root, topology, quota, ranks),
        };
        let mut binding = HostBinding { topology, report: request.report, ..Default::default() };
        match found {
            Ok(chosen) => {
                (binding.strength, binding.shares) = (chosen.strength, chosen.shares);
                binding._claims = chosen.claims;
            }
            Err(why) => binding.why_none = why,
        }
        Ok(binding)
    }

    /// The affinity mask of the rank at this place on the host, if it is to be bound.
    pub(crate) fn mask(&self, place: usize) -> Option<CpuSet> {
        self.shares.get(place).map(CpuList::mask)
    }

    /// Whether the user wants this binding, so no rank may start without it.
    pub(crate) fn is_hard(&self) -> bool {
        self.strength == Strength::Hard
    }

    /// The first hardware threads of the first two ranks, if ranks are bound.
    pub(crate) fn first_two(&self) -> Option<[usize; 2]> {
        let [one, other, ..] = &self.shares[..] else {
            return None;
        };
        Some([one.first()?, other.first()?])
    }

    /// The value of the variable that tells ranks of their binding.
    pub(crate) fn variable(&self) -> String {
        match (self.strength, &self.topology) {
            (Strength::Hard, _) => "hard".into(),
            (Strength::Soft, Some(topology)) => format!("soft:{}", topology.list()),
            _ => "none".into(),
        }
    }

    /// Prints the binding of each rank, if the user wants it. `first` is the number of the first
    /// rank.
    pub(crate) fn report(&self, first: usize, ranks: usize) {
        if !self.report {
            return;
        }
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy();
        let lines = (0..ranks).map(|place| {
            let rank = first + place;
            format!("fishplate: rank {rank} on {host}: {}\n", self.sentence(place))
        });
        let _ = std::io::stderr().write_all(lines.collect::<String>().as_bytes());
    }

    /// The binding of one rank in words.
    fn sentence(&self, place: usize) -> String {
        let (strength, list) = match (self.strength, self.shares.get(place)) {
            (Strength::Soft, Some(list)) => ("soft", list),
            (Strength::Hard, Some(list)) => ("hard", list),
            _ => return format!("not bound: {}", self.why_none),
        };
        let cores = self.topology.as_ref().map_or(0, |topology| {
            topology.within(list).parts(Level::Core).count()
        });
        let threads = placement::name(Level::HardwareThread, list.len());
        let name = placement::name(Level::Core, cores);
        format!("{strength} binding, {cores} {name}: {threads} {list}")
    }

    /// What watches the ranks of a soft binding, to release them.
    pub(crate) fn watch(&self) -> Option<ReleaseWatch> {
        let topology = self.topology.as_ref()?;
        let soft = self.strength == Strength::Soft;
        soft.then(|| ReleaseWatch::new(topology.list().mask(), &self.shares, self.report))
    }
}

/// A binding that has been chosen.
struct Chosen {
    strength: Strength,
    shares: Vec<CpuList>,
    claims: Claims,
}

/// The binding of a host, or the reason for none.
type Choice = Result<Chosen, String>;

/// The binding that the user wants. An error is the text for the user.
fn hard(
    root: &Path,
    topology: &Topology,
    ranks: usize,
    request: &BindingRequest,
) -> Result<Choice, String> {
    let Some(shares) = placement::place(topology, ranks, request)? else {
        return Ok(Err("the user wants no binding".into()));
    };
    // Jobs that choose for themselves keep away from these cores.
    let claims = Claims::mark(root, topology, &shares.iter().flat_map(CpuList::iter).collect());
    Ok(Ok(Chosen { strength: Strength::Hard, shares, claims }))
}

/// The binding that the launcher chooses.
fn soft(root: &Path, topology: &Topology, quota: Option<f64>, ranks: usize) -> Choice {
    let cores = topology.parts(Level::Core).count();
    if ranks == 1 {
        return Err("a single rank on this host may use all cores".into());
    }
    if ranks > cores {
        return Err(format!("{ranks} ranks share {cores} {}", placement::name(Level::Core, cores)));
    }
    if let Some(quota) = quota.filter(|&quota| quota < ranks as f64) {
        return Err(format!("{ranks} ranks share a quota of {quota:.3} cores"));
    }
    let choose = |free: &Topology| {
        let shares = shares::shares(free, ranks)?;
        let taken = shares.iter().flat_map(CpuList::iter).collect();
        Some((shares, taken))
    };
    let chosen = Claims::choose(root, topology, choose)
        .map_err(|why| format!("cores cannot be claimed: {}", why_text(&why.into())))?;
    let (shares, claims) = match chosen {
        Some(chosen) => chosen,
        // Other jobs have the cores. Ranks that take all of them evenly add the same work to each,
        // so no other placement could be better, and they keep the caches that they warm: measured,
        // two bound ping-pongs on the same two cores take 0.15 µs, and an unbound one 2.3 µs.
        None if cores.is_multiple_of(ranks) => {
            let shares = shares::shares(topology, ranks);
            (shares.unwrap_or_default(), Claims::default())
        }
        None => {
            return Err("other jobs have claimed cores, and too few are left".into());
        }
    };
    Ok(Chosen { strength: Strength::Soft, shares, claims })
}
