//! The order in which reductions combine operands: algorithms of one order give the same bits, and
//! what a host permits does not change the bits of the default.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use crate::common::{elements, run_shared};
use datatype::reduce::Function;
use datatype::{Elements, Op, Predefined, Type};
use mpi::Rank;
use mpi::algorithms::{self, Algorithm, Collective, Order};
use mpi::coll::{Counts, Reduction, Work};
use mpi::comm::WORLD;
use mpi::op::Operation;
use sim::Random;

const NAME: &str = "MPI_Test";

/// The types whose sums and products depend on the order, with the numbers in an element.
const TYPES: [(Predefined, usize); 6] = [
    (Predefined::FLOAT, 1),
    (Predefined::DOUBLE, 1),
    (Predefined::LONG_DOUBLE, 1),
    (Predefined::C_FLOAT_COMPLEX, 2),
    (Predefined::C_DOUBLE_COMPLEX, 2),
    (Predefined::C_LONG_DOUBLE_COMPLEX, 2),
];

/// Numbers of elements: fewer than ranks, odd ones, and more than fit in a piece.
const COUNTS: [usize; 3] = [1, 1_003, 9_001];
/// The number of elements of the longest vectors, whose type has this number.
const LONG: usize = 70_001;
const LONG_TYPE: usize = 1;

/// A number whose bytes stand for one of `size` bytes.
fn number(random: &mut Random, size: usize) -> Vec<u8> {
    let digits = random.below(1 << 50) as f64 - (1u64 << 49) as f64;
    let number = digits * 2f64.powi(random.below(60) as i32 - 80);
    match size {
        4 => (number as f32).to_ne_bytes().to_vec(),
        8 => number.to_ne_bytes().to_vec(),
        // A number with a sign and an exponent of 16 bits, whose last digits differ.
        _ => {
            let bits = number.to_bits();
            let (negative, exponent) = ((bits >> 63) as u16, (bits >> 52 & 0x7ff) as u16);
            let head = negative << 15 | (exponent + 16383 - 1023);
            let digits = random.below(u64::MAX) | 1 << 63;
            let mut bytes = vec![0; 16];
            let at = if cfg!(target_arch = "x86_64") { 0 } else { 6 };
            bytes[at..at + 8].copy_from_slice(&digits.to_le_bytes());
            bytes[at + 8..at + 10].copy_from_slice(&head.to_le_bytes());
            bytes
        }
    }
}

/// Contributions by rank and type.
type Contributions = HashMap<(usize, usize), Arc<Vec<u8>>>;

/// Contributions, which all cases share.
static CONTRIBUTIONS: LazyLock<Mutex<Contributions>> = LazyLock::new(Mutex::default);

/// The contribution of a rank, of the type with this number: numbers of all magnitudes.
fn numbers(rank: usize, count: usize, ty: usize) -> Vec<u8> {
    let extent = Type::from(TYPES[ty].0).extent() as usize;
    let all = || {
        let mut random = Random::new(rank as u64 + 1);
        let (size, parts) = (extent / TYPES[ty].1, TYPES[ty].1);
        let most = if ty == LONG_TYPE {
            LONG
        } else {
            COUNTS[COUNTS.len() - 1]
        };
        let all = (0..most * parts).map(|_| number(&mut random, size));
        Arc::new(all.flatten().collect())
    };
    let mut known = CONTRIBUTIONS.lock().unwrap();
    known.entry((rank, ty)).or_insert_with(all)[..count * extent].to_vec()
}

/// The sum as a user's operation, which no buffer of members can combine.
fn users_sum(commutative: bool) -> Operation {
    let call = |input: *const u8, inout: *mut u8, count: usize, ty: &Type, _: usize| {
        // SAFETY: both have `count` dense elements.
        let [input, inout] =
            [input.cast_mut(), inout].map(|at| unsafe { Elements::new(at, count, ty) });
        datatype::reduce::reduce_elements(Op::Sum, &input, &inout).unwrap();
    };
    Operation::User {
        // SAFETY: it touches the elements only.
        function: Arc::new(unsafe { Function::new(call) }),
        commutative,
        datatype: 0,
    }
}

/// A reduction of a test.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Case {
    collective: Collective,
    ty: usize,
    count: usize,
    operation: usize,
    in_place: bool,
}

const SUM: usize = 0;
const OPERATIONS: usize = 4;

impl Case {
    fn operation(&self) -> Operation {
        match self.operation {
            SUM => Operation::Predefined(Op::Sum),
            1 => Operation::Predefined(Op::Prod),
            other => users_sum(other == 2),
        }
    }

