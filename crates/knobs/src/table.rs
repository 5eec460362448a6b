//! The table of settings.
//!
//! A row reads: doc, field, type, default, variable, and where they are wanted other names and limits.

use std::time::Duration;

use crate::overrides::Overrides;
use crate::value::{Bytes, Cores, RdmaDesign, Rendezvous, Seconds, SingleCopy, Value, Wait};
use crate::{Error, Knob};

macro_rules! knobs {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $type:ty = $default:expr, $env:literal
            $(, also $alias:literal)* $(, within $low:expr, $high:expr)? ;
    )+) => {
        /// All settings, typed.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Knobs {
            $( $(#[doc = $doc])+ pub $field: $type, )+
        }

        impl Default for Knobs {
            fn default() -> Self {
                Knobs { $( $field: $default, )+ }
            }
        }

        /// The settings, described, in the order of the documentation.
        pub const TABLE: &[Knob] = &[$(
            Knob {
                name: stringify!($field),
                env: $env,
                aliases: &[$($alias),*],
                kind: <$type as Value>::KIND,
                default: || { let value: $type = $default; value.show() },
                range: || {
                    let limits: [Option<($type, $type)>; 1] = [None $(.or(Some(($low, $high))))?];
                    limits[0].as_ref().map(|(low, high)| (low.show(), high.show()))
                },
                doc: &[$($doc),+],
            },
        )+];

        impl Knobs {
            /// Sets the knob that `variable` names; false if none does.
            pub(crate) fn assign(&mut self, variable: &str, text: &str) -> Result<bool, Error> {
                $(
                    if [$env $(, $alias)*].contains(&variable) {
                        let value = <$type as Value>::parse(text)
                            .ok_or_else(|| Error::invalid(variable, text, <$type as Value>::EXPECTED))?;
                        $(
                            let (low, high): ($type, $type) = ($low, $high);
                            if value < low || value > high {
                                return Err(Error::out_of_range(variable, text, &low.show(), &high.show()));
                            }
                        )?
                        self.$field = value;
                        return Ok(true);
                    }
                )+
                Ok(false)
            }

            /// The value of the knob of that name (a field's name), written as in the environment.
            pub fn show(&self, name: &str) -> Option<String> {
                $( if name == stringify!($field) { return Some(self.$field.show()); } )+
                None
            }
        }
    };
}

