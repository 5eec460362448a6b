//! The command line of `fishplate perf`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use results::arguments::{ANY, decimal, whole_number};
use results::sizes::parse_bytes;

use crate::benchmark::{Benchmark, TransportService};
use crate::plan::PerfPlan;

/// Measure RDMA devices, modelled or real: latency, bandwidth and message rate of writes, reads,
/// sends and atomics.
///
/// The procedures are those of perftest (ib_write_lat and others). MPI is not involved.
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
}

#[derive(Debug, Args)]
pub(crate) struct BenchmarkOptions {
    /// With --device: the host where the same command is already running without HOST
    #[arg(value_name = "HOST", conflicts_with = "fabric")]
    pub(crate) host: Option<String>,
    /// Run between two hosts of modelled machines, in virtual time: names from `fishplate fabric
    /// list`, or files
    #[arg(
        long,
        value_name = "NAME|FILE,…",
        value_delimiter = ',',
        required_unless_present = "device"
    )]
    pub(crate) fabric: Vec<String>,
    /// Faults of the modelled machine: a TOML file
    #[arg(long, value_name = "FILE", requires = "fabric")]
    pub(crate) faults: Option<String>,
    /// Seed for everything random in the model
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "fabric",
        value_parser = |word: &str| whole_number::<u64>(word, ANY))]
    pub(crate) seed: u64,
    /// Run on this device; the peer is another process, on another machine or on this one
    #[arg(long, value_name = "NAME[:PORT]", conflicts_with = "fabric")]
    pub(crate) device: Option<String>,
    /// TCP port of the control connection between the two sides
    #[arg(short = 'p', long, default_value_t = 18515, conflicts_with = "fabric",
        value_parser = |word: &str| whole_number::<u16>(word, 0..=65535))]
    pub(crate) port: u16,
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
    /// Measure both directions at once and report the sum
    #[arg(short = 'b', long)]
    pub(crate) bidirectional: bool,
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
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw a plot over the sizes, as FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

fn bytes(word: &str) -> Result<usize, String> {
    parse_bytes(word).map_err(|why| why.to_string())
}

fn count(word: &str) -> Result<usize, String> {
    whole_number(word, 1..=10_000_000)
}

impl BenchmarkCommand {
    pub(crate) fn benchmark(&self) -> (Benchmark, &BenchmarkOptions) {
        match self {
            BenchmarkCommand::WriteLat(options) => (Benchmark::WriteLat, options),
            BenchmarkCommand::WriteBw(options) => (Benchmark::WriteBw, options),
            BenchmarkCommand::ReadLat(options) => (Benchmark::ReadLat, options),
            BenchmarkCommand::ReadBw(options) => (Benchmark::ReadBw, options),
            BenchmarkCommand::SendLat(options) => (Benchmark::SendLat, options),
            BenchmarkCommand::SendBw(options) => (Benchmark::SendBw, options),
            BenchmarkCommand::AtomicLat(options) => (Benchmark::AtomicLat, options),
            BenchmarkCommand::MsgRate(options) => (Benchmark::MsgRate, options),
        }
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
            bidirectional: self.bidirectional,
            size: self.size,
            iterations: self.iterations,
            tx_depth: self.tx_depth,
            rx_depth: self.rx_depth,
            cq_mod: self.cq_mod,
        };
        plan.check()?;
        Ok(plan)
    }

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
