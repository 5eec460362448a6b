//! Message sizes as text: parsing and formatting.

use anyhow::{Result, bail};

/// The largest message of a benchmark, in bytes: counts are C `int`s, and both sides allocate
/// buffers of this size.
pub const LARGEST: usize = 1 << 30;

/// Parses a message size of at most [`LARGEST`] bytes.
///
/// A suffix K, M or G, also KiB, MiB or GiB, means a power of 1024.
///
/// ```
/// assert_eq!(results::sizes::parse_bytes("4K").unwrap(), 4096);
/// ```
pub fn parse_bytes(text: &str) -> Result<usize> {
    match parse_suffixed(text)? {
        Some(bytes) if bytes <= LARGEST as u64 => Ok(bytes as usize),
        _ => bail!(
            "{text:?} is larger than the largest message, {}",
            size_label(LARGEST)
        ),
    }
}

/// Parses a size in bytes of at most `most`, with the suffixes of [`parse_bytes`].
pub fn parse_bytes_up_to(text: &str, most: u64) -> Result<u64> {
    match parse_suffixed(text)? {
        Some(bytes) if bytes <= most => Ok(bytes),
        _ => bail!("{text:?} is larger than {most} bytes, the most that is valid here"),
    }
}

/// Parses a number of bytes with a suffix. `None` if it does not fit into 64 bits.
fn parse_suffixed(text: &str) -> Result<Option<u64>> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        unit => bail!("{text:?} is not a size: {unit:?} is none of K, M, G"),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        bail!("{text:?} is not a size in bytes; valid are whole numbers such as 8 or 64K");
    }
    // There are only digits, so parsing fails only if there are too many.
    let number = digits.parse::<u64>().ok();
    Ok(number.and_then(|number| number.checked_mul(1 << shift)))
}

/// A size as text for people, in the largest binary unit that gives a whole number.
///
/// ```
/// assert_eq!(results::sizes::size_label(1536), "1536 B");
/// assert_eq!(results::sizes::size_label(4096), "4 KiB");
/// ```
pub fn size_label(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 30 && b % (1 << 30) == 0 => format!("{} GiB", b >> 30),
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_suffixes_and_limits() {
        assert_eq!(parse_bytes("1g").unwrap(), LARGEST);
        assert_eq!(parse_bytes_up_to("4G", 4 << 30).unwrap(), 4 << 30);
        for text in ["", "K", "-1", "1.5K", "4X", "2G", "99999999999999999999"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn labels() {
        assert_eq!(size_label(1), "1 B");
        assert_eq!(size_label(1536), "1536 B");
        assert_eq!(size_label(64 << 10), "64 KiB");
        assert_eq!(size_label(4 << 20), "4 MiB");
    }
}
