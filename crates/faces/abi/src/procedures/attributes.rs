//! Section 7.7: attributes of communicators and datatypes.

use crate::args::{Flag, Out};
use crate::call_guard::Running;
use crate::callback::{
    self, CommCopyAttr, CommDeleteAttr, CopyAttr, DeleteAttr, TypeCopyAttr, TypeDeleteAttr,
};
use crate::constants::{MPI_COMM_DUP_FN, MPI_KEYVAL_INVALID, MPI_SUCCESS};
use crate::error::{Done, Error};
use crate::handle::{Comm, Datatype};
use crate::state::LIBRARY;
use mpi::attributes::{Copied, DeleteFunction, Holder, Keyval, predefined};
use mpi::handle::ObjectKind;
use std::ffi::{c_int, c_void};
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// `MPI_Comm_create_keyval` (MPI 5.0, chapter 7).
pub fn comm_create_keyval(
    call: &Running,
    copy: CommCopyAttr,
    delete: CommDeleteAttr,
    keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Done {
    create_keyval(call, ObjectKind::Comm, copy, delete, keyval, extra_state)
}

/// `MPI_Type_create_keyval` (MPI 5.0, chapter 7).
pub fn type_create_keyval(
    call: &Running,
    copy: TypeCopyAttr,
    delete: TypeDeleteAttr,
    keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Done {
    create_keyval(
        call,
        ObjectKind::Datatype,
        copy,
        delete,
        keyval,
        extra_state,
    )
}

/// `MPI_Comm_free_keyval` (MPI 5.0, chapter 7).
pub fn comm_free_keyval(call: &Running, keyval: &mut c_int) -> Done {
    free_keyval(call, ObjectKind::Comm, keyval)
}

/// `MPI_Type_free_keyval` (MPI 5.0, chapter 7).
pub fn type_free_keyval(call: &Running, keyval: &mut c_int) -> Done {
    free_keyval(call, ObjectKind::Datatype, keyval)
}

/// `MPI_Comm_set_attr` (MPI 5.0, chapter 7).
pub fn comm_set_attr(call: &Running, comm: Comm, keyval: c_int, value: *mut c_void) -> Done {
    call.rank.set_attribute(
        Holder::Comm(comm.id()),
        keyval as u32,
        value.expose_provenance(),
    )
}

/// `MPI_Type_set_attr` (MPI 5.0, chapter 7).
pub fn type_set_attr(
    call: &Running,
    datatype: Datatype,
    keyval: c_int,
    value: *mut c_void,
) -> Done {
    call.rank.set_attribute(
        Holder::Datatype(datatype.id()),
        keyval as u32,
        value.expose_provenance(),
    )
}

/// `MPI_Comm_get_attr` (MPI 5.0, chapter 7).
pub fn comm_get_attr(
    call: &Running,
    comm: Comm,
    keyval: c_int,
    value: Out<*mut c_void>,
    flag: Out<Flag>,
) -> Done {
    if let Some(place) = predefined_place(call, keyval as u32) {
        call.rank.objects().comms().get(comm.id())?;
        value.set(place.as_ptr().cast::<c_void>());
        flag.set(true);
        return Ok(());
    }
    get_attr(call, Holder::Comm(comm.id()), keyval, value, flag)
}

/// `MPI_Type_get_attr` (MPI 5.0, chapter 7).
pub fn type_get_attr(
    call: &Running,
    datatype: Datatype,
    keyval: c_int,
    value: Out<*mut c_void>,
    flag: Out<Flag>,
) -> Done {
    get_attr(call, Holder::Datatype(datatype.id()), keyval, value, flag)
}

/// `MPI_Comm_delete_attr` (MPI 5.0, chapter 7).
pub fn comm_delete_attr(call: &Running, comm: Comm, keyval: c_int) -> Done {
    call.rank
        .delete_attribute(Holder::Comm(comm.id()), keyval as u32)
}

/// `MPI_Type_delete_attr` (MPI 5.0, chapter 7).
pub fn type_delete_attr(call: &Running, datatype: Datatype, keyval: c_int) -> Done {
    call.rank
        .delete_attribute(Holder::Datatype(datatype.id()), keyval as u32)
}

pub(super) fn create_keyval<H: From<u32> + 'static>(
    call: &Running,
    kind: ObjectKind,
    copy: CopyAttr<H>,
    delete: DeleteAttr<H>,
    keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Done {
    let extra_state = extra_state.expose_provenance();
    let keyval_object = Keyval {
        kind,
        copied: copied(copy, extra_state),
        delete: deleted(delete, extra_state),
    };
    let key = call.rank.objects().keyvals_mut().create(keyval_object)?;
    keyval.set(key as c_int);
    Ok(())
}

fn copied<H: From<u32> + 'static>(copy: CopyAttr<H>, extra_state: usize) -> Copied {
    let Some(copy) = copy else {
        return Copied::Never;
    };
    // The predefined copy functions have the same number for all classes of objects.
    if copy as usize == MPI_COMM_DUP_FN {
        return Copied::AsItIs;
    }
    Copied::By(Arc::new(move |old, key, value| {
        let mut new: *mut c_void = std::ptr::null_mut();
        let mut flag: c_int = 0;
        // SAFETY: the user's function, called with the arguments of MPI 5.0 §7.7.2: it writes a
        // pointer and an int.
        let code = callback::run(|| unsafe {
            copy(
                old.into(),
                key as c_int,
                with_exposed_provenance_mut(extra_state),
                with_exposed_provenance_mut(value),
                (&raw mut new).cast(),
                &raw mut flag,
            )
        });
        succeeded("copy", key, code)?;
        Ok((flag != 0).then(|| new.expose_provenance()))
    }))
}

fn deleted<H: From<u32> + 'static>(
    delete: DeleteAttr<H>,
    extra_state: usize,
) -> Option<DeleteFunction> {
    let delete = delete?;
    Some(Arc::new(move |object, key, value| {
        // SAFETY: the user's function, called with the arguments of MPI 5.0 §7.7.2.
        let code = callback::run(|| unsafe {
            delete(
                object.into(),
                key as c_int,
                with_exposed_provenance_mut(value),
                with_exposed_provenance_mut(extra_state),
            )
        });
        succeeded("delete", key, code)
    }))
}

