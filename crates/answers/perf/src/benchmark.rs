//! The benchmarks, the operations that they measure, and the transport services that have these
//! operations.

use clap::ValueEnum;
use results::Unit;
use serde::{Deserialize, Serialize};

/// A benchmark, with the procedure of perftest's tool of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    /// Latency of RDMA writes.
    WriteLat,
    /// Bandwidth of RDMA writes.
    WriteBw,
    /// Latency of RDMA reads.
    ReadLat,
    /// Bandwidth of RDMA reads.
    ReadBw,
    /// Latency of sends.
    SendLat,
    /// Bandwidth of sends.
    SendBw,
    /// Latency of fetch-and-add.
    AtomicLat,
    /// Rate of small messages: RDMA writes, or sends over unreliable datagrams.
    MsgRate,
    /// Latency of messages over a TCP connection.
    TcpLat,
    /// Bandwidth of a TCP connection.
    TcpBw,
    /// Latency of UDP datagrams.
    UdpLat,
    /// Bandwidth of UDP datagrams.
    UdpBw,
}

/// The RDMA operation of the work requests that a benchmark posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// RDMA write.
    Write,
    /// RDMA read.
    Read,
    /// Send.
    Send,
    /// Fetch-and-add.
    Atomic,
}

/// The transport service of the queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TransportService {
    /// Reliable connection
    Rc,
    /// Unreliable connection: writes and sends without acknowledgement
    Uc,
    /// Unreliable datagram: sends of at most one packet
    Ud,
    /// A TCP connection of sockets, without queue pairs of its own
    #[value(skip)]
    Tcp,
    /// UDP datagrams of sockets
    #[value(skip)]
    Udp,
}

impl Benchmark {
    /// All benchmarks of devices.
    pub const OF_DEVICES: [Benchmark; 8] = [
        Benchmark::WriteLat,
        Benchmark::WriteBw,
        Benchmark::ReadLat,
        Benchmark::ReadBw,
        Benchmark::SendLat,
        Benchmark::SendBw,
        Benchmark::AtomicLat,
        Benchmark::MsgRate,
    ];

    /// All benchmarks of sockets.
    pub const OF_SOCKETS: [Benchmark; 4] = [
        Benchmark::TcpLat,
        Benchmark::TcpBw,
        Benchmark::UdpLat,
        Benchmark::UdpBw,
    ];

    /// The benchmark's name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::WriteLat => "write-lat",
            Benchmark::WriteBw => "write-bw",
            Benchmark::ReadLat => "read-lat",
            Benchmark::ReadBw => "read-bw",
            Benchmark::SendLat => "send-lat",
            Benchmark::SendBw => "send-bw",
            Benchmark::AtomicLat => "atomic-lat",
            Benchmark::MsgRate => "msg-rate",
            Benchmark::TcpLat => "tcp-lat",
            Benchmark::TcpBw => "tcp-bw",
            Benchmark::UdpLat => "udp-lat",
            Benchmark::UdpBw => "udp-bw",
        }
    }

    /// The operation that the benchmark posts over `transport`.
    pub fn verb(self, transport: TransportService) -> Verb {
        match self {
            Benchmark::WriteLat | Benchmark::WriteBw => Verb::Write,
            Benchmark::ReadLat | Benchmark::ReadBw => Verb::Read,
            Benchmark::SendLat | Benchmark::SendBw => Verb::Send,
            Benchmark::TcpLat | Benchmark::TcpBw => Verb::Send,
            Benchmark::UdpLat | Benchmark::UdpBw => Verb::Send,
            Benchmark::AtomicLat => Verb::Atomic,
            Benchmark::MsgRate if transport == TransportService::Ud => Verb::Send,
            Benchmark::MsgRate => Verb::Write,
        }
    }

    /// True if the benchmark measures one message at a time, and not a stream.
    pub fn is_latency(self) -> bool {
        matches!(
            self,
            Benchmark::WriteLat
                | Benchmark::ReadLat
                | Benchmark::SendLat
                | Benchmark::AtomicLat
                | Benchmark::TcpLat
                | Benchmark::UdpLat
        )
    }

    /// True if the benchmark measures sockets, and not a device.
    pub fn is_of_sockets(self) -> bool {
        Benchmark::OF_SOCKETS.contains(&self)
    }

    /// The unit of the benchmark's results.
    pub fn unit(self) -> Unit {
        match self {
            Benchmark::MsgRate => Unit::MessagesPerSecond,
            one if one.is_latency() => Unit::Microseconds,
            _ => Unit::MegabytesPerSecond,
        }
    }

    /// The transport services that have the benchmark's operation.
    pub fn transports(self) -> &'static [TransportService] {
        match self {
            Benchmark::WriteLat | Benchmark::WriteBw => {
                &[TransportService::Rc, TransportService::Uc]
            }
            Benchmark::ReadLat | Benchmark::ReadBw | Benchmark::AtomicLat => {
                &[TransportService::Rc]
            }
            Benchmark::TcpLat | Benchmark::TcpBw => &[TransportService::Tcp],
            Benchmark::UdpLat | Benchmark::UdpBw => &[TransportService::Udp],
            _ => &[
                TransportService::Rc,
                TransportService::Uc,
                TransportService::Ud,
            ],
        }
    }
}

impl Verb {
    /// The operation's name in messages for the user.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Write => "RDMA write",
            Verb::Read => "RDMA read",
            Verb::Send => "send",
            Verb::Atomic => "atomic",
        }
    }
}

impl TransportService {
    /// The service's name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            TransportService::Rc => "rc",
            TransportService::Uc => "uc",
            TransportService::Ud => "ud",
            TransportService::Tcp => "tcp",
            TransportService::Udp => "udp",
        }
    }

    /// True if every message is delivered.
    pub fn is_reliable(self) -> bool {
        matches!(self, TransportService::Rc | TransportService::Tcp)
    }

    /// The service of the queue pairs; `None`: sockets have no queue pairs.
    pub fn of_queue_pairs(self) -> Option<device::Transport> {
        match self {
            TransportService::Rc => Some(device::Transport::Rc),
            TransportService::Uc => Some(device::Transport::Uc),
            TransportService::Ud => Some(device::Transport::Ud),
            TransportService::Tcp | TransportService::Udp => None,
        }
    }
}
