//! What is measured: the benchmarks, which transports can do them, and the numbers of perftest that nobody gave.

use anyhow::{Result, bail};
use clap::ValueEnum;
use results::Unit;
use serde::{Deserialize, Serialize};

/// The benchmarks, each by the procedure of perftest's tool of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    WriteLat,
    WriteBw,
    ReadLat,
    ReadBw,
    SendLat,
    SendBw,
    AtomicLat,
    /// Messages a second, of few bytes: RDMA writes, datagrams where there are no writes.
    MsgRate,
}

/// What moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Write,
    Read,
    Send,
    Atomic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Reliable connection
    Rc,
    /// Unreliable connection: writes and sends without acknowledgement
    Uc,
    /// Unreliable datagram: sends of at most one packet
    Ud,
}

impl Benchmark {
    pub const ALL: [Benchmark; 8] = [
        Benchmark::WriteLat,
        Benchmark::WriteBw,
        Benchmark::ReadLat,
        Benchmark::ReadBw,
        Benchmark::SendLat,
        Benchmark::SendBw,
        Benchmark::AtomicLat,
        Benchmark::MsgRate,
    ];

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
        }
    }

    pub fn verb(self, transport: Transport) -> Verb {
        match self {
            Benchmark::WriteLat | Benchmark::WriteBw => Verb::Write,
            Benchmark::ReadLat | Benchmark::ReadBw => Verb::Read,
            Benchmark::SendLat | Benchmark::SendBw => Verb::Send,
            Benchmark::AtomicLat => Verb::Atomic,
            Benchmark::MsgRate if transport == Transport::Ud => Verb::Send,
            Benchmark::MsgRate => Verb::Write,
        }
    }

    /// One message at a time; otherwise a stream.
    pub fn is_latency(self) -> bool {
        matches!(
            self,
            Benchmark::WriteLat | Benchmark::ReadLat | Benchmark::SendLat | Benchmark::AtomicLat
        )
    }

    pub fn unit(self) -> Unit {
        match self {
            Benchmark::MsgRate => Unit::MessagesPerSecond,
            one if one.is_latency() => Unit::Microseconds,
            _ => Unit::MegabytesPerSecond,
        }
    }

    /// Which transports have what it needs.
    pub fn transports(self) -> &'static [Transport] {
        match self {
            Benchmark::WriteLat | Benchmark::WriteBw => &[Transport::Rc, Transport::Uc],
            Benchmark::ReadLat | Benchmark::ReadBw | Benchmark::AtomicLat => &[Transport::Rc],
            _ => &[Transport::Rc, Transport::Uc, Transport::Ud],
        }
    }
}

impl Verb {
    pub fn name(self) -> &'static str {
        match self {
            Verb::Write => "RDMA write",
            Verb::Read => "RDMA read",
            Verb::Send => "send",
            Verb::Atomic => "atomic",
        }
    }
}

impl Transport {
    pub fn name(self) -> &'static str {
        match self {
            Transport::Rc => "rc",
            Transport::Uc => "uc",
            Transport::Ud => "ud",
        }
    }
}

impl From<Transport> for device::Transport {
    fn from(own: Transport) -> device::Transport {
        match own {
            Transport::Rc => device::Transport::Rc,
            Transport::Uc => device::Transport::Uc,
            Transport::Ud => device::Transport::Ud,
        }
    }
}

/// The largest size where nobody names one.
pub const LARGEST: usize = 8 << 20;
/// Above this many bytes every post of a stream has its completion.
const SPARSE: usize = 8192;
/// Work requests for one completion below that.
const SIGNAL: usize = 100;
/// Payload that one size of a stream moves on a modelled machine, about: there every message takes the same.
const MODELLED: usize = 128 << 20;

/// Everything that both ends must agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Plan {
    pub benchmark: Benchmark,
    pub transport: Transport,
    pub srq: bool,
    /// The longest payload that stands in the work request.
    pub inline: Option<usize>,
    pub mtu: Option<usize>,
    pub qps: usize,
    pub bidirectional: bool,
    /// Without one: all.
    pub size: Option<usize>,
    pub iterations: Option<usize>,
    pub tx_depth: Option<usize>,
    pub rx_depth: Option<usize>,
    pub cq_mod: Option<usize>,
}

impl Plan {
    pub fn new(benchmark: Benchmark, transport: Transport) -> Plan {
        Plan {
            benchmark,
            transport,
            srq: false,
            inline: None,
            mtu: None,
            qps: 1,
            bidirectional: false,
            size: None,
            iterations: None,
            tx_depth: None,
            rx_depth: None,
            cq_mod: None,
        }
    }

