//! Tests with nonsensical arguments: each call returns an error or a usable object, and nothing
//! panics.

use crate::running::call;
use mpi_abi::constants::*;
use mpi_abi::entry::*;
use mpi_abi::handle::{Datatype, Request};
use mpi_abi::status::Status;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A source of random values, which a seed repeats.
struct Wild(u64);

impl Wild {
    /// The next number of splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn choice<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }

    fn int(&mut self) -> c_int {
        let any = self.next() as c_int;
        let small = 1 + any.rem_euclid(4);
        let extreme = self.choice(&[-1, 0, c_int::MIN, c_int::MAX, MPI_UNDEFINED, 1 << 16]);
        self.choice(&[
            small,
            small,
            small,
            small,
            small - 1,
            small - 1,
            any,
            extreme,
        ])
    }

    fn count(&mut self) -> i64 {
        let (int, any) = (self.int().into(), self.next() as i64);
        self.choice(&[int, int, any, i64::MIN, i64::MAX, 1 << 40])
    }
}

fn quietly(made: impl FnOnce() -> c_int) -> c_int {
    call(made).0
}

#[test]
fn distributed_arrays() {
    let mut wild = Wild(1);
    let mut made = 0;
    let large = {
        let mut new = MPI_DATATYPE_NULL;
        // SAFETY: the pointer is that of a handle.
        quietly(|| unsafe { MPI_Type_contiguous_c(1 << 40, MPI_INT, &mut new) });
        new
    };
    for _ in 0..20_000 {
        const MOST: usize = 4;
        let kinds = [
            MPI_DISTRIBUTE_NONE,
            MPI_DISTRIBUTE_BLOCK,
            MPI_DISTRIBUTE_CYCLIC,
        ];
        let mut ints = || -> [c_int; MOST] { std::array::from_fn(|_| wild.int()) };
        let (small, mut dargs, psizes) = (ints(), ints(), ints());
        let gsizes: [i64; MOST] = std::array::from_fn(|_| wild.count());
        let distribs: [c_int; MOST] = std::array::from_fn(|_| {
            let any = wild.int();
            wild.choice(&[kinds[0], kinds[1], kinds[2], kinds[1], kinds[2], any])
        });
        if wild.next().is_multiple_of(2) {
            dargs = [MPI_DISTRIBUTE_DFLT_DARG; MOST];
        }
        let ndims = wild.choice(&[-1, 0, 1, 1, 2, 3, 4]);
        let product = psizes[..ndims.max(0) as usize]
            .iter()
            .fold(1 as c_int, |product, psize| product.wrapping_mul(*psize));
        let (size, rank) = (wild.int(), wild.int());
        let size = wild.choice(&[size, product, product]);
        let order = wild.choice(&[MPI_ORDER_C, MPI_ORDER_FORTRAN, size]);
        let old = wild.choice(&[MPI_INT, MPI_SHORT_INT, large, MPI_DATATYPE_NULL, MPI_REAL16]);
        let is_large = wild.next().is_multiple_of(2);
        let (mut new, mut bytes) = (MPI_DATATYPE_NULL, -1);
        // SAFETY: the arrays have as many elements as the call may read.
        let code = quietly(|| unsafe {
            let [distribs, dargs, psizes] = [&distribs, &dargs, &psizes].map(|it| it.as_ptr());
            match is_large {
                true => MPI_Type_create_darray_c(
                    size,
                    rank,
                    ndims,
                    gsizes.as_ptr(),
                    distribs,
                    dargs,
                    psizes,
                    order,
                    old,
                    &mut new,
                ),
                false => MPI_Type_create_darray(
                    size,
                    rank,
                    ndims,
                    small.as_ptr(),
                    distribs,
                    dargs,
                    psizes,
                    order,
                    old,
                    &mut new,
                ),
            }
        });
        if code != MPI_SUCCESS {
            assert_eq!(new, MPI_DATATYPE_NULL);
            continue;
        }
        made += 1;
        // SAFETY: the pointers are those of variables.
        let code = quietly(|| unsafe {
            MPI_Type_size_c(new, &mut bytes);
            MPI_Type_free(&mut new)
        });
        assert!(code == MPI_SUCCESS && bytes >= 0);
    }
    assert!(made > 100, "{made}");
}

