//! Every predefined operation on every predefined type, compared with arithmetic on wide scalars.

use datatype::reduce::{reduce_buffers, reduce_bytes, reduce_into, reduce_pair};
use datatype::{Buffer, Class, Error, Op, Predefined, Type};
use std::collections::BTreeMap;

/// The number of elements in each test: enough for vector code and a remainder.
const COUNT: usize = if cfg!(miri) { 3 } else { 37 };

/// The format of C's long double: the exponent begins at bit `EXPONENT`; `POINT` bits of the
/// significand follow the leading one, which is stored on x86-64 only.
const EXPONENT: u32 = if cfg!(target_arch = "x86_64") {
    64
} else {
    112
};
const POINT: u32 = if cfg!(target_arch = "x86_64") {
    63
} else {
    112
};
const LEADING: u128 = if cfg!(target_arch = "x86_64") {
    0
} else {
    1 << 112
};

/// One number of any format, wide enough to compute in.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Wide {
    Int(i128),
    Float(f64),
    /// A long double that holds a whole number below 2^63.
    Extended(i64),
}

/// The format in which a scalar member of a type is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Store {
    Signed(usize),
    Unsigned(usize),
    F32,
    F64,
    Extended,
}

impl Store {
    fn size(self) -> usize {
        match self {
            Store::Signed(size) | Store::Unsigned(size) => size,
            Store::F32 => 4,
            Store::F64 => 8,
            Store::Extended => 16,
        }
    }

    fn get(self, bytes: &[u8]) -> Wide {
        let mut wide = [0; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        let raw = u128::from_le_bytes(wide);
        match self {
            Store::Unsigned(_) => Wide::Int(raw as i128),
            Store::Signed(size) => Wide::Int((raw << (128 - 8 * size)) as i128 >> (128 - 8 * size)),
            Store::F32 => Wide::Float(f32::from_bits(raw as u32).into()),
            Store::F64 => Wide::Float(f64::from_bits(raw as u64)),
            Store::Extended => {
                let significand = raw & ((1 << EXPONENT) - 1);
                let whole = match (raw >> EXPONENT & 0x7fff) as u32 {
                    0 => 0,
                    exponent => ((significand | LEADING) >> (POINT + 16383 - exponent)) as i64,
                };
                let negative = raw >> (EXPONENT + 15) & 1 == 1;
                Wide::Extended(if negative { -whole } else { whole })
            }
        }
    }

    fn put(self, value: Wide) -> Vec<u8> {
        match (self, value) {
            (Store::F32, Wide::Float(value)) => (value as f32).to_le_bytes().to_vec(),
            (Store::F64, Wide::Float(value)) => value.to_le_bytes().to_vec(),
            (Store::Extended, Wide::Extended(0)) => vec![0; 16],
            (Store::Extended, Wide::Extended(value)) => {
                let highest = value.unsigned_abs().ilog2();
                let significand = u128::from(value.unsigned_abs()) << (POINT - highest) ^ LEADING;
                let exponent = u128::from(16383 + highest) | u128::from(value < 0) << 15;
                (significand | exponent << EXPONENT).to_le_bytes().to_vec()
            }
            (_, Wide::Int(value)) => value.to_le_bytes()[..self.size()].to_vec(),
            wrong => panic!("{wrong:?}"),
        }
    }
}

/// The members of one element.
fn members(ty: Predefined) -> Vec<Store> {
    let size = ty.size().unwrap();
    let float = |size| match size {
        4 => Store::F32,
        8 => Store::F64,
        _ => Store::Extended,
    };
    match ty.class() {
        Class::FloatingPoint => vec![float(size)],
        Class::Complex => vec![float(size / 2); 2],
        Class::Pair => match ty.name() {
            "MPI_2REAL" => vec![Store::F32; 2],
            "MPI_2DOUBLE_PRECISION" => vec![Store::F64; 2],
            "MPI_FLOAT_INT" => vec![Store::F32, Store::Signed(4)],
            "MPI_DOUBLE_INT" => vec![Store::F64, Store::Signed(4)],
            "MPI_LONG_DOUBLE_INT" => vec![Store::Extended, Store::Signed(4)],
            _ => vec![Store::Signed(size - 4), Store::Signed(4)],
        },
        _ if ty.is_signed() => vec![Store::Signed(size)],
        _ => vec![Store::Unsigned(size)],
    }
}

/// A generator of pseudo-random numbers, always in the same order.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        self.0 >> 11 ^ self.0 << 17
    }

    fn member(&mut self, store: Store, ty: Predefined, place: usize) -> Wide {
        let next = self.next();
        match store {
            // Few values, so that some are equal and the index decides.
            Store::Signed(_) if ty.class() == Class::Pair => Wide::Int(i128::from(next % 4) - 2),
            Store::F32 | Store::F64 if ty.class() == Class::Pair => {
                Wide::Float((next % 4) as f64 - 2.0)
            }
            Store::Extended if ty.class() == Class::Pair && place == 0 => {
                Wide::Extended((1 << 60) + (next % 4) as i64)
            }
            Store::F32 => Wide::Float(f64::from((next as i32 as f32) / 1e5)),
            Store::F64 => Wide::Float(next as i64 as f64 / 1e15),
            // Products need more bits than a double has, and fit 62.
            Store::Extended => Wide::Extended((next % (1 << 30)) as i64 - (1 << 29)),
            // Often zero, for the logical operations.
            _ if next.is_multiple_of(3) => Wide::Int(0),
            Store::Signed(size) | Store::Unsigned(size) => {
                let wide = i128::from(next) << 64 | i128::from(self.next());
                store.get(&wide.to_le_bytes()[..size])
            }
        }
    }

    fn elements(&mut self, ty: Predefined) -> Vec<u8> {
        let members = members(ty);
        let mut bytes = Vec::new();
        for _ in 0..COUNT {
            for (place, store) in members.iter().enumerate() {
                bytes.extend(store.put(self.member(*store, ty, place)));
            }
        }
        bytes
    }
}

