//! Tests of the promises of [`Bootstrap`]: one suite for every implementation, with ranks as
//! threads of this process.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pmi::{
    Bootstrap, FromLauncher, FromRank, Hosts, InProcess, Job, KvsError, LauncherGone, Notice,
    RankStatus, Standalone,
};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, recv, send};

use crate::control_socket;

const RANKS: usize = 5;

type Ranks = Vec<Arc<dyn Bootstrap>>;

/// Runs `program` once for each rank, all at the same time.
fn on_all(ranks: &Ranks, program: impl Fn(&dyn Bootstrap) + Sync) {
    thread::scope(|scope| {
        for rank in ranks {
            scope.spawn(|| program(&**rank));
        }
    });
}

/// Waits for the value of one key. This rank must have no other outstanding request.
fn value_of(job: &dyn Bootstrap, key: &str) -> Result<String, KvsError> {
    job.get(key)?;
    loop {
        if let Some((answered, value)) = job.next_value()? {
            assert_eq!(answered, key);
            return Ok(value);
        }
        thread::yield_now();
    }
}

fn in_process() -> Ranks {
    let ranks = InProcess::job(Hosts::blocks(&[2, 3])).into_iter();
    ranks.map(|rank| Arc::new(rank) as _).collect()
}

/// Ranks with control sockets, served by a thread that ends with them.
fn over_sockets() -> Ranks {
    let hosts = Hosts::blocks(&[2, 3]);
    let mut sockets = Vec::new();
    let rank = |rank| {
        let (launcher, own) = control_socket(SocketFlags::CLOEXEC);
        sockets.push(launcher);
        Arc::new(Job::new(rank, hosts.clone(), own, None)) as _
    };
    let ranks = (0..RANKS).map(rank).collect();
    thread::spawn(move || serve(&sockets));
    ranks
}

/// A minimal launcher: serves the key-value store and fences until all ranks have closed their
/// sockets.
fn serve(sockets: &[OwnedFd]) {
    let mut store = InProcess::job(Hosts::one(sockets.len()));
    let tell = |rank: usize, line: FromLauncher| {
        let packet = format!("{line}\n");
        send(&sockets[rank], packet.as_bytes(), SendFlags::NOSIGNAL).unwrap();
    };
    let mut open = vec![true; sockets.len()];
    while open.contains(&true) {
        for (rank, socket) in sockets.iter().enumerate() {
            let mut packet = [0; 1 << 16];
            let length = match recv(socket, &mut packet[..], RecvFlags::DONTWAIT) {
                Ok((_, length)) => length,
                Err(_) => continue,
            };
            open[rank] = length > 0;
            for line in std::str::from_utf8(&packet[..length]).unwrap().lines() {
                match line.parse().unwrap() {
                    FromRank::Put { key, value } => store[rank].put(&key, &value).unwrap(),
                    FromRank::Get { key } => store[rank].get(&key).unwrap(),
                    FromRank::Fence => store[rank].enter_fence().unwrap(),
                    _ => {}
                }
            }
        }
        for rank in &mut store {
            while let Some((key, value)) = rank.next_value().unwrap() {
                tell(rank.rank(), FromLauncher::Value { key, value });
            }
            if rank.fence_is_complete().unwrap() {
                tell(rank.rank(), FromLauncher::Fence);
            }
        }
        thread::yield_now();
    }
}

fn every_implementation(test: impl Fn(Ranks)) {
    test(in_process());
    test(over_sockets());
}

#[test]
fn ranks_know_themselves_and_their_hosts() {
    every_implementation(|ranks| {
        for (number, job) in ranks.iter().enumerate() {
            assert_eq!((job.rank(), job.size()), (number, RANKS));
            assert_eq!(job.hosts().count(), 2);
        }
    });
}

#[test]
fn what_was_put_before_a_fence_is_known_after_it() {
    every_implementation(|ranks| {
        on_all(&ranks, |job| {
            for round in 0..20 {
                let key = |rank| format!("{round}.{rank}");
                job.put(&key(job.rank()), &job.rank().to_string()).unwrap();
                job.fence().unwrap();
                for peer in 0..job.size() {
                    assert_eq!(value_of(job, &key(peer)), Ok(peer.to_string()));
                }
            }
        });
    });
}

