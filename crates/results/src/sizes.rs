//! Sizes of messages: how they are read and written.

use anyhow::{Context, Result, bail};

/// The most one message may hold: counts are C ints, and both sides hold buffers of it.
pub const LARGEST: usize = 1 << 30;

/// A number of bytes: `4096`, `4K`, `4KiB`, `1M`.
pub fn parse_bytes(text: &str) -> Result<usize> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        unit => bail!("{text:?} is no size: {unit:?} is none of K, M, G"),
    };
    let number: usize = digits
        .parse()
        .with_context(|| format!("{text:?} is no size in bytes"))?;
    match number.checked_mul(1 << shift) {
        Some(bytes) if bytes <= LARGEST => Ok(bytes),
        _ => bail!(
            "{text:?} is more than the largest message, {}",
            size_label(LARGEST)
        ),
    }
}

/// `64`, `4 KiB`, `1 MiB`: powers of 1024 where they are whole.
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
    fn labels() {
        assert_eq!(size_label(1), "1 B");
        assert_eq!(size_label(1536), "1536 B");
        assert_eq!(size_label(64 << 10), "64 KiB");
        assert_eq!(size_label(4 << 20), "4 MiB");
    }
}
