//! The hot path: posting work requests and receives, and polling completions.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr;

use super::device::{GRH, RECEIVE_SLICES, SEND_SLICES, VerbsDevice};
use super::owned::OwnQp;
use super::sys::*;
use device::check;
use device::wr_table::{QueueKind, Sent, WrNumber};
use device::{
    Completed, Completion, Cq, Device, Error, Operation, Qp, ReceiveQueue, Result, Slice, State,
    Status, Transport, Work,
};

/// The greatest number of completions that one call of the library returns.
const BATCH: usize = 16;

/// The memory slices of a request, in the form of libibverbs.
struct SgeList {
    list: [MaybeUninit<ibv_sge>; SEND_SLICES],
    count: usize,
}

impl SgeList {
    #[inline]
    fn new() -> SgeList {
        SgeList {
            list: [MaybeUninit::uninit(); SEND_SLICES],
            count: 0,
        }
    }

    #[inline]
    fn push(&mut self, piece: ibv_sge) {
        self.list[self.count].write(piece);
        self.count += 1;
    }

    /// Adds all slices except empty ones, which some devices misinterpret. False: there are more
    /// than `most` slices.
    #[inline]
    fn add(&mut self, slices: &[Slice], most: usize) -> bool {
        let most = self.count + most;
        for slice in slices.iter().filter(|slice| slice.len > 0) {
            if self.count == most {
                return false;
            }
            self.push(ibv_sge {
                addr: slice.address,
                length: slice.len,
                lkey: slice.lkey,
            });
        }
        true
    }
}

/// Sets the operation of a request. `handle`: the address handle of a datagram's destination, or
/// null. `q_key`: the destination's queue key.
#[inline]
fn set_operation(
    request: &mut ibv_send_wr,
    work: &Work,
    handle: *mut ibv_ah,
    q_key: u32,
) -> Completed {
    let mut said = None;
    let of = match work.operation {
        Operation::Write { to, immediate } => {
            request.opcode = IBV_WR_RDMA_WRITE;
            if immediate.is_some() {
                request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
            }
            said = immediate;
            request.wr.rdma.remote_addr = to.address;
            request.wr.rdma.rkey = to.rkey;
            Completed::Write
        }
        Operation::Read { from } => {
            request.opcode = IBV_WR_RDMA_READ;
            request.wr.rdma.remote_addr = from.address;
            request.wr.rdma.rkey = from.rkey;
            Completed::Read
        }
        Operation::Send { immediate } => {
            request.opcode = IBV_WR_SEND;
            if immediate.is_some() {
                request.opcode = IBV_WR_SEND_WITH_IMM;
            }
            said = immediate;
            if let (Some(to), false) = (work.to, handle.is_null()) {
                request.wr.ud.ah = handle;
                request.wr.ud.remote_qpn = to.qp;
                request.wr.ud.remote_qkey = q_key;
            }
            Completed::Send
        }
        Operation::CompareAndSwap { at, compare, swap } => {
            request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
            request.wr.atomic.remote_addr = at.address;
            request.wr.atomic.rkey = at.rkey;
            request.wr.atomic.compare_add = compare;
            request.wr.atomic.swap = swap;
            Completed::Atomic
        }
        Operation::FetchAndAdd { at, add } => {
            request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
            request.wr.atomic.remote_addr = at.address;
            request.wr.atomic.rkey = at.rkey;
            request.wr.atomic.compare_add = add;
            Completed::Atomic
        }
    };
    if let Some(immediate) = said {
        request.__bindgen_anon_1.imm_data = immediate.to_be();
    }
    of
}

