use std::collections::BTreeMap;

use super::hpl::{Hpl, Pivots, Steps, Work};
use super::{Machine, RUNS, Run, SOCKETS, Socket, read};

/// The work and the messages of a rank.
#[derive(Default)]
struct Counted {
    rank: usize,
    product: f64,
    copied: f64,
    waited: f64,
    sent: Vec<(usize, u64)>,
    received: Vec<(usize, u64)>,
    flying: usize,
}

impl Steps for Counted {
    fn work(&mut self, work: Work) {
        match work {
            Work::Multiply(product) => self.product += product,
            Work::Copy(bytes) => self.copied += bytes,
            Work::Wait(seconds) => self.waited += seconds,
        }
    }

    fn exchange(&mut self, peer: usize, sent: u64, received: u64) {
        self.sent.push((peer, sent));
        self.received.push((peer, received));
    }

    fn begin(&mut self, from: Option<usize>, to: &[usize], bytes: u64) -> usize {
        self.received.extend(from.map(|from| (from, bytes)));
        self.sent.extend(to.iter().map(|to| (*to, bytes)));
        self.flying += from.iter().len() + to.len();
        from.iter().len() + to.len()
    }

    fn wait(&mut self, number: usize) {
        self.flying -= number;
    }

    fn send(&mut self, to: usize, bytes: u64) {
        self.sent.push((to, bytes));
    }
}

fn counted(hpl: &Hpl) -> Vec<Counted> {
    let ranks = (0..hpl.ranks()).map(|rank| {
        let mut counted = Counted {
            rank,
            ..Counted::default()
        };
        hpl.play(rank, &mut counted);
        assert_eq!(counted.flying, 0, "rank {rank} leaves operations in flight");
        counted
    });
    ranks.collect()
}

fn hpl(order: u64, width: u64, rows: usize, columns: usize) -> Hpl {
    Hpl {
        order,
        width,
        rows,
        columns,
        pivots: Pivots::All,
    }
}

#[test]
fn every_send_has_its_receive_in_order() {
    let shapes = [(1, 1), (1, 2), (2, 1), (2, 3), (4, 4), (8, 5), (4, 7)];
    for (rows, columns) in shapes {
        for order in [64, 100, 257] {
            let mut sent: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
            let mut received = sent.clone();
            for one in counted(&hpl(order, 16, rows, columns)) {
                for (to, bytes) in one.sent {
                    sent.entry((one.rank, to)).or_default().push(bytes);
                }
                for (from, bytes) in one.received {
                    received.entry((from, one.rank)).or_default().push(bytes);
                }
            }
            assert_eq!(sent, received, "{order} on {rows} x {columns}");
        }
    }
}

#[test]
fn messages_are_as_many_as_closed_forms_say() {
    let (rows, columns, width, panels) = (8, 4, 16, 12);
    let found = counted(&hpl(width * panels, width, rows, columns));
    let messages: usize = found.iter().map(|one| one.sent.len()).sum();
    let levels = 3;
    let pivots = width as usize * panels as usize * rows * levels;
    let rings = panels as usize * rows * (columns - 1);
    // Each panel swaps in each column that has columns behind it, and apart for the next panel,
    // whose owner has nothing else left near the end.
    let own = |panel: u64, column: u64| {
        let behind = (panel + 1..panels).filter(|other| other % columns as u64 == column);
        let (left, is_owner) = (behind.count(), (panel + 1) % columns as u64 == column);
        usize::from(left > 0) + usize::from(is_owner && left > 1)
    };
    let swaps = (0..panels).flat_map(|panel| (0..columns as u64).map(move |one| (panel, one)));
    let swaps: usize = swaps.map(|(panel, column)| own(panel, column)).sum();
    assert_eq!(messages, pivots + rings + swaps * rows * levels);
}

#[test]
fn products_are_two_thirds_of_the_cube() {
    let (width, panels) = (32, 64);
    let order = width * panels;
    let found = counted(&hpl(order, width, 4, 8));
    let product: f64 = found.iter().map(|one| one.product).sum();
    let (wide, rows) = (width as f64, 4.0);
    let sums = (0..panels).map(|panel| {
        let left = (order - panel * width) as f64;
        let behind = left - wide;
        // The product, the solve in each row of the grid, the panel.
        behind * behind * wide + rows * wide * wide * behind / 2.0 + left * wide * wide / 2.0
    });
    let expected: f64 = sums.sum();
    assert!((product / expected - 1.0).abs() < 1e-12);
    let cube = (order as f64).powi(3) / 3.0;
    assert!((product / cube - 1.0).abs() < 0.1, "{}", product / cube);
}

#[test]
fn a_swap_gives_every_row_of_the_grid_the_whole_of_u() {
    // One update of one column of the grid: the top row sends U to all, each level twice as many.
    let found = counted(&hpl(64, 32, 8, 1));
    let whole = 8 * 32 * 32;
    let wholes = found.iter().flat_map(|one| &one.received);
    assert_eq!(wholes.filter(|(_, bytes)| *bytes == whole).count(), 7);
}

#[test]
fn a_pivot_that_is_no_message_takes_its_time() {
    let mut hpl = hpl(256, 32, 4, 4);
    let all: usize = counted(&hpl).iter().map(|one| one.sent.len()).sum();
    hpl.pivots = Pivots::First(1.0);
    let found = counted(&hpl);
    let first: usize = found.iter().map(|one| one.sent.len()).sum();
    assert_eq!(all - first, 8 * 31 * 4 * 2);
    let waited: f64 = found.iter().map(|one| one.waited).sum();
    assert_eq!(waited, f64::from(8 * 31 * 4));
    assert!(found.iter().all(|one| one.copied > 0.0));
}

#[test]
fn all_sockets_and_runs_are_read() {
    let sockets: Vec<Socket> = read("dahu-sockets.csv", SOCKETS).unwrap();
    assert_eq!(sockets.len(), 64);
    let slow = sockets.iter().filter(|one| one.seconds_per_mnk > 6.9e-11);
    assert_eq!(slow.count(), 11);
    let runs: Vec<Run> = read("dahu-hpl.csv", RUNS).unwrap();
    assert_eq!(runs.len(), 14);
}

#[test]
fn exchanges_of_pivots_by_time_and_by_messages_agree() {
    let machine = Machine::read().unwrap();
    let mut hpl = hpl(2048, 128, 32, 32);
    let (all, _) = machine.seconds(&hpl).unwrap();
    hpl.pivots = Pivots::First(machine.seconds_of_pivot().unwrap());
    let (first, _) = machine.seconds(&hpl).unwrap();
    println!("{all} s by messages, {first} s by time");
    assert!((first / all - 1.0).abs() < 0.05, "{all} s, {first} s");
}
