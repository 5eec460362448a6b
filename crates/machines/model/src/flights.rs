//! The flights of packets: from the port to the event of their arrival, over the links between
//! switches one by one.

use crossing::Route;
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
    let route = match qps.ports.crossings[network].is_adaptive() {
        // The packets of a queue pair keep their route while one is in transit, and so their order.
        true if qps[pair.0].in_transit > 0 => qps[pair.0].route,
        true => qps.ports.crossings[network].choose(hosts, begins),
        false => Route::default(),
    };
    let links = &qps.ports.crossings[network];
    let first = links.first(begins);
    let Some(train) = links.train(hosts, route) else {
        return;
    };
    let qp = &mut qps[pair.0];
    (qp.route, qp.in_transit) = (route, qp.in_transit + 1);
    let message = crossing.doing.message;
    let packet = qps.ports.in_transit.insert(InTransit {
        crossing,
        train,
        pair,
        is_answer,
        event,
        late,
        sent: clock.now(),
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
        is_answer,
        event,
        late,
        sent,
        ..
    } = qps.ports.in_transit[packet];
    let (network, _) = qps.ports.crossed(crossing.ends);
    let (now, bytes) = (clock.now(), u64::from(crossing.doing.bytes));
    let step = qps.ports.crossings[network].enter(&mut train, now, bytes, Time::MAX);
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
    qps.ports.in_transit.remove(packet);
    qps[pair.0].in_transit -= 1;
    qps.heed(message);
    let there = qps.ports.lands(&mut qps.run, crossing);
    if let Some(event) = event {
        qps.arrives(pair, (sent, there + late), is_answer, event, clock);
    }
    qps.run.messages.release(message);
}
