//! Fuzz target: the parsers of the outputs of other benchmark tools, and of tables of figures.
//!
//! The promise: what is read has figures, each a number above 0 of a line of the text.

use fabric::outputs::read;

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().count();
    match read(&text) {
        Ok(outputs) => {
            assert!(!outputs.readings.is_empty());
            for one in outputs.readings {
                assert!(one.value > 0.0 && one.value.is_finite() && one.size > 0);
                assert!((1..=lines).contains(&one.line));
            }
        }
        Err(wrong) => assert!(wrong.line <= lines && !wrong.why.is_empty()),
    }
}
