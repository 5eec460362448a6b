//! Views, windows and transfers, compared with arrays of bytes.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use datatype::{Buffer, Predefined, Type};
use file_io::{Access, Backing, Counter, Lock, Locking, OpenMode, RealStorage, Storage};
use file_io::{Domains, Transfer, View, ViewError, Windows, external, joined};
use proptest::prelude::*;

fn byte() -> Type {
    Predefined::BYTE.into()
}

/// A filetype of blocks of etypes with gaps before them, and a gap behind.
#[derive(Clone, Debug)]
struct Shape {
    displacement: u64,
    etype: usize,
    blocks: Vec<(usize, usize)>,
    rest: usize,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let blocks = prop::collection::vec((0usize..9, 1usize..5), 1..6);
    (0u64..20, 1usize..5, blocks, 0usize..9).prop_map(|(displacement, etype, blocks, rest)| Shape {
        displacement,
        etype,
        blocks,
        rest,
    })
}

impl Shape {
    fn view(&self) -> View {
        let etype = Type::contiguous(self.etype as i64, &byte()).unwrap();
        let (mut lens, mut places, mut at) = (vec![], vec![], 0);
        for (gap, len) in &self.blocks {
            at += gap;
            lens.push(*len as i64);
            places.push(at as isize);
            at += len * self.etype;
        }
        let filetype = Type::hindexed(&lens, &places, &etype).unwrap();
        let filetype = Type::resized(0, (at + self.rest) as isize, &filetype).unwrap();
        View::new(self.displacement, &etype, &filetype).unwrap()
    }

    /// The offsets of the bytes of the view, one by one.
    fn offsets(&self, count: usize) -> Vec<u64> {
        let (mut list, mut at) = (vec![], self.displacement);
        while list.len() < count {
            for (gap, len) in &self.blocks {
                at += *gap as u64;
                for _ in 0..len * self.etype {
                    list.push(at);
                    at += 1;
                }
            }
            at += self.rest as u64;
        }
        list.truncate(count);
        list
    }
}

fn listed(view: &View, position: u64, count: u64) -> Vec<u64> {
    let mut list = vec![];
    let mut end = None;
    let _ = view.runs(position, count, &mut |offset, len| {
        assert!(len > 0 && end != Some(offset), "adjacent runs are joined");
        end = Some(offset + len);
        list.extend(offset..offset + len);
        ControlFlow::Continue(())
    });
    list
}

