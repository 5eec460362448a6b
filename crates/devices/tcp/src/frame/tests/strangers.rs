//! Peers that break the rules: floods of requests, and random bytes.

use super::*;

/// Sends frames of one kind to an end whose peer reads no answers. Returns the number of frames and
/// the number of bytes that are held when the connection ends.
fn flood(kind: Kind, len: u32) -> (usize, usize) {
    let mut wire = Wire::new(8);
    let mut header = Header::of(kind, 0);
    (header.len, header.address, header.key) = (len, BASE + TARGET as u64, KEY);
    let payload = if kind == Kind::Read { 0 } else { len };
    let mut frame = header.encode().to_vec();
    frame.resize(frame.len() + payload as usize, 0);
    for count in 0.. {
        wire.ways[1].extend(&frame);
        if let Err(why) = wire.deliver(1, usize::MAX, usize::MAX) {
            assert_eq!(why, Break::Protocol("it asks for more answers than it may"));
            return (count, wire.machines[1].outgoing().held());
        }
    }
    unreachable!("the counter has no end")
}

#[test]
fn a_peer_that_takes_no_answers_costs_a_bounded_amount_of_memory() {
    let (reads, held) = flood(Kind::Read, 8);
    assert_eq!(
        (reads, held),
        (MOST_REQUESTS, MOST_REQUESTS * header::HEADER)
    );
    for (kind, len) in [(Kind::Read, 0), (Kind::Add, 8), (Kind::Swap, 16)] {
        let (_, held) = flood(kind, len);
        assert!((64 << 20..65 << 20).contains(&held), "{kind:?}: {held}");
    }
}

proptest! {
    /// Random bytes end the connection or wait for more; they never reach memory outside of the
    /// region, as `place` checks.
    #[test]
    fn bytes_of_a_stranger_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        kind in 1u8..9,
        len in 0u32..200,
        at in 0usize..LEN,
        key in prop::sample::select(vec![KEY, KEY + 1]),
        cut in 1usize..100,
    ) {
        let mut wire = Wire::new(8);
        wire.ends[1].receives.extend((0..4).map(|id| receive(id, &[slice(RESULT, 100)])));
        let mut header = Header::of(Kind::Write, 0);
        (header.len, header.address, header.key) = (len, BASE + at as u64, key);
        let mut frame = header.encode();
        frame[0] = kind;
        wire.ways[1].extend(frame);
        wire.ways[1].extend(bytes);
        while !wire.ways[1].is_empty() {
            let before = wire.ways[1].len();
            if let Err(why) = wire.deliver(1, cut, 32) {
                wire.machines[1].fail(why, &mut wire.ends[1]);
                break;
            }
            if wire.machines[1].is_stalled() && wire.ways[1].len() == before {
                break;
            }
        }
        let memory = &wire.ends[1].memory;
        let fresh = End::new(0x55).memory;
        prop_assert!(memory[..MARGIN] == fresh[..MARGIN]);
        prop_assert!(memory[LEN - MARGIN..] == fresh[LEN - MARGIN..]);
    }
}