#[test]
fn kinds_of_fortran() {
    let mut wild = Wild(2);
    for _ in 0..5000 {
        let (p, r) = (wild.int(), wild.int());
        let mut new = [MPI_DATATYPE_NULL; 3];
        let [real, complex, integer] = &mut new;
        // SAFETY: the pointers are those of handles.
        let codes = unsafe {
            [
                quietly(|| MPI_Type_create_f90_real(p, r, real)),
                quietly(|| MPI_Type_create_f90_complex(p, r, complex)),
                quietly(|| MPI_Type_create_f90_integer(r, integer)),
            ]
        };
        for (code, new) in codes.into_iter().zip(new) {
            assert!(matches!(code, MPI_SUCCESS | MPI_ERR_ARG));
            assert_eq!(code == MPI_SUCCESS, new != MPI_DATATYPE_NULL);
        }
    }
}

static FREED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn query(_: *mut c_void, status: *mut Status) -> c_int {
    // SAFETY: the library passes a status.
    unsafe { (*status).source = c_int::MIN };
    c_int::MAX
}

unsafe extern "C" fn free(_: *mut c_void) -> c_int {
    FREED.fetch_add(1, Ordering::Relaxed);
    c_int::MIN
}

unsafe extern "C" fn cancel(_: *mut c_void, _: c_int) -> c_int {
    -1
}

/// Handles that are no requests, functions that return codes of no class, a null state.
#[test]
fn generalised_requests() {
    let mut wild = Wild(3);
    let mut started = 0;
    for _ in 0..3000 {
        let mut request = MPI_REQUEST_NULL;
        let (mut status, mut flag, mut index) = (Status::empty(), -1, -1);
        // SAFETY: the functions are those of a generalized request, the pointers those of
        // variables.
        unsafe {
            let code = quietly(|| {
                MPI_Grequest_start(
                    Some(query),
                    Some(free),
                    Some(cancel),
                    null_mut(),
                    &mut request,
                )
            });
            assert_eq!(code, MPI_SUCCESS);
            started += 1;
            let kept = request;
            let any = Request(wild.next() as usize);
            let wrong = wild.choice(&[MPI_REQUEST_NULL, any, Request(usize::MAX), Request(0x103)]);
            let code = quietly(|| MPI_Grequest_complete(wrong));
            assert_eq!(code, MPI_ERR_REQUEST);
            assert_eq!(quietly(|| MPI_Cancel(&mut request)), -1);
            match wild.next() % 4 {
                0 => {
                    assert_eq!(quietly(|| MPI_Grequest_complete(request)), MPI_SUCCESS);
                    quietly(|| MPI_Wait(&mut request, &mut status));
                    assert_eq!(status.source, c_int::MIN);
                }
                1 => {
                    assert_eq!(quietly(|| MPI_Grequest_complete(request)), MPI_SUCCESS);
                    let mut both = [request, MPI_REQUEST_NULL];
                    let code = quietly(|| MPI_Waitall(2, both.as_mut_ptr(), null_mut()));
                    assert_eq!((code, both[0]), (MPI_ERR_IN_STATUS, MPI_REQUEST_NULL));
                    request = both[0];
                }
                2 => {
                    quietly(|| MPI_Request_free(&mut request));
                    assert_eq!(quietly(|| MPI_Grequest_complete(kept)), c_int::MIN);
                }
                _ => {
                    assert_eq!(quietly(|| MPI_Grequest_complete(request)), MPI_SUCCESS);
                    assert_eq!(
                        quietly(|| MPI_Testany(1, &mut request, &mut index, &mut flag, null_mut())),
                        c_int::MIN
                    );
                    assert_eq!((index, flag), (0, 1));
                }
            }
            assert_eq!(request, MPI_REQUEST_NULL);
            assert_eq!(FREED.load(Ordering::Relaxed), started);
            let mut gone = kept;
            assert_eq!(quietly(|| MPI_Wait(&mut gone, null_mut())), MPI_ERR_REQUEST);
        }
    }
    // SAFETY: NULL is refused.
    let code = quietly(|| unsafe { MPI_Grequest_start(None, None, None, null_mut(), null_mut()) });
    assert_eq!(code, MPI_ERR_ARG);
    // SAFETY: NULL is refused.
    let code = quietly(|| unsafe {
        let none = null();
        let new: *mut Datatype = null_mut();
        MPI_Type_create_darray(1, 0, 1, none, none, none, none, MPI_ORDER_C, MPI_INT, new)
    });
    assert_eq!(code, MPI_ERR_ARG);
}
