//! The binding of the ranks of one host to cores.
//!
//! A binding that the user requests is *hard*: it stays. Otherwise the launcher chooses one, which
//! is *soft*: each rank gets an equal, disjoint share of the cores that no other job has claimed,
//! and a rank that loses its cores to other tasks is released from it. Ranks are bound before they
//! execute their program, so all their threads and memory follow.
//!
//! Invariants:
//! - nothing is bound beyond the affinity mask of the launcher;
//! - a soft binding gives each rank whole cores, and no rank fewer than another;
//! - a job without a requested binding never fails because it cannot be bound.

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

use std::collections::BTreeSet;
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

/// The binding of the ranks of this host. Its claims of cores end when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct HostBinding {
    strength: Strength,
    /// The hardware threads of each rank. Empty: no rank is bound.
    shares: Vec<CpuList>,
    /// The hardware threads that the launcher may use. `None`: the kernel does not report them.
    topology: Option<Topology>,
    /// The reason why no rank is bound, for a report.
    why_none: String,
    report: bool,
    _claims: Claims,
}

/// The strength of a binding: none, soft (the launcher's choice) or hard (the user's request).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Strength {
    #[default]
    None,
    Soft,
    Hard,
}

impl HostBinding {
    /// Chooses the binding of `ranks` ranks on this host. `unfit` is the reason why the launcher
    /// must not choose a soft binding for this job.
    pub(crate) fn choose(
        request: &BindingRequest,
        ranks: usize,
        unfit: Option<&str>,
    ) -> Result<HostBinding, Error> {
        let root = Path::new("/");
        let topology = Topology::of_this_thread();
        HostBinding::on(root, topology, request, ranks, unfit).map_err(|why| Error::Binding { why })
    }

    fn on(
        root: &Path,
        topology: Option<Topology>,
        request: &BindingRequest,
        ranks: usize,
        unfit: Option<&str>,
    ) -> Result<HostBinding, String> {
        let is_wished =
            request.bind_to.is_some() || request.map_by.is_some() || request.cpus.is_some();
        let found = match (&topology, unfit) {
            (None, _) if is_wished => {
                return Err(
                    "cannot bind ranks: the kernel does not say which cores this process \
                            may use; --bind-to none starts them unbound"
                        .into(),
                );
            }
            (None, _) => Err("the kernel does not say which cores may be used".into()),
            (Some(topology), _) if is_wished => hard(root, topology, ranks, request)?,
            (_, Some(why)) => Err(why.to_string()),
            (Some(topology), None) => soft(root, topology, ranks),
        };
        let mut binding = HostBinding {
            topology,
            report: request.report,
            ..Default::default()
        };
        match found {
            Ok(chosen) => {
                (binding.strength, binding.shares) = (chosen.strength, chosen.shares);
                binding._claims = chosen.claims;
            }
            Err(why) => binding.why_none = why,
        }
        Ok(binding)
    }

    /// The affinity mask of the rank with the index `place` on this host, if ranks are bound.
    pub(crate) fn mask(&self, place: usize) -> Option<CpuSet> {
        self.shares.get(place).map(CpuList::mask)
    }

    /// True if each rank of this host has hardware threads that no other rank has.
    pub(crate) fn keeps_apart(&self) -> bool {
        let threads: Vec<usize> = self.shares.iter().flat_map(CpuList::iter).collect();
        let distinct: BTreeSet<usize> = threads.iter().copied().collect();
        !threads.is_empty() && distinct.len() == threads.len()
    }

    /// True if the user requests this binding, so that no rank may start without it.
    pub(crate) fn is_hard(&self) -> bool {
        self.strength == Strength::Hard
    }

    /// The first hardware thread of the first rank, and that of the second, if ranks are bound.
    pub(crate) fn first_two(&self) -> Option<[usize; 2]> {
        let [one, other, ..] = &self.shares[..] else {
            return None;
        };
        Some([one.first()?, other.first()?])
    }

