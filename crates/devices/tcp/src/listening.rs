//! The listener of a device: it is there as long as a peer can come.
//!
//! A peer *can come* if it may call a queue pair of this device: it has the queue pair's address,
//! or may be given it, and no connection has been made since. So a device begins to listen when a
//! queue pair is created or reset. A queue pair needs the listener no more when its connection is
//! ready, when its address turns out to be the lower one and it calls itself, when its peer has
//! been silent for too long, and when it fails or is destroyed. With the last of them the device
//! listens no more: the kernel refuses who calls.
//!
//! The device keeps the port, because addresses of queue pairs contain it. So a rank whose
//! connections are all made, or that has none to make, offers nothing to the network, and one with
//! a connection to make again listens until that is done.

use std::io;

use super::device::TcpDevice;
use super::events::Tag;
use super::pair::Interest;
use super::wire;

impl TcpDevice {
    /// Listens for a call of the peer of a queue pair, which is new or was reset.
    pub(super) fn await_call(&mut self, at: u32) {
        self.update_listener(at);
        self.listen();
    }

    /// Listens for connections, if a peer may connect. If the system refuses, for example because
    /// the interface has lost its address with its link, the next check of the device tries again.
    pub(super) fn listen(&mut self) {
        self.lacks_listener = false;
        if self.awaited > 0
            && let Err(why) = self.try_to_listen()
        {
            self.lacks_listener = true;
            self.calls.close();
            let (ip, port) = (self.own.ip, self.calls.port);
            self.note(format!(
                "listening at port {port} of {ip}: {}",
                wire::words(&why)
            ));
        }
    }

    fn try_to_listen(&mut self) -> io::Result<()> {
        match self.calls.listen()? {
            Some(new) if !self.poller.add(Tag::Listener, new, Interest::INPUT) => {
                Err(io::Error::other("the system watches no more sockets"))
            }
            _ => Ok(()),
        }
    }

    /// Updates, for queue pair `at`, the number of queue pairs whose peers may call. Once there are
    /// none, the device stops listening.
    pub(super) fn update_listener(&mut self, at: u32) {
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        let may_be_called = pair.may_be_called();
        match (pair.is_awaited, may_be_called) {
            (false, true) => self.awaited += 1,
            (true, false) => self.awaited -= 1,
            _ => return,
        }
        pair.is_awaited = may_be_called;
        if self.awaited == 0 {
            self.stop_listening();
        }
    }

    /// Accepts the connections that the kernel has made already, so that strangers among them are
    /// counted, and closes the listener.
    fn stop_listening(&mut self) {
        for _ in 0..wire::BACKLOG {
            if !self.accept() {
                break;
            }
        }
        self.calls.close();
    }
}
