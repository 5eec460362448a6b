//! SimGrid's time-independent traces, which SMPI writes and replays: a line for each action of a
//! rank, with amounts of computing and of data instead of times (Desprez, Markomanolis, Quinson,
//! Suter: Assessing the performance of MPI applications through time-independent trace replay,
//! 2011).

mod actions;
mod datatypes;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::script::{Peer, Script, Source};
use crate::{Builder, Trace};
use actions::{Action, Request};

/// The most ranks of a trace.
const MOST_RANKS: usize = 1 << 20;

/// A part of a trace: the name of its file, for messages, and its text.
pub type File<'a> = (&'a str, &'a str);

/// Reads a trace. `rate`: the operations that a rank computes in a second; `None`: unknown.
/// `program`: the command that reads it.
///
/// # Errors
/// The file and line of what is no action, or of what MPI or this reader cannot do, with the
/// reason.
pub fn read(files: &[File], rate: Option<f64>, program: String) -> Result<Trace, String> {
    let mut ranks: BTreeMap<usize, Vec<(Line, Vec<&str>)>> = BTreeMap::new();
    for (file, (name, text)) in files.iter().enumerate() {
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let Some(first) = words.next().filter(|word| !word.starts_with('#')) else {
                continue;
            };
            let rank = first.trim_start_matches(['p', 'P']).parse::<usize>().ok();
            let Some(rank) = rank.filter(|rank| *rank < MOST_RANKS) else {
                return Err(format!(
                    "{name}: line {}: `{first}`, where the number of a rank should be",
                    number + 1
                ));
            };
            let at = Line {
                file,
                line: number + 1,
            };
            ranks.entry(rank).or_default().push((at, words.collect()));
        }
    }
    let size = ranks.len();
    if let Some((missing, _)) = (0..size).zip(ranks.keys()).find(|(at, rank)| at != *rank) {
        return Err(format!("there are no actions of rank {missing}"));
    }
    if size == 0 {
        return Err("there are no actions".into());
    }
    let mut parsed = Vec::with_capacity(size);
    for (rank, lines) in ranks {
        let mut actions = Vec::with_capacity(lines.len());
        let mut default = datatypes::BYTE;
        for (at, words) in lines {
            let action = Action::read(&words, size, &mut default);
            let action = action.map_err(|why| at.wrong(files, &why))?;
            actions.push((at, action));
        }
        parsed.push((rank, actions));
    }
    let sizes = Sizes::of(&parsed);
    let mut builder = Builder::new(program);
    for (rank, actions) in parsed {
        let script = Script::new(rank);
        let mut calls = Calls {
            builder: &mut builder,
            rank,
            size,
            rate,
            script,
            open: Vec::new(),
            sizes: &sizes,
            received: HashMap::new(),
        };
        for (at, action) in actions {
            let done = calls.action(action);
            done.map_err(|why| at.wrong(files, &why))?;
        }
        calls.end();
    }
    Ok(builder.finish())
}

/// A line of one of the trace's files.
#[derive(Clone, Copy, Debug)]
struct Line {
    file: usize,
    line: usize,
}

impl Line {
    fn wrong(self, files: &[File], why: &str) -> String {
        let name = files.get(self.file).map_or("", |file| file.0);
        format!("{name}: line {}: {why}", self.line)
    }
}

/// The elements and datatypes of all sends, in their order, by source, destination and tag: a
/// receive may leave its size open.
struct Sizes(HashMap<(usize, usize, i64), VecDeque<(i64, i64)>>);

impl Sizes {
    fn of(ranks: &[(usize, Vec<(Line, Action)>)]) -> Sizes {
        let mut sizes = Sizes(HashMap::new());
        for (rank, actions) in ranks {
            for (_, action) in actions {
                if let Action::Message { peer, .. } = action
                    && let (true, Some(to), Some(count)) = (peer.sends, peer.rank, peer.count)
                {
                    let of = sizes.0.entry((*rank, to, peer.tag)).or_default();
                    of.push_back((count, peer.datatype));
                }
            }
        }
        sizes
    }
}

