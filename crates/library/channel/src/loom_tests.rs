//! Tests by loom: every order of memory accesses that the memory model allows, for the ring, the
//! doorbell, and the lock that calls share with the progress thread.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::cells::{CellSize, Cells, Half};
use crate::doorbell::Doorbell;
use crate::ring::{Arenas, Contents, Memory, Receiver, Sender, Slot, Which};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{Head, Put};

const SLOTS: usize = 2;
const ARENAS: usize = 1024;

struct Place {
    flag: AtomicU32,
    contents: UnsafeCell<Contents>,
}

struct Loom {
    tail: AtomicU64,
    /// The cells of the pair, of which a body uses the first line, and the half that this sender
    /// owns at the start.
    cells: Option<(Arc<Vec<UnsafeCell<[u8; 64]>>>, Half)>,
    slots: [Place; SLOTS],
    lines: Vec<UnsafeCell<[u8; 64]>>,
}

impl Loom {
    fn new() -> Arc<Loom> {
        Loom::with_cells(None)
    }

    fn with_cells(cells: Option<(Arc<Vec<UnsafeCell<[u8; 64]>>>, Half)>) -> Arc<Loom> {
        Arc::new(Loom {
            tail: AtomicU64::new(0),
            cells,
            slots: std::array::from_fn(|_| Place {
                flag: AtomicU32::new(0),
                contents: UnsafeCell::new(Contents {
                    len: 0,
                    head: [0; 3],
                    inline: [0; 32],
                }),
            }),
            lines: (0..ARENAS / 64).map(|_| UnsafeCell::new([0; 64])).collect(),
        })
    }
}

impl Memory for Arc<Loom> {
    type Slot = Place;
    fn slots(&self) -> u32 {
        SLOTS as u32
    }
    fn arenas(&self) -> Arenas {
        match self.cells {
            Some(_) => Arenas::of(ARENAS).with_cells(),
            None => Arenas::of(ARENAS),
        }
    }
    fn first_cells(&self) -> Cells {
        match &self.cells {
            Some((_, half)) => Cells::of(*half),
            None => Cells::default(),
        }
    }
    fn tail(&self) -> &AtomicU64 {
        &self.tail
    }
    fn slot(&self, packets: u32) -> &Place {
        &self.slots[packets as usize % SLOTS]
    }
    fn now() -> u64 {
        0
    }
    fn own_copy() -> u64 {
        1
    }
    fn arena<R>(
        &self,
        which: Which,
        offset: usize,
        len: usize,
        access: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        assert!(offset % 64 == 0 && len <= 64);
        if let (Some((cells, _)), Which::ShortCells) = (&self.cells, which) {
            let line = &cells[offset / CellSize::Short.longest()];
            // SAFETY: as in `contents`.
            return line.with_mut(|line| access(unsafe { &mut (&mut *line)[..len] }));
        }
        let offset = offset + which as usize * self.arenas().len(Which::Small);
        // SAFETY: as in `contents`.
        self.lines[offset / 64].with_mut(|line| access(unsafe { &mut (&mut *line)[..len] }))
    }
    fn body<R>(
        &self,
        slot: &Place,
        at: Option<(Which, usize)>,
        len: usize,
        access: impl FnOnce(&[u8]) -> R,
    ) -> R {
        match at {
            None => slot.contents(|contents| access(&contents.inline[..len])),
            Some((which, offset)) => self.arena(which, offset, len, |body| access(body)),
        }
    }
}

impl Slot for Place {
    fn flag(&self) -> &AtomicU32 {
        &self.flag
    }
    fn write(&self, head: Head, len: usize, inline: usize, fill: impl FnOnce(&mut [u8])) {
        self.contents(|contents| contents.write(head, len, inline, fill));
    }
    fn contents<R>(&self, access: impl FnOnce(&mut Contents) -> R) -> R {
        // SAFETY: loom itself fails the test if the other side accesses the contents now.
        self.contents
            .with_mut(|contents| access(unsafe { &mut *contents }))
    }
}

/// Sends `count` packets with bodies of `len` bytes through two slots; both sides yield while they
/// wait.
fn stream(count: u64, len: usize) {
    let memory = Loom::new();
    let mut sender = Sender::new(memory.clone());
    let mut receiver = Receiver::new(memory);
    let sending = thread::spawn(move || {
        for number in 0..count {
            while sender.put([number, 0, 0], len, |body| body.fill(number as u8 + 1)) == Put::Full {
                thread::yield_now();
            }
        }
    });
    let mut next = 0;
    while next < count {
        if receiver.is_empty() {
            thread::yield_now();
            continue;
        }
        receiver
            .take(
                |_| {},
                |head, body| {
                    assert_eq!(head[0], next);
                    assert!(body.len() == len && body.iter().all(|&byte| byte == next as u8 + 1));
                },
            )
            .unwrap();
        next += 1;
    }
    sending.join().unwrap();
}

