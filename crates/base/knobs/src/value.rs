//! The types of settings: how each is written, parsed and described.

use std::fmt;
use std::time::Duration;

/// A type of settings.
///
/// ```
/// use knobs::{Bytes, KnobValue};
///
/// let limit = Bytes::parse("64K").unwrap();
/// assert_eq!((limit.get(), limit.show()), (65536, "64K".to_string()));
/// assert_eq!(Bytes::parse("many"), None);
/// ```
pub trait KnobValue: Sized {
    /// The form of a value in listings: `bytes`, `count`, `auto|on|off`.
    const KIND: &'static str;
    /// The valid values in error messages.
    const EXPECTED: &'static str;
    /// Parses a value. None if the text is none.
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

    /// The number.
    pub const fn get(self) -> usize {
        self.0
    }
}

/// `16384`, `16K`, `16KiB`: suffixes are powers of 1024, in either case.
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

/// A line of text, which the user of the setting checks.
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

/// A time whose unit is seconds where none is given.
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

/// A time after which something is given up. None: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit(pub Option<Duration>);

/// `90`, `90s`, `2min`, `1h`, `forever`.
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

/// A time that follows from other settings unless it is given.
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

/// Parses digits with at most one point, and multiplies them by the unit.
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

/// Declares a type of settings whose values are words.
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
    /// Version of PMI that a rank asks a launcher for first.
    PmiVersion, "auto|1|2", "auto, 1 or 2", {
        /// The version that the launcher is made for.
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
        /// Try it, and fall back.
        Auto = "auto",
        /// Try it, and fall back.
        On = "on",
        /// Never try it.
        Off = "off"
    }
}

words! {
    /// The path of one-sided communication between ranks of one host.
    WindowPath, "auto|messages", "auto or messages", {
        /// Loads and stores where all ranks map the window.
        Auto = "auto",
        /// Messages for every access.
        Messages = "messages"
    }
}

words! {
    /// Progress of a target of one-sided communication that computes.
    ProgressBy, "thread|calls", "thread or calls", {
        /// By a thread of its own.
        Thread = "thread",
        /// In its next call.
        Calls = "calls"
    }
}

words! {
    /// Announcements of receives that are posted before their message.
    ReadyToReceive, "off|auto|on", "off, auto or on", {
        /// Announce none.
        Off = "off",
        /// Announce where it has been of use.
        Auto = "auto",
        /// Announce all.
        On = "on"
    }
}

words! {
    /// The protocol of messages.
    ProtocolChoice,
    "auto|eager|eager-pieces|ready-to-receive|cooperative-copy|read-rendezvous|write-rendezvous|packets",
    "auto, eager, eager-pieces, ready-to-receive, cooperative-copy, read-rendezvous, \
     write-rendezvous or packets",
    {
        /// The cheapest that the limits permit.
        Auto = "auto",
        /// One packet, at once.
        Eager = "eager",
        /// Several packets, at once.
        EagerPieces = "eager-pieces",
        /// Writes to announced buffers.
        ReadyToReceive = "ready-to-receive",
        /// Both ranks copy.
        CooperativeCopy = "cooperative-copy",
        /// The receiver reads.
        ReadRendezvous = "read-rendezvous",
        /// The sender writes.
        WriteRendezvous = "write-rendezvous",
        /// Packets after an announcement.
        Packets = "packets"
    }
}

words! {
    /// Mode of waiting for a message.
    Wait, "auto|spin|yield|sleep", "auto, spin, yield or sleep",
    {
        /// Choose by the number of cores.
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
    /// A design of the ring and of long messages: one of those that "Design and Implementation of
    /// MPICH2 over InfiniBand with RDMA Support" (Liu and others, IPDPS 2004) compares.
    RdmaDesign, "basic|piggyback|pipeline|zero-copy", "basic, piggyback, pipeline or zero-copy",
    {
        /// Data, head pointer and tail pointer in writes of their own.
        Basic = "basic",
        /// Data and head pointer in one write.
        Piggyback = "piggyback",
        /// Long messages in chunks besides.
        Pipeline = "pipeline",
        /// Long messages straight between the programs' buffers.
        ZeroCopy = "zero-copy"
    }
}

words! {
    /// Direction of a rendezvous over RDMA.
    Rendezvous, "auto|read|write", "auto, read or write", {
        /// Choose by the receive and the device.
        Auto = "auto",
        /// The receiver reads.
        Read = "read",
        /// The sender writes.
        Write = "write"
    }
}

pub(crate) use words;