/// Makes the error code of a user's function the error code of the call.
fn succeeded(what: &str, key: u32, code: c_int) -> Done {
    if code == MPI_SUCCESS {
        return Ok(());
    }
    let detail = format!("the {what} function of attribute key {key} gave the error code {code}");
    Err(Error::new(code, detail))
}

pub(super) fn free_keyval(call: &Running, kind: ObjectKind, keyval: &mut c_int) -> Done {
    call.rank
        .objects()
        .keyvals_mut()
        .free(kind, *keyval as u32)?;
    *keyval = MPI_KEYVAL_INVALID;
    Ok(())
}

pub(super) fn get_attr(
    call: &Running,
    holder: Holder,
    keyval: c_int,
    value: Out<*mut c_void>,
    flag: Out<Flag>,
) -> Done {
    let found = call.rank.objects().attribute(holder, keyval as u32)?;
    flag.set(found.is_some());
    if let Some(found) = found {
        value.set(with_exposed_provenance_mut::<c_void>(found));
    }
    Ok(())
}

/// The variable with a predefined attribute's value. C gets a pointer to it, valid until MPI ends.
/// `None`: there is no such attribute.
fn predefined_place(call: &Running, key: u32) -> Option<&'static AtomicI32> {
    const COUNT: usize = (predefined::UNIVERSE_SIZE - predefined::TAG_UB + 1) as usize;
    static VALUES: [AtomicI32; COUNT] = [const { AtomicI32::new(0) }; COUNT];
    let value = match key {
        predefined::LASTUSEDCODE => LIBRARY.codes().last_used(),
        _ => call.rank.predefined_attribute(key)?,
    };
    let place = &VALUES[(key - predefined::TAG_UB) as usize];
    place.store(value, Ordering::Relaxed);
    Some(place)
}