    /// This rank's bytes of the result.
    fn perform(&self, rank: &Arc<Rank>) -> Vec<u8> {
        let (me, size) = (rank.rank(), rank.size());
        let ty = Type::from(TYPES[self.ty].0);
        let mut ours = numbers(me, self.count, self.ty);
        let mut result = match self.in_place {
            true => ours.clone(),
            false => vec![0; ours.len()],
        };
        let root = size / 2;
        // Parts of different lengths.
        let start = |member: usize| self.count * member * member / (size * size);
        let part = |member: usize| start(member + 1) - start(member);
        let (gets, got) = match self.collective {
            Collective::Reduce => (me == root, self.count),
            Collective::ReduceScatter => (true, part(me)),
            _ => (true, self.count),
        };
        let vector = |bytes: &mut [u8]| elements(bytes, self.count, &ty);
        let reduction = Reduction {
            send: (!self.in_place || !gets).then(|| vector(&mut ours)),
            receive: gets.then(|| vector(&mut result)),
            op: self.operation(),
        };
        let work = match self.collective {
            Collective::Reduce => Work::Reduce {
                reduction,
                root: root as i32,
            },
            Collective::ReduceScatter => Work::ReduceScatter {
                reduction,
                counts: Counts::Each((0..size).map(part).collect()),
            },
            Collective::Allreduce => Work::Allreduce(reduction),
            _ => Work::Scan {
                reduction,
                exclusive: false,
            },
        };
        rank.collective(NAME, &work, WORLD).unwrap();
        result.truncate(if gets { got * ty.extent() as usize } else { 0 });
        result
    }
}

/// The collectives that combine operands.
fn reductions() -> impl Iterator<Item = Collective> {
    let all = Collective::ALL.iter().copied();
    all.filter(|&of| Algorithm::Shared.order(of).is_some())
}

/// Reductions of all collectives that combine, with this operation. Only the sum has all types.
fn cases(operation: usize) -> Vec<Case> {
    let mut all = Vec::new();
    for collective in reductions() {
        let types = match operation {
            SUM => 0..TYPES.len(),
            _ => LONG_TYPE..LONG_TYPE + 1,
        };
        let short = types.flat_map(|ty| COUNTS.map(|count| (ty, count)));
        for (ty, count) in short.chain([(LONG_TYPE, LONG)]) {
            all.push(Case {
                collective,
                ty,
                count,
                operation,
                in_place: false,
            });
        }
    }
    let in_place = all.iter().filter(|case| case.ty == LONG_TYPE);
    let in_place = in_place.map(|case| Case {
        in_place: true,
        ..*case
    });
    let in_place: Vec<Case> = in_place.collect();
    all.extend(in_place);
    all
}

/// Bits of results, by case and rank, with the run that gave them.
type Seen = Arc<Mutex<HashMap<(Case, Option<Order>, usize), (Vec<u8>, String)>>>;

/// Runs cases with these settings, and compares the results with those of earlier runs that have
/// the same key.
fn compare(
    seen: &Seen,
    size: usize,
    settings: &[(&str, &str)],
    cases: Vec<Case>,
    key: impl Fn(&Case) -> Option<Order> + Send + Sync + 'static,
) {
    let (seen, run) = (seen.clone(), format!("{settings:?} on {size} ranks"));
    run_shared(size, settings, move |rank| {
        // The members agree on collective buffers in a few calls that could use them.
        for _ in 0..4 {
            rank.collective(NAME, &Work::Barrier, WORLD).unwrap();
        }
        for case in &cases {
            let result = case.perform(rank);
            let mut seen = seen.lock().unwrap();
            let first = seen.entry((
                Case {
                    in_place: false,
                    ..*case
                },
                key(case),
                rank.rank(),
            ));
            let (bits, before) = first.or_insert_with(|| (result.clone(), run.clone()));
            assert!(
                *bits == result,
                "other bits on rank {}: {case:?} in {run} and in {before}",
                rank.rank()
            );
        }
    });
}

#[test]
fn algorithms_of_one_order_give_the_same_bits() {
    let of = |collective: Collective| {
        let rows = algorithms::rows(collective).iter();
        let flat = rows.filter(|row| row.algorithm.order(collective) != Some(Order::Hosts));
        let mut all: Vec<Algorithm> = flat.map(|row| row.algorithm).collect();
        all.dedup();
        all
    };
    let most = Collective::ALL.iter().map(|one| of(*one).len()).max();
    for size in 2..=9 {
        let seen = Seen::default();
        for number in 0..most.unwrap() {
            let chosen = move |collective: Collective| {
                let all = of(collective);
                all[number % all.len()]
            };
            let wishes = reductions().map(|one| format!("{}={}", one.name(), chosen(one).name()));
            let wishes: Vec<String> = wishes.collect();
            let settings = [("FISHPLATE_COLLECTIVES", wishes.join(","))];
            let settings = settings
                .each_ref()
                .map(|(name, wish)| (*name, wish.as_str()));
            compare(&seen, size, &settings, cases(SUM), move |case| {
                chosen(case.collective).order(case.collective)
            });
        }
    }
}

#[test]
fn the_bits_of_the_default_do_not_depend_on_what_the_host_permits() {
    for size in 2..=9 {
        let seen = Seen::default();
        for single_copy in ["auto", "off"] {
            let settings = [("FISHPLATE_SINGLE_COPY", single_copy)];
            compare(
                &seen,
                size,
                &settings,
                (SUM..OPERATIONS).flat_map(cases).collect(),
                |_| None,
            );
        }
    }
}
