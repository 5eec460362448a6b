//! Connects two ranks for a test, on any device, and gives each of them the operations on its end.

use std::time::{Duration, Instant};

use device::*;

/// One end of a connection over one rail.
pub struct End {
    /// The number of the rail.
    pub rail: usize,
    /// The completion queue of all requests and receives.
    pub cq: Cq,
    /// The queue pair of this end.
    pub qp: Qp,
    /// Memory that the peer may access.
    pub memory: Box<[u8]>,
    /// The region of `memory`, with its keys.
    pub own: Region,
    /// The region of the peer's memory, with its keys.
    pub theirs: Region,
    /// The address of the peer's queue pair.
    pub peer: Address,
}

/// The properties that a test requests for an end of a connection.
#[derive(Clone)]
pub struct Wish {
    /// The number of the rail.
    pub rail: usize,
    /// The transport service.
    pub transport: Transport,
    /// The length of the memory, in bytes.
    pub bytes: usize,
    /// The number of requests, and of receives, that the queues hold.
    pub depth: usize,
    /// The accesses to the memory that are permitted.
    pub access: Access,
    /// The shared receive queue, if the queue pair uses one.
    pub srq: Option<Srq>,
}

impl Default for Wish {
    fn default() -> Wish {
        Wish {
            rail: 0,
            transport: Transport::Rc,
            bytes: 4096,
            depth: 128,
            access: Access::ALL,
            srq: None,
        }
    }
}

/// Waits until `look` returns a value, and returns it. In real time, fails the test after 60
/// seconds.
pub fn wait_for<R>(node: &mut dyn Node, mut look: impl FnMut(&mut dyn Node) -> Option<R>) -> R {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look(node) {
            return found;
        }
        assert!(
            node.is_virtual() || Instant::now() < limit,
            "nothing has come"
        );
        node.wait(if node.is_virtual() {
            u64::MAX
        } else {
            1_000_000_000
        })
        .unwrap();
    }
}

/// Waits for the next out-of-band message, and returns its bytes.
pub fn receive_oob(node: &mut dyn Node) -> Vec<u8> {
    wait_for(node, |node| node.oob_recv().unwrap()).1
}

/// Waits until the peer has called this function too.
pub fn synchronise(node: &mut dyn Node, peer: usize) {
    node.oob_send(peer, b"here").unwrap();
    assert_eq!(receive_oob(node), b"here");
}

/// Connects this rank with a peer that calls this function too. If it connects several peers, it
/// must first connect the peer whose message arrives first.
pub fn connect_any(node: &mut dyn Node, wish: &Wish, peer: usize) -> End {
    let mut memory = vec![0; wish.bytes].into_boxed_slice();
    let device = node.rail(wish.rail);
    let cq = device.create_cq(2 * wish.depth).unwrap();
    let inline = device.attributes().inline;
    let wanted = QpWanted {
        transport: wish.transport,
        send_cq: cq,
        receive_cq: cq,
        srq: wish.srq,
        sends: wish.depth,
        receives: wish.depth,
        inline,
    };
    let qp = device.create_qp(&wanted).unwrap();
    // SAFETY: the memory stays with the end, which the tests keep until they end.
    let own = unsafe { device.register(memory.as_mut_ptr(), memory.len(), wish.access) }.unwrap();
    let address = device.address(qp).unwrap();
    let words = [u64::from(address.qp), own.address, own.len, own.rkey.into()];
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
    bytes.extend(address.port.to_le_bytes());
    node.oob_send(peer, &bytes).unwrap();
    let heard = receive_oob(node);
    let word = |at: usize| u64::from_le_bytes(heard[8 * at..8 * at + 8].try_into().unwrap());
    let peer = Address {
        port: u128::from_le_bytes(heard[32..48].try_into().unwrap()),
        qp: word(0) as u32,
    };
    let theirs = Region {
        address: word(1),
        len: word(2),
        lkey: 0,
        rkey: word(3) as u32,
    };
    let device = node.rail(wish.rail);
    let tied = (wish.transport != Transport::Ud).then_some(peer);
    device.connect(qp, tied).unwrap();
    while node.rail(wish.rail).state(qp).unwrap() == State::Connecting {
        node.wait(1_000_000).unwrap();
    }
    End {
        rail: wish.rail,
        cq,
        qp,
        memory,
        own,
        theirs,
        peer,
    }
}

