//! `fabric explain --mpi` lists where the time of a message goes: its rows add up to the time of
//! each message of a ping-pong, to the picosecond. Where the receiver polls for something else (a
//! completion, a new peer) when the message becomes visible, that time is added.

use std::sync::{Arc, Mutex};

use crate::common::modelled::{Keep, play, system};
use crate::common::{out, room};
use channel::rdma::PacketWrite;
use fabric::catalogue::Catalogue;
use fabric::explain::total;
use fabric::{Costs, Nanos, System};
use knobs::RdmaDesign;
use model::config::MachineConfig;
use model::explain::{Packet, message, message_with_pointers};
use model::trace::{Activity, Span, Track};
use mpi::Mode;
use mpi::comm::WORLD;

const ROUNDS: usize = 60;

/// Names of all systems of the catalogue.
fn systems() -> Vec<String> {
    let catalogue = Catalogue::builtin();
    let systems = catalogue.entries().filter(|entry| entry.kind == "system");
    systems.map(|entry| entry.name.to_owned()).collect()
}

/// The activities of the ranks' processors in a ping-pong, with the settings of a design.
fn ping_pong(name: &str, len: usize, design: &[(&'static str, &'static str)]) -> [Vec<Span>; 2] {
    let system = system(name);
    let mut scene = MachineConfig::new(&system, 2, 1, 1).unwrap();
    scene.hosts[1] = system.nodes - 1;
    // The rows are those of a packet over one rail, of any length.
    let mut settings = vec![("FISHPLATE_RAILS", "1"), ("FISHPLATE_EAGER_LIMIT", "64K")];
    settings.extend(design);
    let run = play(scene, settings, Keep::Record, move |rank| {
        let mut bytes = vec![0; len];
        let peer = 1 - rank.rank() as i32;
        for turn in 0..2 * ROUNDS {
            if turn % 2 == rank.rank() {
                rank.send("MPI_Send", Mode::Standard, out(&bytes), peer, 0, WORLD)
                    .unwrap();
            } else {
                rank.receive("MPI_Recv", room(&mut bytes), peer, 0, WORLD)
                    .unwrap();
            }
        }
    });
    [0, 1].map(|rank| {
        let own = run.record.iter();
        own.filter(|span| span.track == Track::Processor(rank))
            .copied()
            .collect()
    })
}

/// For each send: the time until the next one begins, which answers it, and the part of it in which
/// the receiver polls after the message is visible. It is visible `before` after the send begins.
fn steps(ranks: &[Vec<Span>; 2], before: u64) -> Vec<(u64, u64)> {
    let starts = |rank: usize| {
        let sends = ranks[rank]
            .iter()
            .filter(|span| span.activity == Activity::Send);
        sends.map(|span| span.start)
    };
    let mut sends: Vec<(u64, usize)> = starts(0).map(|start| (start, 0)).collect();
    sends.extend(starts(1).map(|start| (start, 1)));
    sends.sort_unstable();
    let step = |pair: &[(u64, usize)]| {
        let [(from, sender), (to, _)] = [pair[0], pair[1]];
        let visible = from + before;
        let receiver = &ranks[1 - sender];
        let took = |span: &&Span| span.activity == Activity::Receive && span.start > visible;
        let taken = receiver.iter().find(took).map_or(to, |span| span.start);
        let looks = receiver.iter().filter(|span| {
            let looking =
                [Activity::Look, Activity::Listen, Activity::Notice].contains(&span.activity);
            looking && span.start < taken && span.end > visible
        });
        let looks = looks.map(|span| span.end - span.start.max(visible));
        (to - from, looks.sum())
    };
    sends.windows(2).map(step).collect()
}

#[test]
fn a_message_takes_what_its_rows_say() {
    for name in systems() {
        let system = system(&name);
        let costs = Costs::of(&system, 0);
        if system.software.send == Nanos::ZERO {
            eprintln!("{name}: no software");
            continue;
        }
        for len in [
            0,
            8,
            200,
            2048,
            10_000,
            PacketWrite::longest(RdmaDesign::ZeroCopy),
        ] {
            let rows = {
                let PacketWrite {
                    len: written,
                    inline,
                } = PacketWrite::of(RdmaDesign::ZeroCopy, len);
                let packet = Packet {
                    len: written,
                    inline,
                };
                message(&costs, len, packet, system.most_hops())
            };
            let until = rows.iter().position(|row| row.step == "poll").unwrap();
            let (before, after) = (total(&rows[..until]), total(&rows[until + 1..]));
            let all_but_looks = (before + after).picos();
            let poll = rows[until].time.picos();
            let steps = steps(&ping_pong(&name, len, &[]), before.picos());
            assert_eq!(steps.len(), 2 * ROUNDS - 1);
            let mut usual = 0;
            for (at, (time, looking)) in steps.into_iter().enumerate() {
                let what = format!("{name}, {len} bytes, message {at}: {rows:#?}");
                assert_eq!(time, all_but_looks + looking, "{what}");
                usual += usize::from(looking == poll);
            }
            // Usually the receiver polls once, and finds the message.
            assert!(
                usual > 9 * (2 * ROUNDS - 1) / 10,
                "{name}, {len} bytes: {usual}"
            );
        }
    }
}