#[test]
fn slots_are_handed_over_and_reused_without_a_race() {
    loom::model(|| stream(4, 8));
}

#[test]
fn arena_lines_are_handed_over_and_reused_without_a_race() {
    loom::model(|| stream(3, 40));
}

/// Two ranks send each other one body, and then another one in the cell that the peer handed over.
#[test]
fn cells_change_hands_without_a_race() {
    loom::model(|| {
        let cells = Arc::new(
            (0..16)
                .map(|_| UnsafeCell::new([0; 64]))
                .collect::<Vec<_>>(),
        );
        let ring = |half| Loom::with_cells(Some((cells.clone(), half)));
        let (there, back) = (ring(Half::First), ring(Half::Second));
        let other = {
            let (out, inward) = (back.clone(), there.clone());
            thread::spawn(move || exchange(Sender::new(out), Receiver::new(inward)))
        };
        exchange(Sender::new(there), Receiver::new(back));
        other.join().unwrap();
    });
}

fn exchange(mut sender: Sender<Arc<Loom>>, mut receiver: Receiver<Arc<Loom>>) {
    for number in 1..=2 {
        let put = sender.put([number, 0, 0], 40, |body| body.fill(number as u8));
        assert_ne!(put, Put::Full);
        while receiver.is_empty() {
            thread::yield_now();
        }
        let on_report = |heard| sender.on_report(heard);
        receiver
            .take(on_report, |head, body| {
                assert_eq!(head[0], number);
                assert!(body.iter().all(|byte| u64::from(*byte) == number));
            })
            .unwrap();
    }
}

#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let shared = Arc::new((Doorbell::default(), AtomicU32::new(0)));
        let writer = shared.clone();
        let writing = thread::spawn(move || {
            writer.1.store(1, Ordering::Release);
            writer.0.ring();
        });
        shared.0.arm(true);
        let quiet = shared.1.load(Ordering::Acquire) == 0;
        writing.join().unwrap();
        // The writer is done. If the sleeper saw nothing, the writer must have reset its futex
        // word, or it sleeps for ever.
        assert!(!quiet || !shared.0.is_armed());
    });
}

#[test]
fn a_waiter_for_a_stripe_sees_it_free_or_is_awakened() {
    use crate::stripe_lock::StripeLock;
    loom::model(|| {
        let shared = Arc::new((StripeLock::default(), UnsafeCell::new(0)));
        shared.0.try_take(1).unwrap();
        let holders = shared.clone();
        let holder = thread::spawn(move || {
            // SAFETY: under the lock.
            holders.1.with_mut(|data| unsafe { *data = 7 });
            holders.0.set_free()
        });
        shared.0.begin_wait();
        let taken = shared.0.try_take(2).is_ok();
        if taken {
            // SAFETY: under the lock.
            shared.1.with(|data| assert_eq!(unsafe { *data }, 7));
        }
        let wakes = holder.join().unwrap();
        assert!(taken || wakes, "the waiter would sleep for a free lock");
    });
}

#[test]
fn a_key_gets_the_words_of_its_exposure_or_nothing() {
    use crate::exposed_entry::ExposedEntry;
    loom::model(|| {
        let entry = Arc::new(ExposedEntry::default());
        entry.open(1, [10, 11, 12]);
        let owners = entry.clone();
        let owner = thread::spawn(move || {
            owners.close();
            owners.open(2, [20, 21, 22]);
        });
        let first = entry.find(1);
        assert!(first.is_none_or(|words| words == [10, 11, 12]), "{first:?}");
        let second = entry.find(2);
        assert!(
            second.is_none_or(|words| words == [20, 21, 22]),
            "{second:?}"
        );
        assert!(second.is_none() || !entry.is_open(1));
        owner.join().unwrap();
        assert_eq!((entry.find(1), entry.find(2)), (None, Some([20, 21, 22])));
        assert_eq!(entry.find(0), None);
    });
}