    /// The value of the environment variable that informs ranks of their binding.
    pub(crate) fn variable(&self) -> String {
        match (self.strength, &self.topology) {
            (Strength::Hard, _) => "hard".into(),
            (Strength::Soft, Some(topology)) => format!("soft:{}", topology.list()),
            _ => "none".into(),
        }
    }

    /// Prints the binding of each rank, if the user requests that. `first` is the number of the
    /// first rank.
    pub(crate) fn report(&self, first: usize, ranks: usize) {
        if !self.report {
            return;
        }
        let host = rustix::system::uname();
        let host = terminal_text::line(&host.nodename().to_string_lossy());
        let lines = (0..ranks).map(|place| {
            let rank = first + place;
            format!(
                "fishplate: rank {rank} on {host}: {}\n",
                self.sentence(place)
            )
        });
        let _ = std::io::stderr().write_all(lines.collect::<String>().as_bytes());
    }

    /// A description of the binding of one rank.
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

    /// The checks that release ranks from a soft binding. `None` for other bindings.
    pub(crate) fn watch(&self) -> Option<ReleaseWatch> {
        let topology = self.topology.as_ref()?;
        let soft = self.strength == Strength::Soft;
        soft.then(|| ReleaseWatch::new(topology.list().mask(), &self.shares, self.report))
    }
}

/// A binding that has been chosen for the ranks of this host.
struct Chosen {
    strength: Strength,
    shares: Vec<CpuList>,
    claims: Claims,
}

/// The chosen binding of a host, or the reason for none.
type Choice = Result<Chosen, String>;

/// The binding that the user requests. An error is the text for the user.
fn hard(
    root: &Path,
    topology: &Topology,
    ranks: usize,
    request: &BindingRequest,
) -> Result<Choice, String> {
    let Some(shares) = placement::place(topology, ranks, request)? else {
        return Ok(Err("the user wants no binding".into()));
    };
    // Jobs whose launchers choose cores then avoid these.
    let claims = Claims::mark(
        root,
        topology,
        &shares.iter().flat_map(CpuList::iter).collect(),
    );
    Ok(Ok(Chosen {
        strength: Strength::Hard,
        shares,
        claims,
    }))
}

