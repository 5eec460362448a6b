//! The two ends of a ring, over endpoints without handshake and without a transport around them.

use device::{Access, Completion};
use knobs::RdmaDesign;
use testdevice::strict::{self, Setup};

use super::connection::Announced;
use super::credit::Credits;
use super::endpoint::Endpoint;
use super::handshake::LinkAddress;
use super::inbound::Inbound;
use super::layout::{Layout, RING};
use super::link::{Link, LinkQueues};
use super::polled::PolledCompletions;
use super::qp_link::Note;
use super::rail::Rail;
use super::rail_set::RailSet;
use super::registered::Registered;
use super::ring_receiver::RingReceiver;
use super::ring_sender::RingSender;
use super::*;
use crate::{Head, More};

/// One end: a node with one rail, and the endpoint on it.
struct End {
    node: Box<dyn Node + Send>,
    rail: Rail,
    endpoint: Endpoint,
}

impl End {
    fn new(mut node: Box<dyn Node + Send>, peer: usize, design: RdmaDesign) -> End {
        let layout = Layout::of(&Config::default());
        let mut rail = Rail::open(&mut *node, 0, true).unwrap();
        let queues = LinkQueues {
            cq: rail.cq_for(&mut *node, 1000).unwrap(),
            pool: None,
            receives: 0,
            window: 0,
            notices: rail.notice_srq(),
            reads: false,
        };
        let link = Link::open(&mut *node, &rail, peer, 0, &queues).unwrap();
        let access = Access {
            remote_write: true,
            local_write: true,
            ..Access::default()
        };
        let mut register = |bytes| {
            let rails = RailSet::only(0);
            Registered::new(&mut *node, rails, bytes, access).unwrap()
        };
        let (memory, staging) = (register(RING + layout.bytes), register(layout.bytes));
        let basic = design == RdmaDesign::Basic;
        let charges = device::Charges::of(&mut *node);
        let mut sender = RingSender::new(layout, basic, charges);
        sender.begin_ring(staging);
        let inbound = Inbound::new(layout, RING, 4, false);
        let receiver = RingReceiver::new(inbound, Some(memory), basic, charges);
        let links = Box::new([link]);
        let endpoint = Endpoint::new(links, sender, receiver, Credits::new(0));
        End {
            node,
            rail,
            endpoint,
        }
    }

    fn address(&mut self) -> (u64, LinkAddress) {
        let memory = self.endpoint.receiver.memory().unwrap();
        let rkey = memory.keys.rkey(0);
        let link = self
            .endpoint
            .home()
            .address(&mut *self.node, &self.rail, rkey);
        (memory.address(), link.unwrap())
    }

    fn connect(&mut self, (memory, link): &(u64, LinkAddress)) {
        let own = self.endpoint.home_mut();
        own.connect(&mut *self.node, link).unwrap();
        self.endpoint.sender.learn_remote(*memory);
        let announced = Announced {
            rings: true,
            ready: true,
            answer: false,
        };
        self.endpoint.connection.hello(announced).unwrap();
        let _ = self.endpoint.connection.connected();
    }

    /// Sends a packet. False: no slot is free.
    fn send(&mut self, number: u64, len: usize) -> bool {
        let Some(place) = self.endpoint.find(0, len) else {
            return false;
        };
        let fill = |body: &mut [u8]| body.fill(number as u8);
        self.endpoint
            .write_packet(&mut *self.node, (0, place), [number; 3], len, fill)
            .unwrap();
        true
    }

    /// Polls completions. True: the data of a packet of design `Basic` has been written.
    fn complete(&mut self) -> bool {
        let mut completions = PolledCompletions::none().found;
        let mut data = false;
        for &cq in self.rail.cqs() {
            let count = self.node.rail(0).poll(cq, &mut *completions).unwrap();
            for Completion { status, .. } in &completions[..count] {
                assert_eq!(*status, device::Status::Success);
                let (note, _) = self.endpoint.link_on(0).control.completed();
                let (Note::Ring(sequence) | Note::RingData(sequence)) = note else {
                    panic!("{note:?} in a ring");
                };
                data |= matches!(note, Note::RingData(_));
                self.endpoint.sender.heard_completed(0, sequence);
            }
        }
        data
    }