impl VerbsDevice {
    /// Posts a work request.
    ///
    /// # Safety
    /// As for [`Device::post`](device::Device::post).
    #[inline]
    pub(super) unsafe fn post_work(&mut self, qp: Qp, work: &Work) -> Result<()> {
        if self.qp(qp)?.state == State::Connecting {
            self.note_connected(qp)?;
        }
        let len = self.may_post(qp, work)?;
        let handle = match work.to {
            Some(to) if self.qp(qp)?.transport == Transport::Ud => self.handle(to.port)?,
            _ => ptr::null_mut(),
        };
        let mut pieces = SgeList::new();
        if !pieces.add(work.local, SEND_SLICES) {
            return self.too_many(work.local.len(), SEND_SLICES);
        }
        // SAFETY: integers, and pointers that may be null.
        let mut request: ibv_send_wr = unsafe { zeroed() };
        request.sg_list = pieces.list.as_mut_ptr().cast();
        request.num_sge = pieces.count as i32;
        if work.inline {
            request.send_flags |= IBV_SEND_INLINE;
        }
        if work.signaled {
            request.send_flags |= IBV_SEND_SIGNALED;
        }
        let of = set_operation(&mut request, work, handle, self.keys.q_key);
        if of == Completed::Atomic && self.context.is_iwarp() {
            return self.wrong(qp, "iWARP has no atomics".into());
        }
        let own = self.qp_mut(qp)?;
        let number = WrNumber {
            kind: QueueKind::Send,
            life: own.life,
            queue: qp.0,
            slot: own.sends.next(),
        };
        request.wr_id = number.encode();
        let mut bad = ptr::null_mut();
        // SAFETY: an existing queue pair, a request whose list is valid during the call, and memory
        // that the caller promises to keep.
        let answer = unsafe {
            let post = (*(*own.raw).context).ops.post_send;
            match post {
                Some(post) => post(own.raw, &mut request, &mut bad),
                None => libc::EOPNOTSUPP,
            }
        };
        if answer != 0 {
            return self.not_posted(answer);
        }
        let bytes = match of {
            Completed::Read | Completed::Atomic => len,
            _ => 0,
        };
        own.sends.post(Sent {
            id: work.id,
            of,
            bytes,
        });
        Ok(())
    }

    /// Checks whether a request can be posted, and returns its length in bytes.
    #[inline]
    fn may_post(&self, qp: Qp, work: &Work) -> Result<u32> {
        let own = self.qp(qp)?;
        if own.sends.is_full() && own.state != State::Reset {
            return Err(Error::Full);
        }
        let attributes = self.attributes();
        let limits = check::Limits {
            transport: own.transport,
            state: own.state,
            inline: own.inline.into(),
            mtu: attributes.mtu as u64,
            longest: attributes.longest,
            immediates: attributes.immediates,
        };
        check::work(work, &limits).or_else(|why| self.wrong(qp, why))
    }

    #[cold]
    fn wrong<T>(&self, qp: Qp, what: String) -> Result<T> {
        self.invalid(format!("queue pair {}: {what}", qp.0))
    }

    #[cold]
    fn too_many(&self, pieces: usize, most: usize) -> Result<()> {
        self.invalid(format!(
            "a request with {pieces} pieces of memory; it takes at most {most}"
        ))
    }

    #[cold]
    fn not_posted(&self, number: i32) -> Result<()> {
        // Some libraries return the error number, others return −1 and set `errno`.
        let why = match number {
            -1 => io::Error::last_os_error(),
            number => io::Error::from_raw_os_error(number.abs()),
        };
        match why.raw_os_error() {
            Some(libc::ENOMEM) => Err(Error::Full),
            _ => self.invalid(format!("it rejects the request: {why}")),
        }
    }

