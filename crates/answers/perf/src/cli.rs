//! The command line of `fishplate perf`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use results::arguments::{ANY, decimal, whole_number};
use results::sizes::parse_bytes;

use crate::benchmark::{Benchmark, TransportService};
use crate::plan::{IpMode, PerfPlan};

/// Measure RDMA devices, modelled or real: latency, bandwidth and message rate of writes, reads,
/// sends and atomics; and sockets of TCP and UDP, over IP over InfiniBand or on this host.
///
/// The procedures for devices are those of perftest (ib_write_lat and others). MPI is not involved.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  fishplate perf write-lat --fabric qdr,fdr\n  fishplate perf send-bw --fabric qdr --transport ud --plot ud.png\n  fishplate perf write-lat --device mlx5_0             (here)\n  fishplate perf write-lat --device mlx5_0 10.0.0.1    (there; 10.0.0.1 is here)"
)]
pub struct PerfArguments {
    #[command(subcommand)]
    pub(crate) what: BenchmarkCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchmarkCommand {
    /// Ping-pong of RDMA writes, found by polling the last byte: half of the round trip
    #[command(after_help = "Example:\n  fishplate perf write-lat --fabric qdr --size 8")]
    WriteLat(BenchmarkOptions),
    /// A stream of RDMA writes
    #[command(
        after_help = "Example:\n  fishplate perf write-bw --fabric qdr,fdr --plot bandwidth.svg"
    )]
    WriteBw(BenchmarkOptions),
    /// RDMA reads, one after the other: the full time of each
    #[command(after_help = "Example:\n  fishplate perf read-lat --fabric edr --size 4K")]
    ReadLat(BenchmarkOptions),
    /// A stream of RDMA reads
    #[command(
        after_help = "Example:\n  fishplate perf read-bw --fabric fdr --size 64K --bidirectional"
    )]
    ReadBw(BenchmarkOptions),
    /// Ping-pong of sends, found by polling for completions: half of the round trip
    #[command(
        after_help = "Example:\n  fishplate perf send-lat --fabric qdr --transport ud --size 8"
    )]
    SendLat(BenchmarkOptions),
    /// A stream of sends; over uc and ud the sent and the received rate
    #[command(
        after_help = "Example:\n  fishplate perf send-bw --fabric qdr --transport ud --rx-depth 64"
    )]
    SendBw(BenchmarkOptions),
    /// Fetch-and-add of eight bytes, one after the other: the full time of each
    #[command(after_help = "Example:\n  fishplate perf atomic-lat --fabric hdr")]
    AtomicLat(BenchmarkOptions),
    /// A stream of small messages: RDMA writes, or sends over ud
    #[command(
        after_help = "Example:\n  fishplate perf msg-rate --fabric fdr --qps 4\n  fishplate perf msg-rate --fabric fdr,edr --pairs 8"
    )]
    MsgRate(BenchmarkOptions),
    /// Ping-pong of messages over a TCP connection: half of the round trip
    #[command(
        after_help = "Example:\n  fishplate perf tcp-lat --fabric qdr --ip connected --size 8\n  fishplate perf tcp-lat              (here)\n  fishplate perf tcp-lat 10.0.0.1     (there; 10.0.0.1 is here)"
    )]
    TcpLat(SocketOptions),
    /// A stream of messages over a TCP connection, at the rate of the reader
    #[command(
        after_help = "Example:\n  fishplate perf tcp-bw --fabric qdr,edr --ip connected --bidirectional"
    )]
    TcpBw(SocketOptions),
    /// Ping-pong of UDP datagrams: half of the round trip
    #[command(after_help = "Example:\n  fishplate perf udp-lat --fabric qdr --size 8")]
    UdpLat(SocketOptions),
    /// A stream of UDP datagrams: the sent and the received rate
    #[command(after_help = "Example:\n  fishplate perf udp-bw --fabric qdr --size 1K")]
    UdpBw(SocketOptions),
}

