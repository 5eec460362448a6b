//! Sockets of this host's kernel; the other side is another process, which a [`ControlLink`]
//! reaches.
//!
//! The side that listened for the control connection also listens for the measured connection, and
//! sends its port to the other. Both sides use the addresses of the control connection, so no host
//! name is resolved again.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::{Incoming, Received, SocketSide, Sockets, measure, read_stream};
use crate::benchmark::TransportService;
use crate::control::ControlLink;
use crate::measure::Sample;
use crate::plan::PerfPlan;

/// The time without datagrams after which none is in flight: no network delays one for longer.
const QUIET: Duration = Duration::from_millis(200);
/// The time between two heartbeats.
const ALIVE: Duration = Duration::from_secs(1);
/// The number of messages between two readings of the clock for heartbeats.
const MESSAGES: u32 = 64;
/// The time between two polls of a listening socket for a connection.
const AGAIN: Duration = Duration::from_millis(1);
/// Stands for the number of sent messages while it is unknown.
const UNKNOWN: usize = usize::MAX;

enum Socket {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl Socket {
    fn again(&self) -> std::io::Result<Socket> {
        match self {
            Socket::Tcp(stream) => stream.try_clone().map(Socket::Tcp),
            Socket::Udp(socket) => socket.try_clone().map(Socket::Udp),
        }
    }