/// The calls of one rank.
struct Calls<'a> {
    builder: &'a mut Builder,
    rank: usize,
    size: usize,
    rate: Option<f64>,
    script: Script,
    /// The open requests in the order of their beginning: source, destination, tag, and the number
    /// of the request.
    open: Vec<(usize, usize, i64, i64)>,
    sizes: &'a Sizes,
    /// The number of receives so far, by source and tag.
    received: HashMap<(usize, i64), usize>,
}

impl Calls<'_> {
    fn action(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Nothing => (),
            Action::Compute(operations) => {
                let rate = self.rate.ok_or(
                    "it computes, and the operations of a rank in a second are missing: give them as --rate, such as --rate 2.5Gflop/s",
                )?;
                self.seconds(operations / rate)?;
            }
            Action::Sleep(seconds) => self.seconds(seconds)?,
            Action::Message { peer, blocks } => {
                let message = self.message(&peer)?;
                if blocks {
                    self.script.blocking(self.builder, message);
                } else {
                    let request = self.script.begin(self.builder, message);
                    let other = peer.rank.unwrap_or(self.rank);
                    let ends = match peer.sends {
                        true => (self.rank, other),
                        false => (other, self.rank),
                    };
                    self.open.push((ends.0, ends.1, peer.tag, request));
                }
            }
            Action::Wait(request) => {
                let at = self.find(request)?;
                let (.., request) = self.open.remove(at);
                self.script.wait(self.builder, &[request]);
            }
            Action::WaitAll => {
                let open = std::mem::take(&mut self.open);
                let requests: Vec<i64> = open.iter().map(|one| one.3).collect();
                if !requests.is_empty() {
                    self.script.wait(self.builder, &requests);
                }
            }
            Action::Test(request) => {
                let at = self.find(request)?;
                self.script.test(self.builder, self.open[at].3);
            }
            Action::Collective(name, values) => {
                let values = values.values(self.rank, self.size)?;
                self.script.call(self.builder, name, values);
            }
        }
        Ok(())
    }

    fn seconds(&mut self, seconds: f64) -> Result<(), String> {
        let nanos = seconds * 1e9;
        // Beyond this the nanoseconds of a double are not whole any more.
        if !(0.0..9e15).contains(&nanos) {
            return Err(format!("{seconds} s of computing; valid are 0 to 9e6"));
        }
        self.script.compute(nanos.round() as u64);
        Ok(())
    }

    /// The position of an open request among those of the rank.
    fn find(&self, request: Option<Request>) -> Result<usize, String> {
        let found = match request {
            None => self.open.len().checked_sub(1),
            Some(one) => self
                .open
                .iter()
                .position(|open| (open.0, open.1, open.2) == (one.from, one.to, one.tag)),
        };
        found.ok_or("no isend or irecv before it is open".into())
    }

    fn message(&mut self, peer: &actions::Message) -> Result<Peer, String> {
        let Some(rank) = peer.rank else {
            return Err(
                "it receives from any source, and the trace does not say from which; give the source".into(),
            );
        };
        let (mut count, mut datatype) = (peer.count, peer.datatype);
        if !peer.sends {
            let number = self.received.entry((rank, peer.tag)).or_default();
            let sent = self.sizes.0.get(&(rank, self.rank, peer.tag));
            let sent = sent.and_then(|all| all.get(*number));
            *number += 1;
            if let (None, Some((elements, of))) = (count, sent) {
                (count, datatype) = (Some(*elements), *of);
            }
        }
        let count = count.ok_or_else(|| {
            format!("it leaves its size open, and rank {rank} sends nothing with its tag")
        })?;
        Ok(Peer {
            sends: peer.sends,
            value: Source::Rank(rank),
            count,
            datatype,
            tag: peer.tag,
        })
    }

    fn end(self) {
        self.script.end(self.builder);
    }
}
