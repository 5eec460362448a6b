//! UDP alone: fragments that are lost or arrive in another order.

use ipoib::frame::Head;
use ipoib::udp::Socket;
use proptest::prelude::*;

proptest! {
    #[test]
    fn datagrams_are_whole_or_lost(
        lengths in prop::collection::vec(1usize..3000, 1..12),
        lost in prop::collection::vec(any::<bool>(), 0..40),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let mut socket = Socket::new(512, 1 << 20);
        let datagrams: Vec<Vec<u8>> = lengths.iter().map(|len| vec![*len as u8; *len]).collect();
        let mut fragments: Vec<(Head, Vec<u8>)> = Vec::new();
        for datagram in &datagrams {
            fragments.extend(socket.cut(datagram).into_iter().map(|(head, part)| (head, part.to_vec())));
        }
        for (at, turn) in turns.iter().enumerate().take(fragments.len()) {
            let other = turn.index(fragments.len());
            fragments.swap(at, other);
        }
        let mut whole = vec![true; datagrams.len()];
        for (number, (head, part)) in fragments.iter().enumerate() {
            let Head::Fragment { datagram, offset, total } = *head else {
                panic!("{head:?}");
            };
            match lost.get(number) {
                Some(true) => whole[datagram as usize - 1] = false,
                _ => { socket.take(datagram, offset, total, part); }
            }
        }
        let mut buffer = [0; 3000];
        let mut found = Vec::new();
        while let Some(len) = socket.read(&mut buffer) {
            found.push(buffer[..len].to_vec());
        }
        let mut expected: Vec<Vec<u8>> = datagrams.into_iter().zip(whole).filter(|one| one.1).map(|one| one.0).collect();
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn fragments_that_fit_nowhere_are_ignored() {
    let mut socket = Socket::new(512, 1 << 20);
    assert!(!socket.take(1, 600, 700, &[1; 200]), "beyond the end");
    assert!(!socket.take(1, 0, 700, &[]), "empty");
    assert!(!socket.take(1, 0, 700, &[1; 500]));
    assert!(!socket.take(1, 0, 800, &[1; 500]), "another length");
    assert!(socket.take(1, 500, 700, &[1; 200]));
    assert_eq!(socket.next(), Some(700));
}