knobs! {
    /// Messages up to this size are sent at once, without asking the receiver. Longer ones wait until the receiver
    /// has a buffer for them. Over RDMA it is at most what one packet holds.
    eager_limit: Bytes = Bytes::kib(128), "FISHPLATE_EAGER_LIMIT",
        also "FISHPLATE_EAGER_THRESHOLD", within Bytes(0), Bytes::mib(64);

    /// Slots in the ring from one rank to another: how many packets can be under way before the sender has to wait.
    /// Rounded up to a power of two.
    ring_slots: usize = 256, "FISHPLATE_RING_SLOTS",
        within 4, 16384;

    /// Payload that a ring holds besides what fits into its slots: 256 KiB of it for short bodies, the rest for streams and
    /// long ones. More than a core's second cache is good where cores share a third one. Rings into one rank take 10 MiB
    /// together at most, but each has 384 KiB if this says no less.
    ring_bytes: Bytes = Bytes::kib(2304), "FISHPLATE_RING_BYTES",
        within Bytes::kib(8), Bytes::mib(3);

    /// How the cores that ranks run on lie to each other. Where they are `near`, which is to say share a cache, messages go
    /// through it, the long ones too; where they are `far`, bodies are written past the cache, and long messages copied
    /// straight from one process to the other. This is what ranks begin with (the launcher measures it, unless it is set);
    /// each finds out how near each of its peers is while they talk.
    cores: Cores = Cores::Far, "FISHPLATE_CORES";

    /// Where cores are far apart, contents of packets from this size on are written past the sender's cache.
    past_cache_limit: Bytes = Bytes::kib(1), "FISHPLATE_PAST_CACHE_LIMIT",
        within Bytes(512), Bytes::mib(1024);

    /// Whether a long message between ranks of one host is copied once, straight from the sender's memory
    /// (process_vm_readv). `auto` and `on` try it once per peer and fall back quietly to copying through shared memory
    /// where the system refuses; `off` never tries.
    single_copy: SingleCopy = SingleCopy::Auto, "FISHPLATE_SINGLE_COPY";

    /// Messages of at least this size are copied once, where that is possible.
    single_copy_limit: Bytes = Bytes::kib(128), "FISHPLATE_SINGLE_COPY_LIMIT";

    /// Messages of at least this size are copied by sender and receiver together, each taking the next piece, where
    /// there is a core for each rank.
    together_limit: Bytes = Bytes::kib(128), "FISHPLATE_TOGETHER_LIMIT";

    /// RDMA devices to use, by name, as `rxe0` or `mlx5_0:1`, with commas between; empty: what `fishplate info` says would
    /// be used.
    device: String = String::new(), "FISHPLATE_DEVICE";

    /// How packets and long messages go over RDMA. `basic` writes data and then the head pointer, and writes the tail back
    /// after every packet. `piggyback` does it in one write and returns the tail lazily. `pipeline` cuts long messages
    /// into chunks besides, so that one is copied while the one before it is written. `zero-copy` moves long messages
    /// straight between the programs' buffers, as FISHPLATE_RENDEZVOUS says.
    rdma_design: RdmaDesign = RdmaDesign::ZeroCopy, "FISHPLATE_RDMA_DESIGN";

    /// Memory of the ring that a peer writes to by RDMA. A connection takes twice as much at each end.
    rdma_ring_bytes: Bytes = Bytes::kib(256), "FISHPLATE_RDMA_RING_BYTES",
        within Bytes::kib(8), Bytes::mib(64);

    /// The pieces into which long messages are cut that go through a ring, with the designs `pipeline` and `zero-copy`;
    /// so also the longest message that is sent at once. A ring has room for two at least.
    rdma_chunk: Bytes = Bytes::kib(16), "FISHPLATE_RDMA_CHUNK",
        within Bytes::kib(1), Bytes::mib(16);

    /// A peer is told of free space when one part in so many of its ring's slots has been consumed, if nothing goes
    /// to it before that could carry the news.
    rdma_credit: usize = 4, "FISHPLATE_RDMA_CREDIT",
        within 1, 64;

    /// How many peers get a ring of their own to write to. What others send comes into buffers that they share, so that
    /// memory does not grow with the number of peers.
    rdma_rings: usize = 64, "FISHPLATE_RDMA_RINGS",
        within 0, 65536;

    /// Whether short messages to one peer are gathered, and leave in one write, while earlier ones are still under way.
    rdma_gather: bool = true, "FISHPLATE_RDMA_GATHER";

    /// Who moves a long message over RDMA with the design `zero-copy`: `read` lets the receiver read it from the sender's
    /// memory, `write` lets the sender write it to the receiver's. `auto` reads, but where long messages come to receives
    /// that wait for them, the receiver says beforehand where it wants them, and the sender writes. With a device that
    /// processors work (Soft-RoCE, Soft-iWARP) it writes: that is worked by the rank that posts it, which has nothing else
    /// to do, and a read by interrupts of the rank that is read from.
    rendezvous: Rendezvous = Rendezvous::Auto, "FISHPLATE_RENDEZVOUS";

    /// How a rank waits for a message. `spin` looks without pause; `yield` lets others run between looks; `sleep` stops
    /// until it is woken. `auto` spins while there is a core for each rank of the host, and yields otherwise; either for
    /// as long as FISHPLATE_SPIN says, and then it sleeps.
    wait: Wait = Wait::Auto, "FISHPLATE_WAIT";

    /// With wait `auto`: how long a rank looks for a message before it sleeps. Ranks that have to share a core give way
    /// between looks. Where processors do the work of RDMA devices it is 16 times as long for short messages, since waking
    /// takes long there, and a sixteenth while long ones are moved.
    spin: Duration = Duration::from_millis(1), "FISHPLATE_SPIN",
        within Duration::ZERO, Duration::from_secs(3600);

    /// What a rank holds, per sender, of messages that arrived before anyone asked for them. Past it, that sender
    /// keeps the contents until they are asked for.
    unexpected_limit: Bytes = Bytes::mib(16), "FISHPLATE_UNEXPECTED_LIMIT",
        within Bytes::kib(64), Bytes::mib(1 << 20);

    /// Algorithms of collectives, where another than the table's is wanted: `bcast=binomial,allreduce@1K=ring` takes
    /// `binomial` for every broadcast, and `ring` for an allreduce of at least 1 KiB.
    collectives: Overrides = Overrides::default(), "FISHPLATE_COLLECTIVES";

    /// After this many seconds in which no rank made progress, print what every rank waits for. 0 never does.
    report_stuck: Seconds = Seconds(Duration::ZERO), "FISHPLATE_REPORT_STUCK";
}
