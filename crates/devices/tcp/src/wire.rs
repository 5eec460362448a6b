//! System calls on the sockets of connections.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use device::Slice;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::frame::Piece;

/// The most pieces that one system call sends.
pub(crate) const PIECES: usize = 32;
/// The longest frame that is copied to one run of bytes before it is sent, in bytes.
const SHORT: usize = 256;
/// The most bytes of one system call. The kernel passes them on at the end of the call at the
/// latest; the first bytes of a longer call would have left the processor's caches by then.
const CALL: usize = 128 << 10;
/// The size of the kernel's send buffer for a short path, in bytes. The kernel doubles the number,
/// for what it needs itself.
const LITTLE: usize = 128 << 10;
/// The most connections that the kernel keeps for a listener that computes.
pub(crate) const BACKLOG: i32 = 4096;
/// The time from the last sign of an idle peer to the first keepalive probe, the time from one
/// probe to the next, and the number of unanswered probes after which the peer is gone.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(2), Duration::from_secs(1), 3);

/// A socket that holds a port at an address. Nothing listens there yet.
pub(crate) fn hold(at: SocketAddr) -> io::Result<OwnedFd> {
    let socket = new(at)?;
    rustix::net::bind(&socket, &at)?;
    Ok(socket)
}

/// A socket that listens at the port that another one holds. Connections of an earlier listener may
/// still exist.
pub(crate) fn listen(held: &OwnedFd) -> io::Result<OwnedFd> {
    let at: SocketAddr = rustix::net::getsockname(held)?.try_into()?;
    let socket = new(at)?;
    let open = || -> rustix::io::Result<()> {
        sockopt::set_socket_reuseaddr(held, true)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::bind(&socket, &at)?;
        rustix::net::listen(&socket, BACKLOG)
    };
    let is_open = open();
    // The next listener is this process's again: sockets share a port only if all of them allow it.
    sockopt::set_socket_reuseaddr(held, false)?;
    is_open?;
    Ok(socket)
}

/// Begins a connection from one address to another. Returns its socket.
pub(crate) fn dial(from: SocketAddr, to: SocketAddr) -> io::Result<OwnedFd> {
    let socket = new(to)?;
    rustix::net::bind(&socket, &from)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(why) => Err(why.into()),
    }
}

fn new(at: SocketAddr) -> io::Result<OwnedFd> {
    let family = match at {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(
        family,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// Accepts a connection. Returns its socket, and the address of the caller.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (socket, from) = rustix::net::acceptfrom_with(listener, flags)?;
    Ok((socket, from.and_then(|from| from.try_into().ok())))
}

/// The port that a socket holds.
pub(crate) fn port_of(held: &OwnedFd) -> io::Result<u16> {
    let own: SocketAddr = rustix::net::getsockname(held)?.try_into()?;
    Ok(own.port())
}

/// Prepares a connected socket for frames: bytes leave without waiting for more, and a peer that is
/// gone is noticed.
pub(crate) fn prepare(socket: &OwnedFd) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, true)?;
    let (idle, interval, count) = KEEPALIVE;
    sockopt::set_tcp_keepidle(socket, idle)?;
    sockopt::set_tcp_keepintvl(socket, interval)?;
    sockopt::set_tcp_keepcnt(socket, count)?;
    Ok(sockopt::set_socket_keepalive(socket, true)?)
}

/// The result of connecting a socket, once an event has reported it.
pub(crate) fn outcome(socket: &OwnedFd) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

/// Sends as much of the pieces as the socket takes. Zero: it takes nothing now.
pub(crate) fn send(socket: BorrowedFd, pieces: &[Piece]) -> io::Result<usize> {
    let mut parts = [const {
        libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }
    }; PIECES];
    for (part, piece) in parts.iter_mut().zip(pieces) {
        (part.iov_base, part.iov_len) = match *piece {
            Piece::Bytes(bytes) => (bytes.as_ptr() as *mut _, bytes.len()),
            Piece::Memory(address, len) => (address as *mut _, len),
        };
    }
    send_parts(socket, &mut parts[..pieces.len().min(PIECES)])
}

/// Sends as much of a frame as the socket takes. Zero: it takes nothing now.
///
/// # Safety
/// The payload is memory of the owner, who leaves it alone meanwhile.
#[inline]
pub(crate) unsafe fn send_frame(
    socket: BorrowedFd,
    head: &[u8],
    payload: &[Slice],
) -> io::Result<usize> {
    let len: usize = payload.iter().map(|slice| slice.len as usize).sum();
    if head.len() + len <= SHORT {
        // One run of bytes: the system call is shorter than with a list of parts.
        let mut bytes = [0u8; SHORT];
        bytes[..head.len()].copy_from_slice(head);
        let mut end = head.len();
        for slice in payload {
            let (from, len) = (slice.address as *const u8, slice.len as usize);
            // SAFETY: the caller's promise; the lengths fit, as counted above.
            unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr().add(end), len) };
            end += len;
        }
        return send_bytes(socket, &bytes[..end]);
    }
    let mut parts = [const {
        libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }
    }; PIECES];
    (parts[0].iov_base, parts[0].iov_len) = (head.as_ptr() as *mut _, head.len());
    for (part, slice) in parts[1..].iter_mut().zip(payload) {
        (part.iov_base, part.iov_len) = (slice.address as *mut _, slice.len as usize);
    }
    send_parts(socket, &mut parts[..(payload.len() + 1).min(PIECES)])
}

