//! The creation of queue pairs, and their connection by their addresses.

use sim::Time;

use super::message::NONE;
use super::queue_pair::{QueuePair, check_limits};
use super::queue_pairs::QueuePairs;
use super::receives::Queue;
use device::{Address, Error, Qp, QpWanted, Result, State, Transport, check};

/// Creates a queue pair of a rank on a rail.
pub(crate) fn create(
    qps: &mut QueuePairs,
    (rank, rail): (u32, u32),
    wanted: &QpWanted,
) -> Result<Qp> {
    let adapter = qps.ports.adapter(qps.ranks[rank].host, rail);
    let own = *qps.ports.timing(adapter).costs.rail();
    check_limits(&own, wanted)?;
    if wanted.transport != Transport::Rc {
        // Without acknowledgements, requests complete as soon as they have left.
        qps.run.keep_in_step();
    }
    for cq in [wanted.send_cq, wanted.receive_cq] {
        qps.ranks.cqs.own((rank, rail), cq)?;
    }
    let receives = match wanted.srq {
        Some(srq) => qps.receives.own_shared((rank, rail), srq)?,
        None => qps.receives.create(Queue {
            rank,
            rail,
            depth: wanted.receives as u32,
            shared: false,
        }),
    };
    let mtu = own.hca.mtu.0 as u32;
    Ok(qps.add(QueuePair::new((rank, adapter), wanted, receives, mtu)))
}

/// The address of a queue pair: the LID of its port, and its number.
pub(crate) fn address(qps: &QueuePairs, qp: u32) -> Address {
    Address {
        port: u128::from(qps.ports.home(qps[qp].adapter)) + 1,
        qp,
    }
}

/// The number of the queue pair at an address, if packets of queue pair `q` reach its port.
pub(crate) fn reach(qps: &QueuePairs, q: u32, to: Address) -> Option<u32> {
    let theirs = qps.get(to.qp)?;
    let reached = qps.ports.subnet(qps[q].adapter) == qps.ports.subnet(theirs.adapter);
    (reached && address(qps, to.qp) == to).then_some(to.qp)
}

/// The latency from the port of queue pair `from` to that of `to`, and through the latter's chip.
pub(crate) fn latency(qps: &mut QueuePairs, from: u32, to: u32) -> Time {
    let (from, to) = (qps[from].adapter, qps[to].adapter);
    qps.ports.latency(&qps.run.system, from, to)
}

/// The largest payload of a packet on a queue pair's port, in bytes.
fn port_mtu(qps: &mut QueuePairs, q: u32) -> u32 {
    qps.ports.timing(qps[q].adapter).mtu
}

/// Connects a queue pair with `peer`. `None`: makes it ready to send datagrams.
pub(crate) fn connect(qps: &mut QueuePairs, q: u32, peer: Option<Address>) -> Result<()> {
    let qp = &qps[q];
    check::connect(qp.transport, qp.state, peer)
        .map_err(|why| Error::Invalid(format!("queue pair {q}: {why}")))?;
    // As on a real port, the peer's existence is not checked; packets to a missing peer are lost.
    let number = peer.and_then(|peer| reach(qps, q, peer)).unwrap_or(NONE);
    let (mut far, mut mtu) = (0, port_mtu(qps, q));
    if number != NONE {
        qps[q].adapter = qps.ports.towards(qps[q].adapter, qps[number].adapter);
        let [here, there] = [q, number].map(|q| qps.ports.host(qps[q].adapter));
        if here == there {
            // There is no cable between the two.
            qps.run.keep_in_step();
        }
        far = latency(qps, q, number);
        mtu = port_mtu(qps, q).min(port_mtu(qps, number));
    }
    let qp = &mut qps[q];
    (qp.peer, qp.mtu, qp.latency) = (number, mtu, far);
    qp.life += 1;
    qp.state = State::Rts;
    Ok(())
}
