//! The promises of a transport, kept over real devices of this host: the first one, and the one
//! that FISHPLATE_TEST_PEER names.

use std::sync::{Arc, Mutex};

use device::Device;
use verbs::{Directory, VerbsNode};

use super::*;
use crate::suite;

/// A directory that all ranks share.
struct Board {
    cards: Arc<Mutex<Vec<Option<Vec<u8>>>>>,
    rank: usize,
}

impl Directory for Board {
    fn publish(&mut self, card: &[u8]) -> device::Result<()> {
        self.cards.lock().unwrap()[self.rank] = Some(card.to_vec());
        Ok(())
    }

    fn find(&mut self, peer: usize) -> device::Result<Option<Vec<u8>>> {
        Ok(self.cards.lock().unwrap()[peer].clone())
    }
}

/// The transports of `ranks` ranks, which use the two devices alternately.
fn all(ranks: usize, config: Config) -> Vec<Rdma> {
    let cards = Arc::new(Mutex::new(vec![None; ranks]));
    let first = verbs::open("").unwrap()[0].attributes().name.clone();
    let peer = std::env::var("FISHPLATE_TEST_PEER").expect("FISHPLATE_TEST_PEER names a device");
    let node = |rank| {
        let name = if rank % 2 == 0 { &first } else { &peer };
        let board = Board {
            cards: cards.clone(),
            rank,
        };
        VerbsNode::new(verbs::open(name).unwrap(), rank, ranks, Box::new(board)).unwrap()
    };
    let attach = |rank| Rdma::attach(Box::new(node(rank)), rank, ranks, config).unwrap();
    (0..ranks).map(attach).collect()
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn it_keeps_the_promises_of_a_channel() {
    for design in [
        Design::Basic,
        Design::Piggyback,
        Design::Pipeline,
        Design::ZeroCopy,
    ] {
        for (ring_bytes, gather, rings) in [
            (256 << 10, true, 64),
            (16 << 10, true, 2),
            (16 << 10, false, 0),
        ] {
            let config = Config {
                design,
                ring_bytes,
                gather,
                rings,
                ..Config::default()
            };
            println!("{config:?}");
            suite::promises(|ranks| all(ranks, config));
        }
    }
}