proptest! {
    #[test]
    fn a_view_names_its_bytes(shape in shapes(), position in 0usize..120, count in 1usize..120) {
        let (view, offsets) = (shape.view(), shape.offsets(240));
        let named = &offsets[position..position + count];
        prop_assert_eq!(listed(&view, position as u64, count as u64), named);
        prop_assert_eq!(view.offset_of(position as u64), Some(offsets[position]));
        let bounds = (named[0], named[count - 1] + 1);
        prop_assert_eq!(view.bounds(position as u64, count as u64), Some(bounds));
        for end in 0..offsets[position] + 3 {
            let before = offsets.iter().filter(|offset| **offset < end).count();
            prop_assert_eq!(view.bytes_before(end), before as u64);
        }
    }

    #[test]
    fn windows_have_all_runs_in_order(
        runs in prop::collection::vec((0u64..60, 1u64..40), 1..30),
        back in prop::collection::vec(any::<prop::sample::Index>(), 0..2),
        span in 1u64..200,
        gap in 0u64..50,
    ) {
        let mut at = 0;
        let mut given: Vec<(u64, u64)> = runs.iter().map(|(gap, len)| {
            let offset = at + gap;
            at = offset + len;
            (offset, *len)
        }).collect();
        // Views whose filetypes reach into each other go backwards.
        for index in back {
            let at = index.index(given.len());
            given[at..].iter_mut().for_each(|run| run.0 /= 2);
        }
        let mut windows = Windows::new(span, gap);
        let mut made: Vec<_> = given.iter().filter_map(|run| windows.push(run.0, run.1)).collect();
        made.extend(windows.finish());
        let (mut found, mut position) = (vec![], 0);
        for window in &made {
            prop_assert_eq!(window.position, position);
            position += window.data;
            let inner = match window.runs.is_empty() {
                true => vec![(0, window.len)],
                false => window.runs.clone(),
            };
            prop_assert_eq!(inner.iter().map(|run| run.1).sum::<u64>(), window.data);
            prop_assert!(inner.len() == 1 || window.len <= span);
            for pair in inner.windows(2) {
                let end = pair[0].0 + pair[0].1;
                prop_assert!(pair[1].0 >= end && pair[1].0 - end <= gap);
            }
            let last = inner[inner.len() - 1];
            prop_assert_eq!(last.0 + last.1, window.len);
            found.extend(inner.iter().map(|run| (window.offset + run.0, run.1)));
        }
        prop_assert_eq!(found, given);
    }

    #[test]
    fn domains_have_each_byte_once(
        start in 0u64..20_000,
        len in 0u64..90_000,
        count in 1usize..7,
        window in 1u64..30_000,
    ) {
        let domains = Domains::new(start..start + len, count, window);
        let mut at = start;
        for aggregator in 0..count {
            for round in 0..domains.rounds() {
                let window = domains.window(aggregator, round);
                prop_assert!(window.is_empty() || window.start == at);
                at = at.max(window.end);
                for (offset, before) in window.clone().take(3).zip(0..=round) {
                    let found = domains.round_of(aggregator, before, offset);
                    prop_assert_eq!(found, round);
                }
            }
            prop_assert!(at == start + len || at % 4096 == 0 || at == start);
        }
        prop_assert_eq!(at, start + len);
    }

    #[test]
    fn joined_runs_have_the_same_bytes(runs in prop::collection::vec((0u64..80, 0u64..12), 0..20)) {
        let bytes = |runs: &[(u64, u64)]| {
            let mut set = std::collections::BTreeSet::new();
            runs.iter().for_each(|(offset, len)| set.extend(*offset..offset + len));
            set
        };
        let mut made = runs.clone();
        joined(&mut made);
        prop_assert_eq!(bytes(&runs), bytes(&made));
        for pair in made.windows(2) {
            prop_assert!(pair[0].0 + pair[0].1 < pair[1].0);
        }
    }

    #[test]
    fn transfers_move_the_bytes_that_the_view_names(
        shape in shapes(),
        position in 0usize..60,
        count in 1usize..80,
        size in 0usize..200,
        (gap, span) in (0u64..12, 1u64..64),
        memory_gap in 0usize..3,
        locking in prop::sample::select(vec![Locking::None, Locking::Writes, Locking::Whole]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut array: Vec<u8> = (0..size).map(|at| at as u8 | 128).collect();
        std::fs::write(&path, &array).unwrap();
        let file = open(&path);
        let turn = Mutex::new(());
        let (view, offsets) = (shape.view(), shape.offsets(position + count));
        let named = &offsets[position..];
        let transfer = Transfer { file: &*file, turn: &turn, view: &view, gap, span, locking };

        // Every other piece of memory, if it has gaps.
        let stride = 1 + memory_gap;
        let ty = Type::resized(0, stride as isize, &byte()).unwrap();
        let mut memory = vec![7u8; count * stride];
        // SAFETY: the memory has room for `count` elements, and outlives the buffer.
        let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), count, &ty) };
        let read = transfer.read(position as u64, &buffer).unwrap() as usize;
        let present = named.iter().take_while(|offset| **offset < size as u64).count();
        prop_assert_eq!(read, present);
        let mut packed = vec![0; count];
        buffer.pack(0, &mut packed);
        let wanted: Vec<u8> = named[..present].iter().map(|offset| array[*offset as usize]).collect();
        prop_assert_eq!(&packed[..present], &wanted[..]);
        prop_assert!(packed[present..].iter().all(|byte| *byte == 7));

        let written: Vec<u8> = (0..count).map(|at| at as u8 & 127).collect();
        buffer.unpack(0, &written);
        transfer.write(position as u64, &buffer).unwrap();
        let end = named[count - 1] as usize + 1;
        array.resize(array.len().max(end), 0);
        for (offset, byte) in named.iter().zip(&written) {
            array[*offset as usize] = *byte;
        }
        prop_assert_eq!(std::fs::read(&path).unwrap(), array);
        // No lock is left.
        open(&path).lock(0..u64::MAX, Lock::Exclusive).unwrap();
    }
}

