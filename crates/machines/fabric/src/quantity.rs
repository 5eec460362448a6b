//! The two written forms of a value: text with its unit in a file, and one 64-bit word of a
//! compiled system.

use crate::units::{Bytes, GbPerSec, Metres, Nanos, PerSec, Ratio};

/// The type of a component's value, with its conversions.
///
/// ```
/// use fabric::{Nanos, quantity::{Quantity, Raw}};
///
/// let time = Nanos::read(&Raw::Text("0.13 us".into())).unwrap();
/// assert_eq!(time.show(), "130 ns");
/// assert_eq!(Nanos::from_word(time.to_word()), Some(time));
/// ```
pub trait Quantity: Sized {
    /// The valid values, with an example: the end of a sentence "valid is …".
    const VALID: &'static str;
    /// Parses a value from a file; `None` if it is not valid.
    fn read(raw: &Raw) -> Option<Self>;
    /// The value as text that [`read`](Quantity::read) can parse.
    fn show(&self) -> String;
    /// The value as a word of an encoded system.
    fn to_word(&self) -> u64;
    /// The value that a word encodes; `None` if no value has this word.
    fn from_word(word: u64) -> Option<Self>;
}

/// A value as a file holds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// `true` or `false`.
    Boolean(bool),
    /// Anything else, as its text. No value accepts it, except lists of rails: a fraction without
    /// unit, a date, an array.
    Other(String),
}

impl Raw {
    /// The value of an argument of the command line: `true` or `false`, a whole number, or text.
    pub fn of_word(word: &str) -> Raw {
        match (word, word.parse()) {
            ("true", _) => Raw::Boolean(true),
            ("false", _) => Raw::Boolean(false),
            (_, Ok(number)) => Raw::Integer(number),
            _ => Raw::Text(word.to_owned()),
        }
    }
}

impl std::fmt::Display for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Raw::Text(text) => write!(f, "\"{text}\""),
            Raw::Integer(number) => write!(f, "{number}"),
            Raw::Boolean(truth) => write!(f, "{truth}"),
            Raw::Other(text) => f.write_str(text),
        }
    }
}

/// Parses a number with its unit. Returns a whole number of the smallest unit, which has scale 1.
fn measure(raw: &Raw, units: &[(&str, f64)]) -> Option<u64> {
    let Raw::Text(text) = raw else { return None };
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let (_, scale) = units.iter().find(|(name, _)| *name == unit.trim())?;
    let value = (number.parse::<f64>().ok()? * scale).round();
    // With greater values, sums of times would not fit into 64 bits.
    (value < 9e15).then_some(value as u64)
}

impl Quantity for Nanos {
    const VALID: &'static str =
        "a time up to 1 s in ps, ns, us, ms or s, such as \"130 ns\" or \"0.13 us\"";
    fn read(raw: &Raw) -> Option<Nanos> {
        const UNITS: &[(&str, f64)] = &[
            ("ps", 1.0),
            ("ns", 1e3),
            ("us", 1e6),
            ("µs", 1e6),
            ("ms", 1e9),
            ("s", 1e12),
        ];
        measure(raw, UNITS).and_then(Nanos::from_word)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn to_word(&self) -> u64 {
        self.picos()
    }
    fn from_word(word: u64) -> Option<Nanos> {
        (word <= 1_000_000_000_000).then_some(Nanos::from_picos(word))
    }
}

impl Quantity for Bytes {
    const VALID: &'static str =
        "a size up to 64 MiB in B, KiB or MiB, such as \"2048 B\" or \"4 KiB\"";
    fn read(raw: &Raw) -> Option<Bytes> {
        const UNITS: &[(&str, f64)] = &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1048576.0)];
        measure(raw, UNITS).and_then(Bytes::from_word)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn to_word(&self) -> u64 {
        self.0
    }
    fn from_word(word: u64) -> Option<Bytes> {
        (word <= 64 << 20).then_some(Bytes(word))
    }
}

