//! The start of the ranks of one host in its agent, as the launcher's start order says.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use pmi::Hosts;

use super::order::StartOrder;
use crate::guard::JobMark;
use crate::output::OutputPipes;
use crate::signals::Signals;
use crate::start::{self, LocalShare, StartedRanks};
use crate::{Error, Input, Options, library_directory, limits};

/// Starts the ranks. After an error, the result holds the ranks that were started before it.
pub(super) fn start_ranks(
    order: StartOrder,
    hosts: Result<Hosts, String>,
    profile: Option<Arc<OwnedFd>>,
    mark: JobMark,
    signals: &Signals,
) -> (StartedRanks, Result<(), Error>) {
    let hosts = match hosts {
        Ok(hosts) => hosts,
        Err(why) => return (StartedRanks::default(), Err(Error::BadFrame { why })),
    };
    let options = Options {
        programs: order.programs,
        output: order.output,
        input: order.input.map_or(Input::None, Input::Rank),
        one_core_each: order.one_core_each,
        allow_other_mpi: order.allow_other_mpi,
        verbose: order.verbose,
        explain: order.explain,
        binding: order.binding,
        profile,
        library: std::env::current_exe()
            .ok()
            .and_then(|command| library_directory(&command)),
        ..Options::default()
    };
    let share = LocalShare {
        first: order.first,
        count: order.count,
        hosts,
        relayed_input: true,
        // The launcher keeps lines whole, and adds their prefixes.
        pipes: OutputPipes {
            by_write: false,
            ..OutputPipes::BOTH
        },
        mark,
        secret: order.secret,
        held: order.held,
    };
    match limits::make_room(order.count, true) {
        Ok(descriptors) => start::start(&options, share, descriptors, signals.before()),
        Err(error) => (StartedRanks::default(), Err(error)),
    }
}
