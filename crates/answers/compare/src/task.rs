//! The description of a replay: machines, ranks, recordings, changed values.

use crate::Request;
use crate::ideal::Ideal;
use crate::machine::Change;
use crate::placements::Draw;
use crate::record::Record;

/// The description of one replay.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    /// The number of the machine in the request, which gives the network.
    pub(crate) machine: usize,
    /// The number of the machine that gives the hosts and the speed of their processors.
    pub(crate) hosts_of: usize,
    pub(crate) ranks: usize,
    /// The placement of the job, with its nodes; `None`: the usual one of its row, or the first
    /// hosts.
    pub(crate) placement: Option<Draw>,
    pub(crate) ideal: Option<Ideal>,
    /// The number of the recording that is left out, if one is.
    pub(crate) without: Option<usize>,
    /// True if the start of the program is free.
    pub(crate) is_free: bool,
    /// True if receives from any source take the message that comes first.
    pub(crate) has_free_sources: bool,
    /// True if ranks are interrupted as those of the recorded run were.
    pub(crate) has_taken: bool,
    /// True if messages are replayed by their cost lines, without the protocols.
    pub(crate) is_fast: bool,
    pub(crate) changes: Vec<Change>,
}

impl Task {
    /// A replay on the unchanged machine.
    pub(crate) fn plain(machine: usize, ranks: usize) -> Task {
        Task::changed(machine, ranks, Vec::new())
    }

    /// A replay on the machine with changed values.
    pub(crate) fn changed(machine: usize, ranks: usize, changes: Vec<Change>) -> Task {
        Task {
            machine,
            hosts_of: machine,
            ranks,
            placement: None,
            ideal: None,
            without: None,
            is_free: false,
            has_free_sources: false,
            has_taken: false,
            is_fast: false,
            changes,
        }
    }

    /// A replay on the network of one machine with the hosts of another.
    pub(crate) fn in_hosts(machine: usize, hosts_of: usize, ranks: usize) -> Task {
        Task {
            hosts_of,
            ..Task::plain(machine, ranks)
        }
    }

    /// A replay on the machine, of all recordings but one.
    pub(crate) fn without(machine: usize, ranks: usize, recording: usize) -> Task {
        Task {
            without: Some(recording),
            ..Task::plain(machine, ranks)
        }
    }

    /// This replay with the interruptions of the recorded run.
    pub(crate) fn with_taken(self) -> Task {
        Task {
            has_taken: true,
            ..self
        }
    }

    /// This replay with a free start.
    pub(crate) fn with_free_start(self) -> Task {
        Task {
            is_free: true,
            ..self
        }
    }

    /// This replay the fast way.
    pub(crate) fn the_fast_way(self) -> Task {
        Task {
            is_fast: true,
            ..self
        }
    }

    /// A replay on the machine with a part idealised, and a free start.
    pub(crate) fn ideal(request: &Request, machine: usize, ranks: usize, ideal: Ideal) -> Task {
        Task {
            ideal: Some(ideal),
            is_free: true,
            changes: ideal.changes(request.machine(machine)),
            ..Task::plain(machine, ranks)
        }
    }

    pub(crate) fn played(&self, request: &Request) -> Played {
        Played {
            ranks: self.ranks,
            without: self.without,
            scale: request.machine(self.hosts_of).compute_scale,
            is_distributed: self.ideal == Some(Ideal::Distributed),
            has_free_sources: self.has_free_sources,
            has_taken: self.has_taken,
            variation: self.placement.as_ref().and_then(|draw| draw.variation),
        }
    }

    /// The replay with the same outcome: leaving out another recording may leave the same times.
    pub(crate) fn same(&self, record: &Record) -> Task {
        let of = record.of(self.ranks);
        Task {
            without: of.and_then(|of| of.same_without(self.without)),
            ..self.clone()
        }
    }

    /// A line that describes the replay among those of one comparison.
    pub(crate) fn line(&self) -> String {
        let mut line = format!(
            "network {}, hosts {}, {} ranks",
            self.machine, self.hosts_of, self.ranks
        );
        if let Some(Draw {
            placement,
            variation,
        }) = &self.placement
        {
            line += &format!(", {placement}");
            if let Some(seed) = variation {
                line += &format!(", nodes vary by seed {seed}");
            }
        }
        if let Some(ideal) = self.ideal {
            line += &format!(", ideal {ideal:?}");
        }
        if let Some(without) = self.without {
            line += &format!(", without recording {without}");
        }
        if self.is_free {
            line += ", free start";
        }
        if self.has_free_sources {
            line += ", free sources";
        }
        if self.has_taken {
            line += ", interruptions";
        }
        if self.is_fast {
            line += ", the fast way";
        }
        for change in &self.changes {
            line += &format!(", {change}");
        }
        line
    }
}

/// The key of a trace file in a runner's cache: replays with equal keys use the same trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Played {
    pub(crate) ranks: usize,
    /// The number of the recording that is left out, if one is.
    pub(crate) without: Option<usize>,
    /// The time of computing on the machine's processor, divided by that on this computer, in
    /// thousandths.
    pub(crate) scale: u64,
    /// True if ranks with equal calls share their work evenly.
    pub(crate) is_distributed: bool,
    /// True if receives from any source take the message that comes first.
    pub(crate) has_free_sources: bool,
    pub(crate) has_taken: bool,
    /// The seed of nodes that vary.
    pub(crate) variation: Option<u64>,
}
