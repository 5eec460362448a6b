//! Bounds, sizes, envelopes and errors that the standard or C states outright.

use datatype::{
    Buffer, Combiner, Dimension, Distribution, Envelope, Error, Kind, Order, Predefined, Type,
    UNDEFINED,
};

const INT: Type = Type::Predefined(Predefined::INT);
const DOUBLE: Type = Type::Predefined(Predefined::DOUBLE);
const CHAR: Type = Type::Predefined(Predefined::CHAR);

fn bounds(ty: &Type) -> (isize, isize, isize, isize) {
    (ty.lb(), ty.extent(), ty.true_lb(), ty.true_extent())
}

/// MPI 5.0, example 5.1: {(double, 0), (char, 8)} has extent 16.
#[test]
fn a_structure_is_padded() {
    let ty = Type::struct_(&[1, 1], &[0, 8], &[DOUBLE, CHAR]).unwrap();
    assert_eq!((ty.size(), bounds(&ty)), (9, (0, 16, 0, 9)));
    let shifted = Type::struct_(&[1, 1], &[-3, 5], &[DOUBLE, CHAR]).unwrap();
    assert_eq!(bounds(&shifted), (-3, 16, -3, 9));
    // An empty block does not align.
    let chars = Type::struct_(&[3, 0], &[0, 8], &[CHAR, DOUBLE]).unwrap();
    assert_eq!(bounds(&chars), (0, 3, 0, 3));
    // The alignment within a derived type has an effect; a resized type within prevents padding.
    let nested = Type::struct_(&[1, 1], &[0, 16], &[ty, CHAR]).unwrap();
    assert_eq!(bounds(&nested), (0, 24, 0, 17));
    let resized = Type::resized(0, 9, &DOUBLE).unwrap();
    let by_hand = Type::struct_(&[1, 1], &[0, 20], &[resized, CHAR]).unwrap();
    assert_eq!(bounds(&by_hand), (0, 9, 0, 21));
}

#[test]
fn a_structure_of_mixed_basics_has_the_extent_of_c() {
    #[repr(C)]
    struct Particle {
        class: i8,
        position: [f64; 3],
        label: i16,
    }
    let at = [
        0,
        std::mem::offset_of!(Particle, position) as isize,
        std::mem::offset_of!(Particle, label) as isize,
    ];
    let ty = Type::struct_(&[1, 3, 1], &at, &[CHAR, DOUBLE, Predefined::SHORT.into()]).unwrap();
    assert_eq!(ty.extent() as usize, size_of::<Particle>());
    let mut particles = [const {
        Particle {
            class: 1,
            position: [2.0, 3.0, 4.0],
            label: 5,
        }
    }; 2];
    // SAFETY: the array outlives the buffer.
    let buffer = unsafe { Buffer::new((&raw mut particles).cast(), 2, &ty) };
    let mut packed = [0; 54];
    assert_eq!(buffer.pack(0, &mut packed), 54);
    assert_eq!(packed[27], 1);
    assert_eq!(packed[1..9], 2f64.to_ne_bytes());
    assert_eq!(packed[52..], 5i16.to_ne_bytes());
    assert_eq!(
        (
            particles[0].class,
            particles[1].label,
            particles[1].position[2]
        ),
        (1, 5, 4.0)
    );
}

#[test]
fn bounds_of_vectors_and_resized_types() {
    assert_eq!(
        bounds(&Type::vector(3, 2, 4, &DOUBLE).unwrap()),
        (0, 80, 0, 80)
    );
    assert_eq!(
        bounds(&Type::vector(3, 1, -2, &DOUBLE).unwrap()),
        (-32, 40, -32, 40)
    );
    let column = Type::resized(0, 8, &Type::vector(3, 1, 5, &DOUBLE).unwrap()).unwrap();
    assert_eq!(bounds(&column), (0, 8, 0, 88));
    assert_eq!(
        bounds(&Type::contiguous(5, &column).unwrap()),
        (0, 40, 0, 120)
    );
    assert_eq!(
        bounds(&Type::resized(-4, 20, &INT).unwrap()),
        (-4, 20, 0, 4)
    );
    let negative = Type::resized(8, -4, &INT).unwrap();
    assert_eq!(
        bounds(&Type::contiguous(3, &negative).unwrap()),
        (0, 4, -8, 12)
    );
}

