//! Properties that only real devices have: their list, sleep, cables that break.
//! FISHPLATE_TEST_PEER names the device at the other end of the first device's cable;
//! FISHPLATE_TEST_RAIL is a command that takes `cut`, `down` or `up` for that cable.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use device::*;
use testdevice::ends::*;
use testdevice::suite::makers::Maker;

use crate::makers::{Verbs, devices, secret, verbs_nodes};

const CABLE: Verbs = Verbs { peer: true };

/// Breaks or restores the cable: `cut`, `down` or `up`.
pub(crate) fn rail(what: &str) {
    let command = std::env::var("FISHPLATE_TEST_RAIL").expect("FISHPLATE_TEST_RAIL is a command");
    let done = Command::new("sh")
        .args(["-c", &format!("{command} {what}")])
        .status()
        .unwrap();
    assert!(done.success(), "{command} {what}: {done}");
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn the_list_says_of_each_device_what_it_is_and_whether_it_is_used() {
    let listed = verbs::list().unwrap();
    assert!(!listed.is_empty(), "no RDMA device");
    for one in &listed {
        println!("{one:#?}");
        assert!(one.unusable.is_some() || one.mtu >= 256 && one.rate.gbit() > 0.0);
        assert!(
            one.unusable.is_some() || one.address.contains(": "),
            "why that address"
        );
    }
    let all: Vec<String> = listed.iter().map(|one| one.words()).collect();
    let choice = verbs::choose(listed, "").unwrap();
    assert_eq!(choice.used.len() + choice.left.len(), all.len());
    let error = verbs::open("no_such_device", &secret())
        .err()
        .unwrap()
        .to_string();
    assert!(all.iter().all(|name| error.contains(name)), "{error}");
}

#[test]
#[ignore = "needs RDMA devices and a cable to break: `make test-verbs` runs it, in a machine that has them"]
fn a_cable_that_breaks_gives_an_error_and_a_mended_one_carries() {
    for how in ["cut", "down"] {
        println!("{how}");
        CABLE.run(
            Wish::default(),
            Arc::new(move |node, end, rank| {
                if rank == 0 {
                    end.write_signaled(node, 0, 4096, false, true);
                    assert_eq!(end.completion(node).status, Status::Success);
                    rail(how);
                    let write = Operation::Write {
                        to: end.remote(0),
                        immediate: None,
                    };
                    // Writes are posted until one of them fails.
                    let status = wait_for(node, |node| {
                        let mut done = end.poll(node).into_iter().map(|one| one.status);
                        let failed = done.find(|status| *status != Status::Success);
                        if failed.is_none() {
                            let local = [end.slice(0, 4096)];
                            match end.post(node, 1, write, &local, false, true) {
                                Ok(()) | Err(Error::Full) => {}
                                Err(error) => panic!("{error}"),
                            }
                        }
                        failed
                    });
                    println!("{}", status.words());
                    assert_eq!(status, Status::RetryExceeded);
                    rail("up");
                }
                // Out-of-band messages have a queue pair of their own, which survives the cable's
                // failure.
                synchronise(node, 1 - rank);
                let new = connect_any(node, &Wish::default(), 1 - rank);
                synchronise(node, 1 - rank);
                if rank == 0 {
                    new.write_signaled(node, 0, 64, true, true);
                    assert_eq!(new.completion(node).status, Status::Success);
                    let notes = node.notes();
                    let told = notes.iter().any(|note| note.contains("gone down"));
                    assert_eq!(told, how == "down", "{notes:?}");
                }
                synchronise(node, 1 - rank);
                node.rail(0).destroy_qp(new.qp).unwrap();
                node.rail(0).deregister(new.own).unwrap();
            }),
        );
    }
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn whoever_waits_long_sleeps() {
    CABLE.run(
        Wish::default(),
        Arc::new(|node, end, rank| {
            end.receive(node, 1, &[]).unwrap();
            synchronise(node, 1 - rank);
            if rank == 0 {
                std::thread::sleep(std::time::Duration::from_secs(1));
                let send = Operation::Send { immediate: None };
                end.post(node, 1, send, &[], true, true).unwrap();
                assert_eq!(end.completion(node).status, Status::Success);
                return;
            }
            let mut looks = 0;
            while end.poll(node).is_empty() {
                looks += 1;
                node.wait(u64::MAX).unwrap();
            }
            // The rank was woken by an event, and did not poll before.
            assert!(looks < 20, "{looks} looks in a second");
        }),
    );
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn what_the_owner_adds_wakes_a_sleeper() {
    let mut nodes = verbs_nodes(devices(false));
    let mut node = nodes.swap_remove(0);
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    node.wake_on(std::os::fd::AsRawFd::as_raw_fd(&reader))
        .unwrap();
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            written.store(true, Ordering::SeqCst);
            std::io::Write::write_all(&mut writer, b"!").unwrap();
        });
        let mut waits = 0;
        while !written.load(Ordering::SeqCst) {
            waits += 1;
            node.wait(u64::MAX).unwrap();
        }
        assert!(waits < 10, "{waits}");
        std::io::Read::read_exact(&mut reader, &mut [0]).unwrap();
    });
}

#[test]
#[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
fn a_receiver_that_is_never_ready_is_given_up() {
    CABLE.run(
        Wish::default(),
        Arc::new(|node, end, rank| {
            if rank == 0 {
                let send = Operation::Send { immediate: None };
                let before = node.now();
                end.post(node, 1, send, &[end.slice(0, 8)], true, true)
                    .unwrap();
                assert_eq!(end.completion(node).status, Status::RnrRetryExceeded);
                println!("after {} ms", (node.now() - before) / 1_000_000);
            }
        }),
    );
}
