//! The command line of `fishplate perf`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use results::sizes::parse_bytes;

use crate::plan::{Benchmark, Plan, Transport};

/// Measure RDMA devices, modelled or real: latency, bandwidth and message rate of writes, reads, sends and atomics.
///
/// By the procedures of perftest (ib_write_lat and its sisters), below MPI.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  fishplate perf write-lat --fabric qdr,fdr\n  fishplate perf send-bw --fabric qdr --transport ud --plot ud.png\n  fishplate perf write-lat --device mlx5_0             (here)\n  fishplate perf write-lat --device mlx5_0 10.0.0.1    (there; 10.0.0.1 is here)"
)]
pub struct PerfArguments {
    #[command(subcommand)]
    pub what: What,
}

#[derive(Debug, Subcommand)]
pub enum What {
    /// RDMA writes there and back, seen by polling the last byte: half of the round trip
    #[command(after_help = "Example:\n  fishplate perf write-lat --fabric qdr --size 8")]
    WriteLat(Options),
    /// A stream of RDMA writes
    #[command(
        after_help = "Example:\n  fishplate perf write-bw --fabric qdr,fdr --plot bandwidth.svg"
    )]
    WriteBw(Options),
    /// RDMA reads, one after the other: the whole time
    #[command(after_help = "Example:\n  fishplate perf read-lat --fabric edr --size 4K")]
    ReadLat(Options),
    /// A stream of RDMA reads
    #[command(
        after_help = "Example:\n  fishplate perf read-bw --fabric fdr --size 64K --bidirectional"
    )]
    ReadBw(Options),
    /// Sends there and back, seen by their completions: half of the round trip
    #[command(
        after_help = "Example:\n  fishplate perf send-lat --fabric qdr --transport ud --size 8"
    )]
    SendLat(Options),
    /// A stream of sends; over uc and ud what is sent and what is received, apart
    #[command(
        after_help = "Example:\n  fishplate perf send-bw --fabric qdr --transport ud --rx-depth 64"
    )]
    SendBw(Options),
    /// Fetch-and-add of eight bytes, one after the other: the whole time
    #[command(after_help = "Example:\n  fishplate perf atomic-lat --fabric hdr")]
    AtomicLat(Options),
    /// A stream of small messages: RDMA writes, or sends over ud
    #[command(after_help = "Example:\n  fishplate perf msg-rate --fabric fdr --qps 4")]
    MsgRate(Options),
}

#[derive(Debug, Args)]
pub struct Options {
    /// With --device: the other end, where this command was started without HOST before
    #[arg(value_name = "HOST", conflicts_with = "fabric")]
    pub host: Option<String>,
    /// Between two hosts of modelled machines, in virtual time: names from `fishplate fabric list`, or files
    #[arg(
        long,
        value_name = "NAME|FILE,…",
        value_delimiter = ',',
        required_unless_present = "device"
    )]
    pub fabric: Vec<String>,
    /// What goes wrong on the modelled machine: a plan in TOML
    #[arg(long, value_name = "FILE", requires = "fabric")]
    pub faults: Option<String>,
    /// What all that looks random on a modelled machine follows from
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "fabric")]
    pub seed: u64,
    /// A device of this machine; the other end is another process, on another machine or on this one
    #[arg(long, value_name = "NAME[:PORT]", conflicts_with = "fabric")]
    pub device: Option<String>,
    /// The TCP port by which the two ends find each other
    #[arg(short = 'p', long, default_value_t = 18515, conflicts_with = "fabric")]
    pub port: u16,
    /// Give up when the other end cannot be reached, or nothing comes, for so many seconds; who is started without
    /// HOST waits thirty times as long for the other to begin
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 10.0,
        conflicts_with = "fabric"
    )]
    pub timeout: f64,
    /// What connects the queue pairs
    #[arg(short = 'c', long, value_enum, default_value = "rc")]
    pub transport: Transport,
    /// Bytes of a message, or with K or M [default: all powers of two, to 8M or a datagram's most]
    #[arg(short = 's', long, value_name = "BYTES", value_parser = bytes)]
    pub size: Option<usize>,
    /// Messages of every size on each queue pair [default: 1000, 5000 of streams of writes; fewer on modelled machines]
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = count)]
    pub iterations: Option<usize>,
    /// Queue pairs (streams)
    #[arg(short = 'q', long, value_name = "COUNT", default_value = "1", value_parser = count)]
    pub qps: usize,
    /// Streams in both directions; their sum is told
    #[arg(short = 'b', long)]
    pub bidirectional: bool,
    /// Payloads of up to so many bytes stand in the work request [default: perftest's, 0 for streams]
    #[arg(short = 'I', long, value_name = "BYTES", value_parser = bytes)]
    pub inline: Option<usize>,
    /// Payload of a packet: 256, 512, 1024, 2048 or 4096 [default: the device's]
    #[arg(short = 'm', long, value_name = "BYTES", value_parser = bytes)]
    pub mtu: Option<usize>,
    /// Work requests posted and not complete, of each queue pair (streams) [default: 128]
    #[arg(short = 't', long, value_name = "COUNT", value_parser = count)]
    pub tx_depth: Option<usize>,
    /// Receives posted ahead, of each queue pair (sends) [default: 512, over uc and ud as many as messages]
    #[arg(short = 'r', long, value_name = "COUNT", value_parser = count)]
    pub rx_depth: Option<usize>,
    /// One completion for so many messages (streams) [default: 100 up to 8 KiB, above 1]
    #[arg(short = 'Q', long, value_name = "COUNT", value_parser = count)]
    pub cq_mod: Option<usize>,
    /// Receives from one queue that all queue pairs share (sends)
    #[arg(long)]
    pub srq: bool,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    pub json: bool,
    /// Draw the sizes, as FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

fn bytes(word: &str) -> Result<usize, String> {
    parse_bytes(word).map_err(|why| why.to_string())
}

fn count(word: &str) -> Result<usize, String> {
    match word.parse() {
        Ok(count @ 1..=10_000_000) => Ok(count),
        _ => Err("valid are whole numbers from 1 to 10000000".into()),
    }
}

impl What {
    pub fn benchmark(&self) -> (Benchmark, &Options) {
        match self {
            What::WriteLat(options) => (Benchmark::WriteLat, options),
            What::WriteBw(options) => (Benchmark::WriteBw, options),
            What::ReadLat(options) => (Benchmark::ReadLat, options),
            What::ReadBw(options) => (Benchmark::ReadBw, options),
            What::SendLat(options) => (Benchmark::SendLat, options),
            What::SendBw(options) => (Benchmark::SendBw, options),
            What::AtomicLat(options) => (Benchmark::AtomicLat, options),
            What::MsgRate(options) => (Benchmark::MsgRate, options),
        }
    }
}

impl Options {
    pub fn plan(&self, benchmark: Benchmark) -> Result<Plan> {
        let plan = Plan {
            benchmark,
            transport: self.transport,
            srq: self.srq,
            inline: self.inline,
            mtu: self.mtu,
            qps: self.qps,
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

    pub fn timeout(&self) -> Result<Duration> {
        match Duration::try_from_secs_f64(self.timeout) {
            Ok(timeout)
                if (Duration::from_millis(1)..Duration::from_secs(86_400)).contains(&timeout) =>
            {
                Ok(timeout)
            }
            _ => bail!(
                "--timeout {}: seconds above 0, of at most a day, are wanted",
                self.timeout
            ),
        }
    }
}
