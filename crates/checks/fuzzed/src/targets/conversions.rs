//! Fuzz target: the readers of GOAL and of SimGrid's time-independent traces. The first byte
//! chooses the format.
//!
//! The promises: what is read is a trace that is written and read again as the same, and that ends
//! on each rank; a schedule that became a trace can be written, and is read as that trace again.

use trace::{Trace, goal, time_independent};

/// A rate of computing, in operations a second.
const RATE: f64 = 1e9;
/// The most digits of a number of a schedule.
const MOST_DIGITS: usize = 4;

pub(crate) fn run(bytes: &[u8]) {
    let Some((format, text)) = bytes.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    if format % 2 == 1 {
        if let Ok(trace) = time_independent::read(&[("text", text)], Some(RATE), "import".into()) {
            holds(&trace);
        }
        return;
    }
    // Each rank has a part of the trace, so many ranks would only take time.
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit());
    if numbers.any(|number| number.len() > MOST_DIGITS) {
        return;
    }
    let Ok(trace) = goal::read(text, "import".into()) else {
        return;
    };
    holds(&trace);
    let size = |_: i64| Some(1);
    let again = goal::write(&trace, &size).map(|text| goal::read(&text, "import".into()));
    let again = again
        .expect("a schedule has only messages")
        .expect("a trace was a schedule");
    let third = goal::write(&again, &size).map(|text| goal::read(&text, "import".into()));
    assert_eq!(third, Ok(Ok(again)));
}

fn holds(trace: &Trace) {
    assert_eq!(Trace::read(&trace.write()).as_ref(), Ok(trace));
    for rank in 0..trace.ranks.len() {
        let last = trace
            .calls_of(rank)
            .last()
            .map(|(call, _)| trace.signature(call));
        assert_eq!(last.map(|one| one.name.as_str()), Some("MPI_Finalize"));
    }
}