#[test]
fn types_without_data() {
    for ty in [
        Type::contiguous(0, &INT),
        Type::vector(3, 0, i64::MAX, &INT),
        Type::indexed(&[0, 0], &[i64::MAX, i64::MIN], &INT),
        Type::indexed_block(4, &[], &INT),
        Type::struct_(&[], &[], &[]),
        Type::contiguous(1 << 60, &Type::contiguous(0, &DOUBLE).unwrap()),
    ] {
        let ty = ty.unwrap();
        assert_eq!(
            (ty.size(), bounds(&ty), ty.num_elements()),
            (0, (0, 0, 0, 0), 0)
        );
        // SAFETY: there is no byte to point at.
        let buffer = unsafe { Buffer::new(std::ptr::null_mut(), 7, &ty) };
        assert_eq!((buffer.len(), buffer.pack(0, &mut [1])), (0, 0));
    }
    let marked = Type::resized(-2, 9, &Type::contiguous(0, &INT).unwrap()).unwrap();
    assert_eq!((marked.size(), bounds(&marked)), (0, (-2, 9, 0, 0)));
    let three = Type::contiguous(3, &marked).unwrap();
    assert_eq!((three.size(), bounds(&three)), (0, (-2, 27, 0, 0)));
    let beside = Type::struct_(&[1, 1], &[0, 100], &[INT, marked]).unwrap();
    assert_eq!((beside.size(), bounds(&beside)), (4, (98, 9, 0, 4)));
}

#[test]
fn predefined_pairs_as_types() {
    let short_int = Type::from(Predefined::SHORT_INT);
    assert_eq!(
        (short_int.size(), bounds(&short_int), short_int.is_dense()),
        (6, (0, 8, 0, 8), false)
    );
    let double_int = Type::from(Predefined::DOUBLE_INT);
    assert_eq!(
        (
            double_int.size(),
            bounds(&double_int),
            double_int.is_dense()
        ),
        (12, (0, 16, 0, 12), false)
    );
    assert!(Type::from(Predefined::TWO_INT).is_dense());
    assert_eq!(double_int.elements_in(12 + 8), 3);
    assert_eq!(double_int.elements_in(12 + 7), 2);
}

/// One element whose bytes are consecutive is dense wherever it lies; one with gaps is not.
#[test]
fn single_runs_are_dense_buffers() {
    let mut memory = [0u8; 64];
    let base = memory.as_mut_ptr();
    let shifted = Type::hindexed(&[2], &[8], &INT).unwrap();
    // SAFETY: the array covers every element and outlives the buffers.
    unsafe {
        assert_eq!(
            Buffer::new(base, 1, &shifted).as_dense(),
            Some((base.addr() + 8, 8))
        );
        assert_eq!(
            Buffer::new(base, 3, &shifted).as_dense(),
            Some((base.addr() + 8, 24))
        );
        assert_eq!(
            Buffer::new(base, 1, &Predefined::DOUBLE_INT.into()).as_dense(),
            Some((base.addr(), 12))
        );
        assert_eq!(
            Buffer::new(base, 2, &Predefined::DOUBLE_INT.into()).as_dense(),
            None
        );
        assert_eq!(
            Buffer::new(base, 2, &Predefined::TWO_INT.into()).as_dense(),
            Some((base.addr(), 16))
        );
    }
}

