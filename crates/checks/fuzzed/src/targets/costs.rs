//! Fuzz target: the parser of the file in which a user's cache keeps the costs of a host.
//!
//! The promise: the costs that are read are written as the same file, and a file that is cut or of
//! another kind of host has none.

use cost_cache::CostLines;

const HOST: &str = "a host";

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Some(lines) = CostLines::parse(&text, HOST) else {
        return;
    };
    let written = lines.text(HOST);
    assert!(written.len() <= CostLines::LONGEST);
    assert_eq!(CostLines::parse(&written, HOST), Some(lines));
    assert_eq!(CostLines::parse(&text, "another host"), None);
    let cut = &written[..written.len() - 2];
    assert_eq!(CostLines::parse(cut, HOST), None);
}
