//! The flights of packets: from the port to the event of their arrival, over the links between
//! switches one by one.

use sim::Time;

use super::event::{Clocked, Event};
use super::in_transit::{Crossing, Flight, InTransit};
use super::message::NONE;
use super::queue_pairs::QueuePairs;

/// Sends a packet off, which ends with the event of its arrival unless it is lost.
/// `late`: the time by which it leaves after the reservation of its link. `event`: `None` for a
/// packet that only occupies links. `is_answer`: it is an acknowledgement or a response.
#[inline]
pub(crate) fn deliver(
    qps: &mut QueuePairs,
    pair: (u32, u32),
    (flight, late): (Flight, Time),
    is_answer: bool,
    event: Option<Event>,
    clock: &mut Clocked,
) {
    match (flight, event) {
        (Flight::Arrives(_), None) => {}
        (Flight::Arrives(there), Some(event)) => {
            let times = (clock.now(), there + late);
            qps.arrives(pair, times, is_answer, event, clock);
        }
        (Flight::Crosses(crossing), event) => {
            crosses(qps, pair, (crossing, late), is_answer, event, clock);
        }
    }
}

fn crosses(
    qps: &mut QueuePairs,
    pair: (u32, u32),
    (crossing, late): (Crossing, Time),
    is_answer: bool,
    event: Option<Event>,
    clock: &mut Clocked,
) {
    let (network, hosts) = qps.ports.crossed(crossing.ends);
    let begins = crossing.begins;
    let links = &mut qps.ports.crossings[network];
    let route = links.choose(hosts, begins);
    let first = links.first(begins);
    let Some(train) = links.train(hosts, route) else {
        return;
    };
    let number = qps[pair.0].order.send();
    let message = crossing.doing.message;
    let packet = qps.ports.in_transit.insert(InTransit {
        crossing,
        train,
        pair,
        is_answer,
        event,
        late,
        sent: clock.now(),
        number,
        there: 0,
        next: NONE,
    });
    qps.run.messages[message].uses += 1;
    let hop = Event::Hop { message, packet };
    qps.run.schedule(first, hop, clock);
}

/// Handles the arrival of a packet's first bit at its next link between switches.
pub(crate) fn hop(qps: &mut QueuePairs, packet: u32, clock: &mut Clocked) {
    let InTransit {
        mut crossing,
        mut train,
        pair,
        ..
    } = qps.ports.in_transit[packet];
    let (network, _) = qps.ports.crossed(crossing.ends);
    let (now, bytes) = (clock.now(), u64::from(crossing.doing.bytes));
    let step = qps.ports.crossings[network].enter(&mut train, now, bytes, false);
    let waited = step.starts - now;
    crossing.begins += waited;
    crossing.gone += waited;
    let message = crossing.doing.message;
    if !step.is_last {
        let entry = &mut qps.ports.in_transit[packet];
        (entry.crossing, entry.train) = (crossing, train);
        return qps
            .run
            .schedule(step.next, Event::Hop { message, packet }, clock);
    }
    qps.heed(message);
    crossing.begins += train.longer;
    crossing.gone += train.longer;
    let there = qps.ports.lands(&mut qps.run, crossing);
    let mut order = qps[pair.0].order;
    qps.ports.in_transit.land(&mut order, packet, there);
    let mut last = there;
    while let Some(packet) = qps.ports.in_transit.next(&mut order) {
        last = last.max(packet.there);
        if let Some(event) = packet.event {
            let times = (packet.sent, last + packet.late);
            qps.arrives(packet.pair, times, packet.is_answer, event, clock);
        }
        qps.run.messages.release(packet.crossing.doing.message);
    }
    qps[pair.0].order = order;
}
