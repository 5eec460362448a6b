//! Tests of the guard around every call, through the entry points, with a rank that returns every
//! error and records it.

use crate::running::{RANK, Raised, call};
use mpi_abi::call_guard;
use mpi_abi::constants::*;
use mpi_abi::entry::*;
use mpi_abi::error::Error;
use mpi_abi::handle::{Comm, Errhandler, File};
use mpi_abi::object::Object;
use mpi_abi::state::LIBRARY;
use mpi_abi::status::Status;
use std::ffi::c_int;
use std::ptr::{null, null_mut};

#[track_caller]
fn expect(run: impl FnOnce() -> c_int, class: c_int, object: Object, procedure: &str, text: &str) {
    let (code, raised) = call(run);
    assert_eq!(code, class);
    let expected = Raised {
        object,
        procedure: procedure.into(),
        text: text.into(),
    };
    assert_eq!(raised, [expected]);
}

#[test]
fn what_does_not_work_yet_is_raised_on_the_object_of_the_call() {
    let text = "this procedure is not supported yet (MPI_ERR_UNSUPPORTED_OPERATION)";
    expect(
        // SAFETY: no pointer is read.
        || unsafe { MPI_Comm_accept(null(), MPI_INFO_NULL, 0, Comm(0x1001), null_mut()) },
        MPI_ERR_UNSUPPORTED_OPERATION,
        Object::Comm(Comm(0x1001)),
        "MPI_Comm_accept",
        text,
    );
    expect(
        // SAFETY: no pointer is read.
        || unsafe { MPI_Comm_join(-1, null_mut()) },
        MPI_ERR_UNSUPPORTED_OPERATION,
        Object::None,
        "MPI_Comm_join",
        text,
    );
}

/// Errors of calls without an open file go to the handler of `MPI_FILE_NULL`.
#[test]
fn errors_of_files_that_are_not_open_are_raised_on_none() {
    let (code, raised) = call(
        // SAFETY: no pointer is read.
        || unsafe { PMPI_File_delete(null(), MPI_INFO_NULL) },
    );
    assert_ne!(code, MPI_SUCCESS);
    assert_eq!(raised[0].object, Object::File(File(0x118)));
    assert_eq!(raised[0].procedure, "MPI_File_delete");
}

/// The error handler that an object is made with gets the errors of making it.
#[test]
fn an_object_that_is_made_names_its_own_error_handler() {
    let text = "this procedure is not supported yet (MPI_ERR_UNSUPPORTED_OPERATION)";
    expect(
        // SAFETY: no pointer is read.
        || unsafe { MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, null_mut()) },
        MPI_ERR_UNSUPPORTED_OPERATION,
        Object::Made(MPI_ERRORS_RETURN),
        "MPI_Session_init",
        text,
    );
    expect(
        // SAFETY: no pointer is read.
        || unsafe {
            let (group, tag) = (MPI_GROUP_EMPTY, c"tag".as_ptr());
            MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, Errhandler(0x1001), null_mut())
        },
        MPI_ERR_UNSUPPORTED_OPERATION,
        Object::Made(Errhandler(0x1001)),
        "MPI_Comm_create_from_group",
        text,
    );
}

#[test]
fn the_object_of_a_call_may_stand_behind_an_address() {
    let mut comm = Comm(0x1001);
    expect(
        // SAFETY: the address is a communicator's.
        || unsafe { MPI_Comm_disconnect(&mut comm) },
        MPI_ERR_COMM,
        Object::Comm(Comm(0x1001)),
        "MPI_Comm_disconnect",
        "0x1001 is not a communicator: it was never one, or it has been freed (MPI_ERR_COMM)",
    );
    assert_eq!(comm, Comm(0x1001));
}

