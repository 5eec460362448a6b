//! Datagrams over UDP, at the address of the network interface of a device that has no datagrams of
//! its own.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use super::datagram::DATAGRAM;
use super::oob::{Carrier, MOST_TAKEN, Take};
use super::probes::Kernel;
use device::{Address, Device, Error, InterfaceAddress, Result};

pub(crate) struct Socket {
    socket: UdpSocket,
    own: InterfaceAddress,
    address: Address,
}

impl Socket {
    pub(crate) fn open(device: &str, own: InterfaceAddress) -> Result<Socket> {
        let open = || {
            let socket = UdpSocket::bind(own.at(0))?;
            socket.set_nonblocking(true)?;
            let port = socket.local_addr()?.port();
            Ok((socket, port))
        };
        let (socket, port) = open().map_err(|why: std::io::Error| {
            let ip = own.ip;
            Error::System(format!(
                "{device}: a UDP socket at {ip}, by which ranks find each other: {why}"
            ))
        })?;
        let address = Address {
            port: own.bits(),
            qp: port.into(),
        };
        Ok(Socket {
            socket,
            own,
            address,
        })
    }

    /// The socket address of a peer, as reached from this interface.
    fn endpoint(&self, to: Address) -> Result<SocketAddr> {
        let port = u16::try_from(to.qp).map_err(|_| {
            let number = to.qp;
            Error::Invalid(format!("{number} is no port of UDP"))
        })?;
        Ok(self.own.reach(to.port, port))
    }

    /// Passes arrived datagrams, at most [`MOST_TAKEN`], to `take`. True: there may be further
    /// ones.
    fn take_some(&self, take: &mut Take) -> bool {
        // A longer datagram is truncated here, so its code is wrong.
        let mut datagram = [0; DATAGRAM];
        for _ in 0..MOST_TAKEN {
            match self.socket.recv_from(&mut datagram) {
                Ok((len, from)) => take(&datagram[..len], Some(from)),
                Err(why) if why.kind() == ErrorKind::WouldBlock => return false,
                // The network reports that an earlier datagram was lost; it will be retransmitted.
                Err(_) => {}
            }
        }
        true
    }
}

impl Carrier for Socket {
    fn address(&self) -> Address {
        self.address
    }

    fn collect(&mut self, _device: &mut dyn Device, take: &mut Take) -> Result<bool> {
        Ok(self.take_some(take))
    }

    fn has_room(&self) -> bool {
        true
    }

    fn send(&mut self, _device: &mut dyn Device, to: Address, datagram: &[u8]) -> Result<()> {
        // A datagram that cannot leave now, for lack of a route or of room, is lost and will be
        // retransmitted.
        let _ = self.socket.send_to(datagram, self.endpoint(to)?);
        Ok(())
    }

    fn kernel(&self, to: Address) -> Option<Kernel> {
        Some(Kernel {
            from: Some(self.own.at(0)),
            to: self.endpoint(to).ok()?,
            is_host: true,
            is_socket: true,
        })
    }

    fn revive(&mut self, _device: &mut dyn Device) -> Result<()> {
        Ok(())
    }

    fn is_settled(&self) -> bool {
        true
    }

    fn fd(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn close(&mut self, _device: &mut dyn Device) {}
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_datagram_goes_to_the_address_that_a_socket_says() {
        for ip in [
            Ipv4Addr::LOCALHOST.into(),
            IpAddr::from(Ipv6Addr::LOCALHOST),
        ] {
            let own = InterfaceAddress { ip, scope: 0 };
            let ends = [(); 2].map(|()| Socket::open("siw0", own).unwrap());
            let to = ends[0].endpoint(ends[1].address()).unwrap();
            ends[0].socket.send_to(b"hello", to).unwrap();
            ends[1].socket.set_nonblocking(false).unwrap();
            let mut datagram = [0; DATAGRAM];
            let (len, from) = ends[1].socket.recv_from(&mut datagram).unwrap();
            assert_eq!(&datagram[..len], b"hello");
            assert_eq!(from, ends[1].endpoint(ends[0].address()).unwrap());
        }
    }

    #[test]
    fn a_flood_is_taken_in_bounded_parts() {
        let own = InterfaceAddress {
            ip: Ipv4Addr::LOCALHOST.into(),
            scope: 0,
        };
        let [flooded, stranger] = [(); 2].map(|()| Socket::open("siw0", own).unwrap());
        let to = stranger.endpoint(flooded.address()).unwrap();
        for _ in 0..MOST_TAKEN + 5 {
            stranger.socket.send_to(b"nothing", to).unwrap();
        }
        for (most, has_more) in [(MOST_TAKEN, true), (5, false)] {
            let mut taken = 0;
            let mut take = |datagram: &[u8], from: Option<SocketAddr>| {
                assert_eq!((datagram.len(), from.is_some()), (7, true));
                taken += 1;
            };
            assert_eq!(flooded.take_some(&mut take), has_more);
            assert_eq!(taken, most);
        }
    }

    #[test]
    fn a_number_above_all_ports_is_no_address() {
        let own = InterfaceAddress {
            ip: Ipv4Addr::LOCALHOST.into(),
            scope: 0,
        };
        let socket = Socket::open("siw0", own).unwrap();
        let to = Address {
            qp: 1 << 16,
            ..socket.address()
        };
        assert!(socket.endpoint(to).is_err());
    }
}
