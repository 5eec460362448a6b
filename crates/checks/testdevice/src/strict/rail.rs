//! One port of a strict machine as the [`Device`] of a rank, which is one rail. A strict machine
//! does only what a device must do, and that as late as it may.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::machine::StrictMachine;
use super::setup::{LONGEST, MTU, Setup};
use device::{
    Access, Address, Attributes, Completion, Cq, Device, Ending, Error, Qp, QpWanted, ReceiveQueue,
    Region, RequestCosts, Result, Slice, Srq, State, Work,
};

pub(super) fn devices(
    shared: &Arc<StrictMachine>,
    rank: usize,
    setup: &Setup,
) -> Vec<StrictDevice> {
    let device = |rail| StrictDevice {
        shared: shared.clone(),
        index: shared.index(rank, rail),
        attributes: attributes(setup, rank, rail),
        longest_region: setup.longest_region,
    };
    (0..setup.rails_of_rank(rank)).map(device).collect()
}

fn attributes(setup: &Setup, rank: usize, rail: usize) -> Attributes {
    let own = setup.of_rail(rail);
    Attributes {
        name: format!("instant{rank} rail {rail}"),
        mtu: MTU,
        inline: setup.inline,
        longest: LONGEST,
        placement: own.placement,
        immediates: own.immediates,
        datagrams: true,
        answered: setup.answered,
        by_processor: false,
        polled: false,
        resets: own.resets,
        link_layer: own.link_layer,
        subnet: own.subnet,
        bandwidth: own.bandwidth,
        latency_ns: own.latency_ns,
        request: RequestCosts::usual(own.latency_ns, own.bandwidth),
        card: own.card,
        domain: own.domain,
    }
}

pub(super) struct StrictDevice {
    pub shared: Arc<StrictMachine>,
    pub index: usize,
    pub attributes: Attributes,
    longest_region: usize,
}

impl Drop for StrictDevice {
    fn drop(&mut self) {
        self.shared.with(|world| world.forget(self.index));
    }
}

impl Device for StrictDevice {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn sync_memory(&mut self) {
        if self.shared.signs.due.load(Ordering::Acquire) > 0 {
            self.shared.with(|_| ());
        }
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        if len > self.longest_region {
            let words = format!("{len} bytes are more than can be registered");
            return Err(Error::Shortage(words));
        }
        self.shared.with(|world| {
            world
                .device(self.index)
                .register(address as u64, len, access)
        })
    }

    fn deregister(&mut self, region: Region) -> Result<()> {
        self.shared
            .with(|world| world.device(self.index).deregister(region))
    }

    fn create_cq(&mut self, depth: usize) -> Result<Cq> {
        self.shared
            .with(|world| world.device(self.index).create_cq(depth))
    }

    fn create_srq(&mut self, depth: usize) -> Result<Srq> {
        Ok(self
            .shared
            .with(|world| world.device(self.index).create_srq(depth)))
    }

    fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp> {
        if wanted.inline > self.attributes.inline {
            return Err(Error::Invalid(format!(
                "{} bytes inline are more than {} can take",
                wanted.inline, self.attributes.name
            )));
        }
        self.shared
            .with(|world| world.device(self.index).create_qp(wanted))
    }

    fn destroy_qp(&mut self, qp: Qp) -> Result<()> {
        self.shared
            .with(|world| world.device(self.index).destroy_qp(qp))
    }

    fn address(&self, qp: Qp) -> Result<Address> {
        Ok(Address {
            port: self.index as u128,
            qp: qp.0,
        })
    }

    fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()> {
        self.shared
            .with(|world| world.connect(self.index, qp, peer))
    }

    fn state(&self, qp: Qp) -> Result<State> {
        self.shared
            .with(|world| Ok(world.device(self.index).qp(qp)?.state))
    }

    fn is_drained(&mut self, qp: Qp) -> Result<bool> {
        self.shared.with(|world| world.is_drained(self.index, qp))
    }

    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()> {
        self.shared.with(|world| world.modify(self.index, qp, to))
    }

    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()> {
        self.shared.with(|world| world.post(self.index, qp, work))
    }

    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()> {
        self.shared
            .with(|world| world.device(self.index).post_receive(queue, id, into))
    }

    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        let signs = &self.shared.signs;
        if signs.due.load(Ordering::Acquire) == 0
            && signs.completions[self.index].load(Ordering::Acquire) == 0
        {
            return Ok(0);
        }
        self.shared
            .with(|world| world.device(self.index).poll(cq, into))
    }
}
