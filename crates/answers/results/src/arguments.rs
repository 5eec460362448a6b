//! Parsing of numbers on command lines, and the text of errors for users.
//!
//! Invariant: a message says which values are valid, in words that are not those of the
//! implementation.

use std::fmt;
use std::ops::RangeInclusive;
use std::process::ExitCode;

/// The range of valid values that consists of all whole numbers from 0.
pub const ANY: RangeInclusive<u64> = 0..=u64::MAX;
/// The range of valid values that consists of all whole numbers above 0.
pub const POSITIVE: RangeInclusive<u64> = 1..=u64::MAX;

/// Parses a whole number within `range`. The error names the valid numbers.
///
/// ```
/// use results::arguments::whole_number;
///
/// assert_eq!(whole_number::<u32>("5", 0..=5), Ok(5));
/// let error = whole_number::<u32>("6", 0..=5).unwrap_err();
/// assert_eq!(error, "valid are whole numbers from 0 to 5");
/// ```
pub fn whole_number<T: TryFrom<u64>>(word: &str, range: RangeInclusive<u64>) -> Result<T, String> {
    let number = word.parse().ok().filter(|number| range.contains(number));
    let number = number.and_then(|number: u64| T::try_from(number).ok());
    number.ok_or_else(|| match range.into_inner() {
        (0, u64::MAX) => "valid are whole numbers".into(),
        (least, u64::MAX) => format!("valid are whole numbers from {least}"),
        (least, most) => format!("valid are whole numbers from {least} to {most}"),
    })
}

/// Parses a number with decimals. The error names the valid numbers.
pub fn decimal(word: &str) -> Result<f64, String> {
    let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| "valid are numbers such as 10 or 0.5".into())
}

/// A command line that cannot be carried out, in contrast to work that failed.
#[derive(Debug)]
pub struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Makes an error a [`UsageError`].
pub fn usage(error: anyhow::Error) -> anyhow::Error {
    UsageError(format!("{error:#}")).into()
}

/// Reports why a command failed. Returns its exit code: 2 for a [`UsageError`], otherwise 1.
pub fn report_failure(error: &anyhow::Error) -> ExitCode {
    let why = shown(&format!("{error:#}"));
    eprintln!("fishplate: {why}");
    ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
}

/// A message for a terminal: without the error numbers that the standard library adds, such as "(os
/// error 2)", and with control characters in names and arguments escaped.
pub fn shown(message: &str) -> String {
    terminal_text::lines(&without_error_numbers(message))
}

/// A message without the error numbers that the standard library adds: "(os error 2)". If the
/// number means a limit that the user can raise, the message names it.
pub fn without_error_numbers(message: &str) -> String {
    const MARK: &str = " (os error ";
    let mut text = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(MARK) {
        text += before;
        rest = match after.split_once(')') {
            Some((number, rest)) if number.parse::<i32>().is_ok() => {
                text += limit(number, &text);
                rest
            }
            _ => {
                text += MARK;
                after
            }
        };
    }
    text + rest
}

/// A text for the end of a message about the limit behind an error number; empty if there is none.
fn limit(number: &str, message: &str) -> &'static str {
    match number {
        // EAGAIN, only for the start of a process.
        "11" if message.contains("cannot start") => {
            " (the limit on processes is reached: `ulimit -u`, or the container's)"
        }
        // EMFILE and EFBIG.
        "24" => " (the limit on open files is reached: `ulimit -n`)",
        "27" => " (the limit on file sizes is reached: `ulimit -f`)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_are_left_out_and_nothing_else() {
        let error = std::io::Error::from_raw_os_error(2).to_string();
        assert_eq!(without_error_numbers(&error), "No such file or directory");
        let text = "a (os error 13): b (os error x) (os error 2)";
        assert_eq!(without_error_numbers(text), "a: b (os error x)");
        let reached = |text: &str| without_error_numbers(text).contains("is reached: `ulimit");
        assert!(reached("cannot start x: y (os error 11)"));
        assert!(!reached("cannot read x: y (os error 11)"));
        assert!(reached("a: Too many open files (os error 24)"));
        assert!(reached("a: File too large (os error 27)"));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for word in ["", "x", "-1", "1.5", "70000", "99999999999999999999"] {
            assert!(whole_number::<u16>(word, ANY).is_err(), "{word}");
        }
        assert!(whole_number::<usize>("0", POSITIVE).is_err());
        assert!(decimal("1e3").is_ok() && decimal("nan").is_err() && decimal("ten").is_err());
    }
}