/// Errors without an open file go to MPI_FILE_NULL (MPI 5.0 §14.7).
#[test]
fn the_object_of_an_error_without_an_open_file_is_the_null_file() {
    expect(
        // SAFETY: the procedure rejects NULL, which this test checks.
        || unsafe { PMPI_File_delete(null(), MPI_INFO_NULL) },
        MPI_ERR_ARG,
        Object::File(File(0x118)),
        "MPI_File_delete",
        "filename is NULL; it must point to memory of the caller (MPI_ERR_ARG)",
    );
}

#[test]
fn a_null_pointer_for_a_result_is_refused_by_name() {
    expect(
        // SAFETY: the procedures reject NULL, which this test checks.
        || unsafe { MPI_Get_version(null_mut(), null_mut()) },
        MPI_ERR_ARG,
        Object::None,
        "MPI_Get_version",
        "version is NULL; it must point to memory of the caller (MPI_ERR_ARG)",
    );
    expect(
        // SAFETY: the procedures reject NULL, which this test checks.
        || unsafe { MPI_Info_set(MPI_INFO_NULL, null(), null()) },
        MPI_ERR_ARG,
        Object::None,
        "MPI_Info_set",
        "key is NULL; it must point to memory of the caller (MPI_ERR_ARG)",
    );
}

/// A bug of the library ends the process with a message; it never unwinds into C. The test runs
/// itself as a child process to observe it.
#[test]
fn a_panic_ends_the_process_and_says_what_happened() {
    extern "C" fn entry() -> c_int {
        call_guard::running(
            "MPI_Send",
            Object::None,
            || unreachable!("MPI_Send finds its rank, or is never called"),
            || Ok(()),
            |_, ()| panic!("slot {} is lost", 7),
        )
    }
    const PANIC: &str = "PANIC_IN_AN_ENTRY_POINT";
    if std::env::var_os(PANIC).is_some() {
        LIBRARY.start(&RANK);
        entry();
        return;
    }
    let myself = std::env::current_exe().unwrap();
    let name = "a_panic_ends_the_process_and_says_what_happened";
    let child = std::process::Command::new(myself)
        .args([name, "--nocapture"])
        .env(PANIC, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(
        !child.status.success() && said.contains("slot 7 is lost"),
        "{said}"
    );
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(child.status.signal(), Some(6), "{said}");
}

#[test]
fn the_face_can_say_whose_handler_is_to_hear() {
    expect(
        || {
            call_guard::running(
                "MPI_Wait",
                Object::None,
                || unreachable!("MPI_Wait finds its rank, or is never called"),
                || Ok(()),
                |call, ()| {
                    call.raise_on(Object::Comm(MPI_COMM_WORLD));
                    Err(Error::new(MPI_ERR_TRUNCATE, "9 bytes for 8"))
                },
            )
        },
        MPI_ERR_TRUNCATE,
        Object::Comm(MPI_COMM_WORLD),
        "MPI_Wait",
        "9 bytes for 8 (MPI_ERR_TRUNCATE)",
    );
}

#[test]
fn the_tools_interface_returns_its_errors() {
    let (code, raised) = call(|| {
        // SAFETY: no pointer is read.
        unsafe { MPI_T_cvar_get_num(null_mut()) }
    });
    assert_eq!((code, raised), (MPI_T_ERR_NOT_SUPPORTED, vec![]));
}

#[test]
fn statuses_keep_what_is_set() {
    let mut status = Status::new(3, 4, 0x1_2345_6789);
    let (mut source, mut tag, mut flag) = (0, 0, 0);
    let (code, raised) = call(|| {
        // SAFETY: every address is that of a variable.
        unsafe {
            MPI_Status_set_source(&mut status, 5);
            MPI_Status_set_cancelled(&mut status, 1);
            MPI_Status_get_source(&status, &mut source);
            MPI_Status_get_tag(&status, &mut tag);
            MPI_Test_cancelled(&status, &mut flag)
        }
    });
    assert_eq!((code, raised), (MPI_SUCCESS, vec![]));
    assert_eq!((source, tag, flag), (5, 4, 1));
    assert_eq!((status.bytes(), status.cancelled()), (0x1_2345_6789, true));
}
