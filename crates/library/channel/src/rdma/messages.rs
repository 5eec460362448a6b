//! Packets to and from peers without rings, as messages: sending, receiving and granting them.
//! `srq_path` keeps the buffers.

use device::{Effort, Operation, Slice};

use super::credit::GRANTS;
use super::endpoint::Endpoint;
use super::endpoints::Endpoints;
use super::handshake::HandshakeMessage;
use super::layout::{SlotContent, SlotInfo, TRAILER, WORD, padded};
use super::local::Local;
use super::message_buffers;
use super::qp_link::Note;
use super::registered::Block;
use super::srq_path::{ArrivedMessage, MessagePlace, SrqPath};
use crate::{Error, Head, More, Put, Result};

/// The bit of a message's info word that says that the sender waited for credit. No info has it.
const WAITED: u64 = 1 << 31;

/// True if a message to this peer has no buffer or no credit, as far as completions have been
/// polled.
pub(super) fn lacks_room(
    messages: &mut SrqPath,
    local: &mut Local,
    endpoint: &Endpoint,
) -> Result<bool> {
    let buffers = messages.send_buffers(&mut *local.node, local.in_use, &local.layout)?;
    Ok(buffers.is_exhausted() || !message_buffers::may_send_message(endpoint))
}

/// Sends a packet to a peer without a ring, as a message of the queue pair.
pub(super) fn send(
    messages: &mut SrqPath,
    local: &mut Local,
    endpoint: &mut Endpoint,
    (head, len): (Head, usize),
    fill: impl FnOnce(&mut [u8]),
) -> Result<Put> {
    let node = &mut *local.node;
    let buffers = messages.send_buffers(node, local.in_use, &local.layout)?;
    if !message_buffers::may_send_message(endpoint) {
        let last = endpoint.sender.last();
        endpoint.credits.note_refusal(last);
        return Ok(Put::Full);
    }
    let Some((number, start)) = buffers.claim() else {
        return Ok(Put::Full);
    };
    let end = start + padded(len) + TRAILER;
    fill(buffers.memory.block.bytes_mut(start, len));
    local.charges.charge(node, Effort::Send);
    if len > 0 {
        local.charges.charge(node, Effort::Copy(len));
    }
    let sequence = endpoint.sender.claim_message();
    let info = SlotInfo {
        content: SlotContent::Packet,
        len: len as u32,
        tail: endpoint.credits.window.report(),
        next: None,
    };
    let waited = match endpoint.credits.take_waited() {
        true => WAITED,
        false => 0,
    };
    let info = info.encode() | waited;
    let words = [head[0], head[1], head[2], info, sequence];
    for (word, at) in words.into_iter().zip((end - TRAILER..end).step_by(WORD)) {
        buffers.memory.block.store(at, word);
    }
    buffers.fill(number, end - start);
    let link = endpoint.home_mut();
    let slices: [Slice; 1] = [buffers.memory.slice(link.rail(), start..end)];
    let operation = Operation::Send { immediate: None };
    let inline = link.control.takes_inline(end - start);
    let note = Note::SendBuffer(number);
    link.control
        .post(node, operation, &slices, inline, true, note)?;
    let polls_now = sequence == endpoint.credits.allowed();
    Ok(match polls_now {
        _ if local.needs_polls && endpoint.home().control.is_corked(node) => Put::Corked,
        true => Put::AcceptedPollNow,
        false => Put::Accepted,
    })
}

