//! Datagrams over UDP, at the IPv4 address of the network interface below a device that has no
//! datagrams.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use super::internet::socket_address;
use super::oob::Carrier;
use super::reliable_datagram::DATAGRAM;
use device::{Address, Device, Error, Result};

pub(crate) struct Socket {
    socket: UdpSocket,
    address: Address,
}

impl Socket {
    pub(crate) fn open(device: &str, ip: u128) -> Result<Socket> {
        let own = endpoint(Address { port: ip, qp: 0 })?;
        let open = || {
            let socket = UdpSocket::bind(own)?;
            socket.set_nonblocking(true)?;
            let port = socket.local_addr()?.port();
            Ok((socket, port))
        };
        let (socket, port) = open().map_err(|why: std::io::Error| {
            let ip = own.ip();
            Error::System(format!(
                "{device}: a UDP socket at {ip}, by which ranks find each other: {why}"
            ))
        })?;
        let address = Address {
            port: ip,
            qp: port.into(),
        };
        Ok(Socket { socket, address })
    }
}

fn endpoint(address: Address) -> Result<SocketAddrV4> {
    let raw = socket_address(address)?;
    let ip = Ipv4Addr::from(u32::from_be(raw.sin_addr.s_addr));
    Ok(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)))
}

impl Carrier for Socket {
    fn address(&self) -> Address {
        self.address
    }

    fn collect(&mut self, _device: &mut dyn Device, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut datagram = [0; DATAGRAM];
        loop {
            match self.socket.recv_from(&mut datagram) {
                Ok((len, _)) => take(&datagram[..len]),
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                // The network's report about a datagram that was sent: it is lost, and will be
                // retransmitted.
                Err(_) => {}
            }
        }
    }

    fn has_room(&self) -> bool {
        true
    }

    fn send(&mut self, _device: &mut dyn Device, to: Address, datagram: &[u8]) -> Result<()> {
        // A datagram that cannot leave now, without a route or room, is lost and will be
        // retransmitted.
        let _ = self.socket.send_to(datagram, endpoint(to)?);
        Ok(())
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
    use super::*;

    #[test]
    fn a_datagram_goes_to_the_address_that_a_socket_says() {
        let ip = Ipv4Addr::LOCALHOST.to_ipv6_mapped().into();
        let ends = [(); 2].map(|()| Socket::open("siw0", ip).unwrap());
        let to = endpoint(ends[1].address()).unwrap();
        ends[0].socket.send_to(b"hello", to).unwrap();
        ends[1].socket.set_nonblocking(false).unwrap();
        let mut datagram = [0; DATAGRAM];
        let (len, from) = ends[1].socket.recv_from(&mut datagram).unwrap();
        assert_eq!(&datagram[..len], b"hello");
        assert_eq!(from, endpoint(ends[0].address()).unwrap().into());
    }
}
