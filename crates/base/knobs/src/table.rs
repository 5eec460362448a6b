//! The table of all settings of the library.
//!
//! A row holds the description, field, type, default and variable of a setting, and optionally
//! aliases, limits, and the keyword `studies` for a setting by which a study imitates another
//! library.

use std::time::Duration;

use crate::algorithms::{AlgorithmChoices, TreeArity};
use crate::rails::{QueuePairs, RailCount, RailPolicy};
use crate::value::{
    AutoSeconds, Bytes, CoreDistance, CostSource, KnobValue, PmiVersion, ProgressBy,
    ProtocolChoice, RdmaDesign, ReadyToReceive, Rendezvous, Seconds, SingleCopyMode, TimeLimit,
    Wait, WindowPath,
};
use crate::{Error, Knob};

macro_rules! knobs {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $type:ty = $default:expr, $env:literal
            $(, also $alias:literal)* $(, within $low:expr, $high:expr)? $(, for $use:ident)? ;
    )+) => {
        /// The values of all settings.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Knobs {
            $( $(#[doc = $doc])+ pub $field: $type, )+
        }

        impl Default for Knobs {
            fn default() -> Self {
                Knobs { $( $field: $default, )+ }
            }
        }

        /// The descriptions of all settings, in the order of their documentation.
        pub const TABLE: &[Knob] = &[$(
            Knob {
                name: stringify!($field),
                env: $env,
                aliases: &[$($alias),*],
                kind: <$type as KnobValue>::KIND,
                default: || { let value: $type = $default; value.show() },
                range: || {
                    let limits: [Option<($type, $type)>; 1] = [None $(.or(Some(($low, $high))))?];
                    limits[0].as_ref().map(|(low, high)| (low.show(), high.show()))
                },
                doc: &[$($doc),+],
                is_for_studies: false $(|| !stringify!($use).is_empty())?,
            },
        )+];

        impl Knobs {
            /// Sets the setting that `variable` names. Returns false if it names none.
            pub(crate) fn assign(&mut self, variable: &str, text: &str) -> Result<bool, Error> {
                $(
                    if [$env $(, $alias)*].contains(&variable) {
                        let value = <$type as KnobValue>::parse(text)
                            .ok_or_else(|| Error::invalid(variable, text, <$type as KnobValue>::EXPECTED))?;
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

            /// The value of the setting with this field name, in the form of the environment
            /// variable.
            pub fn show(&self, name: &str) -> Option<String> {
                $( if name == stringify!($field) { return Some(self.$field.show()); } )+
                None
            }
        }
    };
}

knobs! {
    /// The longest message that is sent eagerly, without asking the receiver. A longer one waits
    /// for the receiver's buffer. Over RDMA the limit is at most the longest packet; unless this is
    /// set, it is the length up to which both ranks can go on earlier than after an announcement,
    /// by the estimates of host and devices, a fixed number of the machine.
    eager_limit: Bytes = Bytes::kib(128), "FISHPLATE_EAGER_LIMIT",
        also "FISHPLATE_EAGER_THRESHOLD", also "MV2_IBA_EAGER_THRESHOLD", within Bytes(0), Bytes::mib(64);

    /// Number of slots in the shared-memory ring from one rank to another: the packets that can be
    /// on their way before the sender has to wait. Rounded up to a power of two.
    ring_slots: usize = 256, "FISHPLATE_RING_SLOTS",
        within 4, 16384;

    /// Payload bytes of a shared-memory ring in addition to those in its slots: 256 KiB for short
    /// bodies, the rest for long ones. Where cores share a third-level cache, it should exceed a
    /// core's second-level cache. The rings into one rank take at most 10 MiB together, but each
    /// keeps 384 KiB unless this setting is lower.
    ring_bytes: Bytes = Bytes::kib(2304), "FISHPLATE_RING_BYTES",
        within Bytes::kib(8), Bytes::mib(3);

    /// Cache distance of the cores that ranks run on. With `near`, the cores share a cache and all
    /// messages go through it. With `far`, bodies are written with non-temporal stores, and long
    /// messages are copied straight from one process to the other. The launcher measures the
    /// distance unless this is set. Ranks begin with it, and then measure the distance of each peer
    /// while they exchange messages.
    cores: CoreDistance = CoreDistance::Far, "FISHPLATE_CORES";

    /// The smallest packet body that is written past the sender's cache (with non-temporal stores)
    /// where cores are far apart.
    past_cache_limit: Bytes = Bytes::kib(1), "FISHPLATE_PAST_CACHE_LIMIT",
        within Bytes(512), Bytes::mib(1024);

    /// Whether a long message between ranks of one host is copied once, straight from the sender's
    /// memory (process_vm_readv). `on` does so from the limits below on, and copies through shared
    /// memory where the system refuses it; `off` never does. `auto` compares the times of both, as
    /// FISHPLATE_COSTS says.
    single_copy: SingleCopyMode = SingleCopyMode::Auto, "FISHPLATE_SINGLE_COPY";

    /// The source of the costs by which the path of a long message within a host is chosen. With
    /// `keep` and `learn`, receivers time the messages that move, and choose the fastest path for
    /// each length; no result depends on it. `keep` begins with what earlier jobs of the user have
    /// measured on this kind of host, and keeps it in the user's cache (`$XDG_CACHE_HOME/fishplate`
    /// or `~/.cache/fishplate`). With `fixed`, estimates decide that never change, so that every
    /// run chooses alike. In virtual time, costs are those of the model.
    costs: CostSource = CostSource::Keep, "FISHPLATE_COSTS";

    /// The shortest message that is copied once, where that is possible.
    single_copy_limit: Bytes = Bytes::kib(128), "FISHPLATE_SINGLE_COPY_LIMIT";

    /// The path of one-sided communication. `auto`: where all ranks of a window share a host,
    /// memory that the library allocates is mapped by all of them, and accessed by loads and
    /// stores; other puts and gets go straight to the target's memory where a device or the kernel
    /// can do that. `messages`: every access is a message.
    windows: WindowPath = WindowPath::Auto, "FISHPLATE_WINDOWS";

    /// Progress of a rank that computes, for operations of others on its windows. `thread`: a
    /// thread of the library makes it, from the first window whose operations need it to the last.
    /// `calls`: such operations wait for the rank's next MPI call.
    progress: ProgressBy = ProgressBy::Thread, "FISHPLATE_PROGRESS";

    /// The shortest message that sender and receiver copy together, each claiming the next piece,
    /// where every rank has a core of its own.
    together_limit: Bytes = Bytes::kib(128), "FISHPLATE_TOGETHER_LIMIT";

    /// The devices to use between hosts, separated by commas, in the order of rails: RDMA
    /// devices, such as `rxe0` or `mlx5_0:1`, and IP interfaces, such as `tcp:eth0` or
    /// `tcp:10.0.0.1`; `rdma` and `tcp` mean all of their kind that `fishplate info` names. Empty:
    /// `rdma`, or `tcp` where no RDMA device can be used.
    device: String = String::new(), "FISHPLATE_DEVICE";

    /// The number of rails over each IP interface. Each has connections of its own, which share
    /// what the interface carries.
    tcp_connections: usize = 1, "FISHPLATE_TCP_CONNECTIONS", within 1, 8;

    /// The version of PMI that a rank asks for first if MPICH's or Intel's mpiexec, Slurm or Flux
    /// has started it; where the launcher refuses it, the other one follows. `auto`: version 2
    /// under Slurm, and 1 elsewhere.
    pmi: PmiVersion = PmiVersion::Auto, "FISHPLATE_PMI";

    /// The library by which ranks reach a launcher that speaks PMIx. Empty: the one that the
    /// launcher itself has in memory, or libpmix.so.2 below the folder that PMIX_PREFIX names, or
    /// the system's.
    pmix_library: String = String::new(), "FISHPLATE_PMIX_LIBRARY";

    /// Design of the RDMA transport. `basic` writes data and then the head pointer, and writes the
    /// tail pointer back after every packet. `piggyback` writes data and head pointer together, and
    /// returns the tail pointer lazily. `pipeline` also cuts long messages into chunks, and copies
    /// one while it writes the previous one. `zero-copy` moves long messages straight between the
    /// programs' buffers, as FISHPLATE_RENDEZVOUS says.
    rdma_design: RdmaDesign = RdmaDesign::ZeroCopy, "FISHPLATE_RDMA_DESIGN", for studies;

    /// Bytes of the ring that one peer writes to by RDMA. A connection takes twice as much at each
    /// end.
    rdma_ring_bytes: Bytes = Bytes::kib(256), "FISHPLATE_RDMA_RING_BYTES",
        within Bytes::kib(8), Bytes::mib(64);

    /// Size of the chunks of a long message that goes through an RDMA ring, with the designs
    /// `pipeline` and `zero-copy`, and so the longest message that is sent eagerly. A ring holds at
    /// least two chunks.
    rdma_chunk: Bytes = Bytes::kib(16), "FISHPLATE_RDMA_CHUNK",
        also "MV2_VBUF_TOTAL_SIZE", within Bytes::kib(1), Bytes::mib(16);

    /// The longest message that is sent eagerly in several packets over RDMA; 0 for none. A message
    /// that fits one packet needs no such limit.
    rdma_pieces_limit: Bytes = Bytes(0), "FISHPLATE_RDMA_PIECES_LIMIT",
        within Bytes(0), Bytes::mib(64), for studies;

    /// FISHPLATE_RDMA_PIECES_LIMIT for messages of `MPI_Send`, which can return once they are
    /// copied; 0 for the limit of other sends.
    rdma_blocking_limit: Bytes = Bytes(0), "FISHPLATE_RDMA_BLOCKING_LIMIT",
        within Bytes(0), Bytes::mib(64), for studies;

    /// The fraction of an RDMA ring's slots, as its denominator, whose consumption a rank reports
    /// to the peer in a message of its own. It is reported earlier if any other message goes to
    /// that peer.
    rdma_credit: usize = 4, "FISHPLATE_RDMA_CREDIT",
        within 1, 64;

    /// The number of peers that get their own RDMA ring to write to. The messages of further peers
    /// arrive in buffers that they share: two to three for each peer, and a reserve of bounded size
    /// for peers that send several messages at once.
    rdma_rings: usize = 64, "FISHPLATE_RDMA_RINGS",
        within 0, 65536;

    /// Whether short messages to one peer are coalesced into one RDMA write while earlier writes
    /// are still on their way.
    rdma_gather: bool = true, "FISHPLATE_RDMA_GATHER", for studies;

    /// Whether buffers stay registered with the devices after a transfer, for the next transfer
    /// from or to them. At most 1,024 buffers stay registered, with 1 GiB and with a quarter of the
    /// memory that the process may lock; the least recently used goes first. Where the system does
    /// not report that memory is unmapped (userfaultfd), and on modelled machines, none stays.
    registration_cache: bool = true, "FISHPLATE_REGISTRATION_CACHE";

    /// Direction of a rendezvous over RDMA with the design `zero-copy`: with `read` the receiver
    /// reads from the sender's buffer, with `write` the sender writes to the receiver's buffer.
    /// `auto` reads; but where long messages meet posted receives, the receiver announces its
    /// buffer beforehand and the sender writes. With a software device (Soft-RoCE, Soft-iWARP)
    /// `auto` writes: the sending rank, which waits anyway, does the work of a write, whereas a
    /// read interrupts the rank that is read from.
    rendezvous: Rendezvous = Rendezvous::Auto, "FISHPLATE_RENDEZVOUS";

    /// Announcements of receives that are posted before their message (ready to receive, RTR), over
    /// RDMA with the design `zero-copy`: the sender writes the message straight to the announced
    /// buffer. `auto` announces receives that name source and tag where that has usually been of
    /// use, several in a packet: of messages that are too long for one packet, and with several
    /// rails of those from 2 KiB up. It announces none where FISHPLATE_RENDEZVOUS names a
    /// direction. `off` never announces a receive, and `on` announces every one that names source
    /// and tag.
    rtr: ReadyToReceive = ReadyToReceive::Auto, "FISHPLATE_RTR";

    /// The protocol of messages, for measurements. Every message that it can carry under the other
    /// settings takes it, whatever it costs; limits such as FISHPLATE_EAGER_LIMIT still divide
    /// messages that leave at once from announced ones. `auto` takes the cheapest protocol.
    protocol: ProtocolChoice = ProtocolChoice::Auto, "FISHPLATE_PROTOCOL", for studies;

    /// The most rails that a rank uses. A rail is one port of one device at this end, paired with a
    /// port of the same network at the other. MV2_NUM_RAILS is this number; MV2_NUM_HCAS times
    /// MV2_NUM_PORTS, each 1 unless set, is this number too.
    rails: RailCount = RailCount::ALL, "FISHPLATE_RAILS",
        also "MV2_NUM_RAILS", also "MV2_NUM_HCAS", also "MV2_NUM_PORTS";

    /// Rule for the rails of a message, where there are several. `single`: the first rail carries
    /// everything. `stripe`: messages above FISHPLATE_STRIPE_THRESHOLD are cut into equal parts,
    /// one for each rail, and the first rail carries the others. `round-robin`: the same, but short
    /// messages take the rails in turn. `fixed`: the ranks of a host are dealt to the rails, and
    /// each rank uses one. `adaptive`: each piece takes the rail on which it is predicted to arrive
    /// first.
    rail_policy: RailPolicy = RailPolicy::Adaptive, "FISHPLATE_RAIL_POLICY",
        also "MV2_RAIL_SHARING_POLICY", also "MV2_SM_SCHEDULING";

    /// The longest message that the rail policies `stripe` and `round-robin` do not cut.
    stripe_threshold: Bytes = Bytes::kib(16), "FISHPLATE_STRIPE_THRESHOLD",
        also "MV2_RAIL_SHARING_LARGE_MSG_THRESHOLD", also "MV2_STRIPING_THRESHOLD",
        within Bytes(0), Bytes::mib(1 << 20);

    /// Whether FISHPLATE_STRIPE_THRESHOLD is raised to the longest message that is sent eagerly
    /// over RDMA where it lies below. MVAPICH has this rule.
    stripe_above_eager: bool = false, "FISHPLATE_STRIPE_ABOVE_EAGER", for studies;

    /// The queue pairs of a connection on each rail. `separate`: one for packets and one for
    /// zero-copy transfers, so that a short packet never waits behind a long transfer. `shared`:
    /// one for both.
    rail_qps: QueuePairs = QueuePairs::Separate, "FISHPLATE_RAIL_QPS", for studies;

    /// Mode of waiting for a message. `spin` polls without pause; `yield` lets other processes run
    /// between polls; `sleep` sleeps until a peer wakes the rank. `auto` spins while every rank of
    /// the host has a core of its own, and yields otherwise. It sleeps after the time in
    /// FISHPLATE_SPIN, and at once where a peer was on the same core, or where tasks of other jobs
    /// take the yielded core.
    wait: Wait = Wait::Auto, "FISHPLATE_WAIT";

    /// With the wait mode `auto`: the time that a rank polls for a message before it sleeps. Ranks
    /// that share a core yield between polls. With a software RDMA device the time is multiplied by
    /// 160 for short messages, because a wake-up is slow there, and divided by 2 while long
    /// messages are moved.
    spin: Duration = Duration::from_micros(100), "FISHPLATE_SPIN",
        within Duration::ZERO, Duration::from_secs(3600);

    /// The most bytes of unexpected messages that a rank holds for one sender. Beyond it, that
    /// sender keeps the contents of its messages until they are received.
    unexpected_limit: Bytes = Bytes::mib(16), "FISHPLATE_UNEXPECTED_LIMIT",
        within Bytes::kib(64), Bytes::mib(1 << 20);

    /// Algorithms of collective operations that replace those of the built-in table:
    /// `bcast=binomial,allreduce@1K=ring` selects `binomial` for every broadcast, and `ring` for an
    /// allreduce of at least 1 KiB. A number of ranks after a slash, as in
    /// `allreduce@1K/16=rabenseifner`, is the least of the communicator, and counts before the
    /// size. `auto` leaves the choice to the library.
    collectives: AlgorithmChoices = AlgorithmChoices::default(), "FISHPLATE_COLLECTIVES";

    /// The number of branches of each rank in the algorithm `k-ary` of collective operations. With
    /// `auto` it follows from the network, the number of ranks and the size of the message.
    tree_arity: TreeArity = TreeArity::AUTO, "FISHPLATE_TREE_ARITY";

    /// The time in seconds without progress of any rank after which the launcher prints what every
    /// rank waits for. 0: never.
    report_stuck: Seconds = Seconds(Duration::ZERO), "FISHPLATE_REPORT_STUCK";

    /// The time without a sign of life after which a rank gives up a peer that no network reaches
    /// any more, such as 2min. The last path between two ranks is waited for as long as this; a
    /// path beside others that work is given up at once. A peer that computes gives signs of life
    /// where it is reached over IP. 0: give up at once. `forever`: never give up.
    outage: TimeLimit = TimeLimit(Some(Duration::from_secs(120))), "FISHPLATE_OUTAGE";

    /// The longest silence in seconds between the launcher and the agent of another host. Each
    /// sends a sign of life four times in this time, and ends the job if none arrives. With `auto`
    /// it is 30 s longer than FISHPLATE_OUTAGE. 0: wait for ever.
    heartbeat: AutoSeconds = AutoSeconds(None), "FISHPLATE_HEARTBEAT";
}