/// Passes one packet to `handler`, and posts its receive buffer again.
pub(super) fn handle(
    messages: &mut SrqPath,
    local: &mut Local,
    endpoint: &mut Endpoint,
    message: ArrivedMessage,
    handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
) -> Result<More> {
    let Local {
        rails,
        node,
        charges,
        layout,
        ..
    } = local;
    let ArrivedMessage {
        from,
        rail,
        place,
        bytes,
    } = message;
    let nonsense = |what| Error::broken(from, what);
    let (memory, range) = message_buffers::message(endpoint, &rails[rail], layout, place);
    let packet = read(&memory.block, range.start, bytes).map_err(nonsense)?;
    let last = endpoint.sender.last();
    let grant = match endpoint.credits.is_stale(packet.sequence) {
        true => None,
        false => {
            let grant = endpoint.credits.grant(last, packet.grant);
            Some(grant.ok_or_else(|| nonsense(GRANTS.into()))?)
        }
    };
    let granted = endpoint.credits.window.granted();
    let check = endpoint.receiver.check_message(packet.sequence, granted);
    check.map_err(nonsense)?;
    if packet.len > 0 {
        charges.charge(&mut **node, Effort::Copy(packet.len));
    }
    let body = memory.block.bytes(range.start, packet.len);
    let more = handler(from, packet.head, body);
    charges.charge(&mut **node, Effort::Receive);
    if let Some(grant) = grant {
        endpoint.credits.accept(grant);
    }
    message_buffers::post_again(endpoint, &mut **node, &rails[rail], layout, from, place)?;
    let pool = endpoint.link_on(rail).pool;
    let window = &mut endpoint.credits.window;
    if let MessagePlace::Pool(_) = place {
        let pools = &mut rails[rail].pools;
        window.resize(pools.resize(&mut **node, pool, window.size(), packet.waited));
    }
    endpoint.receiver.consume_message();
    window.consumed(packet.sequence);
    if window.owes() && !std::mem::replace(&mut window.listed, true) {
        messages.owe(from);
    }
    Ok(more)
}

/// Sends grant-only messages to peers whose grants no packet has carried.
///
/// It does so one poll after the grants are made: an answer may follow, and carry them.
pub(super) fn send_grants(
    messages: &mut SrqPath,
    local: &mut Local,
    endpoints: &mut Endpoints,
) -> Result<()> {
    let Local { node, charges, .. } = local;
    let mut result = Ok(());
    messages.retain_owed(|to| {
        let endpoint = endpoints.of(to);
        let owes = endpoint.credits.window.owes() && !endpoint.connection.is_over();
        // After this rank's goodbye a grant goes out of band: the peer may still have messages to
        // send, and its own goodbye waits for them.
        let by_word = endpoint.connection.has_said_bye();
        let may_write = endpoint.connection.may_write();
        if owes && !(by_word || may_write && endpoint.home().control.has_room()) {
            return true;
        }
        endpoint.credits.window.listed = false;
        if owes && result.is_ok() {
            charges.charge(&mut **node, Effort::Control);
            let grant = endpoint.credits.window.report_alone();
            result = match by_word {
                true => {
                    let word = HandshakeMessage::Grant(grant).encode();
                    node.oob_send(to, &word).map_err(Into::into)
                }
                false => endpoint.home_mut().send_grant(&mut **node, grant),
            };
        }
        false
    });
    result
}

/// Handles a grant that a peer has sent without a packet.
pub(super) fn on_grant(endpoint: &mut Endpoint, from: usize, lower: u32) -> Result<()> {
    let last = endpoint.sender.last();
    let grant = endpoint.credits.grant(last, lower);
    let grant = grant.ok_or_else(|| Error::broken(from, GRANTS))?;
    endpoint.credits.accept(grant);
    Ok(())
}

/// The contents of a message: one packet, with its number and a grant.
struct MessagePacket {
    head: Head,
    len: usize,
    /// The lower half of the number of the last message that the peer grants.
    grant: u32,
    sequence: u64,
    /// True if the peer waited for credit before it sent the packet.
    waited: bool,
}

/// The length of the packet's body, where `read` finds the packet.
#[cfg(feature = "fuzzing")]
pub(super) fn body_len(
    block: &Block,
    start: usize,
    bytes: usize,
) -> std::result::Result<usize, String> {
    read(block, start, bytes).map(|packet| packet.len)
}

/// The packet in a message of `bytes` bytes at `start`. The error describes why there is none.
fn read(block: &Block, start: usize, bytes: usize) -> std::result::Result<MessagePacket, String> {
    let trailer = bytes
        .checked_sub(TRAILER)
        .filter(|at| at.is_multiple_of(WORD))
        .ok_or_else(|| format!("a message of {bytes} bytes, which has no room for a trailer"))?;
    let word = |number: usize| block.load(start + trailer + number * WORD);
    let info = SlotInfo::decode(word(3) & !WAITED)
        .filter(|info| info.content == SlotContent::Packet && padded(info.len as usize) == trailer)
        .ok_or_else(|| format!("a packet with the impossible info {:#x}", word(3)))?;
    Ok(MessagePacket {
        head: [word(0), word(1), word(2)],
        len: info.len as usize,
        grant: info.tail,
        sequence: word(4),
        waited: word(3) & WAITED != 0,
    })
}