    fn set_limits(&self, read: Duration, write: Duration) -> std::io::Result<()> {
        match self {
            Socket::Tcp(stream) => {
                stream.set_read_timeout(Some(read))?;
                stream.set_write_timeout(Some(write))
            }
            Socket::Udp(socket) => {
                socket.set_read_timeout(Some(read))?;
                socket.set_write_timeout(Some(write))
            }
        }
    }
}

/// A socket, with a clock that times its reads.
struct Timed {
    socket: Socket,
    start: Instant,
    patience: Duration,
    /// True if the limit of reads is set to [`QUIET`], otherwise it is `patience`.
    is_short: bool,
}

impl Timed {
    /// Reads bytes or a datagram. `None`: nothing has arrived within the limit, [`QUIET`] if
    /// `is_short` and otherwise `patience`.
    fn read(&mut self, into: &mut [u8], is_short: bool) -> Result<Option<usize>> {
        if self.is_short != is_short {
            let limit = if is_short { QUIET } else { self.patience };
            self.socket.set_limits(limit, self.patience)?;
            self.is_short = is_short;
        }
        loop {
            let read = match &mut self.socket {
                Socket::Tcp(stream) => stream.read(into),
                Socket::Udp(socket) => socket.recv(into),
            };
            return match read {
                Ok(0) => bail!("the other side has closed the connection"),
                Ok(count) => Ok(Some(count)),
                Err(why) if why.kind() == ErrorKind::Interrupted => continue,
                Err(why) if is_silence(&why) => Ok(None),
                Err(why) => Err(why).context("cannot receive"),
            };
        }
    }
}

fn is_silence(why: &std::io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl Sockets for Timed {
    fn clock(&mut self) -> u64 {
        self.start.elapsed().as_nanos() as u64 * 1000
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        let sent = match &mut self.socket {
            Socket::Tcp(stream) => stream.write_all(message),
            Socket::Udp(socket) => socket.send(message).map(drop),
        };
        sent.context("cannot send to the other side")
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        let seconds = self.patience.as_secs_f64();
        let count = self.read(into, false)?;
        count.with_context(|| {
            format!("nothing has arrived for {seconds} s: a datagram was lost, or the other side is stuck")
        })
    }

    fn try_receive(&mut self, into: &mut [u8]) -> Result<Option<usize>> {
        self.read(into, true)
    }
}

/// The thread that reads a stream, and the number of sent messages, which it needs to stop.
struct Reader {
    thread: JoinHandle<Result<Received>>,
    sent: Arc<AtomicUsize>,
}

struct Real {
    timed: Timed,
    link: ControlLink,
    client: bool,
    reader: Option<Reader>,
    sent: u32,
    alive_at: Instant,
}

impl Sockets for Real {
    fn clock(&mut self) -> u64 {
        self.timed.clock()
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.sent = self.sent.wrapping_add(1);
        if self.sent.is_multiple_of(MESSAGES) && Instant::now() >= self.alive_at {
            self.alive_at = Instant::now() + ALIVE;
            self.link.check()?;
            self.link.alive()?;
        }
        self.timed.send(message)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        self.timed.receive(into)
    }

    fn try_receive(&mut self, into: &mut [u8]) -> Result<Option<usize>> {
        self.timed.try_receive(into)
    }
}

impl SocketSide for Real {
    fn is_client(&self) -> bool {
        self.client
    }

    fn is_modelled(&self) -> bool {
        false
    }

    fn start_reading(&mut self, stream: Incoming) -> Result<()> {
        let mut timed = Timed {
            socket: self
                .timed
                .socket
                .again()
                .context("cannot share the socket")?,
            start: self.timed.start,
            patience: self.timed.patience,
            is_short: self.timed.is_short,
        };
        let sent = Arc::new(AtomicUsize::new(UNKNOWN));
        let known = sent.clone();
        let thread = spawn(move || {
            let known = || Some(known.load(Ordering::Acquire)).filter(|sent| *sent != UNKNOWN);
            read_stream(&mut timed, stream, known)
        });
        // The limit of reads belongs to the socket, and the thread now sets it.
        self.timed.is_short = !stream.is_reliable;
        self.reader = Some(Reader { thread, sent });
        Ok(())
    }

    fn finish_reading(&mut self, sent: usize) -> Result<Received> {
        let reader = self.reader.take().context("no stream is being read")?;
        reader.sent.store(sent, Ordering::Release);
        let read = reader.thread.join();
        read.map_err(|_| anyhow!("the thread that reads has ended early"))?
    }

    fn oob_send(&mut self, words: &str) -> Result<()> {
        self.link.say(words)
    }

    fn receive_oob(&mut self) -> Result<String> {
        self.link.receive()
    }
}

/// Runs this side of a plan. `patience` is the time without arrivals after which it fails; `step`
/// is called after each size.
pub fn run(
    mut link: ControlLink,
    client: bool,
    patience: Duration,
    plan: &PerfPlan,
    step: &mut dyn FnMut(),
) -> Result<Vec<Sample>> {
    let found = connected(&mut link, client, patience, plan).and_then(|socket| {
        socket.set_limits(patience, patience)?;
        if let Socket::Tcp(stream) = &socket {
            stream.set_nodelay(plan.benchmark.is_latency())?;
        }
        Ok(socket)
    });
    let socket = match found {
        Ok(socket) => socket,
        Err(why) => {
            link.failed(&format!("{why:#}"));
            return Err(why);
        }
    };
    let start = Instant::now();
    let mut side = Real {
        timed: Timed {
            socket,
            start,
            patience,
            is_short: false,
        },
        link,
        client,
        reader: None,
        sent: 0,
        alive_at: start + ALIVE,
    };
    let found = measure(&mut side, plan, step);
    if let Err(why) = &found {
        side.link.failed(&format!("{why:#}"));
    }
    found
}

/// Connects the sockets that the benchmark measures.
fn connected(
    link: &mut ControlLink,
    client: bool,
    patience: Duration,
    plan: &PerfPlan,
) -> Result<Socket> {
    let (here, there) = link.addresses()?;
    let any = SocketAddr::new(here.ip(), 0);
    if plan.transport == TransportService::Udp {
        let socket = UdpSocket::bind(any).context("cannot make a UDP socket")?;
        let port = told(link, socket.local_addr()?.port())?;
        let peer = SocketAddr::new(there.ip(), port);
        socket
            .connect(peer)
            .context("cannot use the other side's UDP port")?;
        return Ok(Socket::Udp(socket));
    }
    if client {
        let port = told(link, 0)?;
        let peer = SocketAddr::new(there.ip(), port);
        let stream = TcpStream::connect_timeout(&peer, patience);
        let stream = stream.with_context(|| {
            format!(
                "cannot connect to TCP port {port} of the other side; does a firewall close it?"
            )
        })?;
        told(link, stream.local_addr()?.port())?;
        return Ok(Socket::Tcp(stream));
    }
    let listener = TcpListener::bind(any).context("cannot listen on a TCP port")?;
    told(link, listener.local_addr()?.port())?;
    let port = told(link, 0)?;
    listener.set_nonblocking(true)?;
    let until = Instant::now() + patience;
    loop {
        match listener.accept() {
            // Close connections from anywhere else.
            Ok((stream, from)) if from == SocketAddr::new(there.ip(), port) => {
                stream.set_nonblocking(false)?;
                return Ok(Socket::Tcp(stream));
            }
            Ok(_) => {}
            Err(why) if is_silence(&why) => {}
            Err(why) => return Err(why).context("cannot accept a connection"),
        }
        if Instant::now() >= until {
            bail!(
                "the other side has not connected within {} s",
                patience.as_secs_f64()
            );
        }
        sleep(AGAIN);
    }
}

/// Sends this side's port to the other side; returns the other side's port.
fn told(link: &mut ControlLink, port: u16) -> Result<u16> {
    link.say(&port.to_string())?;
    let words = link.receive()?;
    words
        .parse()
        .with_context(|| format!("the other side sent no port, but {words:?}"))
}