fn arithmetic(op: Op, store: Store, a: Wide, b: Wide) -> Wide {
    match (a, b) {
        (Wide::Int(a), Wide::Int(b)) => {
            let bool = |value: bool| i128::from(value);
            Wide::Int(match op {
                Op::Sum => a.wrapping_add(b),
                Op::Prod => a.wrapping_mul(b),
                Op::Min => a.min(b),
                Op::Max => a.max(b),
                Op::Band => a & b,
                Op::Bor => a | b,
                Op::Bxor => a ^ b,
                Op::Land => bool(a != 0 && b != 0),
                Op::Lor => bool(a != 0 || b != 0),
                Op::Lxor => bool((a != 0) != (b != 0)),
                _ => panic!("{op:?}"),
            })
        }
        // Sum and product of two f32 are rounded once to f32 even if computed as f64.
        (Wide::Float(a), Wide::Float(b)) => Wide::Float(match op {
            Op::Sum => a + b,
            Op::Prod => a * b,
            Op::Min => a.min(b),
            Op::Max => a.max(b),
            _ => panic!("{op:?} {store:?}"),
        }),
        (Wide::Extended(a), Wide::Extended(b)) => Wide::Extended(match op {
            Op::Sum => a + b,
            Op::Prod => a * b,
            Op::Min => a.min(b),
            Op::Max => a.max(b),
            _ => panic!("{op:?}"),
        }),
        _ => panic!("{a:?} {b:?}"),
    }
}

fn element(op: Op, ty: Predefined, a: &[u8], b: &[u8]) -> Vec<u8> {
    let stores = members(ty);
    let first = stores[0].size();
    let [(a0, a1), (b0, b1)] =
        [a, b].map(|bytes| (stores[0].get(&bytes[..first]), &bytes[first..]));
    match op {
        Op::Replace => a.to_vec(),
        Op::NoOp => b.to_vec(),
        Op::Minloc | Op::Maxloc => {
            let index = |bytes: &[u8]| stores[1].get(bytes);
            let better = if op == Op::Minloc { a0 < b0 } else { a0 > b0 };
            let take = better || (a0 == b0 && index(a1) < index(b1));
            if take { a.to_vec() } else { b.to_vec() }
        }
        Op::Prod if ty.class() == Class::Complex => {
            let (a1, b1) = (stores[1].get(a1), stores[1].get(b1));
            let rounded = |value: Wide| stores[0].get(&stores[0].put(value));
            let times = |x, y| rounded(arithmetic(Op::Prod, stores[0], x, y));
            let minus = |x: Wide| match x {
                Wide::Float(x) => Wide::Float(-x),
                Wide::Extended(x) => Wide::Extended(-x),
                Wide::Int(_) => panic!(),
            };
            let real = arithmetic(Op::Sum, stores[0], times(a0, b0), minus(times(a1, b1)));
            let imaginary = arithmetic(Op::Sum, stores[0], times(a0, b1), times(a1, b0));
            [stores[0].put(real), stores[0].put(imaginary)].concat()
        }
        _ => {
            let mut out = stores[0].put(arithmetic(op, stores[0], a0, b0));
            if let Some(second) = stores.get(1) {
                out.extend(second.put(arithmetic(op, *second, second.get(a1), second.get(b1))));
            }
            out
        }
    }
}