/// MPI_BOTTOM: a null base, and absolute addresses in the type.
#[test]
fn bottom() {
    let mut values = [1i32, 2, 3];
    let mut far = [4.0f64];
    let at = [
        values.as_mut_ptr().expose_provenance(),
        far.as_mut_ptr().expose_provenance(),
    ]
    .map(|at| at as isize);
    let ty = Type::struct_(&[3, 1], &at, &[INT, DOUBLE]).unwrap();
    // SAFETY: both arrays outlive the buffer.
    let buffer = unsafe { Buffer::new(std::ptr::null_mut(), 1, &ty) };
    let mut out = [0; 20];
    assert_eq!(buffer.pack(0, &mut out), 20);
    assert_eq!(out[8..12], 3i32.to_ne_bytes());
    assert_eq!(out[12..], 4f64.to_ne_bytes());
}

/// Ten million blocks cost nothing until they are touched, and any of them is reached at once.
#[test]
fn huge_counts_are_cheap() {
    let mut sum = Type::from(Predefined::INT);
    for _ in 0..3 {
        sum = Type::vector(1 << 18, 1, 2, &sum).unwrap();
    }
    assert_eq!(sum.size(), 1 << 56);
    // SAFETY: `segments` reads no memory.
    let buffer = unsafe { Buffer::new(std::ptr::without_provenance_mut(1 << 12), 1, &sum) };
    let last = (1 << 56) - 4;
    let end = 4 * ((1isize << 19) - 1).pow(3);
    assert_eq!(sum.extent(), end);
    assert_eq!(
        buffer.segments(last, 9),
        [((1 << 12) + end as usize - 4, 4)]
    );
}

fn envelope(combiner: Combiner, [integers, addresses, counts, types]: [usize; 4]) -> Envelope {
    Envelope {
        combiner,
        integers,
        addresses,
        counts,
        types,
    }
}

// Over 80 lines: one case for each constructor.
#[test]
fn contents_are_the_arguments() {
    use Combiner::*;
    type Call = fn() -> datatype::Result<Type>;
    /// Integers and addresses of the small form, integers and counts of the large one.
    type Arguments = (
        &'static [i32],
        &'static [isize],
        &'static [i32],
        &'static [i64],
    );
    let calls: &[(Call, Combiner, Arguments)] = &[
        (|| Type::dup(&INT), Dup, (&[], &[], &[], &[])),
        (
            || Type::contiguous(3, &INT),
            Contiguous,
            (&[3], &[], &[], &[3]),
        ),
        (
            || Type::vector(2, 3, -4, &INT),
            Vector,
            (&[2, 3, -4], &[], &[], &[2, 3, -4]),
        ),
        (
            || Type::hvector(2, 3, -40, &INT),
            Hvector,
            (&[2, 3], &[-40], &[], &[2, 3, -40]),
        ),
        (
            || Type::indexed(&[1, 0], &[5, 6], &INT),
            Indexed,
            (&[2, 1, 0, 5, 6], &[], &[], &[2, 1, 0, 5, 6]),
        ),
        (
            || Type::hindexed(&[1, 0], &[5, 6], &INT),
            Hindexed,
            (&[2, 1, 0], &[5, 6], &[], &[2, 1, 0, 5, 6]),
        ),
        (
            || Type::indexed_block(7, &[5, 9], &INT),
            IndexedBlock,
            (&[2, 7, 5, 9], &[], &[], &[2, 7, 5, 9]),
        ),
        (
            || Type::hindexed_block(7, &[5, 90], &INT),
            HindexedBlock,
            (&[2, 7], &[5, 90], &[], &[2, 7, 5, 90]),
        ),
        (
            || Type::struct_(&[1], &[5], &[INT]),
            Struct,
            (&[1, 1], &[5], &[], &[1, 1, 5]),
        ),
        (
            || Type::subarray(&[4, 5], &[2, 3], &[1, 0], Order::Fortran, &INT),
            Subarray,
            (
                &[2, 4, 5, 2, 3, 1, 0, 15],
                &[],
                &[2, 15],
                &[4, 5, 2, 3, 1, 0],
            ),
        ),
        (
            || Type::darray(6, 4, &GRID, Order::C, &INT),
            Darray,
            (
                &[6, 4, 2, 10, 11, 17, 18, 19, 5, 2, 3, 12],
                &[],
                &[6, 4, 2, 17, 18, 19, 5, 2, 3, 12],
                &[10, 11],
            ),
        ),
        (
            || Type::resized(-8, 80, &INT),
            Resized,
            (&[], &[-8, 80], &[], &[-8, 80]),
        ),
    ];
    for (call, combiner, (integers, addresses, large_integers, counts)) in calls {
        let ty = call().unwrap();
        let contents = ty.contents().unwrap();
        assert_eq!(
            (&contents.integers[..], &contents.addresses[..]),
            (*integers, *addresses),
            "{combiner:?}"
        );
        assert!(
            contents.counts.is_empty()
                && matches!(contents.types[..], [Type::Predefined(Predefined::INT)]),
            "{combiner:?}"
        );
        assert_eq!(
            ty.envelope(),
            envelope(*combiner, [integers.len(), addresses.len(), 0, 1])
        );

        let large = call().unwrap().into_large();
        let contents = large.contents().unwrap();
        assert_eq!(
            (&contents.integers[..], &contents.counts[..]),
            (*large_integers, *counts),
            "{combiner:?}"
        );
        assert!(contents.addresses.is_empty(), "{combiner:?}");
        assert_eq!(
            large.envelope(),
            envelope(*combiner, [large_integers.len(), 0, counts.len(), 1])
        );
    }
    assert_eq!(INT.envelope(), envelope(Named, [0; 4]));
    assert!(INT.contents().is_none());
    // Only the large-count form reports a value beyond an int.
    let wide = Type::contiguous(1 << 40, &CHAR).unwrap();
    assert_eq!(wide.contents().unwrap().counts, [1 << 40]);
}

