//! The time that a rank of a modelled machine needs for work on its own memory (packing,
//! reductions, copies), added up until the machine charges it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::kind::{LocalWork, class};
use super::rates::{AMOUNT, Rates};

/// The size of a cache line in bytes: the memory moves at least one for a short run.
const LINE: u64 = 64;

/// Adds up the time of a rank's work on its own memory.
#[derive(Debug)]
pub struct Meter {
    /// The time that has been metered and not charged by the machine, in picoseconds.
    owed: Arc<AtomicU64>,
    /// The measured rates of each kind of work on this computer.
    rates: Rates,
    /// The time of 1,024 bytes of work whose rate is not known, in picoseconds: a property of the
    /// machine.
    usual: u64,
    /// The kinds of work that were done, by code and class; `None` if they are not recorded. The
    /// sums are 0 except those of the program's functions.
    pub(super) used: Option<Mutex<Sums>>,
}

/// The amount of work and its time in picoseconds, by the kind's code and the class of its length.
type Sums = BTreeMap<(u64, u32), [u64; 2]>;

/// One kind of work that a rank has done: the kind's code, the class of its length, an amount, and
/// the time of that amount in picoseconds.
pub type Row = [u64; 4];

impl Meter {
    /// A meter that adds to `owed`. Work of a kind that `rates` does not know takes `usual`
    /// picoseconds for 1,024 bytes. `keeps`: the meter records the kinds of work that were done.
    pub fn new(owed: Arc<AtomicU64>, usual: u64, rates: Rates, keeps: bool) -> Meter {
        Meter {
            owed,
            rates,
            usual,
            used: keeps.then(Mutex::default),
        }
    }

    /// Adds work on `amount` bytes or elements, which are a part of a vector of `of` bytes or
    /// elements.
    pub fn add(&self, work: LocalWork, amount: usize, of: usize) {
        if amount == 0 {
            return;
        }
        self.keep(work, of, [0, 0]);
        self.owe(self.time(work, amount, of));
    }

    /// Adds the extra time of a copy to or from separate runs, compared with a copy of as many
    /// bytes in one run.
    pub(crate) fn add_gaps(&self, work: LocalWork, amount: usize, of: usize) {
        if amount == 0 {
            return;
        }
        self.keep(work, of, [0, 0]);
        self.keep(LocalWork::Copy, of, [0, 0]);
        let copy = self.time(LocalWork::Copy, amount, of);
        self.owe(self.time(work, amount, of).saturating_sub(copy));
    }

    /// Adds a call of the program's function, whose work on `elements` elements took `picos`
    /// picoseconds.
    pub fn add_measured(&self, function: u32, elements: usize, picos: u64) {
        let took = [elements as u64, picos];
        self.keep(LocalWork::Function(function), elements, took);
        self.owe(picos);
    }

    fn keep(&self, work: LocalWork, of: usize, took: [u64; 2]) {
        let Some(used) = &self.used else {
            return;
        };
        let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = used.entry((work.encode(), class(of))).or_default();
        for (sum, more) in sums.iter_mut().zip(took) {
            *sum = sum.saturating_add(more);
        }
    }

    fn owe(&self, picos: u64) {
        // One thread at a time is in a rank of a modelled machine.
        self.owed.fetch_add(picos, Ordering::Relaxed);
    }

    /// The time of work in picoseconds: by the rate of its kind, or by the usual rate.
    fn time(&self, work: LocalWork, amount: usize, of: usize) -> u64 {
        self.rates.time(work, amount, of).unwrap_or_else(|| {
            let moved = match work {
                LocalWork::Strided { run, stride } => moved(amount as u64, run, stride),
                LocalWork::Function(_) => 0,
                _ => amount as u64,
            };
            (u128::from(self.usual) * u128::from(moved) / u128::from(AMOUNT)) as u64
        })
    }
}

