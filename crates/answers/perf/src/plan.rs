//! The plan of a run: all parameters that both sides must agree on, with perftest's defaults.

use anyhow::{Result, bail};
use clap::ValueEnum;
use ipoib::frame::LONGEST_DATAGRAM;
use serde::{Deserialize, Serialize};

use crate::benchmark::{Benchmark, TransportService, Verb};

/// The largest message size in bytes, unless the user names a size.
pub const LARGEST: usize = 8 << 20;
/// The size in bytes above which every work request of a stream is signaled.
const SPARSE: usize = 8192;
/// The number of work requests for each completion, up to the size [`SPARSE`].
const SIGNAL: usize = 100;
/// The approximate number of bytes that a stream moves for one size on a modelled machine: all
/// messages of a size take equal times there, so a few are enough.
const MODELLED: usize = 128 << 20;
/// The approximate number of bytes that a stream of sockets moves for one size: many times the
/// buffers of a connection.
const SOCKET_STREAM: usize = 64 << 20;
/// The most messages of a stream over sockets, unless the user chooses another number.
const MOST_OF_SOCKETS: usize = 20_000;

/// The options of a run, equal on both sides. `None` stands for perftest's default.
///
/// ```
/// use perf::benchmark::{Benchmark, TransportService};
/// use perf::plan::PerfPlan;
///
/// let mut plan = PerfPlan::new(Benchmark::WriteLat, TransportService::Rc);
/// plan.size = Some(8);
/// plan.check().unwrap();
/// assert_eq!(plan.sizes(4096).unwrap(), [8]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PerfPlan {
    /// The benchmark to run.
    pub benchmark: Benchmark,
    /// The transport service of the queue pairs.
    pub transport: TransportService,
    /// True if all queue pairs share one receive queue.
    pub srq: bool,
    /// The largest inline payload, in bytes. `None`: perftest's default.
    pub inline: Option<usize>,
    /// The path MTU, in bytes. `None`: that of the device.
    pub mtu: Option<usize>,
    /// The number of queue pairs.
    pub qps: usize,
    /// The number of pairs of processors on the two hosts, each with its own queue pairs.
    pub pairs: usize,
    /// True if both sides send messages at the same time.
    pub bidirectional: bool,
    /// The only message size, in bytes; `None`: all sizes.
    pub size: Option<usize>,
    /// The number of messages of each size on each queue pair. `None`: the default of the
    /// benchmark.
    pub iterations: Option<usize>,
    /// The most outstanding work requests of each queue pair. `None`: perftest's default.
    pub tx_depth: Option<usize>,
    /// The number of posted receives of each queue pair. `None`: perftest's default.
    pub rx_depth: Option<usize>,
    /// The number of messages for each completion. `None`: perftest's default.
    pub cq_mod: Option<usize>,
    /// The mode of IP over InfiniBand, for sockets on a modelled machine; otherwise `None`.
    pub ip: Option<IpMode>,
}

/// The mode of an interface of IP over InfiniBand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum IpMode {
    /// That of the driver by default: connected before ConnectX-4, datagram from it on
    Usual,
    /// Each packet is an unreliable datagram; MTU 2044
    Datagram,
    /// Each packet is a message of a reliable connection; MTU 65520
    Connected,
}

impl IpMode {
    /// The mode's name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            IpMode::Usual => "usual",
            IpMode::Datagram => "datagram",
            IpMode::Connected => "connected",
        }
    }
}

impl PerfPlan {
    /// A plan with perftest's defaults.
    pub fn new(benchmark: Benchmark, transport: TransportService) -> PerfPlan {
        PerfPlan {
            benchmark,
            transport,
            srq: false,
            inline: None,
            mtu: None,
            qps: 1,
            pairs: 1,
            bidirectional: false,
            size: None,
            iterations: None,
            tx_depth: None,
            rx_depth: None,
            cq_mod: None,
            ip: None,
        }
    }

    /// The RDMA operation of the work requests that the benchmark posts.
    pub fn verb(&self) -> Verb {
        self.benchmark.verb(self.transport)
    }

    /// Refuses options that no device can carry out, and options that do not apply to the
    /// benchmark.
    pub fn check(&self) -> Result<()> {
        self.check_transport()?;
        self.check_options()?;
        self.check_numbers()
    }

    fn check_transport(&self) -> Result<()> {
        let transports = self.benchmark.transports();
        if !transports.contains(&self.transport) {
            let able: Vec<&str> = transports.iter().map(|one| one.name()).collect();
            bail!(
                "--transport {}: it has no {}s, which {} needs; valid: {}",
                self.transport.name(),
                self.verb().name(),
                self.benchmark.name(),
                able.join(", ")
            );
        }
        if self.srq && self.transport == TransportService::Ud {
            bail!("--srq is not for --transport ud: a datagram queue pair has receives of its own");
        }
        Ok(())
    }

