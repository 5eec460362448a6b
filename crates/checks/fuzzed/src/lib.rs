//! Targets of the fuzzer: every parser of bytes that others write.
//!
//! A target takes any bytes and panics where a promise is broken. It is one file in `targets`, with
//! a function `run`, and its name in the list below. `make fuzz` runs each target under libFuzzer
//! (folder `fuzz`), with inputs that reach ever more of the code. The inputs worth keeping lie in
//! `fuzz/corpus`, one a line in hexadecimal digits, and a test of this crate runs them: so the
//! promises are checked without a fuzzer too.
//!
//! A parser that is private has its target in its own crate, behind a feature `fuzzing`.
//!
//! Never here: anything that a user runs.

#![forbid(unsafe_code)]

use std::path::PathBuf;

/// A parser with its promises.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of its file, and of its corpus.
    pub name: &'static str,
    /// Panics where a promise is broken.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        mod targets {
            $(pub(crate) mod $name;)*
        }

        /// All targets.
        pub const TARGETS: &[Target] = &[
            $(Target { name: stringify!($name), run: targets::$name::run }),*
        ];
    };
}

targets![
    agents,
    allocations,
    calls,
    cards,
    control,
    conversions,
    costs,
    datagrams,
    fabrics,
    faults,
    frames,
    graphs,
    handshakes,
    hello,
    hosts,
    knobs,
    objects,
    outputs,
    packets,
    pmi_messages,
    pmi_values,
    rings,
    scenes,
    slots,
    traces,
    windows,
];

/// The target with this name, if there is one.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

impl Target {
    /// The inputs of the target that are kept in the repository.
    ///
    /// # Panics
    /// The corpus is absent, or a line of it is no input.
    pub fn corpus(&self) -> Vec<Vec<u8>> {
        let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let path = own.join("../../../fuzz/corpus").join(self.name);
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let inputs = text.lines().map(input);
        inputs.collect::<Option<_>>().unwrap_or_else(|| {
            let path = path.display();
            panic!("{path}: a line has other characters than pairs of hexadecimal digits")
        })
    }
}

fn input(line: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = line.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    match rest {
        [] => pairs.iter().map(byte).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_of_every_corpus_keeps_the_promises() {
        for target in TARGETS {
            let corpus = target.corpus();
            assert!(!corpus.is_empty(), "{}", target.name);
            for (line, input) in (1..).zip(corpus) {
                println!("fuzz/corpus/{}, line {line}", target.name);
                (target.run)(&input);
            }
        }
    }

    #[test]
    fn an_input_is_pairs_of_hexadecimal_digits() {
        assert_eq!(input("00ff7A"), Some(vec![0, 255, 0x7a]));
        assert_eq!(input(""), Some(vec![]));
        assert_eq!((input("0"), input("0g")), (None, None));
    }
}
