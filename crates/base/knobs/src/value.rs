//! The types of settings: how each is written, parsed and described.

use std::fmt;
use std::time::Duration;

/// A type of settings: how its values are parsed and written.
///
/// ```
/// use knobs::{Bytes, KnobValue};
///
/// let limit = Bytes::parse("64K").unwrap();
/// assert_eq!((limit.get(), limit.show()), (65536, "64K".to_string()));
/// assert_eq!(Bytes::parse("many"), None);
/// ```
pub trait KnobValue: Sized {
    /// The form of a value in listings, such as `bytes`, `count`, `auto|on|off`.
    const KIND: &'static str;
    /// The description of the valid values in error messages.
    const EXPECTED: &'static str;
    /// Parses a value. `None`: the text is not a value of this type.
    fn parse(text: &str) -> Option<Self>;
    /// The shortest text that [`KnobValue::parse`] turns into this value.
    fn show(&self) -> String;
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub usize);

impl Bytes {
    /// `count` KiB.
    pub const fn kib(count: usize) -> Self {
        Bytes(count << 10)
    }

    /// `count` MiB.
    pub const fn mib(count: usize) -> Self {
        Bytes(count << 20)
    }

    /// The number of bytes.
    pub const fn get(self) -> usize {
        self.0
    }
}

/// Values such as `16384`, `16K`, `16KiB`: suffixes are powers of 1024, in upper or lower case.
impl KnobValue for Bytes {
    const KIND: &'static str = "bytes";
    const EXPECTED: &'static str =
        "a number of bytes, with K, M or G for powers of 1024, such as 16K";

    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (digits, suffix) = text.split_at(end);
        let shift = match suffix {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            _ => return None,
        };
        let count: usize = digits.parse().ok()?;
        count.checked_mul(1 << shift).map(Bytes)
    }

    fn show(&self) -> String {
        let suffixes = [(30, "G"), (20, "M"), (10, "K")];
        for (shift, suffix) in suffixes {
            if self.0 != 0 && self.0.trailing_zeros() >= shift {
                return format!("{}{suffix}", self.0 >> shift);
            }
        }
        self.0.to_string()
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show())
    }
}

impl KnobValue for usize {
    const KIND: &'static str = "count";
    const EXPECTED: &'static str = "a whole number, such as 256";

    fn parse(text: &str) -> Option<Self> {
        // `str::parse` would accept `+5`.
        text.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| text.parse().ok())?
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl KnobValue for bool {
    const KIND: &'static str = "on|off";
    const EXPECTED: &'static str = "on or off (also 1 or 0, yes or no, true or false)";

    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "on" | "1" | "yes" | "true" => Some(true),
            "off" | "0" | "no" | "false" => Some(false),
            _ => None,
        }
    }

    fn show(&self) -> String {
        if *self { "on" } else { "off" }.to_string()
    }
}

/// A line of text, whose contents the user of the setting checks.
impl KnobValue for String {
    const KIND: &'static str = "text";
    const EXPECTED: &'static str = "one line of text";

    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.contains(char::is_control)).then(|| text.to_string())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

/// A number with its unit. The unit is required, because a wrong guess could be off by a factor of
/// a million.
impl KnobValue for Duration {
    const KIND: &'static str = "duration";
    const EXPECTED: &'static str = "a number with its unit (ns, us, ms, s), such as 50us, or 0";