    /// Takes packets. Returns their numbers.
    fn receive(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        let Endpoint {
            receiver, sender, ..
        } = &mut self.endpoint;
        let mut handler = |_: usize, head: Head, body: &[u8]| {
            assert!(body.iter().all(|byte| *byte == head[0] as u8));
            numbers.push(head[0]);
            More::Wanted
        };
        receiver
            .drain(sender, &mut *self.node, 9, &mut handler)
            .unwrap();
        numbers
    }
}

fn ends(design: RdmaDesign) -> (End, End) {
    let mut nodes = strict::nodes(2, &Setup::default()).into_iter();
    let mut end = |peer| End::new(nodes.next().unwrap(), peer, design);
    let (mut a, mut b) = (end(1), end(0));
    let (at_a, at_b) = (a.address(), b.address());
    a.connect(&at_b);
    b.connect(&at_a);
    (a, b)
}

#[test]
fn packets_arrive_in_order_until_the_ring_is_full_and_the_tail_frees_it() {
    let (mut a, mut b) = ends(RdmaDesign::ZeroCopy);
    let (mut sent, mut heard) = (0, 0);
    for _ in 0..5 {
        while a.send(sent, sent as usize % 300) {
            sent += 1;
            a.complete();
        }
        assert!(sent > heard + 8, "{sent} were sent and {heard} heard");
        loop {
            let numbers = b.receive();
            if numbers.is_empty() {
                break;
            }
            for number in numbers {
                assert_eq!(number, heard);
                heard += 1;
            }
        }
        assert_eq!(heard, sent);
        assert!(b.endpoint.receiver.tail_due());
        let next = sent as usize % 300;
        assert_eq!(a.endpoint.find(0, next), None);
        b.endpoint.write_tail(&mut *b.node, false).unwrap();
        assert!(a.endpoint.read_tail() && a.endpoint.find(0, next).is_some());
    }
}

#[test]
fn coalesced_packets_take_one_slot_and_one_write() {
    let (mut a, mut b) = ends(RdmaDesign::ZeroCopy);
    let most = Layout::of(&Config::default()).max_body();
    let place = a.endpoint.find(0, most).unwrap();
    a.endpoint.sender.begin_coalescing(place);
    for number in 0..3u64 {
        assert!(a.endpoint.sender.coalescing_has_room(100));
        let fill = |body: &mut [u8]| body.fill(number as u8);
        let lap = a
            .endpoint
            .sender
            .coalesce(&mut *a.node, [number; 3], 100, fill);
        assert!(!lap);
    }
    assert!(!a.endpoint.sender.coalescing_has_room(most));
    assert!(b.receive().is_empty());
    assert!(a.endpoint.write_coalesced(&mut *a.node).unwrap().is_some());
    assert_eq!(a.endpoint.home().control.held(), 1);
    assert_eq!(b.receive(), [0, 1, 2]);
    assert_eq!(a.endpoint.sender.last(), 1);
    assert_eq!(b.endpoint.receiver.consumed(), 1);
    assert!(a.endpoint.write_coalesced(&mut *a.node).unwrap().is_none());
}

#[test]
fn a_basic_packet_is_there_with_its_head_pointer() {
    let (mut a, mut b) = ends(RdmaDesign::Basic);
    assert!(a.send(7, 20));
    assert!(!a.endpoint.sender.is_clear());
    assert!(b.receive().is_empty());
    assert!(a.complete(), "the data is written");
    assert!(a.endpoint.write_head_pointer(&mut *a.node).unwrap());
    assert!(a.endpoint.sender.is_clear());
    assert_eq!(b.receive(), [7]);
    assert!(b.endpoint.receiver.tail_due());
    assert!(!a.endpoint.write_head_pointer(&mut *a.node).unwrap());
}