/// Options of all benchmarks.
#[derive(Debug, Args)]
pub(crate) struct CommonOptions {
    /// The host where the same command is already running without HOST
    #[arg(value_name = "HOST", conflicts_with = "fabric")]
    pub(crate) host: Option<String>,
    /// Faults of the modelled machine: a TOML file
    #[arg(long, value_name = "FILE", requires = "fabric")]
    pub(crate) faults: Option<String>,
    /// Seed for everything random in the model
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "fabric",
        value_parser = |word: &str| whole_number::<u64>(word, ANY))]
    pub(crate) seed: u64,
    /// TCP port of the control connection between the two sides
    #[arg(short = 'p', long, default_value_t = 18515, conflicts_with = "fabric",
        value_parser = |word: &str| whole_number::<u16>(word, 0..=65535))]
    pub(crate) port: u16,
    /// Wait for the other side at this IP address of this host [default: that of the device's
    /// interface for tcp:, else any]
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["fabric", "host"])]
    pub(crate) listen: Option<IpAddr>,
    /// Read the token by which the two sides know each other from this file, of mode 600 [default:
    /// the side without HOST shows one, and the other reads it from standard input]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fabric", "no_secret"])]
    pub(crate) secret_file: Option<PathBuf>,
    /// Do not ask for a token; both sides are on this host
    #[arg(long, conflicts_with = "fabric")]
    pub(crate) no_secret: bool,
    /// Fail after this many seconds without connection or message; the listening side waits 30
    /// times as long for its peer
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 10.0,
        value_parser = decimal,
        conflicts_with = "fabric"
    )]
    pub(crate) timeout: f64,
    /// Measure both directions at once and report the sum
    #[arg(short = 'b', long)]
    pub(crate) bidirectional: bool,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw a plot over the sizes, as FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

/// Options of benchmarks of devices.
#[derive(Debug, Args)]
pub(crate) struct BenchmarkOptions {
    /// Run between two hosts of modelled machines, in virtual time: names from `fishplate fabric
    /// list`, or files
    #[arg(
        long,
        value_name = "NAME|FILE,…",
        value_delimiter = ',',
        required_unless_present = "device"
    )]
    pub(crate) fabric: Vec<String>,
    /// Run on this device, such as mlx5_0 or tcp:eth0; the peer is another process, on another
    /// machine or on this one
    #[arg(long, value_name = "NAME[:PORT]", conflicts_with = "fabric")]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
    /// Transport service of the queue pairs
    #[arg(short = 'c', long, value_enum, default_value = "rc")]
    pub(crate) transport: TransportService,
    /// Message size in bytes, with K or M for powers of 1024 [default: all powers of two up to 8M,
    /// or for ud up to the MTU]
    #[arg(short = 's', long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) size: Option<usize>,
    /// Messages of each size on each queue pair [default: 1000, streams of writes 5000; fewer on
    /// modelled machines]
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = count)]
    pub(crate) iterations: Option<usize>,
    /// Number of queue pairs (streams)
    #[arg(short = 'q', long, value_name = "COUNT", default_value = "1", value_parser = count)]
    pub(crate) qps: usize,
    /// Number of pairs of processors on the two hosts (streams), each with its own queue pairs
    #[arg(short = 'P', long, value_name = "COUNT", default_value = "1",
        value_parser = |word: &str| whole_number::<usize>(word, 1..=1024))]
    pub(crate) pairs: usize,
    /// Largest inline payload [default: perftest's, 0 for streams]
    #[arg(short = 'I', long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) inline: Option<usize>,
    /// MTU: 256, 512, 1024, 2048 or 4096 [default: the device's]
    #[arg(short = 'm', long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) mtu: Option<usize>,
    /// Outstanding work requests of each queue pair (streams) [default: 128]
    #[arg(short = 't', long, value_name = "COUNT", value_parser = count)]
    pub(crate) tx_depth: Option<usize>,
    /// Receives posted in advance on each queue pair (sends) [default: 512, for uc and ud one for
    /// each message]
    #[arg(short = 'r', long, value_name = "COUNT", value_parser = count)]
    pub(crate) rx_depth: Option<usize>,
    /// Messages per completion (streams) [default: 100 up to 8 KiB, above that 1]
    #[arg(short = 'Q', long, value_name = "COUNT", value_parser = count)]
    pub(crate) cq_mod: Option<usize>,
    /// Share one receive queue (SRQ) among all queue pairs (sends)
    #[arg(long)]
    pub(crate) srq: bool,
}