/// The number of bytes that the memory moves for `bytes` bytes in runs: whole cache lines, each
/// line once.
fn moved(bytes: u64, run: u32, stride: u32) -> u64 {
    let run = u64::from(run.max(1));
    let lines = run.next_multiple_of(LINE).min(u64::from(stride)).max(run);
    bytes.div_ceil(run).saturating_mul(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, Predefined};

    const SUM: LocalWork = LocalWork::Combine(Op::Sum, Predefined::DOUBLE);
    const COLUMN: LocalWork = LocalWork::Strided {
        run: 8,
        stride: 8192,
    };

    fn meter(rates: Rates, keeps: bool) -> (Meter, Arc<AtomicU64>) {
        let owed = Arc::new(AtomicU64::new(0));
        (Meter::new(owed.clone(), 100_000, rates, keeps), owed)
    }

    /// Each reading is a millisecond after the one before.
    fn clock() -> u64 {
        static READINGS: AtomicU64 = AtomicU64::new(0);
        READINGS.fetch_add(1_000_000, Ordering::Relaxed)
    }

    fn taken(owed: &AtomicU64) -> u64 {
        owed.swap(0, Ordering::Relaxed)
    }

    #[test]
    fn work_without_a_rate_takes_the_time_of_the_machine() {
        let (meter, owed) = meter(Rates::none(), false);
        meter.add(SUM, 2048, 1 << 20);
        assert_eq!(taken(&owed), 200_000);
        meter.add(LocalWork::Copy, 1024, 1024);
        assert_eq!(taken(&owed), 100_000);
        // 128 runs of a line each, less the copy of one run.
        meter.add_gaps(COLUMN, 1024, 1024);
        assert_eq!(taken(&owed), 700_000);
        meter.add(LocalWork::Function(0), 1024, 1024);
        assert_eq!(
            (taken(&owed), meter.rows(|| 0, |_, _| true)),
            (0, Vec::new())
        );
    }

    #[test]
    fn runs_that_lie_close_share_their_lines() {
        assert_eq!(moved(1024, 8, 8192), 128 * 64);
        assert_eq!(moved(1024, 8, 16), 128 * 16);
        assert_eq!(moved(1024, 512, 4096), 1024);
        assert_eq!(moved(1024, 100, 50), 1100);
        assert_eq!(moved(0, 0, 0), 0);
    }

    #[test]
    fn work_with_a_rate_takes_its_time() {
        let mut rates = Rates::none();
        rates.set(SUM, 20, 50_000);
        rates.set(LocalWork::Copy, 20, 30_000);
        rates.set(COLUMN, 20, 900_000);
        let (meter, owed) = meter(rates, true);
        meter.add(SUM, 1024, 1 << 20);
        assert_eq!(taken(&owed), 50_000);
        meter.add_gaps(COLUMN, 1024, 1 << 20);
        assert_eq!(taken(&owed), 870_000);
    }

    #[test]
    fn the_kinds_of_work_are_kept_with_the_times_of_functions() {
        let (meter, owed) = meter(Rates::none(), true);
        meter.add(SUM, 64, 4096);
        meter.add(SUM, 64, 5000);
        meter.add(SUM, 0, 1 << 20);
        meter.add_measured(3, 100, 7);
        meter.add_measured(3, 100, 9);
        assert_eq!(taken(&owed), 2 * 6250 + 16);
        let function = [LocalWork::Function(3).encode(), 6, 200, 16];
        assert_eq!(meter.rows(|| 0, |_, _| false), [function]);
        let mut asked = Vec::new();
        let rows = meter.rows(clock, |code, class| {
            asked.push((code, class));
            true
        });
        assert_eq!(asked, [(SUM.encode(), 12)]);
        assert_eq!(rows.len(), 2);
        assert!(rows[0][..3] == [SUM.encode(), 12, AMOUNT] && rows[0][3] > 0);
        assert_eq!(rows[1], function);
    }
}