/// Sends as many of the bytes as the socket takes. Zero: it takes nothing now.
#[inline]
pub(crate) fn send_bytes(socket: BorrowedFd, bytes: &[u8]) -> io::Result<usize> {
    let (from, len) = (bytes.as_ptr().cast(), bytes.len());
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: an open socket and the bytes.
    let sent = or_none(unsafe { libc::send(socket.as_raw_fd(), from, len, flags) })?;
    Ok(sent.unwrap_or(0))
}

/// Sends the parts, at most [`CALL`] bytes of them in a call.
#[inline]
fn send_parts(socket: BorrowedFd, parts: &mut [libc::iovec]) -> io::Result<usize> {
    let len: usize = parts.iter().map(|part| part.iov_len).sum();
    match len <= CALL {
        true => send_call(socket, parts),
        false => send_calls(socket, parts),
    }
}

/// Sends many bytes in several system calls, until the socket takes no more.
fn send_calls(socket: BorrowedFd, mut parts: &mut [libc::iovec]) -> io::Result<usize> {
    let mut total = 0;
    while !parts.is_empty() {
        let (count, last) = first_parts(parts, CALL);
        let whole = std::mem::replace(&mut parts[count - 1].iov_len, last);
        let wanted: usize = parts[..count].iter().map(|part| part.iov_len).sum();
        let sent = send_call(socket, &mut parts[..count]);
        parts[count - 1].iov_len = whole;
        let sent = match sent {
            Ok(sent) => sent,
            // The error comes again with the bytes behind those that have left.
            Err(_) if total > 0 => break,
            Err(why) => return Err(why),
        };
        total += sent;
        if sent < wanted {
            break;
        }
        match last < whole {
            true => {
                let rest = &mut parts[count - 1];
                rest.iov_base = rest.iov_base.wrapping_byte_add(last);
                rest.iov_len -= last;
                parts = &mut parts[count - 1..];
            }
            false => parts = &mut parts[count..],
        }
    }
    Ok(total)
}

/// The first parts that have up to `limit` bytes: their number, and the bytes of the last of them.
fn first_parts(parts: &[libc::iovec], limit: usize) -> (usize, usize) {
    let mut left = limit;
    for (at, part) in parts.iter().enumerate() {
        if part.iov_len >= left {
            return (at + 1, left);
        }
        left -= part.iov_len;
    }
    (parts.len(), parts.last().map_or(0, |part| part.iov_len))
}

#[inline]
fn send_call(socket: BorrowedFd, parts: &mut [libc::iovec]) -> io::Result<usize> {
    // SAFETY: numbers and pointers that may be null.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: an open socket and the parts. The kernel only reads them; a part whose memory is gone
    // is an error of the call.
    let sent = or_none(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, flags) })?;
    Ok(sent.unwrap_or(0))
}

/// Receives bytes, first into checked memory and then into `tail`. `None`: nothing has arrived.
/// Zero: the peer sends no more.
///
/// # Safety
/// The bytes from `address` on lie in registered memory that the peer may write to.
#[inline]
pub(crate) unsafe fn receive(
    socket: BorrowedFd,
    (address, len): (u64, usize),
    tail: &mut [u8],
) -> io::Result<Option<usize>> {
    let mut parts = [
        libc::iovec {
            iov_base: address as *mut _,
            iov_len: len,
        },
        libc::iovec {
            iov_base: tail.as_mut_ptr().cast(),
            iov_len: tail.len(),
        },
    ];
    // SAFETY: numbers and pointers that may be null.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = 2;
    // SAFETY: an open socket; memory that the caller has checked, and our own.
    or_none(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_DONTWAIT) })
}

/// Receives bytes. `None`: nothing has arrived. Zero: the peer sends no more.
#[inline]
pub(crate) fn receive_bytes(socket: BorrowedFd, into: &mut [u8]) -> io::Result<Option<usize>> {
    let (place, len) = (into.as_mut_ptr().cast(), into.len());
    // SAFETY: an open socket, and memory for the bytes.
    or_none(unsafe { libc::recv(socket.as_raw_fd(), place, len, libc::MSG_DONTWAIT) })
}

#[inline]
fn or_none(answer: isize) -> io::Result<Option<usize>> {
    if answer >= 0 {
        return Ok(Some(answer as usize));
    }
    let why = io::Error::last_os_error();
    match why.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
        // The kernel lacks memory for another packet now.
        _ if why.raw_os_error() == Some(libc::ENOBUFS) => Ok(None),
        _ => Err(why),
    }
}