const GRID: [Dimension; 2] = [
    Dimension {
        gsize: 10,
        distribution: Distribution::Block(None),
        psize: 2,
    },
    Dimension {
        gsize: 11,
        distribution: Distribution::Cyclic(Some(5)),
        psize: 3,
    },
];

#[test]
fn bad_arguments_of_distributed_arrays_are_named() {
    let told = |size, rank, gsize, distribution, psize| {
        let dim = Dimension {
            gsize,
            distribution,
            psize,
        };
        let made = Type::darray(size, rank, &[GRID[1], dim], Order::C, &INT);
        made.unwrap_err().to_string()
    };
    let (none, block) = (
        Distribution::None { argument: 0 },
        Distribution::Block(None),
    );
    assert_eq!(told(0, 0, 8, block, 2), "size is 0; valid: 1 or more");
    assert_eq!(told(6, 6, 8, block, 2), "rank is 6; valid: 0 to 5");
    assert_eq!(told(6, -1, 8, block, 2), "rank is -1; valid: 0 to 5");
    assert_eq!(
        told(7, 0, 8, block, 2),
        "size is 7; valid: 6, the product of array_of_psizes"
    );
    assert_eq!(
        told(6, 0, 0, block, 2),
        "array_of_gsizes[1] is 0; valid: 1 or more"
    );
    assert_eq!(
        told(6, 0, 8, block, 0),
        "array_of_psizes[1] is 0; valid: 1 to 6"
    );
    assert_eq!(told(6, 0, 8, none, 2), "array_of_psizes[1] is 2; valid: 1");
    assert_eq!(
        told(6, 0, 9, Distribution::Block(Some(4)), 2),
        "array_of_dargs[1] is 4; valid: 5 or more"
    );
    assert_eq!(
        told(6, 0, 9, Distribution::Cyclic(Some(0)), 2),
        "array_of_dargs[1] is 0; valid: 1 or more"
    );
    let empty = Type::darray(1, 0, &[], Order::C, &INT).unwrap_err();
    assert_eq!(empty.to_string(), "ndims is 0; valid: 1 or more");
}

