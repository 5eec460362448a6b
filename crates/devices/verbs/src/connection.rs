//! The states of a queue pair (IBA 10.3.1), and the path to a peer.
//!
//! Limits for a peer that does not answer: seven attempts of 4.096 us x 2^14, about 0.47 s; for a
//! peer without a posted receive: seven attempts, 61 ms apart, about as long. The retry count 7 is
//! never used: in the specification it means "without limit" for receivers that are not ready, and
//! for devices it means this in both cases.

use std::mem::zeroed;

use super::keys::Keys;
use super::library::check;
use super::port::Context;
use super::sys::*;
use device::{Address, Result, Transport};

const RETRIES: u8 = 6;
const TIMEOUT: u8 = 14;
/// The encoding of 61.44 ms (IBA 9.7.5.2.8, table 45).
const RECEIVER_NOT_READY_TIMER: u8 = 25;
/// The properties of a port that its connections need.
pub(crate) struct PortPath {
    /// The number of the port on its device.
    pub port: u8,
    pub ethernet: bool,
    pub gid_index: u8,
    /// The address of this port: a LID, a GID, or for iWARP an IPv4-mapped address.
    pub address: u128,
    pub mtu: ibv_mtu,
    /// The greatest number of reads and atomics of this end in flight.
    pub asked: u8,
    /// The greatest number of reads and atomics of the peer in flight.
    pub answered: u8,
}

impl PortPath {
    /// The address vector of a peer's port.
    pub(crate) fn to(&self, peer: u128) -> ibv_ah_attr {
        // SAFETY: a structure of integers.
        let mut path: ibv_ah_attr = unsafe { zeroed() };
        path.port_num = self.port;
        if self.ethernet {
            path.is_global = 1;
            path.grh.dgid.raw = peer.to_be_bytes();
            path.grh.sgid_index = self.gid_index;
            path.grh.hop_limit = 64;
        } else {
            path.dlid = peer as u16;
        }
        path
    }
}

/// Takes a queue pair from RESET to INIT, where receives can be posted.
pub(crate) fn begin(
    context: &Context,
    path: &PortPath,
    keys: &Keys,
    qp: *mut ibv_qp,
    transport: Transport,
) -> Result<()> {
    let mut wanted = attributes(IBV_QPS_INIT);
    wanted.port_num = path.port;
    let own = match transport {
        Transport::Ud => {
            wanted.qkey = keys.q_key;
            IBV_QP_QKEY
        }
        Transport::Uc => {
            wanted.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
            IBV_QP_ACCESS_FLAGS
        }
        Transport::Rc => {
            wanted.qp_access_flags =
                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
            IBV_QP_ACCESS_FLAGS
        }
    };
    let mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | own;
    modify(context, qp, wanted, mask, "taking a queue pair to INIT")
}

/// Takes a queue pair from INIT to RTS, connected to `peer` unless it is a datagram queue pair.
pub(crate) fn finish(
    context: &Context,
    path: &PortPath,
    keys: &Keys,
    qp: *mut ibv_qp,
    transport: Transport,
    peer: Option<Address>,
) -> Result<()> {
    let mut ready = attributes(IBV_QPS_RTR);
    let mut mask = 0;
    // SAFETY: a queue pair of this device that is not destroyed.
    let own = unsafe { (*qp).qp_num };
    if let Some(peer) = peer {
        ready.ah_attr = path.to(peer.port);
        ready.path_mtu = path.mtu;
        ready.dest_qp_num = peer.qp;
        ready.rq_psn = keys.first_packet(peer.qp, own);
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if transport == Transport::Rc {
        ready.max_dest_rd_atomic = path.answered;
        ready.min_rnr_timer = RECEIVER_NOT_READY_TIMER;
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    let what = peer.map_or(String::new(), |peer| {
        let port = match path.ethernet {
            true => std::net::Ipv6Addr::from(peer.port).to_string(),
            false => format!("LID {}", peer.port),
        };
        format!(
            " towards queue pair {} at {port} (is it reachable from this port?)",
            peer.qp
        )
    });
    let receive = format!("taking a queue pair to RTR{what}");
    modify(context, qp, ready, mask, &receive)?;

    let mut send = attributes(IBV_QPS_RTS);
    send.sq_psn = keys.first_packet(own, peer.map_or(own, |peer| peer.qp));
    let mut mask = IBV_QP_SQ_PSN;
    if transport == Transport::Rc {
        send.timeout = TIMEOUT;
        send.retry_cnt = RETRIES;
        send.rnr_retry = RETRIES;
        send.max_rd_atomic = path.asked;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    modify(context, qp, send, mask, "taking a queue pair to RTS")
}

/// Takes a queue pair to a state that needs no attributes: RESET or ERR.
pub(crate) fn end(
    context: &Context,
    qp: *mut ibv_qp,
    state: ibv_qp_state,
    what: &str,
) -> Result<()> {
    modify(context, qp, attributes(state), 0, what)
}

fn attributes(state: ibv_qp_state) -> ibv_qp_attr {
    // SAFETY: a structure of integers, for which zero is valid.
    let mut attributes: ibv_qp_attr = unsafe { zeroed() };
    attributes.qp_state = state;
    attributes
}

fn modify(
    context: &Context,
    qp: *mut ibv_qp,
    attributes: ibv_qp_attr,
    mask: ibv_qp_attr_mask,
    what: &str,
) -> Result<()> {
    let mut attributes = attributes;
    let mask = (mask | IBV_QP_STATE) as i32;
    // SAFETY: a queue pair of this device, and the attributes that the mask names.
    let answer = unsafe { (context.library.modify_qp)(qp, &mut attributes, mask) };
    check(&context.name, what, answer)
}