/// All permitted combinations that run here: Miri cannot run x87 instructions.
fn permitted() -> impl Iterator<Item = (Op, Predefined)> {
    Op::ALL
        .into_iter()
        .flat_map(|op| {
            Predefined::all()
                .filter(move |ty| op.permits(*ty))
                .map(move |ty| (op, ty))
        })
        .filter(|(_, ty)| !cfg!(miri) || !ty.name().contains("LONG_DOUBLE"))
}

fn expected(op: Op, ty: Predefined, input: &[u8], inout: &[u8]) -> Vec<u8> {
    let size = ty.size().unwrap();
    input
        .chunks(size)
        .zip(inout.chunks(size))
        .flat_map(|(a, b)| element(op, ty, a, b))
        .collect()
}

#[test]
fn bytes_at_any_alignment() {
    let mut numbers = Numbers(1);
    for (op, ty) in permitted() {
        let (input, inout) = (numbers.elements(ty), numbers.elements(ty));
        let expected = expected(op, ty, &input, &inout);
        for shift in 0..3 {
            let mut input_at = vec![0; shift];
            input_at.extend(&input);
            let mut inout_at = vec![0x55; 2 * shift + 1];
            inout_at.extend(&inout);
            // A remainder that is no whole element must stay unchanged.
            input_at.push(0xff);
            inout_at.push(0x77);
            reduce_bytes(op, ty, &input_at[shift..], &mut inout_at[2 * shift + 1..]).unwrap();
            assert_eq!(
                inout_at[2 * shift + 1..][..expected.len()],
                expected,
                "{op:?} {ty:?}"
            );
            if ty.size() != Some(1) {
                assert_eq!(inout_at.last(), Some(&0x77), "{op:?} {ty:?}");
            }
            assert!(inout_at[..2 * shift + 1].iter().all(|byte| *byte == 0x55));
        }
    }
}

/// Long vectors are combined by wider instructions if the processor has them: each element gets the
/// same bits as in a short vector.
#[test]
fn long_vectors_get_the_bits_of_short_ones() {
    const TIMES: usize = if cfg!(miri) { 3 } else { 400 };
    let mut numbers = Numbers(3);
    for (op, ty) in permitted() {
        let short: Vec<_> = (0..TIMES)
            .map(|_| (numbers.elements(ty), numbers.elements(ty)))
            .collect();
        let mut expected = Vec::new();
        for (input, inout) in &short {
            let mut result = inout.clone();
            reduce_bytes(op, ty, input, &mut result).unwrap();
            expected.extend(result);
        }
        let input: Vec<u8> = short.iter().flat_map(|(input, _)| input).copied().collect();
        let inout: Vec<u8> = short.iter().flat_map(|(_, inout)| inout).copied().collect();
        let mut result = inout.clone();
        reduce_bytes(op, ty, &input, &mut result).unwrap();
        assert_eq!(result, expected, "{op:?} {ty:?}");
        let mut place = vec![0; result.len()];
        // SAFETY: the place outlives the buffer, which alone writes to it.
        let buffer = unsafe { Buffer::dense(place.as_mut_ptr(), place.len()) };
        reduce_pair(op, ty, &input, &inout, &buffer).unwrap();
        assert_eq!(place, expected, "{op:?} {ty:?} of a pair");
    }
}

/// Reductions into elements with gaps between them, from a packed buffer and from another with
/// gaps.
#[test]
fn buffers_of_any_shape() {
    let mut numbers = Numbers(2);
    for (op, ty) in permitted().step_by(if cfg!(miri) { 7 } else { 1 }) {
        let (input, inout) = (numbers.elements(ty), numbers.elements(ty));
        let expected = expected(op, ty, &input, &inout);
        let size = ty.size().unwrap();
        let spread = Type::hvector(COUNT as i64, 1, ty.extent() as isize + 5, &ty.into()).unwrap();
        let [mut packed, mut gaps] = [(1, &ty.into()), (1, &spread)]
            .map(|(count, ty): (usize, &Type)| vec![0x11; COUNT * ty.span(count).unwrap().1]);
        // SAFETY: each vector has room for its elements and outlives the buffers.
        let (packed_buffer, gaps_buffer) = unsafe {
            (
                Buffer::dense(packed.as_mut_ptr(), COUNT * size),
                Buffer::new(gaps.as_mut_ptr(), 1, &spread),
            )
        };
        for target in [&packed_buffer, &gaps_buffer] {
            assert_eq!(target.unpack(0, &inout), inout.len());
            reduce_into(op, ty, &input[..3 * size], target, 0).unwrap();
            reduce_into(op, ty, &input[3 * size..], target, 3 * size).unwrap();
            let mut out = vec![0; expected.len()];
            target.pack(0, &mut out);
            assert_eq!(out, expected, "{op:?} {ty:?}");
            // The result goes to separate memory, and then replaces one of the operands.
            assert_eq!(target.unpack(0, &input), input.len());
            reduce_pair(op, ty, &input, &inout, target).unwrap();
            target.pack(0, &mut out);
            assert_eq!(out, expected, "{op:?} {ty:?} of a pair");
        }
        packed_buffer.unpack(0, &input);
        gaps_buffer.unpack(0, &inout);
        reduce_buffers(op, ty, &packed_buffer, &gaps_buffer).unwrap();
        let mut out = vec![0; expected.len()];
        gaps_buffer.pack(0, &mut out);
        assert_eq!(out, expected, "{op:?} {ty:?}");
        let untouched = gaps
            .chunks(ty.extent() + 5)
            .all(|chunk| chunk.iter().skip(ty.extent()).all(|byte| *byte == 0x11));
        assert!(untouched, "{op:?} {ty:?}");
    }
}

