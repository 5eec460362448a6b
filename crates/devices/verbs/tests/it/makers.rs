//! Makers of two ranks on devices of this host.

use std::sync::{Arc, Mutex};

use device::{HostDevice, Result, with_immediates};
use host_node::{Directory, HostNode};
use secret::Secret;
use testdevice::ends::Wish;
use testdevice::suite::makers::{Body, Maker, threads};
use verbs::VerbsDevice;

/// The secret of the job of these ranks.
pub(crate) fn secret() -> Secret {
    Secret::from_bytes([3; Secret::LENGTH])
}

/// Two ranks of this process on devices of this host.
#[derive(Debug)]
pub(crate) struct Verbs {
    /// True if the ranks use different devices, with a cable between them.
    pub peer: bool,
}

/// A directory for both ranks. It is slow: a card becomes visible only after some queries.
struct Board {
    cards: Arc<Mutex<[Option<Vec<u8>>; 2]>>,
    rank: usize,
    asked: usize,
}

impl Directory for Board {
    fn publish(&mut self, card: &[u8]) -> Result<()> {
        self.cards.lock().unwrap()[self.rank] = Some(card.to_vec());
        Ok(())
    }

    fn find(&mut self, peer: usize) -> Result<Option<Vec<u8>>> {
        self.asked += 1;
        match self.asked > 2 {
            true => Ok(self.cards.lock().unwrap()[peer].clone()),
            false => Ok(None),
        }
    }
}

/// The devices of two ranks: the first device of this host, and its peer or itself.
pub(crate) fn devices(peer: bool) -> Vec<Vec<VerbsDevice>> {
    let first = verbs::open("", &secret()).unwrap().swap_remove(0);
    let second = match peer {
        true => std::env::var("FISHPLATE_TEST_PEER").expect("FISHPLATE_TEST_PEER names a device"),
        false => device::Device::attributes(&first).name.clone(),
    };
    let second = verbs::open(&second, &secret()).unwrap().swap_remove(0);
    vec![vec![first], vec![second]]
}

/// The nodes of two ranks with these devices.
pub(crate) fn verbs_nodes(devices: Vec<Vec<VerbsDevice>>) -> Vec<HostNode> {
    let cards = Arc::new(Mutex::new([None, None]));
    let devices = devices.into_iter().enumerate();
    let node = |(rank, devices): (usize, Vec<VerbsDevice>)| {
        let board = Board {
            cards: cards.clone(),
            rank,
            asked: 0,
        };
        let devices = devices
            .into_iter()
            .map(|one| Box::new(one) as Box<dyn HostDevice>);
        HostNode::new(devices.collect(), rank, 2, &secret(), Box::new(board)).unwrap()
    };
    devices.map(node).collect()
}

impl Maker for Verbs {
    fn run(&self, wish: Wish, body: Body) {
        let nodes = verbs_nodes(devices(self.peer)).into_iter();
        threads(
            nodes.map(|node| with_immediates(Box::new(node))).collect(),
            &wish,
            &body,
        );
    }
}
