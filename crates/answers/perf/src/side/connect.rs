//! The connection of the queue pairs of both sides: each side sends a card with its addresses to
//! the other over the control connection.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use device::{Address, Device, QpWanted, Region, State};
use serde::{Deserialize, Serialize};

use super::QpState;
use crate::benchmark::TransportService;
use crate::plan::PerfPlan;

/// The time within which the other side must connect its queue pairs.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The description of a side, sent to the other side before the first message.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Card {
    /// The ports of the queue pairs, in hexadecimal: they are too long for JSON numbers.
    pub(super) ports: Vec<String>,
    pub(super) qps: Vec<u32>,
    pub(super) address: u64,
    pub(super) rkey: u32,
    pub(super) mtu: usize,
}

/// Creates the completion queues and the shared receive queue. Returns the attributes of the queue
/// pairs to create.
pub(super) fn queues(
    device: &mut dyn Device,
    plan: &PerfPlan,
    rx_depth: usize,
    inline: usize,
) -> Result<QpWanted> {
    let tx_depth = plan.tx_depth();
    let send_cq = device.create_cq(tx_depth * plan.qps)?;
    let receive_cq = device.create_cq(rx_depth * plan.qps)?;
    let srq = match plan.srq {
        true => Some(device.create_srq(rx_depth * plan.qps)?),
        false => None,
    };
    Ok(QpWanted {
        transport: (plan.transport.of_queue_pairs()).context("sockets have no queue pairs")?,
        send_cq,
        receive_cq,
        srq,
        sends: tx_depth,
        receives: rx_depth,
        inline,
    })
}

/// Creates the queue pairs, and the card that describes them to the other side.
pub(super) fn create_qps(
    device: &mut dyn Device,
    plan: &PerfPlan,
    wanted: &QpWanted,
    region: Region,
    mtu: usize,
) -> Result<(Vec<QpState>, Card)> {
    let mut card = Card {
        ports: Vec::new(),
        qps: Vec::new(),
        address: region.address,
        rkey: region.rkey,
        mtu,
    };
    let mut qps = Vec::new();
    for _ in 0..plan.qps {
        let qp = device
            .create_qp(wanted)
            .context("cannot create a queue pair")?;
        let own = device.address(qp)?;
        card.ports.push(format!("{:x}", own.port));
        card.qps.push(own.qp);
        qps.push(QpState {
            qp,
            peer: own,
            posted: 0,
            complete: 0,
            unsignaled: 0,
            receives: 0,
        });
    }
    Ok((qps, card))
}

/// Connects the queue pairs to those of the other side, and waits for the connections.
pub(super) fn connect(
    device: &mut dyn Device,
    plan: &PerfPlan,
    qps: &mut [QpState],
    theirs: &Card,
) -> Result<()> {
    for ((own, port), &qp) in qps.iter_mut().zip(&theirs.ports).zip(&theirs.qps) {
        let port =
            u128::from_str_radix(port, 16).context("cannot read a port of the other side")?;
        own.peer = Address { port, qp };
        let peer = (plan.transport != TransportService::Ud).then_some(own.peer);
        device
            .connect(own.qp, peer)
            .context("cannot connect a queue pair")?;
    }
    let until = Instant::now() + CONNECT_TIMEOUT;
    for own in qps {
        while device
            .state(own.qp)
            .context("cannot connect a queue pair")?
            == State::Connecting
        {
            if Instant::now() > until {
                bail!(
                    "cannot connect a queue pair: the other side did not connect within {} s",
                    CONNECT_TIMEOUT.as_secs()
                );
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    Ok(())
}

impl Card {
    /// Refuses the other side's card if its queue pairs or its MTU differ from this side's.
    pub(super) fn check(&self, theirs: &Card) -> Result<()> {
        let qps = self.qps.len();
        if theirs.qps.len() != qps || theirs.ports.len() != qps {
            bail!(
                "the other side has {} queue pairs, this one {qps}",
                theirs.qps.len()
            );
        }
        if theirs.mtu != self.mtu {
            bail!(
                "the MTU of the other side is {}, of this one {}: set both with --mtu",
                theirs.mtu,
                self.mtu
            );
        }
        Ok(())
    }
}