#[test]
fn more_than_one_chunk() {
    let len = 20_001;
    let mut values: Vec<i32> = (0..2 * len).collect();
    let every_second = Type::vector(len.into(), 1, 2, &Predefined::INT.into()).unwrap();
    let input: Vec<u8> = (0..len).flat_map(|i| (3 * i).to_ne_bytes()).collect();
    // SAFETY: the vector has room for the type, and is read again only after the last use.
    let buffer = unsafe { Buffer::new(values.as_mut_ptr().cast(), 1, &every_second) };
    reduce_into(Op::Sum, Predefined::INT, &input, &buffer, 0).unwrap();
    assert!(values.iter().enumerate().all(|(i, value)| *value
        == if i % 2 == 0 {
            (i + i / 2 * 3) as i32
        } else {
            i as i32
        }));
}

/// A user's mistake that must stay harmless: both operands are the same memory.
#[test]
fn the_same_memory_twice() {
    let mut values = [1i32, 2, 3, 4];
    // SAFETY: the array holds four integers and outlives the buffer.
    let buffer = unsafe { Buffer::new(values.as_mut_ptr().cast(), 4, &Predefined::INT.into()) };
    reduce_buffers(Op::Sum, Predefined::INT, &buffer, &buffer).unwrap();
    assert_eq!(values, [2, 4, 6, 8]);
}

#[test]
fn what_the_standard_permits() {
    let mut count = BTreeMap::new();
    for (op, ty) in Op::ALL
        .into_iter()
        .flat_map(|op| Predefined::all().map(move |ty| (op, ty)))
    {
        *count.entry(op.name()).or_insert(0) += usize::from(op.permits(ty));
    }
    // C integers 19 with CHAR, Fortran integers 6, shared ones 3, floating-point 7, complex 10,
    // logical 8, byte 1, pairs 9; of 66 supported.
    let (integers, floats, complexes) = (19 + 6 + 3, 7, 10);
    for (op, permitted) in count {
        let right = match op {
            "MPI_SUM" | "MPI_PROD" => integers + floats + complexes,
            "MPI_MIN" | "MPI_MAX" => integers + floats,
            "MPI_BAND" | "MPI_BOR" | "MPI_BXOR" => integers + 1,
            "MPI_LAND" | "MPI_LOR" | "MPI_LXOR" => integers + 8,
            "MPI_MINLOC" | "MPI_MAXLOC" => 9,
            _ => 66,
        };
        assert_eq!(permitted, right, "{op}");
    }
    let refused = [
        (Op::Sum, Predefined::WCHAR),
        (Op::Sum, Predefined::C_BOOL),
        (Op::Sum, Predefined::BYTE),
        (Op::Min, Predefined::C_DOUBLE_COMPLEX),
        (Op::Band, Predefined::FLOAT),
        (Op::Band, Predefined::C_BOOL),
        (Op::Land, Predefined::DOUBLE),
        (Op::Land, Predefined::BYTE),
        (Op::Maxloc, Predefined::INT),
        (Op::Sum, Predefined::TWO_INT),
        (Op::Sum, Predefined::REAL16),
        (Op::Replace, Predefined::REAL2),
    ];
    for (op, ty) in refused {
        let error = Err(Error::Operation { op, ty });
        assert_eq!(reduce_bytes(op, ty, &[0; 16], &mut [0; 16]), error);
        assert_eq!(reduce_into(op, ty, &[0; 16], &Buffer::empty(), 0), error);
        assert_eq!(
            reduce_buffers(op, ty, &Buffer::empty(), &Buffer::empty()),
            error
        );
    }
}

#[test]
fn handles_of_operations() {
    for op in Op::ALL {
        assert_eq!(Op::from_handle(op.handle()), Some(op));
    }
    assert_eq!(Op::from_handle(0x20), None);
    assert_eq!(Op::from_handle(0x21), Some(Op::Sum));
}