#[test]
fn nobody_leaves_a_fence_before_all_have_entered_it() {
    every_implementation(|ranks| {
        let entered = AtomicUsize::new(0);
        on_all(&ranks, |job| {
            for round in 1..=20 {
                if job.rank() == round % RANKS {
                    thread::sleep(std::time::Duration::from_millis(2));
                }
                entered.fetch_add(1, Ordering::SeqCst);
                job.fence().unwrap();
                assert!(entered.load(Ordering::SeqCst) >= round * RANKS);
            }
        });
    });
}

#[test]
fn a_fence_is_entered_again_only_when_it_is_complete() {
    every_implementation(|ranks| {
        ranks[0].enter_fence().unwrap();
        assert_eq!(ranks[0].enter_fence(), Err(KvsError::InFence));
        assert_eq!(ranks[0].fence_is_complete(), Ok(false));
        ranks[1..].iter().for_each(|job| job.enter_fence().unwrap());
        for job in &ranks {
            while !job.fence_is_complete().unwrap() {
                thread::yield_now();
            }
            assert_eq!(job.fence_is_complete(), Ok(false));
        }
    });
}

#[test]
fn a_request_that_comes_early_is_answered_with_the_put() {
    every_implementation(|ranks| {
        assert!(ranks[0].get_waits());
        ranks[0].get("late").unwrap();
        assert_eq!(ranks[0].next_value(), Ok(None));
        ranks[1].put("late", "value").unwrap();
        let answer = loop {
            if let Some(answer) = ranks[0].next_value().unwrap() {
                break answer;
            }
            thread::yield_now();
        };
        assert_eq!(answer, ("late".to_string(), "value".to_string()));
    });
}

#[test]
fn keys_and_values_are_checked() {
    every_implementation(|ranks| {
        let long = "x".repeat(pmi::VALUE_LIMIT + 1);
        assert!(ranks[0].put("", "value").is_err());
        assert!(ranks[0].put("key", &long).is_err());
        assert!(ranks[0].get("two words").is_err());
    });
}

#[test]
fn a_value_never_changes() {
    let ranks = in_process();
    ranks[0].put("key", "one").unwrap();
    ranks[1].put("key", "one").unwrap();
    let taken = KvsError::Taken { key: "key".into() };
    assert_eq!(ranks[1].put("key", "two"), Err(taken));
    assert_eq!(value_of(&*ranks[2], "key"), Ok("one".into()));
}

#[test]
fn the_double_records_aborts_notices_and_requests() {
    let ranks = InProcess::job(Hosts::one(2));
    ranks[1].notify(Notice::Initialized).unwrap();
    assert_eq!(ranks[1].status_requested(), Ok(false));
    ranks[0].request_status();
    assert_eq!(ranks[1].status_requested(), Ok(true));
    assert_eq!(ranks[1].status_requested(), Ok(false));
    let status = RankStatus {
        operation: "MPI_Recv".into(),
        ..RankStatus::default()
    };
    ranks[1].notify(Notice::Status(&status)).unwrap();
    assert_eq!(ranks[0].aborted(), None);
    ranks[1].abort(3, "first").unwrap();
    ranks[0].abort(4, "second").unwrap();
    assert_eq!(ranks[0].aborted(), Some((3, "first".into())));
    let notices = [
        (1, "initialized".to_string()),
        (1, "status op=MPI_Recv progress=0".to_string()),
    ];
    assert_eq!(ranks[0].notices(), notices);
}

#[test]
fn a_rank_without_a_launcher_reports_to_nobody() {
    let job = Standalone::alone();
    assert_eq!((job.rank(), job.size()), (0, 1));
    assert_eq!(job.status_requested(), Ok(false));
    assert_eq!(job.notify(Notice::Finalized), Err(LauncherGone::Dead));
    assert_eq!(job.abort(1, "text"), Err(LauncherGone::Dead));
    assert_eq!(job.fence(), Err(KvsError::None));
    let message = job.put("key", "value").unwrap_err().to_string();
    assert!(message.contains("fishplate run"), "{message}");
}

#[test]
fn hosts_of_any_numbers_are_numbered_in_the_order_of_their_first_ranks() {
    let hosts = Hosts::renumbered(&[70, 70, 3, 9, 3]);
    assert_eq!(hosts.to_string(), "0*2,1,2,1");
    assert_eq!(Hosts::parse("0*2,1,2,1", 5).unwrap(), hosts);
}
