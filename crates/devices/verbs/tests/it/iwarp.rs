//! Restrictions of iWARP devices. Both ends use the first iWARP device of this host.

use std::thread;

use device::*;
use verbs::VerbsDevice;

use crate::makers::secret;

const LEN: usize = 4096;
const EVERYTHING: Access = Access {
    local_write: true,
    remote_write: true,
    remote_read: true,
    remote_atomic: false,
};

struct End {
    device: VerbsDevice,
    qp: Qp,
    cq: Cq,
    memory: Box<[u8]>,
    region: Region,
}

impl End {
    fn open() -> End {
        let listed = verbs::list().unwrap();
        let iwarp = listed.iter().find(|one| one.name.starts_with("siw"));
        let mut device = VerbsDevice::open(iwarp.expect("an iWARP device"), &secret()).unwrap();
        let mut memory = vec![0; LEN].into_boxed_slice();
        // SAFETY: the memory is valid as long as the device.
        let region = unsafe { device.register(memory.as_mut_ptr(), LEN, EVERYTHING) }.unwrap();
        let cq = device.create_cq(64).unwrap();
        let qp = device.create_qp(&wanted(cq, Transport::Rc)).unwrap();
        End {
            device,
            qp,
            cq,
            memory,
            region,
        }
    }

    fn address(&self) -> Address {
        self.device.address(self.qp).unwrap()
    }

    /// Waits until the connection has been made or has failed, and returns the result.
    fn tied(&self) -> Result<State> {
        loop {
            match self.device.state(self.qp)? {
                State::Connecting => thread::yield_now(),
                state => return Ok(state),
            }
        }
    }

    fn slice(&self, from: usize, len: usize) -> [Slice; 1] {
        [Slice {
            address: self.region.address + from as u64,
            len: len as u32,
            lkey: self.region.lkey,
        }]
    }

    fn remote(&self, at: usize) -> Remote {
        Remote {
            address: self.region.address + at as u64,
            rkey: self.region.rkey,
        }
    }

    fn post(&mut self, operation: Operation, len: usize) -> Result<()> {
        let work = Work {
            id: 7,
            operation,
            local: &self.slice(0, len),
            inline: false,
            signaled: true,
            to: None,
        };
        // SAFETY: memory of this end, unused until the completion.
        unsafe { self.device.post(self.qp, &work) }
    }

    fn completion(&mut self) -> Completion {
        let mut some = Vec::new();
        while some.is_empty() {
            let none = Completion {
                id: 0,
                qp: self.qp,
                status: Status::Flushed,
                of: Completed::Send,
                bytes: 0,
                immediate: None,
            };
            some = vec![none];
            let count = self.device.poll(self.cq, &mut some).unwrap();
            some.truncate(count);
        }
        assert_eq!(some[0].status, Status::Success);
        some[0]
    }

    fn at(&self, at: usize) -> u8 {
        // SAFETY: memory of this end, which the device may have written.
        unsafe { std::ptr::read_volatile(self.memory.as_ptr().add(at)) }
    }
}

fn wanted(cq: Cq, transport: Transport) -> QpWanted {
    QpWanted {
        transport,
        send_cq: cq,
        receive_cq: cq,
        srq: None,
        sends: 16,
        receives: 16,
        inline: 0,
    }
}

fn pair() -> (End, End) {
    let (mut one, mut two) = (End::open(), End::open());
    let (first, second) = (one.address(), two.address());
    // The end that is called need not poll.
    one.device.connect(one.qp, Some(second)).unwrap();
    two.device.connect(two.qp, Some(first)).unwrap();
    for end in [&one, &two] {
        assert_eq!(end.tied().unwrap(), State::Rts);
    }
    (one, two)
}

