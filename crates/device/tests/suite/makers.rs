//! Makers of two ranks that are connected.

use std::sync::{Arc, Mutex};

use device::model::Faults;
use device::strict::{self, Setup};
use device::verbs::{self, Directory, VerbsDevice, VerbsNode};
use device::{Node, Placement, Result, with_immediates};

use crate::common::{End, Wish, connect_any, meet, play, system};

pub type Body = Arc<dyn Fn(&mut dyn Node, &mut End, usize) + Send + Sync>;

pub trait Maker {
    /// Runs a body as either rank. Neither leaves before the other is done.
    fn run(&self, wish: Wish, body: Body);
}

/// Lets a rank play its part.
fn rank(node: &mut dyn Node, rank: usize, wish: &Wish, body: &Body) -> End {
    let mut end = connect_any(node, wish, 1 - rank);
    meet(node, 1 - rank);
    body(node, &mut end, rank);
    meet(node, 1 - rank);
    end
}

/// Both ranks as threads. If one fails the whole test does, for the other waits in vain.
fn threads(nodes: Vec<Box<dyn Node>>, wish: &Wish, body: &Body) {
    std::thread::scope(|scope| {
        for (number, mut node) in nodes.into_iter().enumerate() {
            scope.spawn(move || {
                let end = rank(&mut *node, number, wish, body);
                drop(node);
                // The memory goes after the device.
                drop(end);
            });
        }
    });
}

#[derive(Debug)]
pub struct Model;

impl Maker for Model {
    fn run(&self, wish: Wish, body: Body) {
        play(
            &system("qdr"),
            &[0, 1],
            Faults::default(),
            1,
            move |mut node, number| {
                rank(&mut node, number as usize, &wish, &body);
            },
        );
    }
}

#[derive(Debug)]
pub struct Instant(Setup);

impl Instant {
    pub fn all() -> Vec<Instant> {
        let setup = |placement, delays, plain: bool| {
            Instant(Setup {
                placement,
                delays,
                immediates: !plain,
                ties_both: plain,
                inline: 128,
                ..Setup::default()
            })
        };
        vec![
            setup(Placement::Ordered, false, false),
            setup(Placement::Ordered, true, false),
            setup(Placement::Completion, true, false),
            setup(Placement::Completion, true, true),
        ]
    }
}

impl Maker for Instant {
    fn run(&self, wish: Wish, body: Body) {
        let nodes = strict::nodes(2, &self.0).into_iter();
        threads(
            nodes.map(|node| with_immediates(node)).collect(),
            &wish,
            &body,
        );
    }
}

/// Two ranks of this process on devices of this host.
pub struct Verbs {
    /// On different devices, with a cable between.
    pub peer: bool,
}

/// A board that both ranks see. It is slow: a card can be seen only when it has been asked for some times.
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

/// The devices of two ranks: the first of this host, and the one that is its peer.
pub fn devices(peer: bool) -> Vec<VerbsDevice> {
    let first = verbs::open("").unwrap().swap_remove(0);
    let second = match peer {
        true => std::env::var("FISHPLATE_TEST_PEER").expect("FISHPLATE_TEST_PEER names a device"),
        false => device::Device::attributes(&first).name.clone(),
    };
    let second = verbs::open(&second).unwrap().swap_remove(0);
    vec![first, second]
}

pub fn verbs_nodes(devices: Vec<VerbsDevice>) -> Vec<VerbsNode> {
    let cards = Arc::new(Mutex::new([None, None]));
    let devices = devices.into_iter().enumerate();
    let node = |(rank, device)| {
        let board = Board {
            cards: cards.clone(),
            rank,
            asked: 0,
        };
        VerbsNode::new(vec![device], rank, 2, Box::new(board)).unwrap()
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