    fn parse(text: &str) -> Option<Self> {
        if text == "0" {
            return Some(Duration::ZERO);
        }
        let units = [
            ("ns", 1e-9),
            ("us", 1e-6),
            ("µs", 1e-6),
            ("ms", 1e-3),
            ("s", 1.0),
        ];
        let (digits, unit) = units
            .iter()
            .find_map(|&(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
        seconds(digits, unit)
    }

    fn show(&self) -> String {
        let nanos = self.as_nanos();
        match nanos {
            0 => "0".to_string(),
            n if n % 1_000_000_000 == 0 => format!("{}s", n / 1_000_000_000),
            n if n % 1_000_000 == 0 => format!("{}ms", n / 1_000_000),
            n if n % 1_000 == 0 => format!("{}us", n / 1_000),
            n => format!("{n}ns"),
        }
    }
}

/// A time in seconds unless another unit is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Seconds(pub Duration);

impl KnobValue for Seconds {
    const KIND: &'static str = "seconds";
    const EXPECTED: &'static str = "a number of seconds, such as 30 or 0.5 (or with a unit: 500ms)";

    fn parse(text: &str) -> Option<Self> {
        seconds(text, 1.0)
            .or_else(|| Duration::parse(text))
            .map(Seconds)
    }

    fn show(&self) -> String {
        let text = self.0.as_secs_f64().to_string();
        text.strip_suffix(".0").unwrap_or(&text).to_string()
    }
}

/// The time after which a wait is given up. `None`: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit(pub Option<Duration>);

/// Values such as `90`, `90s`, `2min`, `1h`, `forever`.
impl KnobValue for TimeLimit {
    const KIND: &'static str = "time|forever";
    const EXPECTED: &'static str =
        "a time, such as 90s, 2min or 1h (without a unit: seconds), or forever";

    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        if text == "forever" {
            return Some(TimeLimit(None));
        }
        let units = [("min", 60.0), ("h", 3600.0)];
        let long = units
            .iter()
            .find_map(|&(name, unit)| seconds(text.strip_suffix(name)?, unit));
        let short = || Seconds::parse(&text).map(|seconds| seconds.0);
        long.or_else(short).map(|limit| TimeLimit(Some(limit)))
    }

    fn show(&self) -> String {
        let Some(limit) = self.0 else {
            return "forever".into();
        };
        match limit.as_nanos() {
            n if n > 0 && n % 3_600_000_000_000 == 0 => format!("{}h", limit.as_secs() / 3600),
            n if n > 0 && n % 60_000_000_000 == 0 => format!("{}min", limit.as_secs() / 60),
            _ => limit.show(),
        }
    }
}

/// A time, or `None` (`auto`): then it is derived from other settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoSeconds(pub Option<Duration>);

impl KnobValue for AutoSeconds {
    const KIND: &'static str = "auto|seconds";
    const EXPECTED: &'static str = "auto, or a number of seconds, such as 30 or 0.5";

    fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "auto" => Some(AutoSeconds(None)),
            text => Seconds::parse(text).map(|given| AutoSeconds(Some(given.0))),
        }
    }

    fn show(&self) -> String {
        self.0
            .map_or_else(|| "auto".into(), |given| Seconds(given).show())
    }
}

/// Parses decimal digits with at most one point, and multiplies the number by `unit`, in seconds.
fn seconds(digits: &str, unit: f64) -> Option<Duration> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if !plain || digits.is_empty() {
        return None;
    }
    let count: f64 = digits.parse().ok()?;
    // Rounded to the nanosecond: 0.1 ms is not an exact binary fraction of a second.
    let nanos = (count * unit * 1e9).round();
    (nanos < u64::MAX as f64).then(|| Duration::from_nanos(nanos as u64))
}

/// Declares an enum as a type of settings, with the string that stands for each of its values.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $kind:literal, $expected:literal, { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: &[$name] = &[$($name::$variant),+];
        }

        impl $crate::KnobValue for $name {
            const KIND: &'static str = $kind;
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Option<Self> {
                let text = text.to_ascii_lowercase();
                $( if text == $word { return Some($name::$variant); } )+
                None
            }

            fn show(&self) -> String {
                match self { $($name::$variant => $word),+ }.to_string()
            }
        }
    };
}

words! {
    /// Cache distance of the cores that ranks run on.
    CoreDistance, "near|far", "near or far", {
        /// The cores share a cache.
        Near = "near",
        /// The cores share no cache.
        Far = "far"
    }
}

words! {
    /// The version of PMI that a rank offers a launcher first.
    PmiVersion, "auto|1|2", "auto, 1 or 2", {
        /// The version that the launcher is known to support.
        Auto = "auto",
        /// PMI-1.
        One = "1",
        /// PMI-2.
        Two = "2"
    }
}

