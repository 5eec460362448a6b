//! Replay: the calls of a trace made again on a modelled machine, in one process, without the
//! program and without its data.
//!
//! Each rank is a coroutine. Its calls go through the entry points of the library (`abi::hosted`),
//! so protocols, algorithms and errors are those of a job of processes, and with the computing of
//! the recorded run a replay takes the time of that run.
//!
//! All buffers of all ranks lie in one piece of memory (`scratch`), as long as the longest of them:
//! no choice of the library depends on the contents of a buffer. What the program's functions would
//! do (reductions, attributes, error handlers) is not done.
//!
//! Files have sizes and no contents (`files`), and are no files of this host.
//!
//! Choices that depend on time (Waitany, Waitsome, tests) are the recorded ones: if another request
//! completes first, the rank also waits for the recorded one, and the difference is counted. A
//! receive from any source takes the message that comes first, unless the trace is frozen.
//!
//! Never here: what a call does, the printing of results.

mod arguments;
mod attached;
mod bounds;
mod call_key;
mod choices;
mod computing;
mod files;
mod handles;
mod names;
mod plan;
mod player;
mod scratch;
mod sizes;
#[cfg(test)]
mod tests;
mod variability;

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use channel::Peers;
use datatype::local_work::Rates;
use knobs::Knobs;
use model::config::MachineConfig;
use model::{MachineModel, ModelNode};
use mpi::algorithms::SharedChoices;
use mpi::{Rank, Wiring, WorkTimes};
use mpi_abi::hosted::Hosted;
use pmi::{Hosts, Standalone};
use profile::RankProfile;
use sim::Turn;
use sim::coroutines::{Plan, run_in_file};
use trace::Trace;

use attached::Regions;
pub use call_key::CallKey;
pub use computing::Computing;
use files::Files;
use names::Names;
use player::Player;
use scratch::Scratch;
pub use sizes::size_of;
pub use variability::Variability;

/// The size of a rank's stack, in bytes.
const STACK: usize = 512 << 10;

/// The machine and the settings with which a trace is replayed.
pub struct Stage {
    /// The encoded description of the modelled machine.
    pub scene: Vec<u8>,
    /// The file of the world, in which the machine stores what is read after the run.
    pub world: Arc<OwnedFd>,
    /// The file of the job's profile, if one is wanted.
    pub profile: Option<Arc<OwnedFd>>,
    /// The settings of the ranks: variables and their values.
    pub settings: Vec<(String, String)>,
}

/// The times and the results of a replay that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The virtual time at which the last rank ended, in picoseconds.
    pub picos: u64,
    /// The number of choices that time decided otherwise than in the recorded run.
    pub other_choices: u64,
}

/// Checks that the procedures of a trace can be replayed.
///
/// # Errors
/// A procedure that cannot, with the reason.
pub fn check(trace: &Trace) -> Result<(), String> {
    Names::of(trace).map(drop)
}

/// Replays a trace.
///
/// # Errors
/// The trace has a call that cannot be replayed, or a call fails; with the rank and the procedure.
pub fn replay(trace: Arc<Trace>, stage: &Stage) -> Result<Outcome, String> {
    let scene = MachineConfig::decode(&stage.scene).map_err(|why| why.to_string())?;
    let size = scene.hosts.len();
    if size != trace.ranks.len() {
        let ranks = trace.ranks.len();
        return Err(format!(
            "the trace is of {ranks} ranks, and this job has {size}"
        ));
    }
    let names = Rc::new(Names::of(&trace)?);
    let mut rates = Rates::none();
    for line in &trace.work {
        let read = rates.read(line);
        read.ok_or_else(|| format!("`{line}` is no time of work inside MPI"))?;
    }
    let knobs = Knobs::parse(stage.settings.iter().cloned()).map_err(|why| why.to_string())?;
    let scratch = Rc::new(Scratch::new(size).map_err(|why| format!("memory: {why}"))?);
    let files = Arc::new(Files::default());
    let regions = Regions::new(size);
    let plan = Plan {
        ranks: size as u32,
        seed: scene.seed,
        stack: STACK,
    };
    let hosts = Hosts::renumbered(&scene.hosts);
    let failed = Rc::new(RefCell::new(None));
    let (profile, first) = (stage.profile.clone(), failed.clone());
    let choices = SharedChoices::default();
    let checks = scene.notes_messages;
    let body = move |turn: Turn<MachineModel>| -> Outcome {
        let number = turn.rank() as usize;
        let bootstrap = Arc::new(Standalone::new(number, hosts.clone()));
        let wiring = Wiring {
            peers: Peers {
                node: Some(Box::new(ModelNode::new(turn))),
                ..Peers::new(number, size)
            },
            bootstrap,
            work: WorkTimes {
                rates: rates.clone(),
                ..WorkTimes::default()
            },
            choices: Some(choices.clone()),
        };
        let played = Rank::new(Some(wiring), knobs.clone())
            .map_err(|why| why.to_string())
            .and_then(|rank| {
                let profile = profile.as_ref().map(|file| RankProfile::open(file, number));
                let profile = profile.transpose().map_err(|why| why.to_string())?;
                let functions = trace.ranks[number].functions.runs().to_vec();
                let has_rates = !rates.is_empty();
                let hosted = Hosted::new(Arc::new(rank), profile, has_rates, functions, checks);
                let played =
                    Player::new(&hosted, &trace, &names, &scratch, &files, &regions, number).play();
                if played.is_err() {
                    hosted.abandon();
                }
                played
            });
        played.unwrap_or_else(|why| {
            failed
                .borrow_mut()
                .get_or_insert(format!("rank {number}: {why}"));
            Outcome {
                picos: 0,
                other_choices: 0,
            }
        })
    };
    let model = move |memory| MachineModel::of(memory, &scene);
    let ranks = run_in_file(&stage.world, plan, model, body)
        .map_err(|why| format!("virtual time cannot be entered: {why}"))?;
    if let Some(why) = first.borrow_mut().take() {
        return Err(why);
    }
    Ok(Outcome {
        picos: ranks.iter().map(|rank| rank.picos).max().unwrap_or(0),
        other_choices: ranks.iter().map(|rank| rank.other_choices).sum(),
    })
}