impl End {
    /// The part of this end's registered memory that begins at `from`, as a slice of a request.
    pub fn slice(&self, from: usize, len: usize) -> Slice {
        assert!(from + len <= self.memory.len());
        Slice {
            address: self.own.address + from as u64,
            len: len as u32,
            lkey: self.own.lkey,
        }
    }

    /// The byte at offset `at` of the peer's registered memory, as the target of a request.
    pub fn remote(&self, at: usize) -> Remote {
        Remote {
            address: self.theirs.address + at as u64,
            rkey: self.theirs.rkey,
        }
    }

    /// Posts a request on the queue pair of this end.
    pub fn post(
        &self,
        node: &mut dyn Node,
        id: u64,
        operation: Operation,
        local: &[Slice],
        inline: bool,
        signaled: bool,
    ) -> Result<()> {
        let work = Work {
            id,
            operation,
            local,
            inline,
            signaled,
            to: None,
        };
        // SAFETY: the memory stays with the end.
        unsafe { node.rail(self.rail).post(self.qp, &work) }
    }

    /// Writes to the peer's memory from the same offset in this end's memory, unsignaled.
    pub fn write(&self, node: &mut dyn Node, at: usize, len: usize, inline: bool) {
        self.write_signaled(node, at, len, inline, false);
    }

    /// Writes to the peer's memory from the same offset in this end's memory.
    pub fn write_signaled(
        &self,
        node: &mut dyn Node,
        at: usize,
        len: usize,
        inline: bool,
        signaled: bool,
    ) {
        let operation = Operation::Write {
            to: self.remote(at),
            immediate: None,
        };
        self.post(node, 0, operation, &[self.slice(at, len)], inline, signaled)
            .unwrap();
    }

    /// Posts a receive on the queue pair of this end.
    pub fn receive(&self, node: &mut dyn Node, id: u64, slices: &[Slice]) -> Result<()> {
        // SAFETY: the memory stays with the end.
        unsafe {
            node.rail(self.rail)
                .post_receive(ReceiveQueue::Own(self.qp), id, slices)
        }
    }

    /// The byte at offset `at` of this end's memory.
    pub fn byte(&self, at: usize) -> u8 {
        // SAFETY: memory of this end, which others write to.
        unsafe { (&raw const self.memory[at]).read_volatile() }
    }

    /// Copies bytes to this end's memory.
    pub fn fill(&mut self, at: usize, bytes: &[u8]) {
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Waits until the byte at offset `at` of this end's memory has a value.
    pub fn see(&self, node: &mut dyn Node, at: usize, value: u8) {
        wait_for(node, |node| {
            node.sync_memory();
            (self.byte(at) == value).then_some(())
        });
    }

    /// Waits for the next completion.
    pub fn completion(&self, node: &mut dyn Node) -> Completion {
        wait_for(node, |node| {
            let mut one = [EMPTY];
            let count = node.rail(self.rail).poll(self.cq, &mut one).unwrap();
            (count == 1).then_some(one[0])
        })
    }

    /// Takes the completions that are available, at most 64.
    pub fn poll(&self, node: &mut dyn Node) -> Vec<Completion> {
        let mut some = [EMPTY; 64];
        let count = node.rail(self.rail).poll(self.cq, &mut some).unwrap();
        some[..count].to_vec()
    }
}

/// A placeholder that a poll overwrites.
pub const EMPTY: Completion = Completion {
    id: 0,
    qp: Qp(0),
    status: Status::Success,
    of: Completed::Send,
    bytes: 0,
    immediate: None,
};
