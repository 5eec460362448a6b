//! The order in which output of ranks arrived.
//!
//! Ranks often print in an order that the program itself has set, with a barrier between them.
//! `poll` gives the ranks with output in the order of their numbers. An epoll descriptor lists them
//! in the order in which their pipes became readable, which is that of their first writes.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{Timespec, epoll};

/// The most arrivals that one system call returns.
const AT_ONCE: usize = 64;

/// The pipes from the ranks of this host, in the order in which they became readable.
#[derive(Default)]
pub(crate) struct Arrivals {
    /// `None` if the order is unknown: there are no pipes, or no descriptors are left.
    order: Option<OwnedFd>,
}

impl Arrivals {
    /// Watches pipes, each with the number of its rank.
    pub(crate) fn of<'a>(pipes: impl Iterator<Item = (usize, BorrowedFd<'a>)>) -> Self {
        let mut pipes = pipes.peekable();
        if pipes.peek().is_none() {
            return Arrivals::default();
        }
        let order = epoll::create(epoll::CreateFlags::CLOEXEC).ok();
        // An event for each arrival, and none for bytes that stay unread: a pipe that keeps its
        // position would pass others when more arrives.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let order = order.filter(|order| {
            pipes.all(|(rank, pipe)| {
                epoll::add(order, pipe, epoll::EventData::new_u64(rank as u64), flags).is_ok()
            })
        });
        Arrivals { order }
    }

    /// The ranks whose output has arrived since the last call, the earliest first. A rank with two
    /// pipes may be there twice.
    pub(crate) fn take(&mut self) -> Vec<usize> {
        let mut ranks = Vec::new();
        let Some(order) = &self.order else {
            return ranks;
        };
        loop {
            let mut events = Vec::with_capacity(AT_ONCE);
            let buffer = rustix::buffer::spare_capacity(&mut events);
            let found = epoll::wait(order, buffer, Some(&Timespec::default())).unwrap_or(0);
            ranks.extend(events.iter().map(|event| event.data.u64() as usize));
            if found < AT_ONCE {
                return ranks;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn the_order_is_that_of_the_writes() {
        let pipes: Vec<(File, File)> = (0..3)
            .map(|_| rustix::pipe::pipe().unwrap())
            .map(|(reader, writer)| (reader.into(), writer.into()))
            .collect();
        let readers = pipes.iter().enumerate();
        let mut arrivals = Arrivals::of(readers.map(|(rank, (reader, _))| (rank, reader.as_fd())));
        let write = |rank: usize| (&pipes[rank].1).write_all(b"x").unwrap();
        let read = |rank: usize| (&pipes[rank].0).read_exact(&mut [0]).unwrap();
        assert!(arrivals.take().is_empty());
        [2, 0, 1].into_iter().for_each(write);
        assert_eq!(arrivals.take(), [2, 0, 1]);
        [2, 0, 1].into_iter().for_each(read);
        assert!(arrivals.take().is_empty());
        // A rank that was first before is not first again.
        [1, 2].into_iter().for_each(write);
        assert_eq!(arrivals.take(), [1, 2]);
    }

    #[test]
    fn without_pipes_there_is_no_order() {
        assert!(Arrivals::of(std::iter::empty()).take().is_empty());
    }
}
