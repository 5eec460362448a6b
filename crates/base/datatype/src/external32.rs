//! The portable representation "external32" (MPI 5.0, section 14.5.2): big-endian, packed, with
//! its own sizes: long has 4 bytes, wchar_t 2, long double is IEEE binary128.

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::predefined::{Format, Predefined};
use crate::types::Type;

/// The external size of `count` elements, in bytes (MPI_Pack_external_size).
pub fn size(ty: &Type, count: usize) -> Result<usize> {
    let mut sum = 0usize;
    let mut total = |basic: Predefined, number: usize| {
        let bytes = ElementFormat::of(basic).external_size().checked_mul(number);
        sum = bytes
            .and_then(|bytes| sum.checked_add(bytes))
            .ok_or(TOO_LARGE)?;
        Ok(())
    };
    ty.checked()?
        .with_signature(|signature| signature.totals(&mut total))?;
    sum.checked_mul(count).ok_or(TOO_LARGE)
}

/// Converts the elements of `buffer`, whose type is `ty`, to the front of `out`; returns the number
/// of bytes written.
pub fn pack(ty: &Type, buffer: &Buffer, out: &mut [u8]) -> Result<usize> {
    let count = buffer.len().checked_div(ty.size()).unwrap_or(0);
    let needed = size(ty, count)?;
    let given = out.len();
    let mut out = out.get_mut(..needed).ok_or(Error::Room { needed, given })?;
    let mut position = 0;
    each_run(ty, count, &mut |layout, number| {
        let (native, external) = (layout.native_size(), layout.external_size());
        let mut element = [0; MAX];
        for _ in 0..number {
            position += buffer.pack(position, &mut element[..native]);
            let (front, rest) = std::mem::take(&mut out).split_at_mut(external);
            layout.encode(&element[..native], front)?;
            out = rest;
        }
        Ok(())
    })?;
    Ok(needed)
}

/// Converts the front of `data` to the elements of `buffer`, whose type is `ty`; returns the number
/// of bytes read.
pub fn unpack(ty: &Type, data: &[u8], buffer: &Buffer) -> Result<usize> {
    let count = buffer.len().checked_div(ty.size()).unwrap_or(0);
    let needed = size(ty, count)?;
    let mut data = data.get(..needed).ok_or(Error::Room {
        needed,
        given: data.len(),
    })?;
    let mut position = 0;
    each_run(ty, count, &mut |layout, number| {
        let (native, external) = (layout.native_size(), layout.external_size());
        let mut element = [0; MAX];
        for _ in 0..number {
            let (front, rest) = data.split_at(external);
            layout.decode(front, &mut element[..native]);
            position += buffer.unpack(position, &element[..native]);
            data = rest;
        }
        Ok(())
    })?;
    Ok(needed)
}

/// Converts the front of `data`, as far as it contains whole basic elements, to the elements of
/// `buffer`, whose type is `ty`. Returns the number of bytes written to `buffer`.
pub fn unpack_some(ty: &Type, data: &[u8], buffer: &Buffer) -> Result<usize> {
    let count = buffer.len().checked_div(ty.size()).unwrap_or(0);
    let each = size(ty, 1)?;
    let whole = count.min(data.len().checked_div(each).unwrap_or(0));
    let start = whole * ty.size();
    unpack(ty, data, &buffer.slice(0, start))?;
    // The element in the middle of which `data` ends.
    let (mut rest, mut position) = (&data[whole * each..], start);
    let mut is_over = whole == count;
    each_run(ty, usize::from(!is_over), &mut |layout, number| {
        let (native, external) = (layout.native_size(), layout.external_size());
        let mut element = [0; MAX];
        for _ in 0..number {
            is_over |= rest.len() < external;
            if is_over {
                break;
            }
            let (front, behind) = rest.split_at(external);
            layout.decode(front, &mut element[..native]);
            position += buffer.unpack(position, &element[..native]);
            rest = behind;
        }
        Ok(())
    })?;
    Ok(position)
}

const TOO_LARGE: Error = Error::TooLarge {
    what: "external32 size",
};

/// The size of the largest element in bytes: a long double complex.
const MAX: usize = 32;

fn each_run(
    ty: &Type,
    count: usize,
    visit: &mut dyn FnMut(ElementFormat, usize) -> Result<()>,
) -> Result<()> {
    ty.with_signature(|signature| {
        for _ in 0..count {
            signature.for_each(&mut |basic, number| visit(ElementFormat::of(basic), number))?;
        }
        Ok(())
    })
}

/// The one or two scalars of an element, in both representations.
struct ElementFormat {
    ty: Predefined,
    first: Scalar,
    second: Option<Scalar>,
}

#[derive(Clone, Copy)]
struct Scalar {
    native: usize,
    external: usize,
    kind: ScalarKind,
}

#[derive(Clone, Copy, PartialEq)]
enum ScalarKind {
    Signed,
    /// Unsigned integers, and floating-point numbers that are equally wide in both representations:
    /// only the order of bytes changes.
    Plain,
    LongDouble,
}

