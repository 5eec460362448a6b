//! The argument lists of collective procedures, and calls with these argument lists.

use std::ffi::c_int;

use super::{AbiHandle, Address, INFO_NULL};
use crate::form::Form;

/// The type of an argument of a collective procedure, by its name in [`Arguments`].
macro_rules! argument {
    (send) => { *const u8 };
    (recv) => { *mut u8 };
    (count) => { c_int };
    (root) => { c_int };
    (datatype) => { AbiHandle };
    (op) => { AbiHandle };
    (send_counts) => { *const c_int };
    (recv_counts) => { *const c_int };
    (send_offsets) => { *const c_int };
    (recv_offsets) => { *const c_int };
    (send_addresses) => { *const isize };
    (recv_addresses) => { *const isize };
    (types) => { *const AbiHandle };
}

/// Makes [`Signature`] and its `call` from lists of arguments. In the standard these are followed
/// by the communicator, then by an info object if the form is persistent, and by a request if it is
/// not blocking.
macro_rules! signatures {
    ($($name:ident ( $($argument:ident),* );)*) => {
        /// The argument list that several collective procedures have in common.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Signature { $($name,)* }

        impl Signature {
            /// Calls the procedure at `address`.
            ///
            /// # Safety
            ///
            /// The procedure has this argument list and form, and the pointers in `with` are valid
            /// for it until the operation completes.
            #[inline]
            pub(super) unsafe fn call(
                self,
                address: Address,
                form: Form,
                with: &Arguments,
                request: &mut AbiHandle,
            ) -> c_int {
                match (self, form) { $(
                    (Signature::$name, Form::Blocking) => {
                        type Procedure =
                            unsafe extern "C" fn($(argument!($argument),)* AbiHandle) -> c_int;
                        // SAFETY: the caller promises this prototype and these pointers.
                        unsafe {
                            let procedure: Procedure = std::mem::transmute(address);
                            procedure($(with.$argument,)* with.comm)
                        }
                    }
                    (Signature::$name, Form::Nonblocking) => {
                        type Procedure = unsafe extern "C" fn(
                            $(argument!($argument),)* AbiHandle, *mut AbiHandle
                        ) -> c_int;
                        // SAFETY: the caller promises this prototype and these pointers.
                        unsafe {
                            let procedure: Procedure = std::mem::transmute(address);
                            procedure($(with.$argument,)* with.comm, request)
                        }
                    }
                    (Signature::$name, Form::Persistent) => {
                        type Procedure = unsafe extern "C" fn(
                            $(argument!($argument),)* AbiHandle, AbiHandle, *mut AbiHandle
                        ) -> c_int;
                        // SAFETY: the caller promises this prototype and these pointers.
                        unsafe {
                            let procedure: Procedure = std::mem::transmute(address);
                            procedure($(with.$argument,)* with.comm, INFO_NULL, request)
                        }
                    }
                )* }
            }
        }
    };
}

#[rustfmt::skip]
signatures! {
    Barrier();
    Bcast(recv, count, datatype, root);
    Reduce(send, recv, count, datatype, op, root);
    Allreduce(send, recv, count, datatype, op);
    ReduceScatter(send, recv, recv_counts, datatype, op);
    Gather(send, count, datatype, recv, count, datatype, root);
    Gatherv(send, count, datatype, recv, recv_counts, recv_offsets, datatype, root);
    Scatterv(send, send_counts, send_offsets, datatype, recv, count, datatype, root);
    Allgather(send, count, datatype, recv, count, datatype);
    Allgatherv(send, count, datatype, recv, recv_counts, recv_offsets, datatype);
    Alltoallv(send, send_counts, send_offsets, datatype, recv, recv_counts, recv_offsets, datatype);
    Alltoallw(send, send_counts, send_offsets, types, recv, recv_counts, recv_offsets, types);
    NeighborAlltoallw(send, send_counts, send_addresses, types, recv, recv_counts, recv_addresses, types);
}

/// The arguments of all collective procedures. Pointers point into the buffers and counts of a
/// [`CollectiveCall`](super::collective::CollectiveCall).
pub(super) struct Arguments {
    pub(super) send: *const u8,
    pub(super) recv: *mut u8,
    pub(super) count: c_int,
    pub(super) root: c_int,
    pub(super) datatype: AbiHandle,
    pub(super) op: AbiHandle,
    pub(super) comm: AbiHandle,
    pub(super) send_counts: *const c_int,
    pub(super) recv_counts: *const c_int,
    pub(super) send_offsets: *const c_int,
    pub(super) recv_offsets: *const c_int,
    pub(super) send_addresses: *const isize,
    pub(super) recv_addresses: *const isize,
    pub(super) types: *const AbiHandle,
}
