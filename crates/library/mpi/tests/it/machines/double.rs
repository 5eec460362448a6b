//! A machine with a deterministic clock below real ranks: each primitive that moves bytes or wakes
//! a rank has a price, and time passes by these prices alone.
//!
//! The ranks are coroutines of one thread over real shared memory. A rank continues only while no
//! other is earlier, so what one writes is seen by the others from the end of its price on.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use channel::Peers;
use datatype::double::{Copied, Double, Primitive, begin};
use mpi::{Rank, Wiring, WorkTimes};
use pmi::{Hosts, Standalone};
use sim::coroutines::{Plan, run as run_coroutines};
use sim::{Clock, Model, Turn};

use super::table::Machine;

/// The number of fruitless polls that take their price each. From then on they become longer, so
/// that a long wait is not a matter of a million polls; the patience of protocols is shorter.
const EXACT_POLLS: u64 = 700;

/// Longest run of a program in picoseconds: in a longer one a rank waits for what never comes.
const LONGEST_PS: u64 = 20_000_000_000_000;

/// The host of the ranks. An event wakes a rank.
struct Host;

impl Model for Host {
    type Event = u32;

    fn handle(&mut self, rank: u32, clock: &mut Clock<u32>) {
        clock.wake(rank);
    }
}

/// The machine below the ranks of one run.
struct Emulated {
    machine: Machine,
    /// By rank, while it runs.
    turns: RefCell<Vec<Option<Rc<Turn<Host>>>>>,
    running: Cell<usize>,
    /// By rank: fruitless polls since its last other primitive.
    polls: RefCell<Vec<u64>>,
    /// By rank: true while it sleeps.
    asleep: RefCell<Vec<bool>>,
    shared: RefCell<Vec<Range<usize>>>,
}

impl Emulated {
    fn new(machine: Machine, ranks: usize) -> Emulated {
        Emulated {
            machine,
            turns: RefCell::new((0..ranks).map(|_| None).collect()),
            running: Cell::new(0),
            polls: RefCell::new(vec![0; ranks]),
            asleep: RefCell::new(vec![false; ranks]),
            shared: RefCell::new(Vec::new()),
        }
    }

    fn turn(&self) -> Option<(usize, Rc<Turn<Host>>)> {
        let rank = self.running.get();
        Some((rank, self.turns.borrow()[rank].clone()?))
    }

    fn begins(&self, rank: usize, turn: Rc<Turn<Host>>) {
        self.turns.borrow_mut()[rank] = Some(turn);
        self.running.set(rank);
    }

    fn ends(&self, rank: usize) {
        self.turns.borrow_mut()[rank] = None;
    }

    fn is_shared(&self, address: usize) -> bool {
        self.shared
            .borrow()
            .iter()
            .any(|range| range.contains(&address))
    }

    /// Picoseconds of a primitive.
    fn price(&self, rank: usize, primitive: Primitive) -> u64 {
        let of = &self.machine;
        let polls = &mut self.polls.borrow_mut()[rank];
        if primitive == Primitive::Poll {
            *polls += 1;
            let longer = polls.saturating_sub(EXACT_POLLS) / 16;
            return of.poll_ns * 1000 * (1 + longer);
        }
        *polls = 0;
        let copy = |it: Copied, rates: [u64; 3]| {
            let [into, from, own] = rates;
            let rate = match (self.is_shared(it.to), self.is_shared(it.from)) {
                (true, _) => into,
                (_, true) => from,
                (false, false) => own,
            };
            it.len as u64 * rate
        };
        let ns = |ns: u64| ns * 1000;
        match primitive {
            Primitive::Poll => 0,
            Primitive::Send => ns(of.send_ns),
            Primitive::Take => ns(of.take_ns + of.line_ns),
            Primitive::Line => ns(of.line_ns),
            Primitive::Vectors(it) => copy(it, of.vectors_ps),
            Primitive::String(it) => ns(of.string_ns) + copy(it, of.string_ps),
            Primitive::PastCache(it) => copy(it, [of.past_cache_ps; 3]),
            Primitive::Kernel(len) => ns(of.kernel_ns) + len as u64 * of.kernel_ps,
            Primitive::Wake => ns(of.wake_ns / 2),
            Primitive::Yield => ns(of.yield_ns),
        }
    }
}

impl Double for Emulated {
    fn now(&self) -> u64 {
        self.turn().map_or(0, |(_, turn)| turn.now() / 1000)
    }

    fn spend(&self, primitive: Primitive) {
        if let Some((rank, turn)) = self.turn() {
            turn.spend(self.price(rank, primitive));
            turn.settle().expect("a rank that runs");
            assert!(turn.now() < LONGEST_PS, "rank {rank} waits for ever");
            self.running.set(rank);
        }
    }

    fn sleep(&self, nanos: u64) {
        if let Some((rank, turn)) = self.turn() {
            self.asleep.borrow_mut()[rank] = true;
            turn.wait(Some(turn.now() + nanos * 1000)).expect("a peer");
            self.running.set(rank);
            self.asleep.borrow_mut()[rank] = false;
        }
    }

    fn wake(&self) {
        self.spend(Primitive::Wake);
        let Some((_, turn)) = self.turn() else {
            return;
        };
        let at = turn.now() + self.machine.wake_ns * 1000;
        let asleep = self.asleep.borrow().clone();
        for rank in (0..asleep.len()).filter(|rank| asleep[*rank]) {
            turn.with(|_, clock| clock.at(at, rank as u32));
        }
    }

    fn core(&self) -> usize {
        self.running.get()
    }

    fn shares(&self, from: usize, len: usize) {
        self.shared.borrow_mut().push(from..from + len);
    }

    fn has_kernel_copies(&self) -> bool {
        !self.machine.refuses
    }

    fn has_fast_strings(&self) -> bool {
        self.machine.fast_strings
    }
}

/// Settings of a job: names and values.
pub(super) type Settings = Vec<(String, String)>;

/// Runs a program on `size` ranks of a machine. Returns the result of each rank.
pub(super) fn run<R: 'static>(
    machine: &Machine,
    size: usize,
    settings: &Settings,
    program: impl Fn(&Arc<Rank>) -> R + 'static,
) -> Vec<R> {
    let emulated = Rc::new(Emulated::new(machine.clone(), size));
    let _below = begin(emulated.clone());
    let segment = pmi::empty_segment().unwrap();
    let settings: Settings = settings
        .iter()
        .chain(&machine.settings())
        .cloned()
        .collect();
    let plan = Plan {
        ranks: size as u32,
        seed: 1,
        stack: 1 << 20,
    };
    let body = move |turn: Turn<Host>| {
        let me = turn.rank() as usize;
        emulated.begins(me, Rc::new(turn));
        let hosts = Hosts::new(vec![0; size]);
        let memory = Some(segment.try_clone().unwrap());
        let wiring = Wiring {
            peers: Peers::new(me, size).sharing(hosts.beside(me), memory),
            bootstrap: Arc::new(Standalone::new(me, hosts)),
            work: WorkTimes::default(),
            choices: None,
        };
        let knobs = knobs::Knobs::parse(settings.iter().cloned()).unwrap();
        let rank = Arc::new(Rank::new(Some(wiring), knobs).unwrap());
        let result = program(&rank);
        rank.finish("MPI_Finalize").unwrap();
        drop(rank);
        emulated.ends(me);
        result
    };
    run_coroutines(plan, |_| Host, body).unwrap().0
}