/// True if the peer has ended the connection, and nothing of it is left to be read.
pub(crate) fn is_over(socket: &OwnedFd) -> bool {
    let mut byte = 0u8;
    let flags = libc::MSG_DONTWAIT | libc::MSG_PEEK;
    // SAFETY: an open socket, and memory for a byte.
    let answer = unsafe { libc::recv(socket.as_raw_fd(), (&raw mut byte).cast(), 1, flags) };
    !matches!(or_none(answer), Ok(None | Some(1)))
}

/// The kernel's statistics about the path of a TCP connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    /// The number of consecutive retransmissions of the same bytes.
    pub resent: u32,
    /// The number of consecutive keepalive probes without an answer.
    pub unanswered: u32,
    /// The time since the last acknowledgement, in milliseconds.
    pub heard_ms: u32,
    /// The shortest round-trip time so far, in µs.
    pub shortest_us: u32,
}

/// The kernel's statistics of the path of a connection.
pub(crate) fn path(socket: &OwnedFd) -> io::Result<Path> {
    // SAFETY: numbers only.
    let mut info: libc::tcp_info = unsafe { zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: an open socket, and memory for the answer, whose length is given.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &mut len,
        )
    };
    match answer {
        0 => Ok(Path {
            resent: info.tcpi_retransmits.into(),
            unanswered: info.tcpi_probes.into(),
            heard_ms: info.tcpi_last_ack_recv,
            shortest_us: match info.tcpi_min_rtt {
                // An old kernel does not say.
                0 => u32::MAX,
                known => known,
            },
        }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the kernel keep few bytes that wait for the peer: as many as are in flight on a short
/// path. With more, bytes leave the caches of the processor before they are copied again.
pub(crate) fn keep_little(socket: &OwnedFd) {
    // Without it the connection works as well, only slower.
    let _ = sockopt::set_socket_send_buffer_size(socket, LITTLE);
}

/// The number of bytes that the peer's kernel has not acknowledged.
pub(crate) fn unacknowledged(socket: &OwnedFd) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: an open socket, and memory for the answer.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) } {
        0 => bytes.max(0) as usize,
        _ => 0,
    }
}

/// Ends the connection in this direction: the peer reads the end of the stream.
pub(crate) fn end(socket: impl AsFd) {
    // A connection that is gone needs no end.
    let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
}

/// An error of the system as text, without its number.
pub(super) fn words(why: &io::Error) -> String {
    let text = why.to_string();
    match (text.split_once(" (os error"), why.raw_os_error()) {
        (Some((words, _)), Some(libc::EMFILE)) => {
            format!("{words} (the limit on open files is reached: `ulimit -n`)")
        }
        (Some((words, _)), _) => words.to_string(),
        (None, _) => text,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Waits for a connection: the listener does not.
    fn accepted(listener: &OwnedFd) -> OwnedFd {
        loop {
            match accept(listener) {
                Ok((socket, _)) => return socket,
                Err(why) => assert_eq!(why.kind(), io::ErrorKind::WouldBlock),
            }
        }
    }

    #[test]
    fn a_held_port_is_nobody_elses_and_can_be_listened_at_more_than_once() {
        for ip in [
            std::net::IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ] {
            let held = hold((ip, 0).into()).unwrap();
            let at = SocketAddr::from((ip, port_of(&held).unwrap()));
            let mut streams = Vec::new();
            for _ in 0..3 {
                assert!(TcpStream::connect(at).is_err(), "nothing listens");
                // The library's listener asks for a shared port.
                assert!(TcpListener::bind(at).is_err(), "the port is held");
                let listener = listen(&held).unwrap();
                streams.push((TcpStream::connect(at).unwrap(), accepted(&listener)));
                assert!(TcpListener::bind(at).is_err(), "the port is in use");
            }
            assert!(streams.iter().all(|(_, socket)| !is_over(socket)));
        }
    }

    #[test]
    fn the_first_parts_have_as_many_bytes_as_wanted() {
        let part = |iov_len| libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len,
        };
        let parts = [part(24), part(100), part(0), part(50)];
        let of = |limit| first_parts(&parts, limit);
        assert_eq!(of(10), (1, 10));
        assert_eq!(of(24), (1, 24));
        assert_eq!(of(25), (2, 1));
        assert_eq!(of(124), (2, 100));
        assert_eq!(of(150), (4, 26));
        assert_eq!(of(174), (4, 50));
        assert_eq!(of(500), (4, 50));
    }

    #[test]
    fn many_bytes_leave_in_several_calls_and_in_order() {
        let (near, far) = UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        let bytes: Vec<u8> = (0..5 * CALL + 77).map(|at| (at % 251) as u8).collect();
        let (mut sent, mut got) = (0, Vec::new());
        let mut room = vec![0; bytes.len()];
        while got.len() < bytes.len() {
            let (head, rest) = bytes[sent..].split_at((bytes.len() - sent).min(1000));
            sent += send(near.as_fd(), &[Piece::Bytes(head), Piece::Bytes(rest)]).unwrap();
            while let Ok(Some(count)) = receive_bytes(far.as_fd(), &mut room) {
                got.extend_from_slice(&room[..count]);
            }
        }
        assert!(got == bytes);
    }
}
