//! Programs made in memory: the calls of ranks as a trace, with marks around what is timed.

use fast::Outcome;
use trace::{Builder, Gaps, NUMBER_OF_MEMORY, Signature, Trace, Value, WORLD};

/// MPI_BYTE, with the ABI's value.
const BYTE: Value = Value::Number(0x247);
const TAG: Value = Value::Number(0);
const COMM: Value = Value::Number(WORLD);

/// The signatures of the calls that programs make, in the order of [`Call`].
const LINES: [&str; 9] = [
    "step",
    "MPI_Barrier comm:comm",
    "MPI_Send buf:in count:count datatype:datatype dest:dest tag:tag comm:comm",
    "MPI_Recv buf:out count:count datatype:datatype source:source tag:tag_any comm:comm status:>status",
    "MPI_Sendrecv sendbuf:in sendcount:count sendtype:datatype dest:dest sendtag:tag recvbuf:out \
     recvcount:count recvtype:datatype source:source recvtag:tag_any comm:comm status:>status",
    "MPI_Irecv buf:out count:count datatype:datatype source:source tag:tag_any comm:comm \
     request:>request",
    "MPI_Isend buf:in count:count datatype:datatype dest:dest tag:tag comm:comm request:>request",
    "MPI_Waitall count:n array_of_requests:<>request[count] array_of_statuses:>status[count]",
    "MPI_Alltoall sendbuf:in sendcount:count sendtype:datatype recvbuf:out recvcount:count \
     recvtype:datatype comm:comm",
];
const END: &str = "MPI_Finalize";

#[derive(Clone, Copy)]
enum Call {
    Step,
    Barrier,
    Send,
    Receive,
    Exchange,
    BeginReceive,
    BeginSend,
    Wait,
    Alltoall,
}

/// The calls of one rank.
pub(in crate::score) struct Calls<'a> {
    builder: &'a mut Builder,
    signatures: &'a [u32],
    pub(in crate::score) rank: usize,
    made: Vec<u32>,
    gaps: Gaps,
    /// The computing before the next call, in nanoseconds.
    computing: u64,
}

/// The trace of a program of `ranks` ranks, whose calls `make` makes.
pub(in crate::score) fn program(ranks: usize, mut make: impl FnMut(&mut Calls)) -> Trace {
    let mut builder = Builder::new("study score".into());
    let mut signature = |line| {
        let parsed = Signature::parse(line).expect("a line of this table is a signature");
        builder.signature(parsed)
    };
    let signatures = LINES.map(&mut signature);
    let end = signature(END);
    let end = builder.call(end, Vec::new());
    for rank in 0..ranks {
        let mut calls = Calls {
            builder: &mut builder,
            signatures: &signatures,
            rank,
            made: Vec::new(),
            gaps: Gaps::default(),
            computing: 0,
        };
        make(&mut calls);
        calls.push(end);
        let (made, gaps) = (calls.made, calls.gaps);
        builder.rank(&made, gaps, Gaps::default());
    }
    builder.finish()
}