#[test]
fn huge_distributed_arrays_take_no_memory() {
    let dim = |gsize, length, psize| Dimension {
        gsize,
        distribution: Distribution::Cyclic(length),
        psize,
    };
    // 2^58 blocks, and a short one, of each dimension but the first.
    let line = [dim((1 << 59) + 1, None, 2)];
    let ty = Type::darray(2, 0, &line, Order::C, &CHAR).unwrap();
    assert_eq!((ty.size(), ty.extent()), ((1 << 58) + 1, (1 << 59) + 1));
    let cube = [dim((1 << 20) + 1, Some(3), 2); 3];
    let ty = Type::darray(8, 7, &cube, Order::Fortran, &CHAR).unwrap();
    assert_eq!(ty.extent(), ((1 << 20) + 1isize).pow(3));
    // A process beyond the end of each dimension holds nothing.
    let sparse = [dim(3, Some(2), 1 << 15); 2];
    let ty = Type::darray(1 << 30, (1 << 30) - 1, &sparse, Order::C, &INT).unwrap();
    assert_eq!((ty.size(), ty.lb(), ty.extent()), (0, 0, 36));
}

#[test]
fn kinds_have_the_smallest_type_that_holds_them() {
    use Kind::*;
    let basic = |kind| Type::f90(kind).map(|ty| ty.predefined().unwrap());
    for (p, r, wanted) in [
        (0, 0, Predefined::REAL4),
        (6, 37, Predefined::REAL4),
        (7, 37, Predefined::REAL8),
        (6, 38, Predefined::REAL8),
        (15, 307, Predefined::REAL8),
        (15, 308, Predefined::LONG_DOUBLE),
        (16, 4931, Predefined::LONG_DOUBLE),
        (UNDEFINED, 37, Predefined::REAL4),
        (15, UNDEFINED, Predefined::REAL8),
    ] {
        assert_eq!(basic(Real { p, r }).unwrap(), wanted, "{p} {r}");
        let complex = basic(Complex { p, r }).unwrap();
        assert_eq!(complex.size().unwrap(), 2 * wanted.size().unwrap());
        assert_eq!(complex.class(), datatype::Class::Complex);
    }
    for (r, bytes) in [
        (0, 1),
        (2, 1),
        (3, 2),
        (4, 2),
        (9, 4),
        (10, 8),
        (18, 8),
        (38, 16),
    ] {
        assert_eq!(basic(Integer { r }).unwrap().size(), Some(bytes), "{r}");
    }
    for kind in [
        Real { p: 34, r: 1 },
        Real { p: 1, r: 4932 },
        Real { p: -1, r: 1 },
        Complex {
            p: UNDEFINED,
            r: UNDEFINED,
        },
        Integer { r: 39 },
        Integer { r: UNDEFINED },
    ] {
        assert_eq!(basic(kind), Err(Error::NoKind { kind }));
    }
    assert_eq!(
        Error::NoKind {
            kind: Integer { r: 39 }
        }
        .to_string(),
        "no datatype for integers has r = 39: valid: r from 0 to 38"
    );
    let ty = Type::f90(Real {
        p: 10,
        r: UNDEFINED,
    })
    .unwrap();
    assert_eq!(ty.envelope(), envelope(Combiner::F90Real, [2, 0, 0, 0]));
    assert_eq!(ty.contents().unwrap().integers, [10, UNDEFINED]);
    assert!(ty.is_dense() && ty.size() == 8 && ty.extent() == 8);
}

#[test]
fn contents_hold_the_types_themselves() {
    let vector = Type::vector(2, 1, 2, &INT).unwrap();
    let ty = Type::struct_(&[1, 1], &[0, 64], &[vector.clone(), DOUBLE]).unwrap();
    let contents = ty.contents().unwrap();
    let (Type::Derived(inside), Type::Derived(made)) = (&contents.types[0], &vector) else {
        panic!()
    };
    assert!(std::sync::Arc::ptr_eq(inside, made));
    assert_eq!(contents.types[1].predefined(), Some(Predefined::DOUBLE));
}