    /// Posts a receive.
    ///
    /// # Safety
    /// As for [`Device::post_receive`](device::Device::post_receive).
    #[inline]
    pub(super) unsafe fn post_buffer(
        &mut self,
        queue: ReceiveQueue,
        id: u64,
        into: &[Slice],
    ) -> Result<()> {
        let mut pieces = SgeList::new();
        if let ReceiveQueue::Own(qp) = queue
            && self.qp(qp)?.transport == Transport::Ud
        {
            let header = self.header()?;
            pieces.push(header);
        }
        if !pieces.add(into, RECEIVE_SLICES) {
            return self.too_many(into.len(), RECEIVE_SLICES);
        }
        let (kind, index, life) = match queue {
            ReceiveQueue::Own(qp) => (QueueKind::Receive, qp.0, self.qp(qp)?.life),
            ReceiveQueue::Shared(srq) => (QueueKind::Shared, srq.0, 0),
        };
        let receives = match queue {
            ReceiveQueue::Own(qp) => self.qp_mut(qp)?.receives.as_mut(),
            ReceiveQueue::Shared(srq) => {
                let own = self.srqs.get_mut(srq.0 as usize);
                own.map(|own| &mut own.receives)
            }
        };
        let Some(receives) = receives else {
            return match queue {
                ReceiveQueue::Own(qp) => {
                    self.wrong(qp, "it takes its receives from a shared queue".into())
                }
                ReceiveQueue::Shared(srq) => self.invalid(format!(
                    "shared receive queue {} is not of this device",
                    srq.0
                )),
            };
        };
        let slot = receives.take(id).ok_or(Error::Full)?;
        let number = WrNumber {
            kind,
            life,
            queue: index,
            slot,
        };
        let mut request = ibv_recv_wr {
            wr_id: number.encode(),
            next: ptr::null_mut(),
            sg_list: pieces.list.as_mut_ptr().cast(),
            num_sge: pieces.count as i32,
        };
        let mut bad = ptr::null_mut();
        // SAFETY: an existing queue, a request whose list is valid during the call, and memory that
        // the caller promises to keep.
        let answer = unsafe {
            match queue {
                ReceiveQueue::Own(qp) => {
                    let raw = self.qp(qp)?.raw;
                    let post = (*(*raw).context).ops.post_recv;
                    post.map(|post| post(raw, &mut request, &mut bad))
                }
                ReceiveQueue::Shared(srq) => {
                    let raw = self.srqs[srq.0 as usize].raw;
                    let post = (*(*raw).context).ops.post_srq_recv;
                    post.map(|post| post(raw, &mut request, &mut bad))
                }
            }
        };
        match answer {
            Some(0) => Ok(()),
            answer => {
                self.give_back(number);
                self.not_posted(answer.unwrap_or(libc::EOPNOTSUPP))
            }
        }
    }

    /// Ends a receive, and returns the caller's number. `None`: the receive was forgotten by a
    /// reset.
    #[inline]
    fn give_back(&mut self, number: WrNumber) -> Option<u64> {
        let receives = match number.kind {
            QueueKind::Shared => &mut self.srqs.get_mut(number.queue as usize)?.receives,
            _ => self.alive(number)?.receives.as_mut()?,
        };
        receives.give_back(number.slot)
    }

    /// The queue pair of a request, if it has not been reset or destroyed since.
    #[inline]
    fn alive(&mut self, number: WrNumber) -> Option<&mut OwnQp> {
        let own = self.qps.get_mut(number.queue as usize)?.as_mut()?;
        (own.life == number.life).then_some(&mut **own)
    }

    #[inline]
    pub(super) fn take_completions(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        let raw = self.cq(cq)?;
        let mut count = 0;
        while count < into.len() {
            let mut some = [MaybeUninit::<ibv_wc>::uninit(); BATCH];
            let wanted = BATCH.min(into.len() - count);
            // SAFETY: a queue of this device, and memory for that number of completions.
            let got = unsafe {
                let poll = (*(*raw).context).ops.poll_cq;
                poll.map_or(-1, |poll| {
                    poll(raw, wanted as i32, some.as_mut_ptr().cast())
                })
            };
            if got < 0 {
                return Err(self.overrun(cq));
            }
            for one in &some[..got as usize] {
                // SAFETY: the device has written this entry.
                let one = unsafe { one.assume_init_ref() };
                if let Some(completion) = self.translate(one) {
                    into[count] = completion;
                    count += 1;
                }
            }
            if (got as usize) < wanted {
                break;
            }
        }
        if count == 0 && self.cqs[cq.0 as usize].overrun {
            return Err(self.overrun(cq));
        }
        Ok(count)
    }