    /// Refuses options that do not apply to the benchmark.
    fn check_options(&self) -> Result<()> {
        let (name, verb) = (self.benchmark.name(), self.verb());
        let stream = !self.benchmark.is_latency();
        let receives = verb == Verb::Send;
        let inlines = matches!(verb, Verb::Write | Verb::Send);
        let depth = self.rx_depth.is_some();
        for (given, fits, word, why) in [
            (self.srq, receives, "--srq", "it posts no receives"),
            (depth, receives, "--rx-depth", "it posts no receives"),
            (
                self.inline.is_some(),
                inlines,
                "--inline",
                "only writes and sends carry a payload of their own",
            ),
            (
                self.qps != 1,
                stream,
                "--qps",
                "one message at a time needs one queue pair",
            ),
            (
                self.pairs != 1,
                stream,
                "--pairs",
                "one message at a time is of one pair",
            ),
            (
                self.bidirectional,
                stream,
                "--bidirectional",
                "it measures both directions already",
            ),
            (
                self.tx_depth.is_some(),
                stream,
                "--tx-depth",
                "it has one outstanding message at a time",
            ),
            (
                self.cq_mod.is_some(),
                stream,
                "--cq-mod",
                "each message completes before the next",
            ),
        ] {
            if given && !fits {
                bail!("{word} is not for {name}: {why}");
            }
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<()> {
        match (self.verb(), self.size) {
            (Verb::Atomic, Some(size)) if size != 8 => {
                bail!("--size {size}: an atomic operation is on 8 bytes")
            }
            (_, Some(0)) => bail!(
                "--size 0: {} needs at least one byte",
                self.benchmark.name()
            ),
            _ => {}
        }
        if self.benchmark.is_latency() && self.iterations == Some(1) {
            bail!(
                "--iterations 1: a latency is the time from one message to the next, so at least two are needed"
            );
        }
        if let (Some(depth), Some(every)) = (self.tx_depth, self.cq_mod)
            && every > depth
        {
            bail!(
                "--cq-mod {every} is more than --tx-depth {depth}: the send queue would be full before its first completion"
            );
        }
        if let Some(mtu) = self.mtu
            && !(mtu.is_power_of_two() && (256..=4096).contains(&mtu))
        {
            bail!("--mtu {mtu}: valid are 256, 512, 1024, 2048 and 4096");
        }
        Ok(())
    }

    /// The message sizes in bytes, smallest first: the powers of two of perftest's `-a`, for
    /// datagrams up to `mtu`.
    pub fn sizes(&self, mtu: usize) -> Result<Vec<usize>> {
        let largest = match self.transport {
            TransportService::Ud => mtu,
            TransportService::Udp => LONGEST_DATAGRAM,
            _ => LARGEST,
        };
        match (self.benchmark, self.size) {
            (_, Some(size)) if self.transport == TransportService::Ud && size > mtu => {
                bail!("--size {size}: a datagram is one packet, here of at most {mtu} bytes")
            }
            (_, Some(size)) if self.transport == TransportService::Udp && size > largest => {
                bail!("--size {size}: a datagram of UDP has at most {largest} bytes")
            }
            (_, Some(size)) => Ok(vec![size]),
            (Benchmark::AtomicLat | Benchmark::MsgRate, None) => Ok(vec![8]),
            (_, None) => Ok((1..)
                .map(|bits| 1 << bits)
                .take_while(|size| *size <= largest)
                .collect()),
        }
    }

    /// The number of messages of `size` on each queue pair.
    pub fn iterations(&self, size: usize, modelled: bool) -> usize {
        if self.benchmark.is_of_sockets() && !self.benchmark.is_latency() {
            // Virtual time has no noise, so fewer messages are enough.
            let (bytes, least) = match modelled {
                true => (SOCKET_STREAM / 4, 4),
                false => (SOCKET_STREAM, 20),
            };
            let usual = (bytes / size).clamp(least, MOST_OF_SOCKETS);
            return self.iterations.unwrap_or(usual);
        }
        let usual = match self.benchmark {
            Benchmark::WriteBw | Benchmark::MsgRate => 5000,
            _ => 1000,
        };
        let usual = if modelled {
            usual.min(MODELLED / size).clamp(20, 2000)
        } else {
            usual
        };
        self.iterations.unwrap_or(usual)
    }

    /// The number of outstanding work requests of each queue pair.
    pub fn tx_depth(&self) -> usize {
        let usual = if self.benchmark.is_latency() { 1 } else { 128 };
        self.tx_depth.unwrap_or(usual.max(self.cq_mod.unwrap_or(1)))
    }

    /// The number of posted receives. On a transport service without acknowledgements there is one
    /// for each message, as in perftest, so that every message finds one.
    pub fn rx_depth(&self, iterations: usize) -> usize {
        let usual = match self.transport {
            TransportService::Rc => 512,
            _ => iterations.min(16_000),
        };
        self.rx_depth.unwrap_or(usual)
    }

    /// The number of work requests after which one asks for a completion.
    pub fn signal_every(&self, size: usize) -> usize {
        let usual = match size > SPARSE || self.benchmark.is_latency() {
            true => 1,
            false => SIGNAL,
        };
        self.cq_mod.unwrap_or(usual).min(self.tx_depth())
    }

    /// The largest inline payload in bytes on a device with this `limit`. By default only latencies
    /// and the message rate use inline payloads.
    pub fn inline(&self, limit: usize) -> Result<usize> {
        let usual = match (self.benchmark, self.transport) {
            (Benchmark::WriteLat | Benchmark::MsgRate, _) => 220,
            (Benchmark::SendLat, TransportService::Ud) => 188,
            (Benchmark::SendLat, _) => 236,
            _ => 0,
        };
        match self.inline {
            Some(bytes) if bytes > limit => {
                bail!("--inline {bytes}: this device takes at most {limit} bytes in a work request")
            }
            Some(bytes) => Ok(bytes),
            None => Ok(usual.min(limit)),
        }
    }
}

#[cfg(test)]
mod tests;
