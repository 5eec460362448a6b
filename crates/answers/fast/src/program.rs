//! The calls of a trace as actions: each different call is read once.

use trace::{Call, Fact, Signature, Trace, Value};

use crate::passed::moves_nothing;

/// A handle's number in the trace.
pub(crate) type Handle = i64;

/// A peer of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A rank at this distance in the communicator.
    At(i64),
    /// The rank with this number, or a constant below 0.
    Rank(i64),
}

/// Data: a count of elements of a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    pub count: i64,
    pub datatype: Handle,
}

/// A message of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub amount: Amount,
    pub peer: Peer,
    pub tag: i64,
    pub comm: Handle,
}

/// The data of a rank in a collective operation that moves blocks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Blocks {
    /// Blocks of one size.
    Even(Amount),
    /// Blocks with counts, of one datatype or of one each.
    Each(Box<[Amount]>),
    /// The data are in the other buffer.
    InPlace,
}

/// The kinds of collective operations that move blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Alltoall,
}

/// The kinds of reductions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reduces {
    Reduce(i64),
    Allreduce,
    /// With the counts of all members, or the count of each.
    ReduceScatter(Box<[i64]>),
    ReduceScatterBlock,
    Scan,
    Exscan,
}

/// A collective operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Collective {
    Barrier,
    Bcast {
        amount: Amount,
        root: i64,
    },
    Move {
        kind: Moves,
        send: Blocks,
        receive: Blocks,
        root: i64,
    },
    Reduce {
        kind: Reduces,
        amount: Amount,
        op: Handle,
        in_place: bool,
    },
}

/// The kinds of new communicators.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Making {
    Dup,
    Split { color: i64, key: i64 },
    SplitByHost { key: i64 },
    Cart { dims: Box<[i64]> },
    CartSub { remains: Box<[i64]> },
}

/// An action of a rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// The call moves nothing.
    Nothing,
    /// A poll, or a reading of the clock, which takes a time.
    Poll,
    /// A step of the program begins.
    Step,
    /// The rank leaves MPI.
    End,
    Send {
        message: Message,
        synchronous: bool,
        /// The request of a nonblocking or persistent send.
        request: Option<Handle>,
        persistent: bool,
    },
    Receive {
        message: Message,
        request: Option<Handle>,
        persistent: bool,
    },
    Exchange {
        send: Message,
        receive: Message,
    },
    Start(Box<[Handle]>),
    /// Waits for requests, and forgets those that are not persistent.
    Wait(Box<[Handle]>),
    /// Frees a request, which completes by itself.
    Forget(Handle),
    Collective {
        work: Collective,
        comm: Handle,
        request: Option<Handle>,
    },
    MakeComm {
        making: Making,
        comm: Handle,
        new: Handle,
    },
    FreeComm(Handle),
    /// A datatype with the size of some elements of others.
    MakeType {
        parts: Box<[Amount]>,
        new: Handle,
    },
    /// An operation of the program.
    MakeOp {
        new: Handle,
        commutes: bool,
    },
}

/// The actions of all calls of a trace.
pub(crate) fn actions(trace: &Trace) -> Result<Vec<Action>, String> {
    let read = |call: &Call| {
        let signature = &trace.signatures[call.signature as usize];
        Reader { signature, call }.action()
    };
    trace.calls.iter().map(read).collect()
}

/// One call of a trace.
struct Reader<'a> {
    signature: &'a Signature,
    call: &'a Call,
}

const IN_PLACE: i64 = 1;