#[test]
fn a_message_of_each_design_takes_what_its_rows_say() {
    const DESIGNS: [(&str, RdmaDesign); 4] = [
        ("basic", RdmaDesign::Basic),
        ("piggyback", RdmaDesign::Piggyback),
        ("pipeline", RdmaDesign::Pipeline),
        ("zero-copy", RdmaDesign::ZeroCopy),
    ];
    for name in ["mpich2-2003", "sdr", "qdr", "edr"] {
        let system = system(name);
        let costs = Costs::of(&system, 0);
        let hops = system.most_hops();
        for (word, design) in DESIGNS {
            for len in [0, 4, 64, 1024, 4096] {
                let packet = |write: PacketWrite| Packet {
                    len: write.len,
                    inline: write.inline,
                };
                let data = packet(PacketWrite::of(design, len));
                let said = match PacketWrite::pointer(design) {
                    Some(pointer) => {
                        message_with_pointers(&costs, len, [data, packet(pointer)], hops)
                            .iter()
                            .map(|part| total(&part.steps))
                            .sum()
                    }
                    None => total(&message(&costs, len, data, hops)),
                };
                let ranks = ping_pong(name, len, &[("FISHPLATE_RDMA_DESIGN", word)]);
                let mut times: Vec<u64> = steps(&ranks, 0).iter().map(|(time, _)| *time).collect();
                times.sort_unstable();
                let ratio = said.picos() as f64 / times[times.len() / 2] as f64;
                assert!(
                    (ratio - 1.0).abs() < 0.02,
                    "{name}, {word}, {len} bytes: {said} explained, {ratio} of the median"
                );
            }
        }
    }
}

/// Rank 0's explanation to a rank of another host.
fn explanation(system: &System, settings: Vec<(&'static str, &'static str)>) -> String {
    let mut scene = MachineConfig::new(system, 2, 1, 1).unwrap();
    scene.hosts[1] = system.nodes - 1;
    let text = Arc::new(Mutex::new(String::new()));
    let kept = text.clone();
    play(scene, settings, Keep::Nothing, move |rank| {
        if rank.rank() == 0 {
            *kept.lock().unwrap() = rank.explain_choices();
        }
    });
    let text = text.lock().unwrap().clone();
    // Messages, without collectives.
    text[..text.find(r#""collectives""#).unwrap()].to_owned()
}

/// The first size of a protocol.
fn first(text: &str, protocol: &str) -> usize {
    let at = text.find(&format!(r#","protocol":"{protocol}""#)).unwrap();
    let from = text[..at].rfind(r#""size":"#).unwrap() + 7;
    text[from..at].parse().unwrap()
}

#[test]
fn on_every_machine_the_protocol_taken_has_the_least_estimate() {
    for name in systems() {
        let text = explanation(&system(&name), vec![]);
        // A faster one has its reason, which is never a setting that nobody has set. Receivers that
        // announce their buffers are another case.
        let reasons = text.split(r#""ruled_out_by":""#).skip(1);
        for reason in reasons {
            let is_known =
                reason.starts_with("its receiver") || reason.starts_with("the length of packets");
            assert!(is_known, "{name}: {reason}: {text}");
        }
        assert!(text.contains(r#""protocol":"eager""#), "{name}: {text}");
    }
}

#[test]
fn a_setting_that_rules_a_faster_protocol_out_is_named() {
    let ruled_out = r#""ruled_out_by":"FISHPLATE_EAGER_LIMIT""#;
    for limit in ["1K", "16K"] {
        let text = explanation(&system("qdr"), vec![("FISHPLATE_EAGER_LIMIT", limit)]);
        assert!(text.contains(ruled_out), "{limit}: {text}");
    }
    let text = explanation(
        &system("qdr"),
        vec![("FISHPLATE_PROTOCOL", "write-rendezvous")],
    );
    assert!(!text.contains(ruled_out), "{text}");
}

#[test]
fn further_rails_leave_the_limit_of_eager_messages_as_it_is() {
    let limit = |rails: u32| {
        let mut system = system("qdr");
        system.rails = fabric::Rails::Equal(rails);
        first(&explanation(&system, vec![]), "read rendezvous")
    };
    let one = limit(1);
    assert_eq!((limit(2), limit(4)), (one, one));
}