impl Calls<'_> {
    fn make(&mut self, call: Call, values: Vec<Value>) {
        let signature = self.signatures[call as usize];
        let call = self.builder.call(signature, values);
        self.push(call);
    }

    fn push(&mut self, call: u32) {
        self.made.push(call);
        self.gaps.push(std::mem::take(&mut self.computing), 1);
    }

    /// Computes before the next call.
    pub(in crate::score) fn compute(&mut self, seconds: f64) {
        self.computing += (seconds * 1e9).round() as u64;
    }

    /// Marks a time.
    pub(in crate::score) fn mark(&mut self) {
        self.make(Call::Step, Vec::new());
    }

    /// Makes calls twice: connections are made and buffers registered by the first, after a barrier
    /// the second are between two marks.
    pub(in crate::score) fn timed(&mut self, make: impl Fn(&mut Self)) {
        make(self);
        self.barrier();
        self.mark();
        make(self);
        self.mark();
    }

    pub(in crate::score) fn barrier(&mut self) {
        self.make(Call::Barrier, vec![COMM]);
    }

    /// The values of a message: buffer, count, datatype, peer, tag.
    fn message(&self, buffer: usize, bytes: u64, peer: usize) -> Vec<Value> {
        let buffer = Value::Number(NUMBER_OF_MEMORY + buffer as i64);
        let peer = Value::Relative(peer as i64 - self.rank as i64);
        vec![buffer, Value::Number(bytes as i64), BYTE, peer, TAG]
    }

    pub(in crate::score) fn send(&mut self, to: usize, bytes: u64) {
        let values = [self.message(0, bytes, to), vec![COMM]].concat();
        self.make(Call::Send, values);
    }

    pub(in crate::score) fn receive(&mut self, from: usize, bytes: u64) {
        let rest = vec![COMM, Value::Absent];
        let values = [self.message(0, bytes, from), rest].concat();
        self.make(Call::Receive, values);
    }

    /// One MPI_Sendrecv.
    pub(in crate::score) fn exchange(&mut self, to: usize, from: usize, bytes: u64) {
        self.exchange_unequal([to, from], [bytes; 2]);
    }

    /// One MPI_Sendrecv. `peers` and `bytes`: of the message sent, then of that received.
    pub(in crate::score) fn exchange_unequal(&mut self, peers: [usize; 2], bytes: [u64; 2]) {
        let message = |at: usize| self.message(at, bytes[at], peers[at]);
        let both = [message(0), message(1)];
        let values = [both.concat(), vec![COMM, Value::Absent]].concat();
        self.make(Call::Exchange, values);
    }

    /// Nonblocking receives from and sends to these ranks, all in flight at once.
    pub(in crate::score) fn exchange_at_once(&mut self, to: &[usize], from: &[usize], bytes: u64) {
        let mut requests = Vec::new();
        let begun = [(Call::BeginReceive, from), (Call::BeginSend, to)];
        for (call, peers) in begun {
            for &peer in peers {
                let request = trace::FIRST_MADE + requests.len() as i64;
                let rest = vec![COMM, Value::Number(request)];
                let values = [self.message(requests.len(), bytes, peer), rest].concat();
                requests.push(request);
                self.make(call, values);
            }
        }
        let count = Value::Number(requests.len() as i64);
        self.make(
            Call::Wait,
            vec![count, Value::Numbers(requests), Value::Absent],
        );
    }

    /// Begins a receive and sends, which are in flight until [`Calls::wait`]. Their number.
    pub(in crate::score) fn begin(
        &mut self,
        from: Option<usize>,
        to: &[usize],
        bytes: u64,
    ) -> usize {
        let receives = from.iter().map(|&peer| (Call::BeginReceive, peer));
        let sends = to.iter().map(|&peer| (Call::BeginSend, peer));
        let begun: Vec<(Call, usize)> = receives.chain(sends).collect();
        for (number, &(call, peer)) in begun.iter().enumerate() {
            let request = Value::Number(trace::FIRST_MADE + number as i64);
            let values = [self.message(2, bytes, peer), vec![COMM, request]].concat();
            self.make(call, values);
        }
        begun.len()
    }

    /// Waits for this number of operations in flight.
    pub(in crate::score) fn wait(&mut self, number: usize) {
        let requests = (0..number as i64).map(|number| trace::FIRST_MADE + number);
        let requests = Value::Numbers(requests.collect());
        let values = vec![Value::Number(number as i64), requests, Value::Absent];
        self.make(Call::Wait, values);
    }

    /// One MPI_Alltoall with `bytes` bytes for each pair.
    pub(in crate::score) fn alltoall(&mut self, bytes: u64) {
        let half = |buffer: usize| {
            let buffer = Value::Number(NUMBER_OF_MEMORY + buffer as i64);
            vec![buffer, Value::Number(bytes as i64), BYTE]
        };
        let values = [half(0), half(1), vec![COMM]].concat();
        self.make(Call::Alltoall, values);
    }
}

/// The seconds that each rank spent between the marks number `2 * part` and `2 * part + 1`.
pub(in crate::score) fn times(outcome: &Outcome, part: usize) -> Vec<f64> {
    let between = |marks: &Vec<u64>| {
        let marks = marks.get(2 * part).zip(marks.get(2 * part + 1));
        marks.map(|(start, end)| end.saturating_sub(*start) as f64 * 1e-12)
    };
    outcome.steps.iter().filter_map(between).collect()
}