    pub fn verb(&self) -> Verb {
        self.benchmark.verb(self.transport)
    }

    /// Refuses what no device could do.
    pub fn check(&self) -> Result<()> {
        let (benchmark, name, verb) = (self.benchmark, self.benchmark.name(), self.verb());
        let transports = benchmark.transports();
        if !transports.contains(&self.transport) {
            let able: Vec<&str> = transports.iter().map(|one| one.name()).collect();
            bail!(
                "--transport {}: it has no {}s, which {name} needs; valid: {}",
                self.transport.name(),
                verb.name(),
                able.join(", ")
            );
        }
        let stream = !benchmark.is_latency();
        let receives = verb == Verb::Send;
        for (given, fits, word, why) in [
            (self.srq, receives, "--srq", "it posts no receives"),
            (
                self.rx_depth.is_some(),
                receives,
                "--rx-depth",
                "it posts no receives",
            ),
            (
                self.inline.is_some(),
                matches!(verb, Verb::Write | Verb::Send),
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
                self.bidirectional,
                stream,
                "--bidirectional",
                "both ways are in it already",
            ),
            (
                self.tx_depth.is_some(),
                stream,
                "--tx-depth",
                "one message is under way at a time",
            ),
            (
                self.cq_mod.is_some(),
                stream,
                "--cq-mod",
                "every message completes before the next",
            ),
        ] {
            if given && !fits {
                bail!("{word} is not for {name}: {why}");
            }
        }
        match (verb, self.size) {
            (Verb::Atomic, Some(size)) if size != 8 => {
                bail!("--size {size}: atomics are of 8 bytes")
            }
            (_, Some(0)) => bail!("--size 0: {name} needs at least one byte"),
            _ => {}
        }
        if benchmark.is_latency() && self.iterations == Some(1) {
            bail!(
                "--iterations 1: a latency is the time from one message to the next; there must be two"
            );
        }
        if self.srq && self.transport == Transport::Ud {
            bail!("--srq is not for --transport ud: a datagram queue pair has receives of its own");
        }
        if let (Some(depth), Some(every)) = (self.tx_depth, self.cq_mod)
            && every > depth
        {
            bail!(
                "--cq-mod {every} is more than --tx-depth {depth}: the queue would be full before a completion comes"
            );
        }
        if let Some(mtu) = self.mtu
            && !(mtu.is_power_of_two() && (256..=4096).contains(&mtu))
        {
            bail!("--mtu {mtu}: valid are 256, 512, 1024, 2048 and 4096");
        }
        Ok(())
    }

    /// The sizes, smallest first: powers of two as perftest's `-a` has them, datagrams to the MTU.
    pub fn sizes(&self, mtu: usize) -> Result<Vec<usize>> {
        let largest = match self.transport {
            Transport::Ud => mtu,
            _ => LARGEST,
        };
        match (self.benchmark, self.size) {
            (_, Some(size)) if self.transport == Transport::Ud && size > mtu => {
                bail!("--size {size}: a datagram is one packet, here of at most {mtu} bytes")
            }
            (_, Some(size)) => Ok(vec![size]),
            (Benchmark::AtomicLat | Benchmark::MsgRate, None) => Ok(vec![8]),
            (_, None) => Ok((1..)
                .map(|bits| 1 << bits)
                .take_while(|size| *size <= largest)
                .collect()),
        }
    }

