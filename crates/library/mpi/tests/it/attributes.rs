//! Attributes and error handlers: the calls of users' functions, their arguments and their errors.

use std::sync::{Arc, Mutex};

use crate::common::run;
use datatype::{Predefined, Type};
use mpi::attributes::{Copied, Holder, Keyval, predefined};
use mpi::coll::Work;
use mpi::comm::WORLD;
use mpi::errhandler::{self, ErrorAction};
use mpi::handle::ObjectKind;
use mpi::{Class, Error, Rank};

type Log = Arc<Mutex<Vec<String>>>;

fn heard(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

/// A key that logs its calls. A copy is one more than the original; the value 13 is refused.
fn key(rank: &Arc<Rank>, log: &Log, kind: ObjectKind, name: &'static str) -> u32 {
    let refused = |value| Error::new(Class(20_000 + value as i32), "refused");
    let (copies, deletes) = (log.clone(), log.clone());
    let (copier, deleter) = (rank.clone(), rank.clone());
    let copied = Copied::By(Arc::new(move |_, _, value| {
        // The rank is not locked: a user's function may call anything.
        assert!(copier.objects().comms().get(WORLD).is_ok());
        copies.lock().unwrap().push(format!("copy {name} {value}"));
        if value == 13 {
            Err(refused(value))
        } else {
            Ok(Some(value + 1))
        }
    }));
    let delete: mpi::attributes::DeleteFunction = Arc::new(move |_, _, value| {
        assert!(deleter.objects().comms().get(WORLD).is_ok());
        deletes
            .lock()
            .unwrap()
            .push(format!("delete {name} {value}"));
        if value == 14 {
            Err(refused(value))
        } else {
            Ok(())
        }
    });
    rank.objects()
        .keyvals_mut()
        .create(Keyval {
            kind,
            copied,
            delete: Some(delete),
        })
        .unwrap()
}

fn plain(rank: &Rank, copied: Copied) -> u32 {
    rank.objects()
        .keyvals_mut()
        .create(Keyval {
            kind: ObjectKind::Comm,
            copied,
            delete: None,
        })
        .unwrap()
}

#[test]
fn attributes_are_copied_and_deleted_with_their_communicator() {
    run(2, |rank| {
        let log = Log::default();
        let (a, b) = (
            key(rank, &log, ObjectKind::Comm, "a"),
            key(rank, &log, ObjectKind::Comm, "b"),
        );
        let (same, never) = (plain(rank, Copied::AsItIs), plain(rank, Copied::Never));
        let world = Holder::Comm(WORLD);
        for (key, value) in [(a, 1), (b, 2), (same, 3), (never, 4)] {
            rank.set_attribute(world, key, value).unwrap();
        }
        let comm = rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
        assert_eq!(heard(&log), ["copy a 1", "copy b 2"]);
        let on = |comm, key| rank.objects().attribute(Holder::Comm(comm), key).unwrap();
        assert_eq!(
            [a, b, same, never].map(|key| on(comm, key)),
            [Some(2), Some(3), Some(3), None]
        );

        rank.set_attribute(Holder::Comm(comm), a, 9).unwrap();
        assert_eq!(heard(&log), ["delete a 2"]);
        rank.comm_free(comm).unwrap();
        assert_eq!(heard(&log), ["delete a 9", "delete b 3"]);

        rank.delete_attribute(world, b).unwrap();
        rank.delete_attribute(world, b).unwrap();
        assert_eq!(heard(&log), ["delete b 2"]);
        assert_eq!((on(WORLD, b), on(WORLD, a)), (None, Some(1)));
    });
}

#[test]
fn errors_of_users_functions_come_back() {
    run(2, |rank| {
        let log = Log::default();
        let (a, b) = (
            key(rank, &log, ObjectKind::Comm, "a"),
            key(rank, &log, ObjectKind::Comm, "b"),
        );
        let old = rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
        let holder = Holder::Comm(old);
        rank.set_attribute(holder, a, 1).unwrap();
        // One rank refuses: both get its error, and what was copied is deleted again.
        rank.set_attribute(holder, b, if rank.rank() == 0 { 13 } else { 5 })
            .unwrap();
        let comms = rank.objects().comms().iter().count();
        let dup = rank.comm_dup("MPI_Comm_dup", old, &[]);
        if rank.rank() == 0 {
            assert_eq!(dup.unwrap_err().class, Class(20_013));
            assert_eq!(heard(&log), ["copy a 1", "copy b 13", "delete a 2"]);
            assert_eq!(rank.objects().comms().iter().count(), comms);
            assert_eq!(rank.comm_idup(old, &[]).unwrap_err().class, Class(20_013));
        } else {
            assert_eq!(dup.unwrap_err().class, Class(20_013));
            let changes = ["copy a 1", "copy b 5", "delete b 6", "delete a 2"];
            assert_eq!(heard(&log), changes);
            assert_eq!(rank.objects().comms().iter().count(), comms);
            let (_, request) = rank.comm_idup(old, &[]).unwrap();
            let status = rank.wait("MPI_Wait", request).unwrap();
            let result = rank.result_of(status);
            assert_eq!(result.unwrap_err().class, Class(20_013));
            assert_eq!(rank.objects().comms().iter().count(), comms);
        }
        // Rank 0 tells the other within its next calls.
        rank.collective("MPI_Barrier", &Work::Barrier, WORLD)
            .unwrap();
        heard(&log);

        // An attribute that cannot be deleted stays, and so does the communicator.
        rank.set_attribute(holder, b, 14).unwrap();
        heard(&log);
        assert_eq!(
            rank.set_attribute(holder, b, 15).unwrap_err().class,
            Class(20_014)
        );
        assert_eq!(
            rank.delete_attribute(holder, b).unwrap_err().class,
            Class(20_014)
        );
        assert_eq!(rank.comm_free(old).unwrap_err().class, Class(20_014));
        assert_eq!(rank.objects().attribute(holder, b).unwrap(), Some(14));
        assert_eq!(rank.objects().attribute(holder, a).unwrap(), Some(1));
    });
}

#[test]
fn a_freed_key_lives_on_in_its_attributes() {
    run(1, |rank| {
        let log = Log::default();
        let a = key(rank, &log, ObjectKind::Comm, "a");
        let world = Holder::Comm(WORLD);
        rank.set_attribute(world, a, 1).unwrap();
        rank.objects()
            .keyvals_mut()
            .free(ObjectKind::Comm, a)
            .unwrap();
        assert_eq!(
            rank.objects()
                .keyvals_mut()
                .free(ObjectKind::Comm, a)
                .unwrap_err()
                .class,
            Class::KEYVAL
        );
        assert_eq!(rank.objects().attribute(world, a).unwrap(), Some(1));
        let comm = rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
        rank.delete_attribute(world, a).unwrap();
        rank.comm_free(comm).unwrap();
        assert_eq!(heard(&log), ["copy a 1", "delete a 1", "delete a 2"]);
        assert_eq!(
            rank.set_attribute(world, a, 1).unwrap_err().class,
            Class::KEYVAL
        );
        assert_eq!(
            rank.objects().attribute(world, a).unwrap_err().class,
            Class::KEYVAL
        );
    });
}

#[test]
fn wrong_keys_are_refused() {
    run(1, |rank| {
        let log = Log::default();
        let ty = key(rank, &log, ObjectKind::Datatype, "type");
        let world = Holder::Comm(WORLD);
        for wrong in [0, ty, 0x5001, predefined::TAG_UB, predefined::UNIVERSE_SIZE] {
            assert_eq!(
                rank.set_attribute(world, wrong, 1).unwrap_err().class,
                Class::KEYVAL,
                "{wrong:#x}"
            );
            assert_eq!(
                rank.delete_attribute(world, wrong).unwrap_err().class,
                Class::KEYVAL,
                "{wrong:#x}"
            );
        }
        assert_eq!(
            rank.objects()
                .keyvals_mut()
                .free(ObjectKind::Comm, ty)
                .unwrap_err()
                .class,
            Class::KEYVAL
        );
        assert_eq!(
            rank.predefined_attribute(predefined::TAG_UB),
            Some(i32::MAX)
        );
        assert_eq!(
            rank.predefined_attribute(predefined::UNIVERSE_SIZE),
            Some(1)
        );
        assert_eq!(rank.predefined_attribute(ty), None);
    });
}

/// A delete function may free, set and delete attributes of the object that it is called for.
#[test]
fn users_functions_may_change_what_they_are_called_for() {
    run(1, |rank| {
        let comm = rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
        let other = plain(rank, Copied::AsItIs);
        let busy = rank.clone();
        let delete: mpi::attributes::DeleteFunction = Arc::new(move |comm, key, _| {
            let holder = Holder::Comm(comm);
            assert_eq!(busy.objects().attribute(holder, key).unwrap(), None);
            busy.delete_attribute(holder, other)?;
            busy.set_attribute(holder, other, 5)
        });
        let keyval = Keyval {
            kind: ObjectKind::Comm,
            copied: Copied::Never,
            delete: Some(delete),
        };
        let key = rank.objects().keyvals_mut().create(keyval).unwrap();
        rank.set_attribute(Holder::Comm(comm), other, 1).unwrap();
        rank.set_attribute(Holder::Comm(comm), key, 2).unwrap();
        rank.comm_free(comm).unwrap();
        rank.objects()
            .keyvals_mut()
            .free(ObjectKind::Comm, other)
            .unwrap();
        assert_eq!(
            rank.set_attribute(Holder::Comm(WORLD), other, 1)
                .unwrap_err()
                .class,
            Class::KEYVAL
        );
    });
}

#[test]
fn datatypes_have_names_and_attributes() {
    run(1, |rank| {
        let log = Log::default();
        let a = key(rank, &log, ObjectKind::Datatype, "a");
        let int = Predefined::INT.handle() as u32;
        let pair = {
            let mut state = rank.lock();
            let pair = Type::contiguous(2, &state.objects().types().get(int).unwrap()).unwrap();
            let pair = state.objects_mut().types_mut().add(pair).unwrap();
            assert_eq!(
                state.objects().types().committed(pair).err().unwrap().class,
                Class::TYPE
            );
            state.objects_mut().types_mut().commit(pair).unwrap();
            assert_eq!(state.objects().types().committed(pair).unwrap().size(), 8);
            assert_eq!(state.objects().types().name(int).unwrap(), "MPI_INT");
            assert_eq!(state.objects().types().name(pair).unwrap(), "");
            state
                .objects_mut()
                .types_mut()
                .set_name(pair, "pair")
                .unwrap();
            state
                .objects_mut()
                .types_mut()
                .set_name(int, "whole number")
                .unwrap();
            assert_eq!(state.objects().types().name(int).unwrap(), "whole number");
            pair
        };
        rank.set_attribute(Holder::Datatype(pair), a, 1).unwrap();
        rank.set_attribute(Holder::Datatype(int), a, 4).unwrap();
        let copy = rank.type_dup(pair).unwrap();
        assert_eq!(
            rank.objects().attribute(Holder::Datatype(copy), a).unwrap(),
            Some(2)
        );
        assert_eq!(rank.objects().types().name(copy).unwrap(), "");
        assert!(rank.objects().types().committed(copy).is_ok());
        let named = rank.type_dup(int).unwrap();
        rank.type_free(copy).unwrap();
        rank.type_free(named).unwrap();
        assert_eq!(
            heard(&log),
            ["copy a 1", "copy a 4", "delete a 2", "delete a 5"]
        );
        for wrong in [copy, int, mpi::types::NULL, 0x204] {
            assert_eq!(rank.type_free(wrong).unwrap_err().class, Class::TYPE);
        }
        let state = rank.lock();
        for wrong in [copy, mpi::types::NULL, 0x204, 0x101, u32::MAX] {
            assert_eq!(
                state.objects().types().get(wrong).err().unwrap().class,
                Class::TYPE
            );
        }
        let unsupported = Predefined::REAL2.handle() as u32;
        assert!(state.objects().types().get(unsupported).is_ok());
        assert_eq!(
            state
                .objects()
                .types()
                .committed(unsupported)
                .err()
                .unwrap()
                .class,
            Class::TYPE
        );
    });
}

// Over 80 lines: one handler, step by step from its creation to its end.
#[test]
fn error_handlers_stay_while_they_are_used() {
    run(1, |rank| {
        let log = Log::default();
        let written = log.clone();
        let locked = rank.clone();
        let function: errhandler::Function = Arc::new(move |comm, code| {
            assert!(locked.objects().comms().get(comm).is_ok());
            written.lock().unwrap().push(format!("{code}"));
            *code += 1;
        });
        assert_eq!(rank.raise(WORLD, 5), ErrorAction::Fatal);
        let handler = rank
            .objects()
            .errhandlers_mut()
            .create(ObjectKind::Comm, function.clone())
            .unwrap();
        let parent = rank.comm_dup("MPI_Comm_dup", WORLD, &[]).unwrap();
        rank.objects().set_errhandler(parent, handler).unwrap();
        rank.objects().errhandlers_mut().free(handler).unwrap();
        assert_eq!(
            rank.objects()
                .errhandlers_mut()
                .free(handler)
                .unwrap_err()
                .class,
            Class::ERRHANDLER
        );
        assert_eq!(
            rank.objects()
                .set_errhandler(WORLD, handler)
                .unwrap_err()
                .class,
            Class::ERRHANDLER
        );

        // New communicators inherit the handler, and its handle can be got again.
        let child = rank.comm_split("MPI_Comm_split", parent, 0, 0).unwrap();
        rank.comm_free(parent).unwrap();
        assert_eq!(rank.raise(child, 5), ErrorAction::Return(6));
        assert_eq!(rank.objects().errhandler(child).unwrap(), handler);
        rank.objects()
            .set_errhandler(child, errhandler::RETURN)
            .unwrap();
        assert_eq!(rank.raise(child, 5), ErrorAction::Return(5));
        rank.objects().set_errhandler(child, handler).unwrap();
        rank.objects().errhandlers_mut().free(handler).unwrap();
        rank.comm_free(child).unwrap();
        assert_eq!(
            rank.objects()
                .set_errhandler(WORLD, handler)
                .unwrap_err()
                .class,
            Class::ERRHANDLER
        );

        rank.objects()
            .set_errhandler(WORLD, errhandler::ABORT)
            .unwrap();
        rank.objects()
            .set_errhandler(mpi::comm::SELF, errhandler::RETURN)
            .unwrap();
        assert_eq!(rank.raise(WORLD, 7), ErrorAction::Abort);
        assert_eq!(rank.raise(child, 7), ErrorAction::Return(7));
        let of_windows = rank
            .objects()
            .errhandlers_mut()
            .create(ObjectKind::Op, function.clone())
            .unwrap();
        assert_eq!(
            rank.objects()
                .set_errhandler(WORLD, of_windows)
                .unwrap_err()
                .class,
            Class::ERRHANDLER
        );
        for predefined in [errhandler::FATAL, errhandler::RETURN] {
            rank.objects().errhandlers_mut().free(predefined).unwrap();
        }
        assert_eq!(
            rank.objects()
                .errhandlers_mut()
                .free(errhandler::NULL)
                .unwrap_err()
                .class,
            Class::ERRHANDLER
        );
        assert_eq!(heard(&log), ["5"]);
    });
}
