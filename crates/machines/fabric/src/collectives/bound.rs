//! The bound of a step: the first number of bytes that is beyond it.

/// The bound of a step, which may depend on the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// Fewer bytes than this number, or than its product with a number of ranks.
    Below(u64, Factor),
    /// Numbers of bytes for which there are more ranks than a line through `offset` with `slope`
    /// says, or as many if `inclusive`.
    Line {
        slope: f64,
        offset: f64,
        inclusive: bool,
    },
}

/// The factor of a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Factor {
    One,
    /// The number of ranks.
    Ranks,
    /// The greatest power of two that is not above the number of ranks.
    PowerOfTwo,
}

impl Bound {
    /// Parses a bound: `below N`, `to N`, `below N * ranks`, `below N * pof2`, or a line as in
    /// `while ranks > A * bytes + B`, in which A is a decimal number or a fraction of two. The
    /// error says what is wrong.
    pub(super) fn read(text: &str) -> Result<Bound, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let bad = |why: &str| {
            Err(format!(
                "\"{text}\" is not a bound: {why}; valid are `below BYTES`, `to BYTES`, either with `* ranks` or `* pof2`, and \
                 `while ranks > SLOPE * bytes + OFFSET`, such as `below 2048` and `while ranks >= 0.0012 * bytes + 8`"
            ))
        };
        match words[..] {
            [relation @ ("below" | "to"), bytes, ref rest @ ..] => {
                let Some(bytes) = number(bytes) else {
                    return bad(&format!("{bytes} is not a whole number up to 2^40"));
                };
                let factor = match rest {
                    [] => Factor::One,
                    ["*", "ranks"] => Factor::Ranks,
                    ["*", "pof2"] => Factor::PowerOfTwo,
                    _ => return bad("its end is unknown"),
                };
                match (relation, factor) {
                    ("below", _) => Ok(Bound::Below(bytes, factor)),
                    (_, Factor::One) => Ok(Bound::Below(bytes + 1, factor)),
                    _ => bad("a product needs `below`"),
                }
            }
            [
                "while",
                "ranks",
                relation @ (">" | ">="),
                slope,
                "*",
                "bytes",
                "+",
                offset,
            ] => {
                let (Some(slope), Some(offset)) = (slope_of(slope), decimal(offset)) else {
                    return bad("its numbers must be decimal numbers, the slope above 0");
                };
                Ok(Bound::Line {
                    slope,
                    offset,
                    inclusive: relation == ">=",
                })
            }
            _ => bad("it is none of the forms"),
        }
    }

    /// The least number of bytes that is not within the bound.
    pub(super) fn first_beyond(self, ranks: u64) -> u64 {
        match self {
            Bound::Below(bytes, factor) => bytes.saturating_mul(match factor {
                Factor::One => 1,
                Factor::Ranks => ranks,
                Factor::PowerOfTwo => 1 << ranks.max(1).ilog2(),
            }),
            Bound::Line {
                slope,
                offset,
                inclusive,
            } => {
                let end = (ranks as f64 - offset) / slope;
                // A negative number becomes 0.
                match inclusive {
                    true if end >= 0.0 => end.floor() as u64 + 1,
                    true => 0,
                    false => end.ceil() as u64,
                }
            }
        }
    }
}

fn number(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = text.parse().ok().filter(|_| is_number)?;
    (number <= 1 << 40).then_some(number)
}

fn decimal(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (0.0..=1e12).contains(&number).then_some(number)
}

fn slope_of(text: &str) -> Option<f64> {
    let slope = match text.split_once('/') {
        Some((over, under)) => decimal(over)? / decimal(under)?,
        None => decimal(text)?,
    };
    (slope.is_finite() && slope >= 1e-12).then_some(slope)
}