impl Quantity for GbPerSec {
    const VALID: &'static str = "a rate of at least 1 Mb/s in Gb/s, Mb/s, GB/s, MB/s or GT/s, such as \"14.0625 Gb/s\" or \"6350 MB/s\"";
    fn read(raw: &Raw) -> Option<GbPerSec> {
        const UNITS: &[(&str, f64)] = &[
            ("Gb/s", 1e9),
            ("GT/s", 1e9),
            ("Mb/s", 1e6),
            ("GB/s", 8e9),
            ("MB/s", 8e6),
        ];
        measure(raw, UNITS).and_then(GbPerSec::from_word)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn to_word(&self) -> u64 {
        self.bits_per_sec()
    }
    fn from_word(word: u64) -> Option<GbPerSec> {
        (1_000_000..1_000_000_000_000_000)
            .contains(&word)
            .then_some(GbPerSec::from_bits_per_sec(word))
    }
}

impl Quantity for PerSec {
    const VALID: &'static str =
        "a rate above 0 in M/s or k/s, up to 1000000 M/s, such as \"8.7 M/s\"";
    fn read(raw: &Raw) -> Option<PerSec> {
        measure(raw, &[("M/s", 1e6), ("k/s", 1e3)]).and_then(PerSec::from_word)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn to_word(&self) -> u64 {
        self.0
    }
    fn from_word(word: u64) -> Option<PerSec> {
        (1..=1_000_000_000_000)
            .contains(&word)
            .then_some(PerSec(word))
    }
}

impl Quantity for Metres {
    const VALID: &'static str = "a length in m up to 100000 m, such as \"2 m\"";
    fn read(raw: &Raw) -> Option<Metres> {
        measure(raw, &[("m", 1e3)]).and_then(Metres::from_word)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn to_word(&self) -> u64 {
        self.millimetres()
    }
    fn from_word(word: u64) -> Option<Metres> {
        (word <= 100_000_000).then_some(Metres::from_millimetres(word))
    }
}

impl Quantity for Ratio {
    const VALID: &'static str = "a fraction above 0 and at most 1, or a product of fractions, such as \"64/66\" or \"256/257 * 514/544\"";
    fn read(raw: &Raw) -> Option<Ratio> {
        let Raw::Text(text) = raw else { return None };
        text.split('*').try_fold(Ratio::ONE, |product, factor| {
            let (over, under) = factor.split_once('/')?;
            let (over, under) = (over.trim().parse().ok()?, under.trim().parse().ok()?);
            product.times(Ratio::new(over, under)?)
        })
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn to_word(&self) -> u64 {
        let (over, under) = self.parts();
        u64::from(over) << 32 | u64::from(under)
    }
    fn from_word(word: u64) -> Option<Ratio> {
        Ratio::new((word >> 32) as u32, word as u32)
    }
}

impl Quantity for bool {
    const VALID: &'static str = "true or false";
    fn read(raw: &Raw) -> Option<bool> {
        match raw {
            Raw::Boolean(truth) => Some(*truth),
            _ => None,
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn to_word(&self) -> u64 {
        u64::from(*self)
    }
    fn from_word(word: u64) -> Option<bool> {
        [false, true].get(usize::try_from(word).ok()?).copied()
    }
}

impl Quantity for u32 {
    const VALID: &'static str = "a whole number that is not negative";
    fn read(raw: &Raw) -> Option<u32> {
        match raw {
            Raw::Integer(number) => (*number).try_into().ok(),
            _ => None,
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn to_word(&self) -> u64 {
        u64::from(*self)
    }
    fn from_word(word: u64) -> Option<u32> {
        word.try_into().ok()
    }
}

/// Implements `Quantity` for an optional value. `absent` is a word that no value has.
macro_rules! optional {
    ($type:ty, $absent:expr, $valid:literal) => {
        impl Quantity for Option<$type> {
            const VALID: &'static str = $valid;
            fn read(raw: &Raw) -> Option<Self> {
                match raw {
                    Raw::Text(text) if text == "none" => Some(None),
                    _ => <$type>::read(raw).map(Some),
                }
            }
            fn show(&self) -> String {
                self.as_ref().map_or("none".to_owned(), Quantity::show)
            }
            fn to_word(&self) -> u64 {
                self.as_ref().map_or($absent, Quantity::to_word)
            }
            fn from_word(word: u64) -> Option<Self> {
                match word == $absent {
                    true => Some(None),
                    false => <$type>::from_word(word).map(Some),
                }
            }
        }
    };
}

optional!(
    GbPerSec,
    0,
    "\"none\", or a rate of at least 1 Mb/s in Gb/s, Mb/s, GB/s, MB/s, such as \"6350 MB/s\""
);
optional!(
    PerSec,
    0,
    "\"none\", or a rate above 0 in M/s or k/s, up to 1000000 M/s, such as \"35 M/s\""
);
optional!(
    Bytes,
    u64::MAX,
    "\"none\", or a size up to 64 MiB in B, KiB or MiB, such as \"12 KiB\""
);
optional!(
    Nanos,
    u64::MAX,
    "\"none\", or a time up to 1 s in ps, ns, us, ms or s, such as \"130 ns\""
);
optional!(
    u32,
    u64::MAX,
    "\"none\", or a whole number that is not negative"
);