impl Reader<'_> {
    fn value(&self, name: &str) -> Option<&Value> {
        Some(&self.call.values[self.signature.position(name)?])
    }

    fn has(&self, name: &str) -> bool {
        self.signature.position(name).is_some()
    }

    fn number(&self, name: &str) -> i64 {
        self.value(name).and_then(Value::number).unwrap_or(0)
    }

    fn numbers(&self, name: &str) -> &[i64] {
        self.value(name).map_or(&[], Value::numbers)
    }

    fn amount(&self, count: &str, datatype: &str) -> Amount {
        Amount {
            count: self.number(count),
            datatype: self.number(datatype),
        }
    }

    fn peer(&self, name: &str) -> Peer {
        match self.value(name) {
            Some(Value::Relative(distance)) => Peer::At(*distance),
            // The fast way takes the sources of the recorded run.
            Some(Value::Met(distance)) => Peer::At(*distance),
            _ => Peer::Rank(self.number(name)),
        }
    }

    fn message(&self, [count, datatype, peer, tag]: [&str; 4]) -> Message {
        Message {
            amount: self.amount(count, datatype),
            peer: self.peer(peer),
            tag: self.number(tag),
            comm: self.number("comm"),
        }
    }

    fn request(&self) -> Option<Handle> {
        self.has("request").then(|| self.number("request"))
    }

    fn is_in_place(&self, buffer: &str) -> bool {
        self.value(buffer).and_then(Value::number) == Some(IN_PLACE)
    }

    fn blocks(&self, [buffer, one, counts, ty]: [&str; 4]) -> Blocks {
        if self.is_in_place(buffer) {
            return Blocks::InPlace;
        }
        if self.has(one) {
            return Blocks::Even(self.amount(one, &format!("{ty}type")));
        }
        let types = self.numbers(&format!("{ty}types"));
        let single = self.number(&format!("{ty}type"));
        let counts = self.numbers(counts).iter().enumerate();
        let amount = |(at, count): (usize, &i64)| Amount {
            count: *count,
            datatype: types.get(at).copied().unwrap_or(single),
        };
        Blocks::Each(counts.map(amount).collect())
    }

    fn moves(&self, kind: Moves) -> Action {
        let work = Collective::Move {
            kind,
            send: self.blocks(["sendbuf", "sendcount", "sendcounts", "send"]),
            receive: self.blocks(["recvbuf", "recvcount", "recvcounts", "recv"]),
            root: self.number("root"),
        };
        self.collective(work)
    }

    fn reduces(&self, kind: Reduces) -> Action {
        let count = match kind {
            Reduces::ReduceScatterBlock => "recvcount",
            _ => "count",
        };
        let work = Collective::Reduce {
            kind,
            amount: self.amount(count, "datatype"),
            op: self.number("op"),
            in_place: self.is_in_place("sendbuf"),
        };
        self.collective(work)
    }

    fn collective(&self, work: Collective) -> Action {
        Action::Collective {
            work,
            comm: self.number("comm"),
            request: self.request(),
        }
    }

    fn make(&self, making: Making, new: &str) -> Action {
        Action::MakeComm {
            making,
            comm: self.number(if self.has("comm") { "comm" } else { "comm_old" }),
            new: self.number(new),
        }
    }

    fn send(&self, synchronous: bool, persistent: bool) -> Action {
        Action::Send {
            message: self.message(["count", "datatype", "dest", "tag"]),
            synchronous,
            request: self.request(),
            persistent,
        }
    }

    fn receive(&self, persistent: bool) -> Action {
        Action::Receive {
            message: self.message(["count", "datatype", "source", "tag"]),
            request: self.request(),
            persistent,
        }
    }

    /// The requests that a call has found complete in the recorded run.
    fn found(&self, word: &str) -> Action {
        let all = self.numbers("array_of_requests");
        let is_found = !self.has("flag") || self.number("flag") == 1;
        let requests: Vec<Handle> = match word {
            _ if !is_found => return Action::Poll,
            "Wait" | "Test" => vec![self.number("request")],
            "Waitall" | "Testall" => all.to_vec(),
            "Waitany" | "Testany" => {
                let at = usize::try_from(self.number("indx")).ok();
                at.and_then(|at| all.get(at)).into_iter().copied().collect()
            }
            _ => {
                let indices = self.numbers("array_of_indices").iter();
                let places = indices.filter_map(|at| usize::try_from(*at).ok());
                places.filter_map(|at| all.get(at).copied()).collect()
            }
        };
        match requests.is_empty() {
            true => Action::Poll,
            false => Action::Wait(requests.into()),
        }
    }

    fn make_type(&self, parts: Vec<Amount>) -> Action {
        Action::MakeType {
            parts: parts.into(),
            new: self.number("newtype"),
        }
    }

    /// A datatype of `count` elements of the old one.
    fn elements(&self, count: i64) -> Action {
        let datatype = self.number("oldtype");
        self.make_type(vec![Amount { count, datatype }])
    }

    // Over 80 lines: a table with a row for each procedure.
    fn action(&self) -> Result<Action, String> {
        let name = self.signature.name.as_str();
        match Fact::of(self.signature) {
            Some(Fact::Step) => return Ok(Action::Step),
            Some(Fact::Source) => {
                let what = "a persistent receive from any source is not part of the fast way";
                return Err(format!("{what}; the exact way has it"));
            }
            Some(Fact::FileSize | Fact::Address | Fact::TypeSize | Fact::Threads) => {
                return Ok(Action::Nothing);
            }
            None => (),
        }
        let Some(word) = name.strip_prefix("MPI_") else {
            return Ok(Action::Poll);
        };
        if self.signature.parameters.is_empty() && word != "Finalize" {
            // It has returned an error.
            return Ok(Action::Nothing);
        }
        let word = word.strip_suffix("_c").unwrap_or(word);
        // A nonblocking collective operation has the arguments of the blocking one.
        let collective = match (word.strip_prefix('I'), self.has("request")) {
            (Some(rest), true) => capitalised(rest),
            _ => word.to_owned(),
        };
        let product = |names: &str| self.numbers(names).iter().product::<i64>();
        Ok(match word {
            "Send" | "Rsend" | "Isend" | "Irsend" => self.send(false, false),
            "Ssend" | "Issend" => self.send(true, false),
            "Send_init" | "Rsend_init" => self.send(false, true),
            "Ssend_init" => self.send(true, true),
            "Recv" | "Irecv" => self.receive(false),
            "Recv_init" => self.receive(true),
            "Sendrecv" => Action::Exchange {
                send: self.message(["sendcount", "sendtype", "dest", "sendtag"]),
                receive: self.message(["recvcount", "recvtype", "source", "recvtag"]),
            },
            "Sendrecv_replace" => Action::Exchange {
                send: self.message(["count", "datatype", "dest", "sendtag"]),
                receive: self.message(["count", "datatype", "source", "recvtag"]),
            },
            "Start" => Action::Start([self.number("request")].into()),
            "Startall" => Action::Start(self.numbers("array_of_requests").into()),
            "Wait" | "Waitall" | "Waitany" | "Waitsome" | "Test" | "Testall" | "Testany"
            | "Testsome" => self.found(word),
            "Request_free" => Action::Forget(self.number("request")),
            "Comm_dup" | "Comm_dup_with_info" => self.make(Making::Dup, "newcomm"),
            "Comm_split" => {
                let (color, key) = (self.number("color"), self.number("key"));
                self.make(Making::Split { color, key }, "newcomm")
            }
            "Comm_split_type" => {
                let key = self.number("key");
                self.make(Making::SplitByHost { key }, "newcomm")
            }
            "Cart_create" => {
                let dims = self.numbers("dims").into();
                self.make(Making::Cart { dims }, "comm_cart")
            }
            "Cart_sub" => {
                let remains = self.numbers("remain_dims").into();
                self.make(Making::CartSub { remains }, "newcomm")
            }
            "Comm_free" | "Comm_disconnect" => Action::FreeComm(self.number("comm")),
            "Type_contiguous" => self.elements(self.number("count")),
            "Type_vector" | "Type_hvector" | "Type_create_hvector" => self.elements(
                self.number("count")
                    .saturating_mul(self.number("blocklength")),
            ),
            "Type_create_indexed_block" | "Type_create_hindexed_block" => self.elements(
                self.number("count")
                    .saturating_mul(self.number("blocklength")),
            ),
            "Type_indexed" | "Type_hindexed" | "Type_create_hindexed" => {
                self.elements(self.numbers("array_of_blocklengths").iter().sum())
            }
            "Type_create_subarray" => self.elements(product("array_of_subsizes")),
            "Type_create_resized" | "Type_dup" => self.elements(1),
            "Type_create_struct" | "Type_struct" => {
                let counts = self.numbers("array_of_blocklengths").iter();
                let types = self.numbers("array_of_types").iter();
                let part = |(&count, &datatype): (&i64, &i64)| Amount { count, datatype };
                self.make_type(counts.zip(types).map(part).collect())
            }
            "Op_create" => Action::MakeOp {
                new: self.number("op"),
                commutes: self.number("commute") != 0,
            },
            "Finalize" => Action::End,
            "Wtime" | "Iprobe" => Action::Poll,
            _ => match collective.as_str() {
                "Barrier" => self.collective(Collective::Barrier),
                "Bcast" => self.collective(Collective::Bcast {
                    amount: self.amount("count", "datatype"),
                    root: self.number("root"),
                }),
                "Gather" => self.moves(Moves::Gather),
                "Gatherv" => self.moves(Moves::Gatherv),
                "Scatter" => self.moves(Moves::Scatter),
                "Scatterv" => self.moves(Moves::Scatterv),
                "Allgather" | "Allgatherv" => self.moves(Moves::Allgather),
                "Alltoall" | "Alltoallv" | "Alltoallw" => self.moves(Moves::Alltoall),
                "Reduce" => self.reduces(Reduces::Reduce(self.number("root"))),
                "Allreduce" => self.reduces(Reduces::Allreduce),
                "Reduce_scatter" => {
                    let counts = self.numbers("recvcounts").into();
                    self.reduces(Reduces::ReduceScatter(counts))
                }
                "Reduce_scatter_block" => self.reduces(Reduces::ReduceScatterBlock),
                "Scan" => self.reduces(Reduces::Scan),
                "Exscan" => self.reduces(Reduces::Exscan),
                _ if moves_nothing(name) => Action::Nothing,
                _ => {
                    return Err(format!(
                        "{name} is not part of the fast way, which has messages and collective operations only; the exact \
                         way has it"
                    ));
                }
            },
        })
    }
}

/// A word with a capital letter at its beginning.
fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
