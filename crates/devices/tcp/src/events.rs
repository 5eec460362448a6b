//! The events of a device's sockets, awaited by one epoll instance for each device.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::pair::Interest;

/// The most events that one poll returns.
const MOST: usize = 64;
/// The number of low bits of an epoll event's data that hold the number in a tag.
const NUMBER_BITS: u32 = 32;

/// The purpose of a socket of the device, which the socket's events return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// The socket that listens for connections.
    Listener,
    /// A connection whose caller has not proven that it belongs to the job, by its number.
    Unproven(u32),
    /// The connection of a queue pair, or the call to its peer.
    Pair(u32),
    /// A call that its queue pair no longer needs, by the number of its
    /// [`LastCall`](super::pair::LastCall).
    Last(u32),
}

impl Tag {
    fn encode(self) -> EventData {
        let (kind, number) = match self {
            Tag::Listener => (0u64, 0),
            Tag::Unproven(number) => (1, number),
            Tag::Pair(number) => (2, number),
            Tag::Last(number) => (3, number),
        };
        EventData::new_u64(kind << NUMBER_BITS | u64::from(number))
    }

    fn decode(data: u64) -> Tag {
        let number = data as u32;
        match data >> NUMBER_BITS {
            0 => Tag::Listener,
            1 => Tag::Unproven(number),
            2 => Tag::Pair(number),
            _ => Tag::Last(number),
        }
    }
}

/// The sockets of a device whose events are awaited.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll })
    }

    /// A descriptor that is readable while a socket has an event.
    pub(crate) fn fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Waits for the events of `interest` on a new socket. False: the system refuses.
    pub(crate) fn add(&self, tag: Tag, socket: &OwnedFd, interest: Interest) -> bool {
        epoll::add(&self.epoll, socket, tag.encode(), interest.flags()).is_ok()
    }

    /// Changes the events of a socket that are awaited.
    pub(crate) fn change(&self, tag: Tag, socket: &OwnedFd, interest: Interest) {
        // The socket is in the list, so there is nothing to refuse.
        let _ = epoll::modify(&self.epoll, socket, tag.encode(), interest.flags());
    }

    /// Stops waiting for the events of a socket.
    pub(crate) fn forget(&self, socket: &OwnedFd) {
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Adds the sockets that have events to `news`, without waiting. If more than [`MOST`] have
    /// events, the kernel reports others with each call.
    pub(crate) fn poll(&self, news: &mut Vec<Tag>) {
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut place = [const { MaybeUninit::<Event>::uninit() }; MOST];
        let Ok((found, _)) = epoll::wait(&self.epoll, &mut place, Some(&at_once)) else {
            return;
        };
        news.extend(found.iter().map(|one| Tag::decode(one.data.u64())));
    }
}

impl Interest {
    /// Interest in input only.
    pub(crate) const INPUT: Interest = Interest {
        input: true,
        output: false,
    };
    /// Interest in room for output only.
    pub(crate) const OUTPUT: Interest = Interest {
        input: false,
        output: true,
    };

    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.input);
        flags.set(EventFlags::OUT, self.output);
        flags
    }
}
