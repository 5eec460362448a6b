//! Targets of the fuzzer for what a peer writes over RDMA: its handshake, and the slots of a ring.

use fuzz_input::Script;

use super::config::Config;
use super::handshake::HandshakeMessage;
use super::inbound::Inbound;
use super::layout::{Layout, SlotContent, SlotInfo, TRAILER, WORD, completion_flag, subhead};
use super::messages;
use super::registered::Block;
use knobs::RdmaDesign;

/// Checks a message of the handshake, or of the failure of a link.
///
/// The promise: a message that is accepted is the same after it was encoded and decoded.
pub fn handshakes(bytes: &[u8]) {
    let config = Config::default();
    match HandshakeMessage::decode(bytes, &config) {
        Err(why) => assert!(!why.is_empty()),
        Ok(message) => {
            let again = HandshakeMessage::decode(&message.encode(), &config);
            assert_eq!(again, Ok(message));
        }
    }
}

/// Checks the slots of a ring, into which a peer writes what a script says, the completions that
/// its device reports, and packets in messages.
///
/// The promises: a body lies within the ring; packets come in the order of their numbers, each
/// once.
pub fn slots(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let designs = [
        RdmaDesign::ZeroCopy,
        RdmaDesign::Basic,
        RdmaDesign::Piggyback,
        RdmaDesign::Pipeline,
    ];
    let config = Config {
        design: script.of(&designs),
        ring_bytes: 8 << 10,
        chunk: script.of(&[1024, 4096]),
        ..Config::default()
    };
    let layout = Layout::of(&config);
    let unordered = script.is_one_in(2);
    let mut block = Block::new(layout.bytes);
    let mut inbound = Inbound::new(layout, 0, 4, unordered);
    while !script.is_over() {
        let consumed = inbound.consumed();
        match script.below(8) {
            0..=2 => write(&mut block, &layout, consumed, &mut script),
            3 => {
                let at = script.below(block.len() / WORD) * WORD;
                block.store(at, script.number());
            }
            4 => {
                let lower = (consumed as u32).wrapping_add(script.byte().into());
                if inbound.completion(script.below(5), lower).is_err() {
                    return;
                }
            }
            5 => {
                let (start, bytes) = (script.below(8) * WORD, script.below(512));
                if let Ok(len) = messages::body_len(&block, start, bytes) {
                    assert!(len <= bytes);
                }
                let (sequence, granted) = (script.number(), script.number());
                if inbound.check_message(sequence, granted).is_ok() {
                    assert!(sequence == consumed + 1 && sequence <= granted);
                }
            }
            _ => match inbound.poll(&block) {
                Err(_) => return,
                Ok(None) => {}
                Ok(Some(arrived)) => {
                    assert!(arrived.body.end <= layout.bytes);
                    // Every byte is there to be read.
                    let body = block.bytes(arrived.body.start, arrived.body.len());
                    assert_eq!(body.len(), arrived.body.len());
                    inbound.consume(arrived);
                    assert!(inbound.consumed() - consumed <= 1);
                    if inbound.tail_due() {
                        assert_eq!(inbound.report_tail(), inbound.consumed());
                    }
                }
            },
        }
    }
}

/// Writes a packet, or several in one slot, to some slot of the ring, mostly with the number that
/// is due.
fn write(block: &mut Block, layout: &Layout, consumed: u64, script: &mut Script) {
    let classes = layout.classes();
    let class = &classes[script.below(classes.len())];
    let slot = script.below(class.count as usize) as u32;
    let trailer = class.end(slot) - TRAILER;
    let (content, len) = match script.below(4) {
        0 => (SlotContent::Coalesced, coalesced(block, trailer, script)),
        _ => (SlotContent::Packet, script.below(300)),
    };
    let info = SlotInfo {
        content,
        len: len as u32,
        tail: script.byte().into(),
        next: script.is_one_in(4).then(|| script.byte()),
    };
    let sequence = consumed + script.of(&[1, 1, 1, 2, 3]);
    let flag = match script.below(3) {
        0 => completion_flag(sequence),
        _ => sequence,
    };
    let words = [script.number(), 2, 3, info.encode(), flag];
    for (word, at) in words.into_iter().zip((trailer..).step_by(WORD)) {
        block.store(at, word);
    }
}

/// Writes coalesced packets before a trailer; returns their length.
fn coalesced(block: &mut Block, trailer: usize, script: &mut Script) -> usize {
    let mut content = Vec::new();
    for number in 0..script.below(4) as u64 {
        let len = script.number() as usize;
        content.extend(subhead([number, 0, 0], len));
        content.resize(content.len() + (len.min(64)).next_multiple_of(WORD), 0);
    }
    content.truncate(trailer);
    let start = trailer - content.len();
    block
        .bytes_mut(start, content.len())
        .copy_from_slice(&content);
    content.len() + script.below(2) * WORD
}