#[test]
#[ignore = "needs an iWARP device: `make test-verbs` runs it, in a machine that has one"]
fn it_writes_reads_and_sends() {
    let (mut one, mut two) = pair();
    one.memory[..LEN / 2].fill(3);
    let write = Operation::Write {
        to: two.remote(LEN / 2),
        immediate: None,
    };
    one.post(write, LEN / 2).unwrap();
    assert_eq!(one.completion().of, Completed::Write);
    while two.at(LEN - 1) != 3 {
        thread::yield_now();
    }

    two.memory[LEN / 2..].fill(5);
    let read = Operation::Read {
        from: two.remote(LEN / 2),
    };
    one.post(read, 100).unwrap();
    let done = one.completion();
    assert_eq!((done.id, done.of, done.bytes), (7, Completed::Read, 100));
    assert_eq!((one.at(0), one.at(99), one.at(100)), (5, 5, 3));

    let into = two.slice(0, 100);
    // SAFETY: memory of that end, unused until the completion.
    unsafe {
        two.device
            .post_receive(ReceiveQueue::Own(two.qp), 9, &into)
            .unwrap()
    };
    one.post(Operation::Send { immediate: None }, 60).unwrap();
    assert_eq!(one.completion().of, Completed::Send);
    let done = two.completion();
    assert_eq!((done.id, done.of, done.bytes), (9, Completed::Receive, 60));
    assert_eq!((two.at(59), two.at(60)), (5, 0));
}

#[test]
#[ignore = "needs an iWARP device: `make test-verbs` runs it, in a machine that has one"]
fn what_it_lacks_is_refused_in_words() {
    let (mut one, two) = pair();
    let write = Operation::Write {
        to: two.remote(0),
        immediate: Some(1),
    };
    let add = Operation::FetchAndAdd {
        at: two.remote(0),
        add: 1,
    };
    for (operation, what) in [
        (write, "it has no immediates"),
        (
            Operation::Send { immediate: Some(1) },
            "it has no immediates",
        ),
        (add, "iWARP has no atomics"),
    ] {
        let why = one.post(operation, 8).unwrap_err().to_string();
        assert!(why.contains(what), "{why}");
    }
    for transport in [Transport::Uc, Transport::Ud] {
        let why = one
            .device
            .create_qp(&wanted(one.cq, transport))
            .unwrap_err();
        assert!(
            why.to_string().contains("reliable connections only"),
            "{why}"
        );
    }
}

#[test]
#[ignore = "needs an iWARP device: `make test-verbs` runs it, in a machine that has one"]
fn who_does_not_answer_is_an_error_in_the_end() {
    // Only the end with the lower address calls.
    let mut ends = [End::open(), End::open()];
    ends.sort_by_key(|end| end.address().qp);
    let [mut one, two] = ends;
    let gone = two.address();
    drop(two);
    one.device.connect(one.qp, Some(gone)).unwrap();
    let why = one.tied().unwrap_err().to_string();
    assert!(
        why.contains("siw") && why.contains(&gone.qp.to_string()),
        "{why}"
    );
}

#[test]
#[ignore = "needs an iWARP device: `make test-verbs` runs it, in a machine that has one"]
fn who_calls_for_somebody_else_is_refused() {
    let mut ends = [End::open(), End::open(), End::open()];
    ends.sort_by_key(|end| end.address().qp);
    let [mut one, mut two, mut three] = ends;
    // An earlier line had this port.
    let stale = Address {
        port: three.address().port ^ 1 << 64,
        ..three.address()
    };
    one.device.connect(one.qp, Some(stale)).unwrap();
    let why = one.tied().unwrap_err().to_string();
    assert!(why.contains("REJECTED"), "{why}");
    // The line is still free for its own peer.
    let (second, third) = (two.address(), three.address());
    two.device.connect(two.qp, Some(third)).unwrap();
    three.device.connect(three.qp, Some(second)).unwrap();
    assert_eq!(two.tied().unwrap(), State::Rts);
    assert_eq!(three.tied().unwrap(), State::Rts);
}
