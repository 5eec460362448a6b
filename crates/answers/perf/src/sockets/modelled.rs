//! Sockets over IP over InfiniBand on a modelled machine, in virtual time, between the two hosts
//! that are furthest apart. Each host has two processes, of which the second only reads streams,
//! and a core that handles interrupts.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anyhow::{Context, Result, anyhow};
use device::Node;
use ipoib::{Mode, Network, Place, Process, take_interrupts};
use model::{MachineModel, ModelNode, ProcessorWork, Resource, Usage};
use results::Console;
use sim::coroutines;

use super::{Busy, Incoming, Received, SocketSide, Sockets, measure, read_stream};
use crate::benchmark::TransportService;
use crate::measure::Sample;
use crate::plan::{IpMode, PerfPlan};
use crate::target::modelled::{Machine, Stuck};

const STACK: usize = 256 << 10;
/// The nanoseconds of virtual time without datagrams after which none is in flight: many times the
/// time of a datagram.
const QUIET: u64 = 10_000_000;
/// The number of processes of each host: the one that measures, and the reader.
const PROCESSES: usize = 2;

/// The state of a host's reader, which both processes of the host share.
#[derive(Default)]
struct Reader {
    stream: Cell<Option<Incoming>>,
    sent: Cell<Option<usize>>,
    answer: RefCell<Option<Result<Received>>>,
    is_over: Cell<bool>,
}

/// A modelled process with its sockets: one side of the benchmark.
struct Modelled {
    process: Process,
    transport: TransportService,
    rank: usize,
    reader: Rc<Reader>,
}

impl Modelled {
    /// Reads a message or a part of it; `None`: nothing has arrived for this many nanoseconds.
    fn read(&mut self, into: &mut [u8], nanos: u64) -> Result<Option<usize>> {
        let read = match self.transport {
            TransportService::Tcp => self.process.receive(into, nanos),
            _ => self.process.receive_datagram(into, nanos),
        };
        read.map_err(explained)
    }

    /// Wakes the process `rank`, which is the other one of this host.
    fn wake(&mut self, rank: usize) {
        let turn = self.process.node().turn();
        turn.settle().ok();
        turn.with(|_, clock| clock.wake(rank as u32));
    }

    fn wait(&mut self) -> Result<()> {
        self.process.node().wait(u64::MAX).map_err(explained)
    }

    /// Reads the streams that the other process of this host starts, until that one ends.
    fn serve(&mut self) -> Result<()> {
        let reader = self.reader.clone();
        while !reader.is_over.get() {
            if let Some(stream) = reader.stream.take() {
                let answer = read_stream(self, stream, || reader.sent.get());
                *reader.answer.borrow_mut() = Some(answer);
                self.wake(self.rank - 2);
            } else if let Err(why) = self.wait() {
                // If this process waits in vain, another one reports it.
                return if why.is::<Stuck>() { Ok(()) } else { Err(why) };
            }
        }
        Ok(())
    }
}

fn explained(why: device::Error) -> anyhow::Error {
    match why {
        device::Error::Deadlock => anyhow!(Stuck),
        other => anyhow!(other),
    }
}

impl Sockets for Modelled {
    fn clock(&mut self) -> u64 {
        self.process.now()
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        let sent = match self.transport {
            TransportService::Tcp => self.process.send(message),
            _ => self.process.send_datagram(message),
        };
        sent.map_err(explained)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        let count = self.read(into, u64::MAX)?;
        count.context("a wait without limit has ended")
    }

    fn try_receive(&mut self, into: &mut [u8]) -> Result<Option<usize>> {
        self.read(into, QUIET)
    }
}

impl SocketSide for Modelled {
    fn is_client(&self) -> bool {
        self.rank == 0
    }

    fn is_modelled(&self) -> bool {
        true
    }

    fn start_reading(&mut self, stream: Incoming) -> Result<()> {
        self.reader.sent.set(None);
        self.reader.stream.set(Some(stream));
        self.wake(self.rank + 2);
        Ok(())
    }

    fn finish_reading(&mut self, sent: usize) -> Result<Received> {
        self.reader.sent.set(Some(sent));
        loop {
            let answer = self.reader.answer.borrow_mut().take();
            match answer {
                Some(answer) => return answer,
                None => self.wait()?,
            }
        }
    }

    fn oob_send(&mut self, words: &str) -> Result<()> {
        let peer = 1 - self.rank;
        let node = self.process.node();
        node.oob_send(peer, words.as_bytes()).map_err(explained)
    }