impl ElementFormat {
    fn of(ty: Predefined) -> ElementFormat {
        use Format::*;
        let (first, second) = match ty.format() {
            ComplexF32 => (F32, Some(F32)),
            ComplexF64 => (F64, Some(F64)),
            ComplexLongDouble => (LongDouble, Some(LongDouble)),
            single => match single.pair() {
                Some((value, index)) => (value, Some(index)),
                None => (single, None),
            },
        };
        let mut first = Scalar::of(first);
        match ty {
            Predefined::LONG | Predefined::UNSIGNED_LONG | Predefined::LONG_INT => {
                first.external = 4
            }
            Predefined::WCHAR => (first.external, first.kind) = (2, ScalarKind::Plain),
            _ => {}
        }
        ElementFormat {
            ty,
            first,
            second: second.map(Scalar::of),
        }
    }

    fn native_size(&self) -> usize {
        self.first.native + self.second.map_or(0, |second| second.native)
    }

    fn external_size(&self) -> usize {
        self.first.external + self.second.map_or(0, |second| second.external)
    }

    fn encode(&self, native: &[u8], external: &mut [u8]) -> Result<()> {
        let failed = Error::Conversion { ty: self.ty };
        let (native, other_native) = native.split_at(self.first.native);
        let (external, other_external) = external.split_at_mut(self.first.external);
        self.first.encode(native, external).ok_or(failed.clone())?;
        self.second
            .map_or(Some(()), |second| {
                second.encode(other_native, other_external)
            })
            .ok_or(failed)
    }

    fn decode(&self, external: &[u8], native: &mut [u8]) {
        let (native, other_native) = native.split_at_mut(self.first.native);
        let (external, other_external) = external.split_at(self.first.external);
        self.first.decode(external, native);
        if let Some(second) = self.second {
            second.decode(other_external, other_native);
        }
    }
}

impl Scalar {
    fn of(format: Format) -> Scalar {
        use Format::*;
        let kind = match format {
            I8 | I16 | I32 | I64 | I128 => ScalarKind::Signed,
            LongDouble => ScalarKind::LongDouble,
            _ => ScalarKind::Plain,
        };
        Scalar {
            native: format.size(),
            external: format.size(),
            kind,
        }
    }

    /// Converts one native scalar. `None`: the value does not fit the external representation.
    fn encode(self, native: &[u8], external: &mut [u8]) -> Option<()> {
        external.copy_from_slice(native.get(..self.external)?);
        if self.kind == ScalarKind::LongDouble && cfg!(target_arch = "x86_64") {
            external.copy_from_slice(&quad_from_extended(native.try_into().ok()?).to_le_bytes());
        }
        let fill = self.fill(external[self.external - 1]);
        external.reverse();
        native[self.external..]
            .iter()
            .all(|byte| *byte == fill)
            .then_some(())
    }

    fn decode(self, external: &[u8], native: &mut [u8]) {
        let fill = self.fill(external[0]);
        for (to, from) in native
            .iter_mut()
            .zip(external.iter().rev().chain(std::iter::repeat(&fill)))
        {
            *to = *from;
        }
        if self.kind == ScalarKind::LongDouble && cfg!(target_arch = "x86_64") {
            let quad = native
                .as_chunks::<16>()
                .0
                .first()
                .map_or(0, |bytes| u128::from_le_bytes(*bytes));
            native.copy_from_slice(&extended_from_quad(quad));
        }
    }

    /// The byte that extends an integer above its top byte: the sign of a signed integer, otherwise
    /// 0.
    fn fill(self, top: u8) -> u8 {
        if self.kind == ScalarKind::Signed && top & 0x80 != 0 {
            0xff
        } else {
            0
        }
    }
}

// The conversions above assume a little-endian machine.
const _: () = assert!(cfg!(target_endian = "little"));

const FRACTION: u32 = 112;
const EXPONENT_MAX: u128 = 0x7fff;

/// The binary128 of an x87 extended number. Both formats have 15 bits of exponent with equal bias;
/// the significand grows from 64 bits with an explicit leading bit to 113 with an implied one.
fn quad_from_extended(bytes: [u8; 16]) -> u128 {
    let raw = u128::from_le_bytes(bytes);
    let sign = (raw >> 79 & 1) << 127;
    let mut exponent = raw >> 64 & EXPONENT_MAX;
    let significand = raw & u64::MAX as u128;
    if exponent == 0 && significand >> 63 == 1 {
        exponent = 1; // a denormal whose leading bit is set is the smallest normal
    }
    sign | exponent << FRACTION | (significand << 1 & u64::MAX as u128) << (FRACTION - 64)
}

fn extended_from_quad(quad: u128) -> [u8; 16] {
    let sign = quad >> 127 << 79;
    let exponent = quad >> FRACTION & EXPONENT_MAX;
    let fraction = quad & ((1 << FRACTION) - 1);
    let dropped = FRACTION - 63;
    let kept = fraction >> dropped;
    if exponent == EXPONENT_MAX {
        // Infinity or NaN. A NaN must keep a bit of its fraction, or it would become infinity.
        let quiet = u128::from(fraction != 0) << 62;
        return (sign | exponent << 64 | 1 << 63 | kept | quiet).to_le_bytes();
    }
    // Rounds to nearest, ties to even; a carry runs from the fraction into the exponent.
    let rest = fraction & ((1 << dropped) - 1);
    let half = 1 << (dropped - 1);
    let up = u128::from(rest > half || (rest == half && kept & 1 == 1));
    let rounded = (exponent << 63 | kept) + up;
    let (exponent, kept) = (rounded >> 63, rounded & ((1 << 63) - 1));
    let explicit = u128::from(exponent != 0) << 63;
    // A carry out of the largest number gives infinity, whose fraction is 0 already.
    (sign | exponent << 64 | explicit | kept).to_le_bytes()
}