    #[cold]
    fn overrun(&self, cq: Cq) -> Error {
        Error::System(format!(
            "{}: completion queue {} has overrun, or cannot be read: completions are lost",
            self.attributes().name,
            cq.0
        ))
    }

    /// The status of a request that a queue pair could not execute. A device in software reports
    /// this error at once if its port is down, without any retry.
    #[cold]
    fn reason(&mut self, number: WrNumber) -> Status {
        let own = self.alive(number);
        let reliable = own.is_some_and(|own| own.transport == Transport::Rc);
        match reliable && self.is_down() {
            true => Status::RetryExceeded,
            false => Status::LocalQpOperation,
        }
    }

    /// Translates a completion. `None`: the request was posted before its queue pair was reset or
    /// destroyed.
    #[inline]
    fn translate(&mut self, one: &ibv_wc) -> Option<Completion> {
        let number = WrNumber::decode(one.wr_id);
        let mut status = status(one.status);
        if status == Status::LocalQpOperation {
            status = self.reason(number);
        }
        if number.kind == QueueKind::Send {
            let sent = self.alive(number)?.sends.retire(number.slot)?;
            return Some(Completion {
                id: sent.id,
                qp: Qp(number.queue),
                status,
                of: sent.of,
                bytes: if status == Status::Success {
                    sent.bytes
                } else {
                    0
                },
                immediate: None,
            });
        }
        let id = self.give_back(number)?;
        let (qp, header) = match number.kind {
            QueueKind::Shared => (*self.numbers.get(&one.qp_num)?, 0),
            _ => {
                let header = match self.alive(number)?.transport {
                    Transport::Ud => GRH,
                    _ => 0,
                };
                (number.queue, header)
            }
        };
        let whole = status == Status::Success;
        let by_write = whole && one.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
        let says = whole && one.wc_flags & IBV_WC_WITH_IMM != 0;
        Some(Completion {
            id,
            qp: Qp(qp),
            status,
            of: if by_write {
                Completed::ReceiveWrite
            } else {
                Completed::Receive
            },
            bytes: if whole {
                one.byte_len.saturating_sub(header)
            } else {
                0
            },
            // SAFETY: the flag shows that the immediate is valid.
            immediate: says.then(|| u32::from_be(unsafe { one.__bindgen_anon_1.imm_data })),
        })
    }
}

/// The status of a completion (IBA 11.6.2). Rare ones are mapped to the nearest status with the
/// same meaning for a program.
fn status(status: ibv_wc_status) -> Status {
    match status {
        IBV_WC_SUCCESS => Status::Success,
        IBV_WC_LOC_LEN_ERR => Status::LocalLength,
        IBV_WC_LOC_PROT_ERR | IBV_WC_LOC_ACCESS_ERR => Status::LocalProtection,
        IBV_WC_WR_FLUSH_ERR => Status::Flushed,
        IBV_WC_BAD_RESP_ERR => Status::BadResponse,
        IBV_WC_REM_INV_REQ_ERR => Status::RemoteInvalidRequest,
        IBV_WC_REM_ACCESS_ERR => Status::RemoteAccess,
        IBV_WC_REM_OP_ERR | IBV_WC_REM_ABORT_ERR => Status::RemoteOperation,
        IBV_WC_RETRY_EXC_ERR | IBV_WC_RESP_TIMEOUT_ERR => Status::RetryExceeded,
        IBV_WC_RNR_RETRY_EXC_ERR => Status::RnrRetryExceeded,
        _ => Status::LocalQpOperation,
    }
}