    fn receive_oob(&mut self) -> Result<String> {
        loop {
            match self.process.node().oob_recv().map_err(explained)? {
                Some((_, words)) => return Ok(String::from_utf8(words)?),
                None => self.wait()?,
            }
        }
    }

    fn busy(&mut self) -> Vec<Busy> {
        let node = self.process.node();
        node.turn().with(|machine, _| {
            let uses = machine.usage();
            uses.iter().flat_map(|usage| busy(machine, usage)).collect()
        })
    }
}

/// The time for which a resource has been busy; for a processor, the time of each kind of work.
fn busy(machine: &MachineModel, usage: &Usage) -> Vec<Busy> {
    let of = |resource: &'static str, kind: u64, number: u32, time| Busy {
        resource,
        number: u64::from(usage.host) << 32 | kind << 16 | u64::from(number),
        time,
    };
    let (resource, kind, number) = match usage.resource {
        Resource::LinkOut(rail) => ("link", 0, rail),
        Resource::LinkIn(rail) => ("link", 1, rail),
        Resource::BusDown(rail) => ("bus", 2, rail),
        Resource::BusUp(rail) => ("bus", 3, rail),
        Resource::Chip(rail) => ("HCA", 4, rail),
        Resource::Requests(rail) => ("HCA", 5, rail),
        Resource::Answers(rail) => ("HCA", 6, rail),
        Resource::Memory => ("memory", 7, 0),
        Resource::Storage => ("storage", 10, 0),
        Resource::Between(_, link) => ("link between switches", 9, link),
        Resource::Processor(rank, _) => {
            let works = machine.work_of(rank).into_iter();
            let parts = works.map(|(work, time)| match work {
                ProcessorWork::Copies => of("copies", 8, rank, time),
                _ => of("kernel", 8, rank, time),
            });
            return parts.collect();
        }
    };
    vec![of(resource, kind, number, usage.busy)]
}

/// Runs a benchmark of sockets between two hosts of a modelled machine. Returns the samples of the
/// client.
pub fn run(
    machine: &Machine,
    plan: &PerfPlan,
    console: Rc<RefCell<Console>>,
) -> Result<Vec<Sample>> {
    plan.check()?;
    let Machine {
        system,
        faults,
        seed,
    } = *machine;
    let mode = match plan.ip {
        Some(IpMode::Connected) => Mode::Connected,
        Some(IpMode::Datagram) => Mode::Datagram,
        // The drivers' package asks for connected mode (SET_IPOIB_CM=auto in its openib.conf),
        // which the driver of ConnectX-4 and later adapters does not have.
        _ if system.hca.direct => Mode::Datagram,
        _ => Mode::Connected,
    };
    let network = Network::new(&system, mode, PROCESSES);
    let layout = coroutines::Plan {
        ranks: network.ranks() as u32,
        seed,
        stack: STACK,
    };
    let hosts: Vec<u32> = (0..network.ranks())
        .map(|rank| if rank % 2 == 0 { 0 } else { system.nodes - 1 })
        .collect();
    let readers = [Rc::<Reader>::default(), Rc::<Reader>::default()];
    let plan = plan.clone();
    let (answers, _) = coroutines::run(
        layout,
        move |memory| MachineModel::new(memory, &system, &hosts, faults),
        move |turn| {
            let rank = turn.rank() as usize;
            let node = ModelNode::new(turn);
            let Place::Process(host, number) = network.place(rank) else {
                return take_interrupts(node, &network)
                    .map(|()| Vec::new())
                    .map_err(explained);
            };
            let mut process = Process::new(node, &network).map_err(explained)?;
            process.set_nodelay(plan.benchmark.is_latency());
            let mut side = Modelled {
                process,
                transport: plan.transport,
                rank,
                reader: readers[host].clone(),
            };
            if number > 0 {
                return side.serve().map(|()| Vec::new());
            }
            let found = measure(&mut side, &plan, &mut || {
                if rank == 0 {
                    console.borrow_mut().step();
                }
            });
            side.reader.is_over.set(true);
            side.wake(rank + 2);
            found
        },
    )
    .context("cannot create the modelled machine")?;
    // The error of a process that waits in vain is a consequence; the error of another one is the
    // cause.
    let (found, mut failed): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    failed.sort_by_key(|failed| failed.as_ref().is_err_and(|why| why.is::<Stuck>()));
    match (failed.into_iter().next(), found.into_iter().next()) {
        (Some(failed), _) => failed,
        (None, Some(client)) => client,
        (None, None) => Err(anyhow!("the client of the benchmark returned no result")),
    }
}
