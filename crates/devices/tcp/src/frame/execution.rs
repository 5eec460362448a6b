//! The execution of the peer's frames, after parsing and checks.

use device::{Slice, Status};

use super::header::{ASKED, AT_ONCE, HEADER, Header, Kind, status_of};
use super::host::{Break, Change, Done, Host, Right};
use super::incoming::{Payload, Stage};
use super::machine::Machine;

/// The destination of bytes of a payload, and the right that a write there needs.
struct Spot {
    slice: Slice,
    right: Right,
}

impl Machine {
    /// True if a frame waits for a receive.
    pub(crate) fn is_stalled(&self) -> bool {
        matches!(self.incoming.stage, Stage::Stalled(_))
    }

    /// True if the header of a frame has arrived.
    pub(crate) fn has_heard(&self) -> bool {
        self.incoming.has_heard
    }

    /// True if no byte of a frame has arrived that is not executed.
    fn is_between_frames(&self) -> bool {
        matches!(self.incoming.stage, Stage::Header) && self.incoming.have == 0
    }

    /// Executes bytes from the peer. Returns the number of bytes used. Fewer than all: a frame
    /// waits for a receive.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        now: impl Fn() -> u64,
        host: &mut impl Host,
    ) -> Result<usize, Break> {
        let mut used = 0;
        // The region may be gone since the last part.
        let mut is_checked = false;
        loop {
            match &mut self.incoming.stage {
                Stage::Header => {
                    let have = self.incoming.have;
                    let count = (HEADER - have).min(bytes.len() - used);
                    self.incoming.header[have..have + count]
                        .copy_from_slice(&bytes[used..used + count]);
                    used += count;
                    self.incoming.have += count;
                    if self.incoming.have < HEADER {
                        return Ok(used);
                    }
                    self.incoming.have = 0;
                    self.incoming.has_heard = true;
                    let header = Header::decode(&self.incoming.header);
                    let header = header.ok_or(Break::Protocol("it sent what is no frame"))?;
                    self.heed(&header, host)?;
                    self.open(header, &now, host)?;
                    is_checked = true;
                }
                Stage::Stalled(header) => {
                    let header = *header;
                    self.open(header, &now, host)?;
                    if self.is_stalled() {
                        return Ok(used);
                    }
                    is_checked = true;
                }
                Stage::Payload(payload) => {
                    let left = (payload.header.len - payload.done) as usize;
                    let count = left.min(bytes.len() - used);
                    if count > 0 {
                        self.place(&bytes[used..used + count], is_checked, host)?;
                        used += count;
                    }
                    if count < left {
                        return Ok(used);
                    }
                    self.close(&now, host)?;
                }
            }
            if used == bytes.len() && self.is_between_frames() {
                return Ok(used);
            }
        }
    }

    /// The address and the length of the memory for the next bytes, if at least `least` bytes of
    /// payload are still to be received into it. [`received`](Machine::received) must follow.
    pub(crate) fn direct(&self, least: usize, host: &impl Host) -> Option<(u64, usize)> {
        let Stage::Payload(payload) = &self.incoming.stage else {
            return None;
        };
        let spot = self.spot(payload)?;
        let Slice { address, len, lkey } = spot.slice;
        let is_long = len as usize >= least;
        let is_there = is_long && host.allows(lkey, address, len.into(), spot.right);
        is_there.then_some((address, len as usize))
    }

    /// True if the last payload had at least `least` bytes: the next probably has, too.
    pub(crate) fn was_long(&self, least: usize) -> bool {
        self.incoming.last_len as usize >= least
    }

    /// Records that this number of bytes was received straight into the memory that `direct`
    /// returned.
    pub(crate) fn received(
        &mut self,
        bytes: usize,
        now: impl Fn() -> u64,
        host: &mut impl Host,
    ) -> Result<(), Break> {
        if let Stage::Payload(payload) = &mut self.incoming.stage {
            payload.done += bytes as u32;
            if payload.done == payload.header.len {
                return self.close(&now, host);
            }
        }
        Ok(())
    }

    /// Handles the acknowledgement in the header of a frame.
    #[inline]
    fn heed(&mut self, header: &Header, host: &mut impl Host) -> Result<(), Break> {
        self.requests.executed(header.executed, host)
    }

    /// Begins the execution of a frame: everything before its payload.
    #[inline]
    fn open(
        &mut self,
        header: Header,
        now: &impl Fn() -> u64,
        host: &mut impl Host,
    ) -> Result<(), Break> {
        let Header {
            len, address, key, ..
        } = header;
        let may = |host: &mut dyn FnMut(Right) -> bool, right| match len == 0 || host(right) {
            true => Ok(()),
            false => Err(Break::Refuse(Status::RemoteAccess)),
        };
        let mut allows = |right| host.allows(key, address, len.into(), right);
        match header.kind {
            Kind::Acknowledgement => {
                self.incoming.stage = Stage::Header;
                return Ok(());
            }
            Kind::Refusal => return Err(Break::Refused(status_of(header.immediate))),
            Kind::Write => may(&mut allows, Right::RemoteWrite)?,
            Kind::Read => {
                may(&mut allows, Right::RemoteRead)?;
                return self.answer_read(header, now);
            }
            Kind::Add | Kind::Swap => {
                if address % 8 != 0 {
                    return Err(Break::Refuse(Status::RemoteInvalidRequest));
                }
                if !host.allows(key, address, 8, Right::RemoteAtomic) {
                    return Err(Break::Refuse(Status::RemoteAccess));
                }
            }
            Kind::Answer => {
                if self.requests.awaited().is_none_or(|(_, due)| due != len) {
                    return Err(Break::Protocol("it sent an answer that is not awaited"));
                }
            }
            Kind::Send => {}
        }
        let needs_receive = header.kind == Kind::Send || header.immediate().is_some();
        let mut receive = None;
        if needs_receive {
            let Some(next) = host.receive() else {
                self.incoming.stage = Stage::Stalled(header);
                return Ok(());
            };
            receive = Some(next);
        }
        let is_short = receive.is_some_and(|receive| u64::from(len) > receive.len());
        self.incoming.stage = Stage::Payload(Payload {
            header,
            done: 0,
            receive,
            operands: [0; 16],
        });
        if header.kind == Kind::Send {
            if is_short {
                return Err(Break::Refuse(Status::RemoteInvalidRequest));
            }
            self.check_receive(host)?;
        }
        Ok(())
    }

    /// Checks the whole memory of the receive that a message consumes.
    fn check_receive(&self, host: &impl Host) -> Result<(), Break> {
        let Stage::Payload(payload) = &self.incoming.stage else {
            return Ok(());
        };
        let slices = payload
            .receive
            .iter()
            .flat_map(|one| &one.into[..one.slices]);
        for Slice { address, len, lkey } in slices.filter(|slice| slice.len > 0) {
            if !host.allows(*lkey, *address, u64::from(*len), Right::LocalWrite) {
                return Err(Break::Refuse(Status::RemoteOperation));
            }
        }
        Ok(())
    }

    /// The destination of the next bytes of a payload. `None`: they are operands.
    #[inline]
    fn spot(&self, payload: &Payload) -> Option<Spot> {
        let header = &payload.header;
        let of_slices = |slices: &[Slice]| {
            let mut skip = payload.done;
            let mut left = header.len - payload.done;
            for slice in slices {
                if skip < slice.len {
                    left = left.min(slice.len - skip);
                    return Some(Spot {
                        slice: Slice {
                            address: slice.address + u64::from(skip),
                            len: left,
                            lkey: slice.lkey,
                        },
                        right: Right::LocalWrite,
                    });
                }
                skip -= slice.len;
            }
            None
        };
        match header.kind {
            Kind::Write => Some(Spot {
                slice: Slice {
                    address: header.address + u64::from(payload.done),
                    len: header.len - payload.done,
                    lkey: header.key,
                },
                right: Right::RemoteWrite,
            }),
            Kind::Send => {
                let receive = payload.receive.as_ref()?;
                of_slices(&receive.into[..receive.slices])
            }
            Kind::Answer => of_slices(self.requests.awaited()?.0),
            _ => None,
        }
    }

    /// Copies bytes of the payload to their destination, which it checks if necessary.
    fn place(&mut self, bytes: &[u8], is_checked: bool, host: &mut impl Host) -> Result<(), Break> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let Stage::Payload(payload) = &self.incoming.stage else {
                return Ok(());
            };
            let Some(spot) = self.spot(payload) else {
                let Stage::Payload(payload) = &mut self.incoming.stage else {
                    return Ok(());
                };
                let at = payload.done as usize;
                payload.operands[at..at + rest.len()].copy_from_slice(rest);
                payload.done += rest.len() as u32;
                return Ok(());
            };
            let Slice { address, len, lkey } = spot.slice;
            let is_own = payload.header.kind == Kind::Answer;
            if (!is_checked || is_own) && !host.allows(lkey, address, len.into(), spot.right) {
                return Err(match is_own {
                    true => Break::Local(Status::LocalProtection),
                    false => Break::Refuse(Status::RemoteAccess),
                });
            }
            let (now, later) = rest.split_at(rest.len().min(len as usize));
            host.place(address, now);
            if let Stage::Payload(payload) = &mut self.incoming.stage {
                payload.done += now.len() as u32;
            }
            rest = later;
        }
        Ok(())
    }

    /// Ends the execution of a frame: everything after its payload.
    #[inline]
    fn close(&mut self, now: &impl Fn() -> u64, host: &mut impl Host) -> Result<(), Break> {
        let Stage::Payload(payload) = std::mem::take(&mut self.incoming.stage) else {
            return Ok(());
        };
        let header = payload.header;
        self.incoming.last_len = header.len;
        match header.kind {
            Kind::Answer => return self.requests.answered(host),
            Kind::Add | Kind::Swap => {
                let word = |at: usize| {
                    u64::from_le_bytes(std::array::from_fn(|i| payload.operands[at + i]))
                };
                let change = match header.kind {
                    Kind::Add => Change::Add(word(0)),
                    _ => Change::Swap(word(0), word(8)),
                };
                if !host.allows(header.key, header.address, 8, Right::RemoteAtomic) {
                    return Err(Break::Refuse(Status::RemoteAccess));
                }
                let old = host.change(header.address, change);
                self.executed(&header, now);
                self.answer(8)?;
                // An answer is what the old word is in memory.
                self.outgoing.bytes(&old.to_ne_bytes());
                return Ok(());
            }
            Kind::Write if header.len > 0 => host.wrote(header.key),
            _ => {}
        }
        self.executed(&header, now);
        if let Some(receive) = payload.receive {
            let (of, immediate) = (header.received_as(), header.immediate());
            let done = Done::of_receive(&receive, of, Status::Success, header.len, immediate);
            host.complete(done, receive.is_shared);
        }
        Ok(())
    }

    /// Answers a read of the peer with bytes of this end's memory.
    fn answer_read(&mut self, header: Header, now: &impl Fn() -> u64) -> Result<(), Break> {
        self.executed(&header, now);
        self.incoming.stage = Stage::Header;
        self.answer(header.len)?;
        if header.len > 0 {
            self.outgoing.answer(Slice {
                address: header.address,
                len: header.len,
                lkey: header.key,
            });
        }
        Ok(())
    }

    /// Begins an answer with a payload of `len` bytes.
    fn answer(&mut self, len: u32) -> Result<(), Break> {
        if self.outgoing.is_flooded() {
            return Err(Break::Protocol("it asks for more answers than it may"));
        }
        let mut head = Header::of(Kind::Answer, self.acknowledge());
        head.len = len;
        self.outgoing.bytes(&head.encode());
        Ok(())
    }

    /// Records that a request of the peer has been executed.
    #[inline]
    fn executed(&mut self, header: &Header, now: &impl Fn() -> u64) {
        self.owed.executed = self.owed.executed.wrapping_add(1);
        if header.flags & (ASKED | AT_ONCE) != 0 {
            self.owed.since.get_or_insert_with(now);
            self.owed.at_once |= header.flags & AT_ONCE != 0;
        }
    }
}
