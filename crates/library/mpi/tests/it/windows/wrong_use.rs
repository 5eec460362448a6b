//! Wrong arguments and calls.

use super::*;

#[test]
fn a_window_needs_a_communicator_of_one_group() {
    run(2, |rank| {
        let (_, inter) = halves(rank, 1);
        let spec = WindowSpec {
            memory: Buffer::empty(),
            disp_unit: 1,
            info: &[],
        };
        let made = rank.window_create("MPI_Win_create", inter, Flavor::Create, spec);
        assert_eq!(made.unwrap_err().class, Class::COMM);
    });
}

#[test]
fn wrong_use_is_a_clear_error() {
    run(2, |rank| {
        let mut memory = vec![0; 80];
        let win = window(rank, &mut memory, 8);
        let class = |result: Result<()>| result.unwrap_err().class;
        let byte = |target, disp, count| place(target, disp, count, Predefined::BYTE);
        assert_eq!(class(put(rank, win, &[1], byte(0, 0, 1))), Class::RMA_SYNC);
        fence(rank, win);
        assert_eq!(class(put(rank, win, &[1], byte(0, -1, 1))), Class::DISP);
        assert_eq!(
            class(put(rank, win, &[1], byte(0, 10, 1))),
            Class::RMA_RANGE
        );
        assert_eq!(
            class(put(rank, win, &[1; 9], byte(0, 9, 9))),
            Class::RMA_RANGE
        );
        assert_eq!(
            class(put(rank, win, &[1; 9], byte(0, 0, 8))),
            Class::TRUNCATE
        );
        assert_eq!(class(put(rank, win, &[1], byte(2, 0, 1))), Class::RANK);
        assert_eq!(class(put(rank, win, &[1], byte(-7, 0, 1))), Class::RANK);
        assert_eq!(class(put(rank, 7, &[1], byte(0, 0, 1))), Class::WIN);
        put(rank, win, &[1], byte(PROC_NULL, -4, 1)).unwrap();
        let far = place(0, i64::MAX / 4, 1, LONG);
        assert_eq!(class(put(rank, win, &[1; 8], far)), Class::RMA_RANGE);
        let mut one = [1];
        let minloc = accumulate(rank, win, &mut one, Op::Minloc, place(0, 0, 1, LONG));
        assert_eq!(class(minloc), Class::OP);
        let short = accumulate(
            rank,
            win,
            &mut one,
            Op::Sum,
            place(0, 0, 2, Predefined::INT),
        );
        assert_eq!(class(short), Class::TYPE);
        let float = place(0, 0, 1, Predefined::DOUBLE);
        let (mut compare, mut origin, mut result) = ([1], [1], [1]);
        let swap = Access::CompareAndSwap {
            compare: operand(&mut compare),
            origin: operand(&mut origin),
            result: operand(&mut result),
        };
        assert_eq!(class(access(rank, win, swap, float)), Class::TYPE);
        let lock = |arguments| class(rank.window_lock("MPI_Win_lock", win, arguments));
        assert_eq!(lock((300, 0, 0)), Class::LOCKTYPE);
        assert_eq!(lock((LOCK_SHARED, 2, 0)), Class::RANK);
        assert_eq!(lock((LOCK_SHARED, 0, 1)), Class::ASSERT);
        assert_eq!(
            class(rank.window_fence("MPI_Win_fence", win, NOCHECK)),
            Class::ASSERT
        );
        rank.window_fence("MPI_Win_fence", win, NOSUCCEED).unwrap();
        assert_eq!(class(put(rank, win, &[1], byte(0, 0, 1))), Class::RMA_SYNC);
        assert_eq!(
            class(rank.window_unlock("MPI_Win_unlock", win, 0)),
            Class::RMA_SYNC
        );
        assert_eq!(
            class(rank.window_wait("MPI_Win_wait", win)),
            Class::RMA_SYNC
        );
        assert_eq!(
            class(rank.window_flush("MPI_Win_flush", win, Some(0))),
            Class::RMA_SYNC
        );
        rank.window_lock("MPI_Win_lock", win, (LOCK_SHARED, 0, NOCHECK))
            .unwrap();
        assert_eq!(
            class(rank.window_free("MPI_Win_free", win)),
            Class::RMA_SYNC
        );
        rank.window_unlock("MPI_Win_unlock", win, 0).unwrap();
        assert_eq!(
            class(rank.window_attach(win, Buffer::empty())),
            Class::RMA_FLAVOR
        );
        free(rank, win);
        assert_eq!(class(rank.window_free("MPI_Win_free", win)), Class::WIN);
        let no_locks = [("no_locks".to_string(), "true".to_string())];
        let win = window_of(rank, Flavor::Allocate, room(&mut memory), 1, &no_locks);
        assert_eq!(
            class(rank.window_lock_all("MPI_Win_lock_all", win, 0)),
            Class::RMA_SYNC
        );
        free(rank, win);
        let spec = |disp_unit| WindowSpec {
            memory: Buffer::empty(),
            disp_unit,
            info: &[],
        };
        for disp_unit in [0, -4] {
            let made = rank.window_create("MPI_Win_create", SELF, Flavor::Create, spec(disp_unit));
            assert_eq!(class(made.map(drop)), Class::DISP);
        }
    });
}
