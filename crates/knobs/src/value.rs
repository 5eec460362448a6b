//! The types of settings: how each is written, read and described.

use std::fmt;
use std::time::Duration;

/// A type that a setting can have.
pub trait Value: Sized {
    /// In listings: `bytes`, `count`, `auto|on|off`.
    const KIND: &'static str;
    /// In errors: what would be valid.
    const EXPECTED: &'static str;
    /// None if the text is not such a value.
    fn parse(text: &str) -> Option<Self>;
    /// The shortest text that [`Value::parse`] turns into this value.
    fn show(&self) -> String;
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub usize);

impl Bytes {
    pub const fn kib(count: usize) -> Self {
        Bytes(count << 10)
    }

    pub const fn mib(count: usize) -> Self {
        Bytes(count << 20)
    }

    pub const fn get(self) -> usize {
        self.0
    }
}

/// `16384`, `16K`, `16KiB`: suffixes are powers of 1024, in either case.
impl Value for Bytes {
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

impl Value for usize {
    const KIND: &'static str = "count";
    const EXPECTED: &'static str = "a whole number, such as 256";

    fn parse(text: &str) -> Option<Self> {
        // `+5` is a number to `str::parse`, but nobody means it.
        text.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| text.parse().ok())?
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
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

/// A line of words that somebody else understands: what it means is checked where it is used.
impl Value for String {
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

/// A number with its unit. The unit is wanted even where one could be guessed: 50 µs and 50 s are far apart.
impl Value for Duration {
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

/// A time for which a bare number means seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Seconds(pub Duration);

impl Value for Seconds {
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

/// Digits with at most one point, times the unit.
fn seconds(digits: &str, unit: f64) -> Option<Duration> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if !plain || digits.is_empty() {
        return None;
    }
    let count: f64 = digits.parse().ok()?;
    // Rounded to the nanosecond: 0.1 ms is no exact binary fraction of a second.
    let nanos = (count * unit * 1e9).round();
    (nanos < u64::MAX as f64).then(|| Duration::from_nanos(nanos as u64))
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $kind:literal, $expected:literal, { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl Value for $name {
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
    /// Whether cores share a cache.
    Cores, "near|far", "near or far", { Near = "near", Far = "far" }
}

words! {
    /// Whether long messages are copied straight from the sender's memory.
    SingleCopy, "auto|on|off", "auto, on or off", { Auto = "auto", On = "on", Off = "off" }
}

words! {
    /// How a rank waits.
    Wait, "auto|spin|yield|sleep", "auto, spin, yield or sleep",
    { Auto = "auto", Spin = "spin", Yield = "yield", Sleep = "sleep" }
}

words! {
    /// How packets and long messages go over RDMA.
    RdmaDesign, "basic|piggyback|pipeline|zero-copy", "basic, piggyback, pipeline or zero-copy",
    { Basic = "basic", Piggyback = "piggyback", Pipeline = "pipeline", ZeroCopy = "zero-copy" }
}

words! {
    /// Who moves a long message over RDMA.
    Rendezvous, "auto|read|write", "auto, read or write", { Auto = "auto", Read = "read", Write = "write" }
}
