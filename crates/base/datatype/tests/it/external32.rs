//! The portable representation: known bytes, known sizes, and the conversion back.

use datatype::{Buffer, Error, Predefined, Type, external32};

fn pack(ty: &Type, native: &[u8]) -> datatype::Result<Vec<u8>> {
    let mut native = native.to_vec();
    let count = native.len() / ty.size();
    let mut out = vec![0x99; external32::size(ty, count)?];
    // SAFETY: the vector outlives the buffer; the types here have no gaps.
    let buffer = unsafe { Buffer::dense(native.as_mut_ptr(), native.len()) };
    assert_eq!(external32::pack(ty, &buffer, &mut out)?, out.len());
    Ok(out)
}

fn unpack(ty: &Type, external: &[u8]) -> Vec<u8> {
    let count = external.len() / external32::size(ty, 1).unwrap();
    let mut native = vec![0x99; count * ty.size()];
    // SAFETY: the vector outlives the buffer; the types here have no gaps.
    let buffer = unsafe { Buffer::dense(native.as_mut_ptr(), native.len()) };
    assert_eq!(
        external32::unpack(ty, external, &buffer),
        Ok(external.len())
    );
    native
}

/// MPI 5.0, table 14.2 and those after it.
#[test]
fn sizes() {
    for ty in Predefined::all() {
        let Some(native) = ty.size() else {
            assert_eq!(external32::size(&ty.into(), 1), Err(Error::Unsupported(ty)));
            continue;
        };
        let expected = match ty.name() {
            "MPI_LONG" | "MPI_UNSIGNED_LONG" => 4,
            "MPI_WCHAR" => 2,
            "MPI_LONG_INT" => 8,
            _ => native,
        };
        assert_eq!(external32::size(&ty.into(), 3), Ok(3 * expected), "{ty:?}");
    }
}

#[test]
fn known_bytes() {
    let check = |ty: Predefined, native: &[u8], external: &[u8]| {
        let ty = Type::from(ty);
        assert_eq!(pack(&ty, native).unwrap(), external, "{ty:?}");
        assert_eq!(unpack(&ty, external), native, "{ty:?}");
    };
    check(
        Predefined::INT,
        &(-2i32).to_le_bytes(),
        &[0xff, 0xff, 0xff, 0xfe],
    );
    check(
        Predefined::LONG,
        &(-2i64).to_le_bytes(),
        &[0xff, 0xff, 0xff, 0xfe],
    );
    check(
        Predefined::LONG,
        &i64::from(i32::MIN).to_le_bytes(),
        &[0x80, 0, 0, 0],
    );
    check(
        Predefined::UNSIGNED_LONG,
        &0xffff_fffeu64.to_le_bytes(),
        &[0xff, 0xff, 0xff, 0xfe],
    );
    check(Predefined::WCHAR, &0xfeffu32.to_le_bytes(), &[0xfe, 0xff]);
    check(
        Predefined::DOUBLE,
        &1.0f64.to_le_bytes(),
        &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0],
    );
    check(
        Predefined::C_FLOAT_COMPLEX,
        &[1.0f32.to_le_bytes(), 2.0f32.to_le_bytes()].concat(),
        &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0],
    );
    check(
        Predefined::SHORT_INT,
        &[1, 2, 3, 4, 5, 6],
        &[2, 1, 6, 5, 4, 3],
    );
    check(
        Predefined::LONG_INT,
        &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0],
        &[0, 0, 0, 1, 0, 0, 0, 2],
    );
    check(Predefined::BYTE, &[7, 8], &[7, 8]);
}

#[test]
fn values_that_do_not_fit() {
    for (ty, native) in [
        (Predefined::LONG, (1i64 << 31).to_le_bytes().to_vec()),
        (
            Predefined::LONG,
            (i64::from(i32::MIN) - 1).to_le_bytes().to_vec(),
        ),
        (
            Predefined::UNSIGNED_LONG,
            (1u64 << 32).to_le_bytes().to_vec(),
        ),
        (Predefined::WCHAR, 0x1f600u32.to_le_bytes().to_vec()),
    ] {
        assert_eq!(pack(&ty.into(), &native), Err(Error::Conversion { ty }));
    }
}

#[test]
fn too_little_room() {
    let ty = Type::from(Predefined::INT);
    let mut native = [0u8; 8];
    // SAFETY: the array outlives the buffer.
    let buffer = unsafe { Buffer::dense(native.as_mut_ptr(), 8) };
    let error = Err(Error::Room {
        needed: 8,
        given: 7,
    });
    assert_eq!(external32::pack(&ty, &buffer, &mut [0; 7]), error);
    assert_eq!(external32::unpack(&ty, &[1; 7], &buffer), error);
    assert_eq!(external32::pack(&ty, &buffer, &mut [0; 9]), Ok(8));
}

