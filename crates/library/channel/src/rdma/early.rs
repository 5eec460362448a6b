//! Handshake messages of ranks that this rank does not know yet. A packet never makes a rank known:
//! the messages wait until this rank adds their sender to its peers.

/// The most handshake messages that wait: about one for each rank that begins a connection.
const MOST: usize = 4096;

/// The messages of ranks that this rank does not know yet, in the order of arrival.
#[derive(Default)]
pub(super) struct EarlyMessages(Vec<(usize, Vec<u8>)>);

impl EarlyMessages {
    /// Keeps a message of rank `from`. False: too many messages wait already.
    pub(super) fn keep(&mut self, from: usize, message: Vec<u8>) -> bool {
        let has_room = self.0.len() < MOST;
        if has_room {
            self.0.push((from, message));
        }
        has_room
    }

    /// Removes and returns the first message of a rank below `ranks`.
    pub(super) fn next(&mut self, ranks: usize) -> Option<(usize, Vec<u8>)> {
        let first = self.0.iter().position(|(from, _)| *from < ranks)?;
        Some(self.0.remove(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_in_order_until_their_sender_is_known() {
        let mut early = EarlyMessages::default();
        for (from, word) in [(5, "a"), (4, "b"), (5, "c")] {
            assert!(early.keep(from, word.into()));
        }
        assert_eq!(early.next(4), None);
        assert_eq!(early.next(6), Some((5, b"a".to_vec())));
        assert_eq!(early.next(5), Some((4, b"b".to_vec())));
        assert_eq!(
            [5, 6].map(|ranks| early.next(ranks).is_some()),
            [false, true]
        );
        assert!((0..MOST).all(|_| early.keep(7, Vec::new())) && !early.keep(7, Vec::new()));
    }
}
