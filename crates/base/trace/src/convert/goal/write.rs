//! A trace as a schedule.
//!
//! An operation requires what its rank has waited for, and begins after what its rank has begun
//! before. Times of MPI calls are the simulator's; making communicators and the like is left out.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::sizes::{Predefined, Sizes};
use crate::Trace;
use crate::comms::{Place, Step, walk};
use crate::cut::collective;
use crate::messages::{Event, Message, Requests};

/// The tags of each communicator but MPI_COMM_WORLD begin at a multiple of this.
const TAGS: i64 = 1 << 20;
/// The most communicators with messages.
const MOST_COMMS: usize = 1 << 11;

/// Writes a trace as GOAL. `predefined`: the size of a predefined datatype.
///
/// # Errors
/// A call that GOAL cannot say, with its rank and the reason.
pub fn write(trace: &Trace, predefined: &Predefined) -> Result<String, String> {
    let size = trace.ranks.len();
    let mut writer = Writer {
        trace,
        predefined,
        ranks: (0..size).map(|_| Rank::default()).collect(),
        comms: HashMap::from([(0, 0)]),
        any_tag: None,
    };
    walk(trace, &mut |step| writer.step(step))?;
    if let (Some(call), true) = (writer.any_tag, writer.comms.len() > 1) {
        return Err(format!(
            "{call}: it receives any tag, and GOAL has no communicators, which this trace has several of"
        ));
    }
    let program = trace.program.replace("*/", "* /");
    let mut text = format!("// fishplate {program}\nnum_ranks {size}\n");
    for (rank, part) in writer.ranks.iter().enumerate() {
        let _ = write!(text, "\nrank {rank} {{\n{}}}\n", part.text);
    }
    Ok(text)
}

/// The lines of a rank's schedule that have been written so far.
#[derive(Default)]
struct Rank {
    text: String,
    /// The number of labels that the rank's lines have used.
    labels: u64,
    /// The labels of the operations that end before the next one begins.
    done: Vec<u64>,
    /// The label of the operation after whose beginning the next one begins.
    begun: Option<u64>,
    /// The labels of the operations of each open request.
    open: HashMap<i64, Vec<u64>>,
    requests: Requests,
    sizes: Sizes,
}

impl Rank {
    /// Adds an operation, and returns its label. The next one begins after it has begun, and so
    /// after all that it requires.
    fn operation(&mut self, what: &str) -> u64 {
        self.labels += 1;
        let label = self.labels;
        let _ = writeln!(self.text, "l{label}: {what}");
        for done in self.done.drain(..) {
            let _ = writeln!(self.text, "l{label} requires l{done}");
        }
        if let Some(begun) = self.begun.replace(label) {
            let _ = writeln!(self.text, "l{label} irequires l{begun}");
        }
        label
    }

    /// Records that the rank waits for these operations.
    fn wait(&mut self, labels: Vec<u64>) {
        if self.begun.is_some_and(|begun| labels.contains(&begun)) {
            self.begun = None;
        }
        self.done.extend(labels);
    }
}

struct Writer<'a> {
    trace: &'a Trace,
    predefined: &'a Predefined<'a>,
    ranks: Vec<Rank>,
    /// The communicators with messages, numbered in the order of their first one.
    comms: HashMap<usize, usize>,
    /// A description of a receive of any tag, if the trace has one.
    any_tag: Option<String>,
}

impl Writer<'_> {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        let trace = self.trace;
        if step.nanos > 0 {
            let rank = &mut self.ranks[step.rank];
            let label = rank.operation(&format!("calc {}", step.nanos));
            rank.wait(vec![label]);
        }
        self.refuse(step)?;
        let rank = &mut self.ranks[step.rank];
        rank.sizes.follow(trace, step, self.predefined);
        for event in rank.requests.events(trace, step)? {
            match event {
                Event::Blocks(messages) => {
                    let labels = self.operations(step, &messages)?;
                    self.ranks[step.rank].wait(labels);
                }
                Event::Begins(request, messages) => {
                    let labels = self.operations(step, &messages)?;
                    self.ranks[step.rank].open.insert(request, labels);
                }
                Event::Completes(request) => {
                    let rank = &mut self.ranks[step.rank];
                    let labels = rank.open.remove(&request).unwrap_or_default();
                    rank.wait(labels);
                }
            }
        }
        Ok(())
    }

    fn operations(&mut self, step: &Step, messages: &[Message]) -> Result<Vec<u64>, String> {
        let operation = |message| {
            let text = self.message(step, message)?;
            Ok(self.ranks[step.rank].operation(&text))
        };
        messages.iter().map(operation).collect()
    }

    /// Returns an error for a call that a schedule cannot express.
    fn refuse(&self, step: &Step) -> Result<(), String> {
        let signature = self.trace.signature(step.call);
        let name = signature.name.as_str();
        let wrong = |why: &str| Err(format!("{}: {why}", step.name(self.trace)));
        let has = |kind: &str| signature.parameters.iter().any(|one| one.kind == kind);
        let is_alone = matches!(step.place, Place::In(comm, _) if comm.members.len() == 1);
        if collective(name).is_some() && !is_alone {
            return wrong(
                "GOAL has no collective operations, and the messages of one depend on the machine's library; cut the part of the trace that has none",
            );
        }
        if has("win") || has("file") {
            return wrong("GOAL has neither windows nor files");
        }
        let plain = name.to_ascii_lowercase();
        if plain.contains("ssend") || plain.contains("bsend") {
            return wrong("GOAL has neither synchronous nor buffered sends");
        }
        if has("message") || plain == "mpi_probe" || plain == "mpi_cancel" {
            return wrong("GOAL has neither probes nor cancelled messages");
        }
        Ok(())
    }

    /// The message as a schedule writes it.
    fn message(&mut self, step: &Step, message: &Message) -> Result<String, String> {
        let wrong = |why: &str| Err(format!("{}: {why}", step.name(self.trace)));
        let size = self.ranks[step.rank]
            .sizes
            .get(message.datatype, self.predefined);
        let Some(size) = size else {
            return wrong("the trace does not say the size of its datatype");
        };
        let bytes = u64::try_from(message.count).unwrap_or(0).checked_mul(size);
        let Some(bytes) = bytes else {
            return wrong("it has more bytes than there are");
        };
        let next = self.comms.len();
        let comm = *self.comms.entry(message.comm.id).or_insert(next);
        let tag = match message.tag {
            None => {
                self.any_tag.get_or_insert_with(|| step.name(self.trace));
                "-1".into()
            }
            Some(tag) if comm == 0 => tag.to_string(),
            Some(tag) if (0..TAGS).contains(&tag) && comm < MOST_COMMS => {
                (comm as i64 * TAGS + tag).to_string()
            }
            Some(tag) => {
                return wrong(&format!(
                    "GOAL has no communicators: a tag stands for both, and tag {tag} of the {comm}th is too great"
                ));
            }
        };
        let peer = message.peer.map_or("-1".into(), |peer| peer.to_string());
        let how = if message.sends { "send" } else { "recv" };
        let which = if message.sends { "to" } else { "from" };
        Ok(format!("{how} {bytes}b {which} {peer} tag {tag}"))
    }
}
