//! The calls of one rank of a trace without a recording.

use std::collections::BTreeSet;

use crate::Builder;
use crate::gaps::Gaps;
use crate::standard::{BYTE, WORLD, signature};
use crate::value::{FIRST_MADE, NUMBER_OF_MEMORY, Value};

/// The calls that a rank has made so far.
#[derive(Default)]
pub(crate) struct Script {
    rank: i64,
    calls: Vec<u32>,
    gaps: Gaps,
    /// The computing before the next call, in nanoseconds.
    nanos: u64,
    /// The numbers of requests that are complete, for reuse.
    free: BTreeSet<i64>,
    /// The number of different request numbers that the rank has used.
    count: i64,
}

/// One side of a point-to-point message: a send or a receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) sends: bool,
    /// The other end, as its distance or as a number of the ABI.
    pub(crate) value: Source,
    pub(crate) count: i64,
    pub(crate) datatype: i64,
    pub(crate) tag: i64,
}

/// The rank at the other end of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// The rank with this number.
    Rank(usize),
    /// Any source; in the recorded run the message came from this rank.
    Met(usize),
}

impl Peer {
    /// A message of bytes to or from `value`.
    pub(crate) fn of_bytes(sends: bool, value: Source, bytes: i64, tag: i64) -> Peer {
        Peer {
            sends,
            value,
            count: bytes,
            datatype: BYTE,
            tag,
        }
    }
}

impl Script {
    pub(crate) fn new(rank: usize) -> Script {
        Script {
            rank: rank as i64,
            ..Script::default()
        }
    }

    /// Adds computing time before the next call.
    pub(crate) fn compute(&mut self, nanos: u64) {
        self.nanos = self.nanos.saturating_add(nanos);
    }

    /// Adds a call after the computing before it.
    pub(crate) fn call(&mut self, builder: &mut Builder, name: &str, values: Vec<Value>) {
        let signature = builder.signature(signature(name));
        self.calls.push(builder.call(signature, values));
        self.gaps.push(std::mem::take(&mut self.nanos), 1);
    }

    /// The values of a message: buffer, count, datatype, peer, tag, communicator.
    fn message(&self, buffer: i64, peer: Peer) -> Vec<Value> {
        let value = match peer.value {
            Source::Rank(rank) => Value::Relative(rank as i64 - self.rank),
            Source::Met(rank) => Value::Met(rank as i64 - self.rank),
        };
        let numbers = [buffer, peer.count, peer.datatype].map(Value::Number);
        let rest = [value, Value::Number(peer.tag), Value::Number(WORLD)];
        numbers.into_iter().chain(rest).collect()
    }

    /// Adds a blocking send or receive.
    pub(crate) fn blocking(&mut self, builder: &mut Builder, peer: Peer) {
        let mut values = self.message(NUMBER_OF_MEMORY, peer);
        if !peer.sends {
            values.push(Value::Absent);
        }
        let name = if peer.sends { "MPI_Send" } else { "MPI_Recv" };
        self.call(builder, name, values);
    }

    /// Begins a message, and returns the number of its request.
    pub(crate) fn begin(&mut self, builder: &mut Builder, peer: Peer) -> i64 {
        let request = self.free.pop_first().unwrap_or_else(|| {
            self.count += 1;
            FIRST_MADE + self.count - 1
        });
        let buffer = NUMBER_OF_MEMORY + request - FIRST_MADE;
        let mut values = self.message(buffer, peer);
        values.push(Value::Number(request));
        let name = if peer.sends { "MPI_Isend" } else { "MPI_Irecv" };
        self.call(builder, name, values);
        request
    }

    /// Adds a call that waits for requests.
    pub(crate) fn wait(&mut self, builder: &mut Builder, requests: &[i64]) {
        self.free.extend(requests);
        let count = Value::Number(requests.len() as i64);
        let values = vec![count, Value::Numbers(requests.into()), Value::Absent];
        self.call(builder, "MPI_Waitall", values);
    }

    /// Adds a call that tests a request and finds it incomplete.
    pub(crate) fn test(&mut self, builder: &mut Builder, request: i64) {
        let values = vec![Value::Number(request), Value::Number(0), Value::Absent];
        self.call(builder, "MPI_Test", values);
    }

    /// Adds the rank with its calls to the trace.
    pub(crate) fn end(mut self, builder: &mut Builder) {
        self.call(builder, "MPI_Finalize", Vec::new());
        builder.rank(&self.calls, self.gaps, Gaps::default());
    }
}
