//! Frames that leave together.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use device::*;
use secret::Secret;
use tcp::{Port, TcpDevice};

const LEN: usize = 1 << 20;

/// A device with one queue pair, and registered memory.
struct Side {
    device: TcpDevice,
    qp: Qp,
    cq: Cq,
    memory: Vec<u64>,
    region: Region,
}

impl Side {
    fn new() -> Side {
        let port = Port::loopback(Ipv4Addr::LOCALHOST.into());
        let mut device = TcpDevice::open(&port, &Secret::from_bytes([5; 32])).unwrap();
        let cq = device.create_cq(256).unwrap();
        let wanted = QpWanted {
            transport: Transport::Rc,
            send_cq: cq,
            receive_cq: cq,
            srq: None,
            sends: 256,
            receives: 8,
            inline: 0,
        };
        let qp = device.create_qp(&wanted).unwrap();
        let mut memory = vec![0u64; LEN / 8];
        let access = Access {
            local_write: true,
            remote_write: true,
            ..Access::default()
        };
        // SAFETY: the memory stays where it is, and the test changes it between transfers only.
        let region = unsafe { device.register(memory.as_mut_ptr().cast(), LEN, access) };
        Side {
            device,
            qp,
            cq,
            memory,
            region: region.unwrap(),
        }
    }

    /// Posts a write of the first `len` bytes to the same offset at the peer. Returns the number of
    /// system calls that it took.
    fn write(&mut self, to: Region, len: usize) -> u64 {
        let local = Slice {
            address: self.region.address,
            len: len as u32,
            lkey: self.region.lkey,
        };
        let to = Remote {
            address: to.address,
            rkey: to.rkey,
        };
        let work = Work {
            id: 1,
            operation: Operation::Write {
                to,
                immediate: None,
            },
            local: &[local],
            inline: false,
            signaled: true,
            to: None,
        };
        let before = self.device.departures();
        // SAFETY: the memory is registered, and stays as it is until the write is complete.
        unsafe { self.device.post(self.qp, &work) }.unwrap();
        self.device.departures() - before
    }

    /// Sends the corked frames. Returns the number of system calls that it took.
    fn uncork(&mut self) -> u64 {
        let before = self.device.departures();
        self.device.uncork();
        self.device.departures() - before
    }

    fn is_corked(&self) -> bool {
        self.device.is_corked(self.qp)
    }
}

/// Two sides of a connection that has carried a write.
fn connected() -> [Side; 2] {
    let mut sides = [Side::new(), Side::new()];
    let addresses = [0, 1].map(|at: usize| sides[at].device.address(sides[at].qp).unwrap());
    for at in 0..2 {
        let Side { device, qp, .. } = &mut sides[at];
        device.connect(*qp, Some(addresses[1 - at])).unwrap();
    }
    sides[0].memory[0] = 7;
    write_and_wait(&mut sides, 1);
    assert_eq!(sides[1].memory[0], 7);
    sides
}

fn write_and_wait(sides: &mut [Side; 2], count: usize) {
    let to = sides[1].region;
    for _ in 0..count {
        sides[0].write(to, 8);
    }
    wait(sides, count);
}

/// Polls both sides until the first has this many completions.
fn wait(sides: &mut [Side; 2], count: usize) {
    let limit = Instant::now() + Duration::from_secs(120);
    let mut done = 0;
    while done < count {
        assert!(Instant::now() < limit, "{done} of {count} are complete");
        for (at, side) in sides.iter_mut().enumerate() {
            let mut into = [testdevice::ends::EMPTY; 16];
            let taken = side.device.poll(side.cq, &mut into).unwrap();
            assert!(
                into[..taken]
                    .iter()
                    .all(|one| one.status == Status::Success)
            );
            done += taken * usize::from(at == 0);
        }
    }
}

#[test]
fn requests_in_a_row_leave_in_few_calls_and_lone_ones_at_once() {
    let mut sides = connected();
    let to = sides[1].region;
    for _ in 0..3 {
        assert_eq!((sides[0].write(to, 8), sides[0].is_corked()), (1, false));
        wait(&mut sides, 1);
    }
    let calls: Vec<u64> = (0..64).map(|_| sides[0].write(to, 8)).collect();
    assert_eq!((&calls[..2], calls.iter().sum::<u64>()), (&[1, 1][..], 2));
    assert!(sides[0].is_corked());
    assert_eq!((sides[0].uncork(), sides[0].is_corked()), (1, false));
    // No poll has come between.
    assert_eq!((sides[0].write(to, 8), sides[0].is_corked()), (0, true));
    // The next poll sends the rest, and the first requests after it leave at once.
    wait(&mut sides, 65);
    assert!(!sides[0].is_corked());
    assert_eq!((sides[0].write(to, 8), sides[0].is_corked()), (1, false));
    wait(&mut sides, 1);
}

#[test]
fn an_owner_that_posts_more_has_all_of_it_leave_together() {
    let mut sides = connected();
    let to = sides[1].region;
    sides[0].device.cork();
    let calls: u64 = (0..8).map(|_| sides[0].write(to, 8)).sum();
    assert_eq!((calls, sides[0].uncork(), sides[0].uncork()), (0, 1, 0));
    wait(&mut sides, 8);
}

#[test]
fn what_fills_a_call_waits_no_longer() {
    let mut sides = connected();
    let to = sides[1].region;
    let calls: Vec<u64> = (0..32).map(|_| sides[0].write(to, 8 << 10)).collect();
    // Two leave at once, and then eight each time.
    let expected = (0..32).map(|at| u64::from(at < 2 || (at - 1) % 8 == 0 && at > 8));
    let expected: Vec<u64> = expected.collect();
    assert_eq!(calls, expected);
    wait(&mut sides, 32);
}
