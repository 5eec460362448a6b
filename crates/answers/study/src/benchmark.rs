//! The benchmarks of studies: those of MPI, and those of devices and sockets.

use results::Unit;
use serde::Deserialize;

/// A benchmark that a study can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Benchmark {
    Latency,
    Bw,
    Bibw,
    /// The message rate of several pairs of ranks together.
    MbwMr,
    /// The message pattern of the kernel LU of the NAS benchmarks.
    Sweep,
    /// The message pattern of the kernel IS of the NAS benchmarks.
    Sort,
    Allgather,
    Allreduce,
    Alltoall,
    Bcast,
    Gather,
    Reduce,
    Scatter,
    WriteLat,
    WriteBw,
    ReadLat,
    ReadBw,
    SendLat,
    SendBw,
    MsgRate,
    TcpLat,
    TcpBw,
    /// The run time of HPL minus its computing.
    Hpl,
    /// The share of HPL's run time that is computing.
    HplComputing,
}

impl Benchmark {
    /// The benchmark's name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Benchmark::Latency => "latency",
            Benchmark::Bw => "bw",
            Benchmark::Bibw => "bibw",
            Benchmark::MbwMr => "mbw-mr",
            Benchmark::Sweep => "sweep",
            Benchmark::Sort => "sort",
            Benchmark::Allgather => "allgather",
            Benchmark::Allreduce => "allreduce",
            Benchmark::Alltoall => "alltoall",
            Benchmark::Bcast => "bcast",
            Benchmark::Gather => "gather",
            Benchmark::Reduce => "reduce",
            Benchmark::Scatter => "scatter",
            Benchmark::WriteLat => "write-lat",
            Benchmark::WriteBw => "write-bw",
            Benchmark::ReadLat => "read-lat",
            Benchmark::ReadBw => "read-bw",
            Benchmark::SendLat => "send-lat",
            Benchmark::SendBw => "send-bw",
            Benchmark::MsgRate => "msg-rate",
            Benchmark::TcpLat => "tcp-lat",
            Benchmark::TcpBw => "tcp-bw",
            Benchmark::Hpl => "hpl",
            Benchmark::HplComputing => "hpl-computing",
        }
    }

    /// The benchmark's name in titles.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Benchmark::Latency => "Latency",
            Benchmark::Bw => "Bandwidth",
            Benchmark::Bibw => "Bidirectional bandwidth",
            Benchmark::MbwMr => "Message rate",
            Benchmark::Sweep => "Messages of NAS LU",
            Benchmark::Sort => "Messages of NAS IS",
            Benchmark::Allgather => "Time of an allgather",
            Benchmark::Allreduce => "Time of an allreduce",
            Benchmark::Alltoall => "Time of an alltoall",
            Benchmark::Bcast => "Time of a broadcast",
            Benchmark::Gather => "Time of a gather",
            Benchmark::Reduce => "Time of a reduce",
            Benchmark::Scatter => "Time of a scatter",
            Benchmark::WriteLat => "Latency of RDMA write",
            Benchmark::WriteBw => "Bandwidth of RDMA write",
            Benchmark::ReadLat => "Latency of RDMA read",
            Benchmark::ReadBw => "Bandwidth of RDMA read",
            Benchmark::SendLat => "Latency of send",
            Benchmark::SendBw => "Bandwidth of send",
            Benchmark::MsgRate => "Message rate of RDMA writes",
            Benchmark::TcpLat => "Latency of TCP",
            Benchmark::TcpBw => "Bandwidth of TCP",
            Benchmark::Hpl => "Time of HPL",
            Benchmark::HplComputing => "Computing of HPL",
        }
    }

    /// True if `fishplate perf` runs the benchmark, without MPI.
    pub(crate) fn is_of_devices(self) -> bool {
        use Benchmark::*;
        !matches!(self, Latency | Bw | Bibw | MbwMr | Sweep | Sort)
            && !self.is_collective()
            && !self.is_of_hpl()
    }

    /// True if the benchmark is a collective operation.
    pub(crate) fn is_collective(self) -> bool {
        use Benchmark::*;
        matches!(
            self,
            Allgather | Allreduce | Alltoall | Bcast | Gather | Reduce | Scatter
        )
    }

    /// True if the kernel `hpl` runs the benchmark.
    pub(crate) fn is_of_hpl(self) -> bool {
        matches!(self, Benchmark::Hpl | Benchmark::HplComputing)
    }

    pub(crate) fn unit(self) -> Unit {
        use Benchmark::*;
        match self {
            Bw | Bibw | WriteBw | ReadBw | SendBw | TcpBw => Unit::MegabytesPerSecond,
            MbwMr | MsgRate => Unit::MessagesPerSecond,
            Hpl => Unit::Milliseconds,
            HplComputing => Unit::Percent,
            Allgather | Allreduce | Alltoall | Bcast | Gather | Reduce | Scatter => {
                Unit::Microseconds
            }
            Latency | Sweep | Sort | WriteLat | ReadLat | SendLat | TcpLat => Unit::Microseconds,
        }
    }
}