    /// How often a size is repeated on each queue pair.
    pub fn iterations(&self, size: usize, modelled: bool) -> usize {
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

    /// Work requests that may be posted and not complete.
    pub fn tx_depth(&self) -> usize {
        let usual = if self.benchmark.is_latency() { 1 } else { 128 };
        self.tx_depth.unwrap_or(usual.max(self.cq_mod.unwrap_or(1)))
    }

    /// Receives that are posted: without acknowledgement enough that none is missing, as perftest has it.
    pub fn rx_depth(&self, iterations: usize) -> usize {
        let usual = match self.transport {
            Transport::Rc => 512,
            _ => iterations.min(16_000),
        };
        self.rx_depth.unwrap_or(usual)
    }

    /// Posts for one completion.
    pub fn signal_every(&self, size: usize) -> usize {
        let usual = match size > SPARSE || self.benchmark.is_latency() {
            true => 1,
            false => SIGNAL,
        };
        self.cq_mod.unwrap_or(usual).min(self.tx_depth())
    }

    /// The longest payload that stands in the work request, on a device that takes so many bytes. Streams have none unless
    /// asked for, but for the message rate.
    pub fn inline(&self, limit: usize) -> Result<usize> {
        let usual = match (self.benchmark, self.transport) {
            (Benchmark::WriteLat | Benchmark::MsgRate, _) => 220,
            (Benchmark::SendLat, Transport::Ud) => 188,
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
mod tests {
    use super::*;

    fn plan(benchmark: Benchmark) -> Plan {
        Plan::new(benchmark, Transport::Rc)
    }

    #[test]
    fn a_transport_that_cannot_is_refused_with_those_that_can() {
        let refused = |benchmark, transport| {
            Plan::new(benchmark, transport)
                .check()
                .map_err(|why| why.to_string())
        };
        for benchmark in Benchmark::ALL {
            for transport in [Transport::Rc, Transport::Uc, Transport::Ud] {
                let able = benchmark.transports().contains(&transport);
                assert_eq!(
                    refused(benchmark, transport).is_ok(),
                    able,
                    "{benchmark:?} {transport:?}"
                );
            }
        }
        assert_eq!(
            refused(Benchmark::ReadBw, Transport::Uc).unwrap_err(),
            "--transport uc: it has no RDMA reads, which read-bw needs; valid: rc"
        );
        assert_eq!(
            refused(Benchmark::WriteLat, Transport::Ud).unwrap_err(),
            "--transport ud: it has no RDMA writes, which write-lat needs; valid: rc, uc"
        );
    }

    #[test]
    fn options_that_mean_nothing_are_refused() {
        let wrong = |plan: Plan| plan.check().unwrap_err().to_string();
        let lat = plan(Benchmark::WriteLat);
        assert!(
            wrong(Plan {
                srq: true,
                ..lat.clone()
            })
            .starts_with("--srq is not for write-lat")
        );
        assert!(
            wrong(Plan {
                qps: 2,
                ..lat.clone()
            })
            .starts_with("--qps is not for")
        );
        assert!(
            wrong(Plan {
                bidirectional: true,
                ..lat.clone()
            })
            .starts_with("--bidirectional")
        );
        assert!(
            wrong(Plan {
                mtu: Some(1500),
                ..lat.clone()
            })
            .contains("256, 512")
        );
        assert!(
            wrong(Plan {
                size: Some(0),
                ..lat
            })
            .contains("at least one byte")
        );
        assert!(
            wrong(Plan {
                inline: Some(8),
                ..plan(Benchmark::ReadLat)
            })
            .starts_with("--inline")
        );
        assert!(
            wrong(Plan {
                size: Some(4),
                ..plan(Benchmark::AtomicLat)
            })
            .contains("8 bytes")
        );
        let deep = Plan {
            tx_depth: Some(4),
            cq_mod: Some(8),
            ..plan(Benchmark::WriteBw)
        };
        assert!(wrong(deep).contains("--cq-mod 8 is more than --tx-depth 4"));
    }

    #[test]
    fn sizes_are_powers_of_two_to_8_mib_and_of_datagrams_to_the_mtu() {
        let sizes = plan(Benchmark::WriteLat).sizes(2048).unwrap();
        assert_eq!((sizes[0], sizes.len(), sizes[22]), (2, 23, 8 << 20));
        let ud = Plan::new(Benchmark::SendLat, Transport::Ud);
        assert_eq!(ud.sizes(2048).unwrap().last(), Some(&2048));
        let long = Plan {
            size: Some(4096),
            ..ud
        };
        assert!(
            long.sizes(2048)
                .unwrap_err()
                .to_string()
                .contains("at most 2048 bytes")
        );
        assert_eq!(plan(Benchmark::AtomicLat).sizes(2048).unwrap(), [8]);
    }

    #[test]
    fn a_queue_never_waits_for_a_completion_that_nobody_asked_for() {
        for depth in [1, 7, 128, 500] {
            for size in [8, 8192, 8193] {
                let plan = Plan {
                    tx_depth: Some(depth),
                    ..plan(Benchmark::WriteBw)
                };
                assert!(plan.signal_every(size) <= plan.tx_depth());
            }
        }
        assert_eq!(plan(Benchmark::WriteBw).signal_every(8192), 100);
        assert_eq!(plan(Benchmark::WriteBw).signal_every(8193), 1);
        let every = Plan {
            cq_mod: Some(300),
            ..plan(Benchmark::WriteBw)
        };
        assert_eq!(every.tx_depth(), 300);
    }
}