/// Members are converted in the order of the typemap, and gaps stay unchanged.
#[test]
fn derived_types() {
    let inside = Type::struct_(
        &[1, 2],
        &[0, 8],
        &[Predefined::DOUBLE.into(), Predefined::LONG.into()],
    )
    .unwrap();
    let ty = Type::vector(2, 1, 2, &inside).unwrap();
    let mut memory: Vec<u8> = vec![0xaa; ty.span(2).unwrap().1];
    // SAFETY: the vector has room for two elements and outlives the buffer.
    let buffer = unsafe { Buffer::new(memory.as_mut_ptr(), 2, &ty) };
    let element = [
        5.0f64.to_be_bytes().to_vec(),
        (-7i32).to_be_bytes().to_vec(),
        9i32.to_be_bytes().to_vec(),
    ]
    .concat();
    let external = element.repeat(4);
    assert_eq!(external32::size(&ty, 2), Ok(external.len()));
    assert_eq!(
        external32::unpack(&ty, &external, &buffer),
        Ok(external.len())
    );
    let mut out = vec![0; external.len()];
    assert_eq!(external32::pack(&ty, &buffer, &mut out), Ok(external.len()));
    assert_eq!(out, external);
    assert_eq!(memory[8..16], (-7i64).to_le_bytes());
    assert!(memory[24..48].iter().all(|byte| *byte == 0xaa));
}

/// The two formats of long double, built from sign, exponent and fraction.
#[cfg(target_arch = "x86_64")]
mod long_double {
    use super::*;

    fn extended(negative: bool, exponent: u16, significand: u64) -> Vec<u8> {
        let mut bytes = u128::from(significand).to_le_bytes();
        bytes[8..10].copy_from_slice(&(exponent | u16::from(negative) << 15).to_le_bytes());
        bytes.to_vec()
    }

    fn quad(negative: bool, exponent: u16, fraction: u128) -> Vec<u8> {
        (u128::from(negative) << 127 | u128::from(exponent) << 112 | fraction)
            .to_be_bytes()
            .to_vec()
    }

    const TY: Type = Type::Predefined(Predefined::LONG_DOUBLE);
    const ONE: u64 = 1 << 63;

    #[test]
    fn all_bits_survive() {
        for (native, external) in [
            (extended(false, 0, 0), quad(false, 0, 0)),
            (extended(true, 0, 0), quad(true, 0, 0)),
            (extended(false, 16383, ONE), quad(false, 16383, 0)),
            (
                extended(true, 16384, ONE | 1 << 62),
                quad(true, 16384, 1 << 111),
            ),
            (extended(false, 16383, ONE | 1), quad(false, 16383, 1 << 49)),
            (
                extended(false, 0x7ffe, u64::MAX),
                quad(false, 0x7ffe, ((1 << 63) - 1) << 49),
            ),
            (extended(false, 0, 5), quad(false, 0, 5 << 49)),
            (extended(false, 0x7fff, ONE), quad(false, 0x7fff, 0)),
            (
                extended(true, 0x7fff, ONE | 3 << 61),
                quad(true, 0x7fff, 3 << 110),
            ),
        ] {
            assert_eq!(pack(&TY, &native).unwrap(), external);
            assert_eq!(unpack(&TY, &external), native);
        }
    }

    #[test]
    fn finer_values_round_to_even() {
        let half = 1 << 48;
        for (fraction, significand) in [
            (half, ONE),
            (half + 1, ONE | 1),
            (3 * half, ONE | 2),
            (3 * half - 1, ONE | 1),
            (half - 1, ONE),
        ] {
            assert_eq!(
                unpack(&TY, &quad(false, 16383, fraction)),
                extended(false, 16383, significand),
                "{fraction:#x}"
            );
        }
        let all = (1 << 112) - 1;
        assert_eq!(
            unpack(&TY, &quad(false, 16383, all)),
            extended(false, 16384, ONE)
        );
        assert_eq!(
            unpack(&TY, &quad(false, 0x7ffe, all)),
            extended(false, 0x7fff, ONE)
        );
        assert_eq!(unpack(&TY, &quad(false, 0, all)), extended(false, 1, ONE));
        // The smallest NaN must not become infinity.
        assert_eq!(
            unpack(&TY, &quad(false, 0x7fff, 1)),
            extended(false, 0x7fff, ONE | 1 << 62)
        );
        // A denormal with its leading bit set is what x87 reads as the smallest normal number.
        assert_eq!(
            pack(&TY, &extended(false, 0, ONE | 2)).unwrap(),
            quad(false, 1, 2 << 49)
        );
    }
}