/// The binding that the launcher chooses. A quota on processor time does not change it: with a
/// quota of one core, a ping-pong of two bound ranks takes 0.16 µs, and one of unbound ranks 0.8
/// µs.
fn soft(root: &Path, topology: &Topology, ranks: usize) -> Choice {
    let cores = topology.parts(Level::Core).count();
    if ranks == 1 {
        return Err("a single rank on this host may use all cores".into());
    }
    if ranks > cores {
        return Err(format!(
            "{ranks} ranks share {cores} {}",
            placement::name(Level::Core, cores)
        ));
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
        // Other jobs have claimed the cores. Ranks that use all of them evenly add the same work to
        // each, so no other placement could be better, and they keep the caches that they warm: two
        // bound ping-pongs on the same two cores take 0.15 µs (measured), an unbound one 2.3 µs.
        None if cores.is_multiple_of(ranks) => {
            let shares = shares::shares(topology, ranks);
            (shares.unwrap_or_default(), Claims::default())
        }
        None => {
            return Err("other jobs have claimed cores, and too few are left".into());
        }
    };
    Ok(Chosen {
        strength: Strength::Soft,
        shares,
        claims,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use made_up::MadeUpMachine;

    /// The binding of a job on a machine whose hardware threads it may all use.
    fn choose(
        machine: &MadeUpMachine,
        request: &BindingRequest,
        ranks: usize,
        unfit: Option<&str>,
    ) -> Result<HostBinding, String> {
        let topology = Topology::read(machine.root(), &machine.all());
        HostBinding::on(machine.root(), Some(topology), request, ranks, unfit)
    }

    fn by_itself(machine: &MadeUpMachine, ranks: usize) -> HostBinding {
        choose(machine, &BindingRequest::default(), ranks, None).unwrap()
    }

    fn sentences(binding: &HostBinding, ranks: usize) -> Vec<String> {
        (0..ranks).map(|place| binding.sentence(place)).collect()
    }

    #[test]
    fn the_launcher_gives_equal_shares() {
        let machine = MadeUpMachine::new(1, 4, 2);
        let binding = by_itself(&machine, 2);
        let expected = [
            "soft binding, 2 cores: hardware threads 0-1,4-5",
            "soft binding, 2 cores: hardware threads 2-3,6-7",
        ];
        assert_eq!(sentences(&binding, 2), expected);
        assert_eq!(binding.variable(), "soft:0-7");
        assert!(binding.keeps_apart() && !HostBinding::default().keeps_apart());
        assert_eq!(binding.first_two(), Some([0, 2]));
        assert!(binding.watch().is_some() && !binding.is_hard());
        assert_eq!(
            CpuList::from(&binding.mask(1).unwrap()).to_string(),
            "2-3,6-7"
        );
    }

    #[test]
    fn the_reasons_for_no_binding() {
        let machine = MadeUpMachine::new(1, 4, 2);
        let request = BindingRequest::default();
        for (ranks, unfit, expected) in [
            (5, None, "5 ranks share 4 cores"),
            (1, None, "a single rank"),
            (2, Some("for a reason"), "for a reason"),
        ] {
            let binding = choose(&machine, &request, ranks, unfit).unwrap();
            let sentence = binding.sentence(0);
            assert!(
                sentence.starts_with("not bound: ") && sentence.contains(expected),
                "{sentence}"
            );
            assert_eq!(binding.variable(), "none");
            assert!(binding.mask(0).is_none() && binding.watch().is_none());
        }
    }

    #[test]
    fn jobs_share_the_cores_or_cover_them_evenly() {
        let machine = MadeUpMachine::new(1, 8, 1);
        let first = by_itself(&machine, 6);
        assert_eq!(first.shares.len(), 6);
        let second = by_itself(&machine, 2);
        let places: Vec<_> = second.shares.iter().map(CpuList::to_string).collect();
        assert_eq!(places, ["6", "7"]);
        // No unclaimed core is left: five ranks would load some of the cores more than others.
        let third = by_itself(&machine, 5);
        assert!(
            third.sentence(0).contains("other jobs"),
            "{}",
            third.sentence(0)
        );
        let fourth = by_itself(&machine, 4);
        assert_eq!(
            fourth.sentence(3),
            "soft binding, 2 cores: hardware threads 6-7"
        );
        drop((first, second));
        assert_eq!(by_itself(&machine, 5).shares.len(), 5);
    }

    #[test]
    fn a_wish_is_obeyed_whatever_else_holds() {
        let machine = MadeUpMachine::new(2, 2, 1);
        let request = BindingRequest {
            bind_to: Some("socket".parse().unwrap()),
            ..BindingRequest::default()
        };
        let binding = choose(&machine, &request, 5, Some("for a reason")).unwrap();
        assert_eq!(
            binding.sentence(4),
            "hard binding, 2 cores: hardware threads 0-1"
        );
        assert_eq!(binding.variable(), "hard");
        assert!(binding.is_hard() && binding.watch().is_none());
        let request = BindingRequest {
            bind_to: Some(BindTo::None),
            ..BindingRequest::default()
        };
        let binding = choose(&machine, &request, 2, None).unwrap();
        assert_eq!(binding.sentence(0), "not bound: the user wants no binding");
    }

    #[test]
    fn without_locks_or_a_mask_the_launcher_binds_nothing() {
        let nothing = tempfile::tempdir().unwrap();
        let request = BindingRequest::default();
        let topology = Topology::read(nothing.path(), &CpuList::parse("0-3").unwrap());
        let on = |topology, request| HostBinding::on(nothing.path(), topology, request, 2, None);
        let binding = on(Some(topology), &request).unwrap();
        assert_eq!(
            binding.sentence(0),
            "not bound: cores cannot be claimed: no such file or directory"
        );
        assert!(
            on(None, &request)
                .unwrap()
                .sentence(1)
                .contains("the kernel does not say")
        );
        let wish = BindingRequest {
            map_by: Some("core".parse().unwrap()),
            ..BindingRequest::default()
        };
        assert!(on(None, &wish).unwrap_err().contains("--bind-to none"));
    }
}