/// Options of benchmarks of sockets.
#[derive(Debug, Args)]
pub(crate) struct SocketOptions {
    /// Run between two hosts of modelled machines, in virtual time: names from `fishplate fabric
    /// list`, or files [default: on this host's sockets]
    #[arg(long, value_name = "NAME|FILE,…", value_delimiter = ',')]
    pub(crate) fabric: Vec<String>,
    /// Mode of IP over InfiniBand on modelled machines
    #[arg(long, value_enum, default_value = "usual", requires = "fabric")]
    pub(crate) ip: IpMode,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
    /// Message size in bytes, with K or M for powers of 1024 [default: all powers of two up to 8M,
    /// or for UDP up to 32K]
    #[arg(short = 's', long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) size: Option<usize>,
    /// Messages of each size [default: for latencies 1000, fewer on modelled machines; for streams
    /// as many as make 64 MiB, on modelled machines 16 MiB, at most 20000]
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = count)]
    pub(crate) iterations: Option<usize>,
}

fn bytes(word: &str) -> Result<usize, String> {
    parse_bytes(word).map_err(|why| why.to_string())
}

fn count(word: &str) -> Result<usize, String> {
    whole_number(word, 1..=10_000_000)
}

/// The benchmark of devices or sockets that the user chose, with its options.
#[derive(Clone, Copy)]
pub(crate) enum Chosen<'a> {
    Device(Benchmark, &'a BenchmarkOptions),
    Sockets(Benchmark, &'a SocketOptions),
}

impl BenchmarkCommand {
    pub(crate) fn benchmark(&self) -> Chosen<'_> {
        use BenchmarkCommand as Command;
        match self {
            Command::WriteLat(options) => Chosen::Device(Benchmark::WriteLat, options),
            Command::WriteBw(options) => Chosen::Device(Benchmark::WriteBw, options),
            Command::ReadLat(options) => Chosen::Device(Benchmark::ReadLat, options),
            Command::ReadBw(options) => Chosen::Device(Benchmark::ReadBw, options),
            Command::SendLat(options) => Chosen::Device(Benchmark::SendLat, options),
            Command::SendBw(options) => Chosen::Device(Benchmark::SendBw, options),
            Command::AtomicLat(options) => Chosen::Device(Benchmark::AtomicLat, options),
            Command::MsgRate(options) => Chosen::Device(Benchmark::MsgRate, options),
            Command::TcpLat(options) => Chosen::Sockets(Benchmark::TcpLat, options),
            Command::TcpBw(options) => Chosen::Sockets(Benchmark::TcpBw, options),
            Command::UdpLat(options) => Chosen::Sockets(Benchmark::UdpLat, options),
            Command::UdpBw(options) => Chosen::Sockets(Benchmark::UdpBw, options),
        }
    }
}

impl SocketOptions {
    pub(crate) fn plan(&self, benchmark: Benchmark) -> Result<PerfPlan> {
        let plan = PerfPlan {
            bidirectional: self.common.bidirectional,
            size: self.size,
            iterations: self.iterations,
            ip: (!self.fabric.is_empty()).then_some(self.ip),
            ..PerfPlan::new(benchmark, benchmark.transports()[0])
        };
        plan.check()?;
        Ok(plan)
    }
}

impl BenchmarkOptions {
    pub(crate) fn plan(&self, benchmark: Benchmark) -> Result<PerfPlan> {
        let plan = PerfPlan {
            benchmark,
            transport: self.transport,
            srq: self.srq,
            inline: self.inline,
            mtu: self.mtu,
            qps: self.qps,
            pairs: self.pairs,
            bidirectional: self.common.bidirectional,
            size: self.size,
            iterations: self.iterations,
            tx_depth: self.tx_depth,
            rx_depth: self.rx_depth,
            cq_mod: self.cq_mod,
            ip: None,
        };
        plan.check()?;
        Ok(plan)
    }
}

impl CommonOptions {
    pub(crate) fn timeout(&self) -> Result<Duration> {
        match Duration::try_from_secs_f64(self.timeout) {
            Ok(timeout)
                if (Duration::from_millis(1)..Duration::from_secs(86_400)).contains(&timeout) =>
            {
                Ok(timeout)
            }
            _ => bail!(
                "--timeout {}: valid are seconds above 0, up to one day",
                self.timeout
            ),
        }
    }
}
