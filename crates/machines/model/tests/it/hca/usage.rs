//! The use of resources equals the sums of the spans in a record.

use std::collections::BTreeMap;

use super::shares::wish;
use crate::common::*;
use model::trace::{Activity, HcaPart, Track};
use model::{Faults, MachineModel, ModelNode, Resource, Usage};
use sim::coroutines::{Plan, run_then};

/// True if the resource has spans: memory and the chip's requests and answers have none.
fn is_recorded(resource: Resource) -> bool {
    !matches!(
        resource,
        Resource::Memory | Resource::Requests(_) | Resource::Answers(_)
    )
}

/// Rank 0 writes to rank 1 over the given rail. Returns the uses that the machine sums, and those
/// that the spans of its record give.
fn uses(name: &str, rail: usize) -> [BTreeMap<(u32, Resource), u64>; 2] {
    let plan = Plan {
        ranks: 2,
        seed: 1,
        stack: 128 << 10,
    };
    let system = system(name);
    let (_, _, (uses, spans)) = run_then(
        plan,
        move |memory| MachineModel::new(memory, &system, &[0, 1], Faults::default()).recording(),
        move |turn| {
            let rank = turn.rank();
            let mut node = ModelNode::new(turn);
            let wish = Wish {
                rail,
                ..wish(1 << 16)
            };
            let mut end = connect(&mut node, 1 - rank as usize, &wish);
            if rank == 0 {
                end.fill((1 << 16) - 1, &[1]);
                end.write(&mut node, 0, 1 << 16, false);
                settle_down(&mut node);
            } else {
                end.await_byte(&mut node, (1 << 16) - 1, 1);
            }
        },
        |net| (net.usage(), net.take_record()),
    )
    .unwrap();
    let mut shown = BTreeMap::new();
    let work = |rank| {
        let of = |usage: &Usage| match usage.resource {
            Resource::Processor(other, _) if other == rank => Some(usage.resource),
            _ => None,
        };
        uses.iter().find_map(of).unwrap()
    };
    for span in spans {
        let resource = match span.track {
            _ if span.activity == Activity::Wait => continue,
            Track::Rail(rail, HcaPart::LinkOut) => Resource::LinkOut(rail),
            Track::Rail(rail, HcaPart::LinkIn) => Resource::LinkIn(rail),
            Track::Rail(rail, HcaPart::BusDown) => Resource::BusDown(rail),
            Track::Rail(rail, HcaPart::BusUp) => Resource::BusUp(rail),
            Track::Rail(rail, HcaPart::Buffer) => Resource::Chip(rail),
            Track::Processor(rank) => work(rank),
            Track::Calls(_) => continue,
        };
        *shown.entry((span.host, resource)).or_default() += span.end - span.start;
    }
    let own = uses
        .into_iter()
        .filter(|usage| is_recorded(usage.resource))
        .map(|usage| ((usage.host, usage.resource), usage.busy))
        .collect();
    [own, shown]
}

#[test]
fn resources_were_busy_for_as_long_as_the_record_shows() {
    for (name, rail) in [("qdr", 0), ("2xqdr", 1), ("mpich2-2003", 0)] {
        let [uses, shown] = uses(name, rail);
        assert_eq!(uses, shown, "{name}");
        assert!(uses[&(0, Resource::LinkOut(rail as u32))] > 0, "{name}");
    }
}

#[test]
fn ports_of_a_card_share_its_bus() {
    let [uses, shown] = uses("qdr-2port", 1);
    let bus = uses[&(0, Resource::BusDown(0))];
    assert!(!uses.contains_key(&(0, Resource::BusDown(1))));
    assert_eq!(
        bus,
        shown[&(0, Resource::BusDown(1))] + shown.get(&(0, Resource::BusDown(0))).unwrap_or(&0)
    );
    assert!(uses.contains_key(&(0, Resource::LinkOut(1))));
}
