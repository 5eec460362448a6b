//! For each rule an erroneous sequence is reported, and a similar correct one is not.

use datatype::{Op, Predefined};

use super::*;

const WORLD: u64 = 9;
const INT: Predefined = Predefined::INT;

/// A job of two ranks that notes events, one in each picosecond.
struct Job {
    machine: Machine,
    now: u64,
}

fn job(wanted: Wanted) -> Job {
    let mut job = Job {
        machine: Machine::new(wanted),
        now: 0,
    };
    for me in 0..2 {
        let event = Event::Comm {
            comm: WORLD,
            size: 2,
            me,
            origin: Origin::World,
            is_inter: false,
        };
        job.call(me, "MPI_Init", event);
    }
    job
}

fn data(ty: Predefined, count: u64) -> Data {
    Data {
        ty: ty.handle() as u32,
        count,
    }
}

impl Job {
    /// Passes an event through its encoding.
    fn call(&mut self, rank: u32, call: &str, event: Event) -> &mut Job {
        self.now += 1;
        let decoded = Event::decode(event.encode(rank));
        assert_eq!(decoded, Some((rank, event)));
        self.machine.take(self.now, rank, call, event);
        self
    }

    fn all(&mut self, calls: [(&str, Option<u32>, Op, Data); 2]) -> &mut Job {
        for (rank, (call, root, op, data)) in calls.into_iter().enumerate() {
            let event = Event::Collective {
                comm: WORLD,
                root,
                op: op.handle() as u32,
                gives: Some(data),
                gets: None,
                counts: 0,
            };
            self.call(rank as u32, call, event);
        }
        self
    }

    fn send(&mut self, data: Data) -> &mut Job {
        let (to, tag, is_init) = (1, 5, false);
        let event = Event::Send {
            comm: WORLD,
            to,
            tag,
            data,
            is_init,
        };
        self.call(0, "MPI_Send", event)
    }

    fn receive(&mut self, from: Option<u32>, data: Data) -> &mut Job {
        let event = Event::Receive {
            comm: WORLD,
            from,
            tag: Some(5),
            data,
            is_init: false,
            is_second: false,
        };
        self.call(1, "MPI_Recv", event)
    }

    fn met(&mut self) -> &mut Job {
        let done = Event::Done {
            request: 0,
            met: Some((0, 5)),
            end: End::Complete,
        };
        self.call(1, "MPI_Recv", done)
    }

    fn has(mut self, rules: &[Rule]) {
        for rank in 0..2 {
            self.call(rank, "MPI_Finalize", Event::Finalize);
        }
        let found = self.machine.finish();
        let found: Vec<Rule> = found.iter().map(|finding| finding.rule).collect();
        assert_eq!(found, rules);
    }
}

#[test]
fn collective_calls_are_compared() {
    let two = data(INT, 2);
    let usual = ("MPI_Reduce", Some(0), Op::Sum, two);
    let cases: [(_, &[Rule]); 7] = [
        (usual, &[]),
        (
            ("MPI_Reduce", Some(0), Op::Sum, data(Predefined::INT32_T, 2)),
            &[],
        ),
        (("MPI_Reduce", Some(1), Op::Sum, two), &[Rule::Roots]),
        (("MPI_Reduce", Some(0), Op::Max, two), &[Rule::Operations]),
        (
            ("MPI_Reduce", Some(0), Op::Sum, data(INT, 3)),
            &[Rule::Counts],
        ),
        (
            ("MPI_Reduce", Some(0), Op::Sum, data(Predefined::FLOAT, 2)),
            &[Rule::Signatures],
        ),
        (("MPI_Ireduce", Some(0), Op::Sum, two), &[Rule::Calls]),
    ];
    for (other, rules) in cases {
        let mut job = job(Wanted::default());
        job.all([usual, other]);
        job.has(rules);
    }
}

/// Both members make a call that fails, one after the other has gone on to its next call.
#[test]
fn calls_that_fail_are_not_compared() {
    for fails in [true, false] {
        let mut job = job(Wanted::default());
        let two = data(INT, 2);
        let call = |call: &'static str| (call, Some(0), Op::Sum, two);
        for rank in 0..2 {
            for (name, _, op, data) in [call("MPI_Reduce"), call("MPI_Gather")] {
                let event = Event::Collective {
                    comm: WORLD,
                    root: Some(0),
                    op: op.handle() as u32,
                    gives: Some(data),
                    gets: None,
                    counts: 0,
                };
                job.call(rank, name, event);
                if name == "MPI_Reduce" && (fails || rank == 0) {
                    let has_matched = false;
                    job.call(rank, name, Event::Failed { has_matched });
                }
            }
        }
        job.has(if fails { &[] } else { &[Rule::Calls] });
    }
}

#[test]
fn messages_are_compared_with_their_receives() {
    let cases: [(Data, Data, &[Rule]); 7] = [
        (data(INT, 2), data(INT, 5), &[]),
        (data(INT, 2), data(Predefined::PACKED, 8), &[]),
        (data(INT, 2), data(INT, 1), &[Rule::Truncated]),
        (data(INT, 2), data(Predefined::FLOAT, 2), &[Rule::Types]),
        (data(Predefined::BYTE, 8), data(INT, 2), &[]),
        (data(Predefined::BYTE, 9), data(INT, 2), &[Rule::Truncated]),
        (
            data(Predefined::LONG_INT, 1),
            data(Predefined::LONG, 2),
            &[Rule::Types],
        ),
    ];
    for (sent, room, rules) in cases {
        for from in [Some(0), None] {
            let mut job = job(Wanted::default());
            job.send(sent).receive(from, room).met();
            job.has(rules);
        }
    }
}

#[test]
fn messages_and_requests_that_are_left_are_found() {
    let mut left = job(Wanted::default());
    left.send(data(INT, 1))
        .send(data(INT, 1))
        .receive(Some(0), data(INT, 1))
        .met();
    left.has(&[Rule::Unreceived]);
    for is_done in [true, false] {
        let mut job = job(Wanted::default());
        job.send(data(INT, 1)).receive(Some(0), data(INT, 1));
        let (request, is_persistent) = (7, false);
        job.call(
            1,
            "MPI_Irecv",
            Event::Request {
                request,
                is_persistent,
            },
        );
        if is_done {
            let done = Event::Done {
                request,
                met: None,
                end: End::Complete,
            };
            job.call(1, "MPI_Wait", done);
        }
        job.has(if is_done { &[] } else { &[Rule::Unfinished] });
    }
}

#[test]
fn a_receive_that_may_have_taken_either_message_is_not_checked() {
    let mut job = job(Wanted::default());
    job.send(data(INT, 1));
    let other = Event::Send {
        comm: WORLD,
        to: 1,
        tag: 5,
        data: data(Predefined::FLOAT, 1),
        is_init: false,
    };
    job.call(1, "MPI_Send", other).receive(None, data(INT, 1));
    job.has(&[]);
}

#[test]
fn events_that_nobody_could_note_are_survived() {
    for head in 0..=255u64 {
        for word in [0, 1, u64::MAX] {
            let mut machine = Machine::new(Wanted::default());
            if let Some((rank, event)) =
                Event::decode([head << 56 | word >> 8, word, word, word, word, word])
            {
                machine.take(0, rank, "", event);
                machine.take(0, rank, "", event);
            }
            machine.finish();
        }
    }
}
