//! Generalised requests: the calls of the user's functions, without the rank's lock, and
//! completion by another thread.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use crate::common::modelled::{Keep, play_to_end, system};
use crate::common::{room, run, run_shared};
use model::config::MachineConfig;
use mpi::comm::{SELF, WORLD};
use mpi::request::RequestId;
use mpi::{Answer, Class, Completion, Error, Functions, Rank, Result, Status};

/// Functions that log their calls, and that fail with a class if `fails` names them.
struct Logged {
    rank: Arc<Rank>,
    log: Mutex<String>,
    fails: &'static str,
}

impl Logged {
    fn new(rank: &Arc<Rank>, fails: &'static str) -> Arc<Logged> {
        Arc::new(Logged {
            rank: rank.clone(),
            log: Mutex::default(),
            fails,
        })
    }

    fn called(&self, letter: char) -> Result<()> {
        // The rank is not locked: a user's function may call anything.
        assert!(self.rank.objects().comms().get(SELF).is_ok());
        self.log.lock().unwrap().push(letter);
        match self.fails.contains(letter) {
            true => Err(Error::new(Class(20_000 + letter as i32), "refused")),
            false => Ok(()),
        }
    }

    fn calls(&self) -> String {
        self.log.lock().unwrap().clone()
    }
}

impl Functions for Logged {
    fn query(&self) -> Answer {
        let status = Status {
            source: 5,
            bytes: 12,
            ..Status::EMPTY
        };
        Answer::new(status, self.called('q'))
    }

    fn free(&self) -> Result<()> {
        self.called('f')
    }

    fn cancel(&self, complete: bool) -> Result<()> {
        self.called(if complete { 'C' } else { 'c' })
    }
}

fn started(rank: &Arc<Rank>, fails: &'static str) -> (RequestId, Arc<Logged>) {
    let functions = Logged::new(rank, fails);
    (
        rank.start_generalized(functions.clone()).unwrap(),
        functions,
    )
}

#[test]
fn the_last_error_of_query_and_free_counts() {
    run(1, |rank| {
        for (fails, wanted) in [("", 0), ("q", 20_113), ("f", 20_102), ("qf", 20_102)] {
            let (id, functions) = started(rank, fails);
            rank.complete_generalized(id).unwrap();
            assert_eq!(functions.calls(), "");
            let peeked = rank.lock().requests().peek(id).unwrap().unwrap();
            assert!(peeked.is_by_query());
            rank.query_generalized(peeked);
            let finished = rank.wait("MPI_Wait", id).unwrap();
            let answer = rank.end_generalized(finished);
            assert_eq!(functions.calls(), "qqf", "{fails}");
            assert_eq!(answer.status.error, Class(wanted));
            assert_eq!((answer.status.source, answer.status.bytes), (5, 12));
            assert_eq!(answer.error.map_or(0, |error| error.class.0), wanted);
            // Nobody can end it a second time.
            assert!(rank.wait("MPI_Wait", id).is_err());
            rank.end_generalized(finished);
            assert_eq!(functions.calls(), "qqf");
        }
    });
}

#[test]
fn a_freed_request_is_freed_when_it_is_complete() {
    run(1, |rank| {
        let (id, functions) = started(rank, "");
        assert!(rank.lock().requests_mut().free(id).unwrap().is_none());
        assert_eq!(functions.calls(), "");
        rank.complete_generalized(id).unwrap();
        assert_eq!(functions.calls(), "f");
        assert!(rank.complete_generalized(id).is_err());

        let (id, functions) = started(rank, "");
        rank.cancel(id).unwrap();
        rank.complete_generalized(id).unwrap();
        assert!(rank.complete_generalized(id).is_err());
        rank.cancel(id).unwrap();
        let freed = rank.lock().requests_mut().free(id).unwrap();
        freed.expect("it is complete").free().unwrap();
        assert_eq!(functions.calls(), "cCf");
        assert!(rank.lock().requests_mut().free(id).is_err());
    });
}

#[test]
fn a_waiting_thread_hears_of_the_completion_by_another() {
    run_shared(2, &[], |rank| {
        rank.allow_threads();
        for _ in 0..200 {
            let (id, functions) = started(rank, "");
            let other = rank.clone();
            let completer = std::thread::spawn(move || other.complete_generalized(id).unwrap());
            let finished = rank.wait("MPI_Wait", id).unwrap();
            assert_eq!(rank.end_generalized(finished).status.source, 5);
            assert_eq!(functions.calls(), "qf");
            completer.join().unwrap();
        }
    });
}

/// A task that completes `id` when it is driven for the second time, and goes on until the receive
/// `end` is complete.
async fn completes_another(rank: Arc<Rank>, id: RequestId, end: RequestId) -> Result<()> {
    let mut drives = 0;
    poll_fn(|_| {
        drives += 1;
        match drives {
            2 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })
    .await;
    rank.complete_generalized(id)?;
    let request = end;
    Completion { rank, request }.await.map(|_| ())
}

/// A wait ends by a task that goes on: in virtual time nothing else would end it. A task that only
/// waits does not keep the ranks from their deadlock.
#[test]
fn a_wait_ends_by_a_task_that_goes_on() {
    let machine = MachineConfig::new(&system("qdr"), 2, 1, 1).unwrap();
    play_to_end(machine, vec![], Keep::Nothing, |rank| {
        let (id, _) = started(rank, "");
        let mut memory = [0];
        let (buffer, other) = (room(&mut memory), 1 - rank.rank() as i32);
        let end = rank.lock().receive(buffer, other, 0, WORLD).unwrap();
        let task = completes_another(rank.clone(), id, end);
        let task = rank.spawn(None, task).unwrap();
        let finished = rank.wait("MPI_Wait", id).unwrap();
        assert_eq!(rank.end_generalized(finished).status.source, 5);
        let ended = rank.wait("MPI_Wait", task).unwrap_err();
        assert!(ended.detail.contains("deadlock"), "{ended}");
    });
}
