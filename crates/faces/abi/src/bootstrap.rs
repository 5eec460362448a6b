//! The connection of a rank to the other ranks of its job as its launcher describes it: by shared
//! memory on this host, by devices to other hosts, or on a modelled machine.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

use knobs::Knobs;
use model::config::{Compute, MachineConfig};
use model::{MachineModel, ModelNode};
use mpi::{Wiring, WorkTimes};
use pmi::{Bootstrap, Hosts, Started};
use profile::RankProfile;
use recording::Recorder;
use sim::process::{LONG, Participant};

use crate::call_profile::CallProfile;
use crate::call_trace::{ModelledHost, Time, Watch};
use crate::remote;

/// The name of the procedure that starts MPI, and the time of its call.
pub(crate) type Start = (&'static str, Instant);

/// Describes to the rank how it reaches the other ranks of its job: by shared memory, devices, or a
/// modelled machine. `None`: the rank is the only one. The watch traces the rank's calls, if that
/// is required.
pub(crate) fn wiring(
    started: Started,
    knobs: &Knobs,
    start: Start,
) -> Result<(Option<Wiring>, Option<Watch>), String> {
    match started {
        Started::Alone => Ok((None, None)),
        Started::Foreign(job) => Ok((Some(on_real_hosts(job, knobs)?), None)),
        Started::Ours(job) => {
            let (wiring, watch) = by_our_launcher(*job, knobs, start)?;
            Ok((Some(wiring), watch))
        }
    }
}

/// The means to reach ranks on this host, and devices to reach ranks on others.
fn on_real_hosts(job: Arc<dyn Bootstrap>, knobs: &Knobs) -> Result<Wiring, String> {
    let node = match job.hosts().count() {
        0 | 1 => {
            remote::check_names(&*job, knobs)?;
            None
        }
        _ => Some(remote::node(&job, knobs)?),
    };
    let mut wiring = Wiring::new(job);
    wiring.peers.node = node;
    Ok(wiring)
}

fn by_our_launcher(
    mut job: pmi::Job,
    knobs: &Knobs,
    start: Start,
) -> Result<(Wiring, Option<Watch>), String> {
    let profile = job.profile.take();
    let profile = profile.map(|file| {
        let own = RankProfile::open(&file, job.rank());
        let own = own.map_err(|why| format!("the job's profile cannot be opened: {why}"))?;
        let (procedure, called) = start;
        Ok::<_, String>(CallProfile::new(Arc::new(own), procedure, called))
    });
    let profile = profile.transpose()?;
    let record = job.record.take();
    let recorder = record.map(|file| {
        let file = File::from(file);
        let sink = move |block: &[u8]| memory_file::append(&file, block);
        Recorder::new(Box::new(sink), job.rank())
    });
    let Some(model) = job.model.take() else {
        let wiring = on_real_hosts(Arc::new(job), knobs)?;
        let time = match recorder {
            Some(_) => Time::Measured(1000),
            None => Time::None,
        };
        let is_watched = profile.is_some() || recorder.is_some();
        let watch = is_watched.then(|| Watch::new(time, profile, None).recorded_by(recorder));
        return Ok((wiring, watch));
    };
    let bytes = contents(&File::from(model.scene))
        .map_err(|why| format!("the modelled machine's description cannot be read: {why}"))?;
    let scene = MachineConfig::decode(&bytes).map_err(|why| why.to_string())?;
    if scene.hosts.len() != job.size() {
        let (placed, ranks) = (scene.hosts.len(), job.size());
        return Err(format!(
            "the modelled machine has places for {placed} ranks, and the job has {ranks}"
        ));
    }
    let place = Participant {
        rank: job.rank() as u32,
        ranks: job.size() as u32,
        seed: scene.seed,
        stuck: say_who_is_stuck,
    };
    let work = WorkTimes {
        are_kept: scene.compute == Compute::Recorded,
        ..WorkTimes::default()
    };
    let time = match scene.compute {
        Compute::Ignored => Time::None,
        Compute::Measured(scale) => Time::Measured(scale),
        Compute::Recorded => Time::Measured(1000),
    };
    let host = matches!(time, Time::Measured(_)).then(|| ModelledHost {
        system: scene.system,
        ranks: Hosts::new(scene.hosts.clone()).beside(job.rank()).count(),
    });
    let watched = scene.traced
        || scene.keeps_notes
        || scene.notes_messages
        || scene.compute != Compute::Ignored
        || profile.is_some()
        || recorder.is_some();
    let turn = sim::process::join(&model.world, place, |memory| {
        MachineModel::of(memory, &scene)
    })
    .map_err(|why| format!("virtual time cannot be entered: {why}"))?;
    job.hosts = Hosts::new(scene.hosts);
    let mut wiring = Wiring::new(Arc::new(job));
    wiring.peers.segment = None;
    wiring.peers.local = vec![wiring.peers.rank];
    wiring.work = work;
    wiring.peers.node = Some(Box::new(ModelNode::new(turn)));
    let watch = watched.then(|| {
        let watch = Watch::new(time, profile, host).recorded_by(recorder);
        watch.checking(scene.notes_messages)
    });
    Ok((wiring, watch))
}

/// All ranks share the file and its position, so it is read at explicit offsets.
fn contents(file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.metadata()?.len() as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn say_who_is_stuck(rank: u32) {
    crate::raise::say(&format!(
        "rank {rank} has run for {LONG} s without calling MPI, and on a modelled machine all others wait for it: \
         what it computes takes no virtual time, but a loop that waits for something else than MPI never ends there"
    ));
}
