//! Fuzz target: the reader of traces, and that of the parts that ranks write.
//!
//! The promises: a trace that is read is written so that it is read again as the same, and each of
//! its ranks has as many times as calls; a part that is added to a trace leaves a whole one, and so
//! do the parts in files of hosts, damaged ones too.

use trace::part_file::{Parts, sealed};
use trace::{Builder, Trace, merged, parts};

/// The most calls of a rank that are made: loops of loops have more than there is time for.
const MOST_CALLS: usize = 1000;
/// The ranks of a file of parts.
const RANKS: usize = 2;

pub(crate) fn run(bytes: &[u8]) {
    if let Ok(trace) = Trace::read(bytes) {
        holds(&trace);
    }
    hosts(bytes);
    let Ok(parts) = parts(bytes, RANKS) else {
        return;
    };
    let mut builder = Builder::new("./program".into());
    let added = parts.iter().filter(|part| part.add_to(&mut builder).is_ok());
    let added = added.count();
    let trace = builder.finish();
    assert_eq!(trace.ranks.len(), added);
    holds(&trace);
}

/// Reads the bytes as the file of a host, and as those of a rank in one that is cut off.
fn hosts(bytes: &[u8]) {
    let mut block = 0u32.to_le_bytes().to_vec();
    block.extend((bytes.len() as u32).to_le_bytes());
    block.extend(bytes);
    let mut file = sealed(7, &block);
    let cut = file.len() / 2;
    file.extend_from_within(..cut);
    for file in [bytes, &file] {
        let mut found = Parts::default();
        found.add(file);
        assert!(found.lost <= file.len() as u64);
        for trace in merged(&found, false).unwrap_or_default() {
            holds(&trace);
        }
    }
}

fn holds(trace: &Trace) {
    let again = Trace::read(&trace.write());
    assert_eq!(again.as_ref(), Ok(trace));
    for rank in 0..trace.ranks.len().min(MOST_CALLS) {
        for (call, _) in trace.calls_of(rank).take(MOST_CALLS) {
            let values = &trace.calls[call as usize].values;
            assert_eq!(trace.signature(call).parameters.len(), values.len());
        }
    }
}