#[test]
fn bad_arguments_are_named() {
    let told = |result: datatype::Result<Type>| result.unwrap_err().to_string();
    assert_eq!(
        told(Type::contiguous(-1, &INT)),
        "count is -1; it must be 0 or more"
    );
    assert_eq!(
        told(Type::vector(1, -2, 1, &INT)),
        "blocklength[0] is -2; valid: 0 or more"
    );
    assert_eq!(
        told(Type::indexed(&[1, -3], &[0, 0], &INT)),
        "array_of_blocklengths[1] is -3; valid: 0 or more"
    );
    assert_eq!(
        told(Type::hindexed(&[1], &[0, 0], &INT)),
        "array_of_displacements has 2 entries; expected 1"
    );
    assert_eq!(
        told(Type::struct_(&[1], &[0], &[])),
        "array_of_types has 0 entries; expected 1"
    );
    let subarray = |size, subsize, start| {
        told(Type::subarray(
            &[9, size],
            &[1, subsize],
            &[0, start],
            Order::C,
            &INT,
        ))
    };
    assert_eq!(
        subarray(4, 5, 0),
        "array_of_subsizes[1] is 5; valid: 1 to 4"
    );
    assert_eq!(subarray(4, 3, 2), "array_of_starts[1] is 2; valid: 0 to 1");
    assert!(subarray(0, 1, 0).starts_with("array_of_sizes[1] is 0; valid: 1 to"));
    assert!(told(Type::subarray(&[], &[], &[], Order::C, &INT)).starts_with("ndims"));
    let unsupported = Type::contiguous(1, &Predefined::REAL16.into());
    assert_eq!(
        unsupported.unwrap_err(),
        Error::Unsupported(Predefined::REAL16)
    );
}

#[test]
fn overflow_is_an_error() {
    let overflows = [
        Type::contiguous(i64::MAX, &INT),
        Type::vector(2, 1, i64::MAX, &INT),
        Type::vector(i64::MAX, 1, i64::MAX, &CHAR),
        Type::hvector(3, 1, isize::MAX, &CHAR),
        Type::hvector(1 << 62, 4, 0, &CHAR),
        Type::indexed(&[1], &[i64::MAX], &INT),
        Type::indexed(&[i64::MAX, i64::MAX], &[0, 0], &CHAR),
        Type::hindexed(&[1], &[isize::MAX], &CHAR),
        Type::hindexed(&[1, 1], &[isize::MAX - 8, isize::MIN], &CHAR),
        Type::struct_(&[1, 1], &[isize::MAX - 1, 0], &[CHAR, DOUBLE]),
        Type::resized(isize::MAX, 1, &CHAR),
        Type::subarray(&[1 << 40, 1 << 40], &[1, 1], &[0, 0], Order::C, &CHAR),
    ];
    for (i, result) in overflows.into_iter().enumerate() {
        assert!(
            matches!(result, Err(Error::TooLarge { .. })),
            "{i}: {result:?}"
        );
    }
}

#[test]
fn deep_nesting_ends_in_an_error() {
    let mut ty = INT;
    let error = loop {
        match Type::dup(&ty) {
            Ok(next) => ty = next,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Nesting { .. }));
}

/// A walk that visited each element would not end.
#[test]
fn elements_without_gaps_are_one_run_in_one_step() {
    const COUNT: usize = 1 << 56;
    assert_eq!(CHAR.runs(COUNT, 2), [(0, COUNT)]);
    let pair = Type::contiguous(2, &INT).unwrap();
    assert_eq!(pair.runs(COUNT / 8, 2), [(0, COUNT)]);
    // With gaps, the walk ends when the list is full.
    let spread = Type::resized(0, 16, &DOUBLE).unwrap();
    assert_eq!(spread.runs(COUNT / 16, 2), [(0, 8), (16, 8)]);
}