words! {
    /// Use of the single copy: the copy of a long message straight from the sender's memory.
    SingleCopyMode, "auto|on|off", "auto, on or off", {
        /// Try the single copy, with fallback, where the costs favour it.
        Auto = "auto",
        /// Try the single copy from the limits on, with fallback.
        On = "on",
        /// Never use the single copy.
        Off = "off"
    }
}

words! {
    /// The source of the costs by which the paths of long messages within a host are chosen.
    CostSource, "keep|learn|fixed", "keep, learn or fixed", {
        /// Messages are timed while they move, and the times kept for the user's later jobs.
        Keep = "keep",
        /// Messages are timed while they move, for this job alone.
        Learn = "learn",
        /// Costs are fixed estimates, the same in every run.
        Fixed = "fixed"
    }
}

words! {
    /// The path of one-sided communication between ranks of one host.
    WindowPath, "auto|messages", "auto or messages", {
        /// Loads and stores where all ranks map the window; otherwise straight accesses where
        /// possible.
        Auto = "auto",
        /// A message for every access.
        Messages = "messages"
    }
}

words! {
    /// Progress of a target of one-sided communication while it computes.
    ProgressBy, "thread|calls", "thread or calls", {
        /// A thread of the library makes progress.
        Thread = "thread",
        /// The next MPI call of the target makes progress.
        Calls = "calls"
    }
}

words! {
    /// Announcements (RTR) of receives that are posted before their messages.
    ReadyToReceive, "off|auto|on", "off, auto or on", {
        /// Announce no receive.
        Off = "off",
        /// Announce receives where announcements have usually been of use.
        Auto = "auto",
        /// Announce every receive that names source and tag.
        On = "on"
    }
}

words! {
    /// The protocol of point-to-point messages.
    ProtocolChoice,
    "auto|eager|eager-pieces|ready-to-receive|cooperative-copy|read-rendezvous|write-rendezvous|packets",
    "auto, eager, eager-pieces, ready-to-receive, cooperative-copy, read-rendezvous, \
     write-rendezvous or packets",
    {
        /// The cheapest protocol within the limits.
        Auto = "auto",
        /// The message leaves at once, in one packet.
        Eager = "eager",
        /// The message leaves at once, in several packets.
        EagerPieces = "eager-pieces",
        /// The sender writes to a buffer that the receiver has announced beforehand.
        ReadyToReceive = "ready-to-receive",
        /// Sender and receiver copy the message together.
        CooperativeCopy = "cooperative-copy",
        /// The receiver reads from the sender's buffer.
        ReadRendezvous = "read-rendezvous",
        /// The sender writes to the receiver's buffer.
        WriteRendezvous = "write-rendezvous",
        /// The sender announces the message, then sends it in packets.
        Packets = "packets"
    }
}

words! {
    /// Mode of waiting for a message.
    Wait, "auto|spin|yield|sleep", "auto, spin, yield or sleep",
    {
        /// Choose by the number of cores and of ranks on the host.
        Auto = "auto",
        /// Poll without pause.
        Spin = "spin",
        /// Yield the core between polls.
        Yield = "yield",
        /// Sleep until a peer wakes the rank.
        Sleep = "sleep"
    }
}

words! {
    /// A design of the ring and of long messages: one of those compared in "Design and
    /// Implementation of MPICH2 over InfiniBand with RDMA Support" (Liu and others, IPDPS 2004).
    RdmaDesign, "basic|piggyback|pipeline|zero-copy", "basic, piggyback, pipeline or zero-copy",
    {
        /// Data, head pointer and tail pointer each in a write of their own.
        Basic = "basic",
        /// Data and head pointer together in one write.
        Piggyback = "piggyback",
        /// As `Piggyback`, and long messages in chunks.
        Pipeline = "pipeline",
        /// As `Pipeline`, and long messages straight between the programs' buffers.
        ZeroCopy = "zero-copy"
    }
}

words! {
    /// Direction of a rendezvous over RDMA.
    Rendezvous, "auto|read|write", "auto, read or write", {
        /// Choose for each message, by its receive and the device.
        Auto = "auto",
        /// The receiver reads from the sender's buffer.
        Read = "read",
        /// The sender writes to the receiver's buffer.
        Write = "write"
    }
}

pub(crate) use words;