fn open(path: &Path) -> Box<dyn Backing> {
    let mode = OpenMode {
        access: Access::ReadWrite,
        create: true,
        exclusive: false,
        permissions: 0o666,
    };
    RealStorage.open(path, mode).unwrap()
}

#[test]
fn datatypes_that_make_no_view() {
    let etype = Type::contiguous(4, &byte()).unwrap();
    let with = |filetype: datatype::Result<Type>| View::new(0, &etype, &filetype.unwrap()).err();
    let empty = Type::contiguous(0, &byte()).unwrap();
    assert_eq!(
        View::new(0, &empty, &etype).err(),
        Some(ViewError::EmptyEtype)
    );
    assert_eq!(
        with(Type::contiguous(6, &byte())),
        Some(ViewError::PartOfEtype {
            filetype: 6,
            etype: 4
        })
    );
    assert_eq!(
        with(Type::indexed_block(1, &[-1, 3], &etype)),
        Some(ViewError::Negative)
    );
    assert_eq!(
        with(Type::indexed_block(1, &[3, 1], &etype)),
        Some(ViewError::Unordered)
    );
    assert_eq!(with(Type::resized(0, 0, &etype)), Some(ViewError::Extent));
    let overlapping = Type::indexed_block(1, &[0, 0], &etype).unwrap();
    assert!(View::new(0, &etype, &overlapping).unwrap().overlaps());
    assert!(View::new(0, &etype, &empty).unwrap().is_empty());
}

#[test]
fn offsets_that_no_file_has() {
    let ints = Type::resized(0, 1 << 40, &byte()).unwrap();
    let view = View::new(5, &byte(), &ints).unwrap();
    assert_eq!(view.offset_of(1 << 20), Some(5 + (1 << 60)));
    assert_eq!(view.offset_of(1 << 24), None);
    assert_eq!(View::default().offset_of(i64::MAX as u64), None);
    let folder = tempfile::tempdir().unwrap();
    let file = open(&folder.path().join("file"));
    let turn = Mutex::new(());
    let transfer = Transfer {
        file: &*file,
        turn: &turn,
        view: &view,
        gap: 0,
        span: 1,
        locking: Locking::None,
    };
    let mut memory = [0; 2];
    // SAFETY: the memory outlives the buffer.
    let buffer = unsafe { Buffer::dense(memory.as_mut_ptr(), 2) };
    let error = transfer.write((1 << 23) - 1, &buffer).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
    assert_eq!(file.size().unwrap(), 0);
}

#[test]
fn external32_has_its_own_layout() {
    let long: Type = Predefined::LONG.into();
    let column = Type::vector(2, 1, 3, &long).unwrap();
    let layout = external::layout(&column).unwrap();
    assert_eq!((layout.size(), layout.extent()), (8, 16));
}

#[test]
fn a_counter_is_one_number_for_all() {
    let storage: Arc<dyn Storage> = Arc::new(RealStorage);
    let (first, token) = Counter::on_this_host(&*storage).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pointer");
    let in_file = Counter::in_file(&*storage, &path, true).unwrap();
    assert!(Counter::in_file(&*storage, &path, true).is_err());
    let again = Counter::in_file(&*storage, &path, false).unwrap();
    let pairs = [
        vec![first, Counter::of_this_host(token)],
        vec![in_file, again],
        vec![Counter::alone()],
    ];
    for counters in pairs {
        let mut seen: Vec<i64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|thread| {
                    let (counter, storage) = (&counters[thread % counters.len()], &storage);
                    let add = move |_| counter.fetch_add(storage, 3).unwrap();
                    scope.spawn(move || (0..100).map(add).collect::<Vec<_>>())
                })
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        seen.sort_unstable();
        assert!(
            seen.iter()
                .enumerate()
                .all(|(at, value)| at as i64 * 3 == *value)
        );
        counters[0].set(&storage, 11).unwrap();
        let last = &counters[counters.len() - 1];
        assert_eq!(last.get(&storage).unwrap(), 11);
        assert!(last.fetch_add(&storage, i64::MAX).is_err());
    }
}
