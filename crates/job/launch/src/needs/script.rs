//! The first line of a script, which names the program that the kernel starts for it.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;

/// The number of bytes of a first line that the kernel reads.
const LONGEST_LINE: u64 = 256;

/// The interpreter of a script: a path, or a name to search in PATH if `env` starts it. `None` for
/// a file that is not a script.
pub(crate) fn interpreter(file: &File) -> Option<OsString> {
    let mut bytes = Vec::new();
    file.take(LONGEST_LINE).read_to_end(&mut bytes).ok()?;
    of_line(&bytes).map(OsString::from_vec)
}

/// The interpreter that the first line of these bytes names. `None` if they do not begin with `#!`.
pub(crate) fn of_line(bytes: &[u8]) -> Option<Vec<u8>> {
    let rest = bytes.strip_prefix(b"#!")?;
    let line = rest.split(|&byte| byte == b'\n').next()?;
    let words = line.split(|byte| matches!(byte, b' ' | b'\t' | b'\r' | 0));
    let mut words = words.filter(|word| !word.is_empty());
    let program = words.next()?;
    if program != b"env" && !program.ends_with(b"/env") {
        return Some(program.to_vec());
    }
    // Options of env, and variables that it sets, precede the program.
    let mut words = words.filter(|word| !word.starts_with(b"-") && !word.contains(&b'='));
    Some(words.next().unwrap_or(program).to_vec())
}

#[cfg(test)]
mod tests {
    use super::of_line;

    #[test]
    fn the_program_is_the_first_word_or_that_of_env() {
        let cases: [(&str, Option<&str>); 8] = [
            ("#!/bin/sh\nexec it\n", Some("/bin/sh")),
            ("#! /opt/a/bin/python3 -E\n", Some("/opt/a/bin/python3")),
            ("#!/usr/bin/env python3\r\n", Some("python3")),
            ("#!/usr/bin/env -S LC_ALL=C python3 -u\n", Some("python3")),
            ("#!/usr/bin/env", Some("/usr/bin/env")),
            ("#!", None),
            ("#!\n/bin/sh", None),
            ("\x7fELF", None),
        ];
        for (text, program) in cases {
            let found = of_line(text.as_bytes());
            assert_eq!(found.as_deref(), program.map(str::as_bytes), "{text:?}");
        }
    }
}