#[test]
fn a_claim_gets_each_byte_where_its_owner_leaves_it() {
    use crate::exposed_entry::ExposedEntry;
    const BYTES: usize = 2;
    /// The byte at a position of the message, and what the owner stores there afterwards.
    const SENT: [u8; BYTES] = [7, 8];
    const NEXT: u8 = 99;
    loom::model(|| {
        let entry = Arc::new(ExposedEntry::default());
        let cells = |of: fn(usize) -> u8| -> Arc<Vec<UnsafeCell<u8>>> {
            Arc::new((0..BYTES).map(|at| UnsafeCell::new(of(at))).collect())
        };
        let (source, copy) = (cells(|at| SENT[at]), cells(|_| 0));
        entry.open(5, [1, 2, 3]);
        let reader = {
            let (entry, source, copy) = (entry.clone(), source.clone(), copy.clone());
            thread::spawn(move || {
                assert!(!entry.claim(4), "a key of an earlier exposure");
                assert!(entry.claim(5) && !entry.claim(5));
                let copied = entry.copied(5).1 as usize;
                for (at, sent) in SENT.iter().enumerate() {
                    let from = if at < copied { &copy } else { &source };
                    // SAFETY: loom itself fails the test if the owner accesses the byte now.
                    assert_eq!(from[at].with(|byte| unsafe { *byte }), *sent);
                }
            })
        };
        let mut is_own = true;
        for at in 0..BYTES {
            if entry.is_claimed() {
                is_own = false;
                break;
            }
            // SAFETY: as above.
            let byte = source[at].with(|byte| unsafe { *byte });
            // SAFETY: as above.
            copy[at].with_mut(|to| unsafe { *to = byte });
            entry.copy_to(1);
            is_own = entry.advance(at as u32 + 1);
            if !is_own {
                break;
            }
        }
        if is_own {
            // The send is complete: its buffer is the program's again.
            // SAFETY: as above.
            source
                .iter()
                .for_each(|byte| byte.with_mut(|byte| unsafe { *byte = NEXT }));
        }
        reader.join().unwrap();
        entry.close();
        assert!(!entry.claim(5));
    });
}

#[test]
fn every_piece_of_a_share_is_taken_once_and_a_late_helper_takes_none() {
    use crate::piece_counter::PieceCounter;
    loom::model(|| {
        const PIECES: u32 = 2;
        let share = Arc::new(PieceCounter::default());
        let taken = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let generation = share.open();
        let (helpers_share, helpers_taken) = (share.clone(), taken.clone());
        let helper = thread::spawn(move || {
            while let Some(piece) = helpers_share.claim(generation, PIECES, 1) {
                helpers_taken[piece.start as usize].fetch_add(1, Ordering::Relaxed);
                helpers_share.moved(1);
            }
        });
        while let Some(piece) = share.claim(generation, PIECES, 1) {
            taken[piece.start as usize].fetch_add(1, Ordering::Relaxed);
            share.moved(1);
        }
        while !share.is_complete(PIECES) {
            thread::yield_now();
        }
        let next = share.open();
        assert!(share.claim(generation, PIECES, 1).is_none());
        assert_eq!(share.claim(next, PIECES, 1), Some(0..1));
        helper.join().unwrap();
        assert!(taken.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    });
}

#[test]
fn a_call_and_the_progress_thread_take_turns_and_a_waiting_call_is_next() {
    use crate::turns::{self, Entry};
    loom::model(|| {
        let word = Arc::new(AtomicU32::new(turns::FREE));
        let value = Arc::new(UnsafeCell::new(0));
        let (threads_word, threads_value) = (word.clone(), value.clone());
        let thread = thread::spawn(move || {
            let mut taken = 0;
            for _ in 0..2 {
                if !turns::try_take(&threads_word) {
                    continue;
                }
                // SAFETY: loom itself fails the test if the other side accesses the value now.
                threads_value.with_mut(|value| unsafe { *value += 1 });
                taken += 1;
                if turns::give_back(&threads_word) {
                    // The call that waited takes the lock before this thread takes it again.
                    let is_next = !turns::try_take(&threads_word);
                    assert!(is_next || threads_value.with(|value| unsafe { *value }) > taken);
                    if !is_next {
                        turns::give_back(&threads_word);
                    }
                }
            }
            taken
        });
        let mut waited = false;
        while turns::enter(&word) == Entry::Wait {
            // A sleeper on the futex continues once the word is no longer `AWAITED`.
            waited = true;
            thread::yield_now();
        }
        // SAFETY: as above.
        value.with_mut(|value| unsafe { *value += 1 });
        assert!(turns::leave(&word));
        let taken = thread.join().unwrap();
        // SAFETY: the thread has ended.
        assert_eq!(value.with(|value| unsafe { *value }), taken + 1);
        assert!(taken > 0 || !waited);
        assert_eq!(word.load(Ordering::Relaxed), turns::FREE);
    });
}
