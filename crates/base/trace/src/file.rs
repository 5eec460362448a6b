//! The file of a trace: a line with its version, the tables, the parts of the ranks.

use crate::bytes::{Bytes, Result, put, put_bytes};
use crate::fold::Item;
use crate::gaps::Gaps;
use crate::measured::Measured;
use crate::signature::Signature;
use crate::times;
use crate::value::Call;
use crate::{RankCalls, Trace};

/// The beginning of the file of each version.
pub const MAGIC: &[u8] = b"fishplate trace ";
const VERSION: &[u8] = b"7\n";
/// The beginning of the files that had the computing of a program before traces had it.
pub const COMPUTE_TRACE: &[u8] = b"# fishplate: what each rank computed";
/// The most ranks of a trace.
const MOST_RANKS: usize = 1 << 20;
/// The most calls of a rank.
const MOST_CALLS: u64 = 1 << 40;

impl Trace {
    /// The contents of the trace's file.
    pub fn write(&self) -> Vec<u8> {
        let mut to = [MAGIC, VERSION].concat();
        put_bytes(&mut to, self.program.as_bytes());
        for lines in [&self.notes, &self.work] {
            put(&mut to, lines.len() as u64);
            for line in lines {
                put_bytes(&mut to, line.as_bytes());
            }
        }
        put(&mut to, self.signatures.len() as u64);
        for signature in &self.signatures {
            put_bytes(&mut to, signature.line().as_bytes());
        }
        put(&mut to, self.calls.len() as u64);
        self.calls.iter().for_each(|call| call.put(&mut to));
        put(&mut to, self.sequences.len() as u64);
        for sequence in &self.sequences {
            put(&mut to, sequence.len() as u64);
            for item in sequence {
                match *item {
                    Item::Call(call) => put(&mut to, u64::from(call) << 1),
                    Item::Loop(turns, body) => {
                        put(&mut to, u64::from(body) << 1 | 1);
                        put(&mut to, turns);
                    }
                }
            }
        }
        put(&mut to, self.ranks.len() as u64);
        for rank in &self.ranks {
            put(&mut to, rank.sequence.into());
            rank.functions.put(&mut to);
            put(&mut to, rank.measured.is_some().into());
            rank.measured.iter().for_each(|times| times.put(&mut to));
        }
        times::put_all(&mut to, self.ranks.iter().map(|rank| &rank.gaps));
        to
    }

    /// Reads the contents of a file with one trace.
    ///
    /// # Errors
    /// The byte at which the file is not a trace, and the reason.
    pub fn read(bytes: &[u8]) -> Result<Trace> {
        match Trace::read_first(bytes)? {
            (trace, []) => Ok(trace),
            (_, rest) => {
                let at = bytes.len() - rest.len();
                Err(format!("byte {at}: more follows the last rank"))
            }
        }
    }

    /// Reads the contents of a file with traces one after another: several recordings of a program.
    ///
    /// # Errors
    /// The byte at which the file is not a trace, and the reason, with the number of the recording
    /// unless it is the first.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Trace>> {
        let (mut traces, mut rest) = (Vec::new(), bytes);
        while traces.is_empty() || !rest.is_empty() {
            let number = traces.len() + 1;
            let (trace, more) = Trace::read_first(rest).map_err(|why| match number {
                1 => why,
                _ => format!("recording {number}: {why}"),
            })?;
            traces.push(trace);
            rest = more;
        }
        Ok(traces)
    }

    /// Reads a trace at the beginning of these bytes. Returns it with the bytes that follow it.
    fn read_first(bytes: &[u8]) -> Result<(Trace, &[u8])> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            let old = bytes.starts_with(COMPUTE_TRACE);
            return Err(match old {
                true => "it is a compute trace of an earlier version, which traces replace; record it again",
                false => "it is no trace: it does not begin with `fishplate trace`",
            }
            .into());
        };
        let Some(rest) = rest.strip_prefix(VERSION) else {
            let line = rest.iter().take_while(|byte| byte.is_ascii_digit());
            let version: String = line.map(|byte| char::from(*byte)).take(9).collect();
            return Err(format!(
                "it is of version {version}, and this is version 7; record it, or make it, again"
            ));
        };
        let from = &mut Bytes::new(rest);
        let program = from.text()?.to_string();
        let [notes, work] = [lines(from)?, lines(from)?];
        let mut signatures = Vec::new();
        for _ in 0..from.count()? {
            match Signature::parse(from.text()?) {
                Some(signature) => signatures.push(signature),
                None => return from.wrong("a signature that is none"),
            }
        }
        let mut calls = Vec::new();
        for _ in 0..from.count()? {
            calls.push(Call::read(from, &signatures)?);
        }
        let (sequences, lengths) = sequences(from, calls.len())?;
        let count = from.count()?;
        if count > MOST_RANKS {
            return from.wrong(&format!("{count} ranks; the most are {MOST_RANKS}"));
        }
        let mut parts = Vec::new();
        for _ in 0..count {
            let sequence = from.below(sequences.len(), "the sequence")?;
            let functions = Gaps::read(from, MOST_CALLS)?;
            let measured = match from.below(2, "the flag")? {
                0 => None,
                _ => Some(Measured::read(from, lengths[sequence as usize])?),
            };
            parts.push((sequence, functions, measured));
        }
        let calls_of = |part: &(u32, Gaps, Option<Measured>)| lengths[part.0 as usize];
        let gaps = times::read_all(from, &parts.iter().map(calls_of).collect::<Vec<_>>())?;
        let ranks = gaps.into_iter().zip(parts);
        let ranks = ranks.map(|(gaps, (sequence, functions, measured))| RankCalls {
            sequence,
            gaps,
            functions,
            measured,
        });
        let trace = Trace {
            program,
            notes,
            work,
            signatures,
            calls,
            sequences,
            ranks: ranks.collect(),
        };
        Ok((trace, from.rest()))
    }
}

fn lines(from: &mut Bytes) -> Result<Vec<String>> {
    let count = from.count()?;
    (0..count).map(|_| Ok(from.text()?.to_string())).collect()
}

/// Reads the sequences, and returns with them the number of calls of each.
fn sequences(from: &mut Bytes, calls: usize) -> Result<(Vec<Vec<Item>>, Vec<u64>)> {
    let (mut sequences, mut lengths) = (Vec::new(), Vec::<u64>::new());
    for _ in 0..from.count()? {
        let (mut items, mut length) = (Vec::new(), 0u64);
        for _ in 0..from.count()? {
            let number = from.number()?;
            let (item, more) = match number & 1 {
                0 if number >> 1 < calls as u64 => (Item::Call((number >> 1) as u32), Some(1)),
                1 if number >> 1 < lengths.len() as u64 => {
                    let (turns, body) = (from.number()?, (number >> 1) as u32);
                    let inside = lengths[body as usize];
                    let more = turns.checked_mul(inside).filter(|more| *more > 0);
                    (Item::Loop(turns, body), more)
                }
                _ => return from.wrong("a call or a sequence that does not exist"),
            };
            let sum = more.and_then(|more| length.checked_add(more));
            match sum.filter(|sum| *sum <= MOST_CALLS) {
                Some(sum) => length = sum,
                None => return from.wrong("a loop without calls, or with too many"),
            }
            items.push(item);
        }
        sequences.push(items);
        lengths.push(length);
    }
    Ok((sequences, lengths))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Inside, Taken, Value};
    use proptest::collection::vec;
    use proptest::prelude::*;

    const LINES: [&str; 4] = [
        "MPI_Send buf:in count:count datatype:datatype dest:dest tag:tag comm:comm",
        "MPI_Waitall count:n array_of_requests:<>request[count] array_of_statuses:>status[count]",
        "MPI_Info_get info:info key:str counts:count[*]",
        "MPI_Probe source:source",
    ];

    fn value(word: &str, number: i64) -> Value {
        let parameter = word.split_once(':').unwrap().1;
        match parameter {
            "dest" if number % 3 == 0 => Value::Relative(number),
            "str" | "info" => Value::Text(number.to_string().into_bytes()),
            "source" => Value::Met(number),
            _ if number % 5 == 0 => Value::Absent,
            _ if parameter.contains('[') => Value::Numbers(vec![number; 4]),
            _ => Value::Number(number),
        }
    }

    /// The calls of a rank: a procedure, a number from which the values follow, and a time.
    type Calls = Vec<(usize, i64, u64)>;

    fn built(ranks: &[Calls]) -> Trace {
        let mut builder = Builder::new("./heat 3".into());
        builder.work(if ranks.len() > 1 {
            "MPI_SUM:MPI_DOUBLE 1 2\ncopy 3 4"
        } else {
            ""
        });
        for calls in ranks {
            let mut numbers = Vec::new();
            let [mut gaps, mut functions] = [Gaps::default(), Gaps::default()];
            for &(procedure, number, nanos) in calls {
                let line = LINES[procedure];
                let signature = builder.signature(Signature::parse(line).unwrap());
                let words = line.split(' ').skip(1);
                let values = words.map(|word| value(word, number)).collect();
                numbers.push(builder.call(signature, values));
                gaps.push(nanos, 1);
                functions.push(nanos / 2, number.unsigned_abs());
            }
            builder.rank(&numbers, gaps, functions);
            if let Some(&(_, number, nanos)) = calls.first() {
                let inside = Inside {
                    procedure: "MPI_Send".into(),
                    comm: (number > 0).then_some(number),
                    phase: (number < 0).then_some(number),
                    calls: number.unsigned_abs(),
                    nanos,
                };
                builder.measured(Measured {
                    elapsed: nanos,
                    inside: vec![inside; number.unsigned_abs() as usize],
                    taken: vec![Taken { call: 0, nanos }],
                    ..Measured::default()
                });
            }
        }
        builder.finish()
    }

    fn ranks() -> impl Strategy<Value = Vec<Calls>> {
        let call = (0usize..4, -3i64..3, prop_oneof![Just(0u64), any::<u64>()]);
        let calls = (vec(call, 0..6), 1usize..5).prop_map(|(calls, turns)| calls.repeat(turns));
        vec(calls, 0..4)
    }

    #[test]
    fn the_version_before_is_refused_with_the_remedy() {
        let mut bytes = built(&[Vec::new()]).write();
        bytes[MAGIC.len()] = b'3';
        let why = Trace::read(&bytes).unwrap_err();
        let remedy = "it is of version 3, and this is version 7; record it, or make it, again";
        assert_eq!(why, remedy);
    }

    proptest! {
        #[test]
        fn a_file_gives_back_each_call_of_each_rank(ranks in ranks()) {
            let trace = built(&ranks);
            let bytes = trace.write();
            let read = Trace::read(&bytes).unwrap();
            prop_assert_eq!(&read, &trace);
            for (rank, calls) in ranks.iter().enumerate() {
                let wanted = calls.iter().map(|&(procedure, number, nanos)| {
                    let words = LINES[procedure].split(' ').skip(1);
                    let values: Vec<Value> = words.map(|word| value(word, number)).collect();
                    (LINES[procedure].to_string(), values, nanos)
                });
                let found = read.calls_of(rank).map(|(call, nanos)| {
                    let values = read.calls[call as usize].values.clone();
                    (read.signature(call).line(), values, nanos)
                });
                prop_assert!(found.eq(wanted));
            }
        }

        #[test]
        fn no_beginning_of_a_file_is_a_file(ranks in ranks(), cut in any::<prop::sample::Index>()) {
            let bytes = built(&ranks).write();
            prop_assert!(Trace::read(&bytes[..cut.index(bytes.len())]).is_err());
        }

        #[test]
        fn a_changed_file_is_read_or_refused(ranks in ranks(), at in any::<prop::sample::Index>(), byte: u8) {
            let mut bytes = built(&ranks).write();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(trace) = Trace::read(&bytes) {
                prop_assert_eq!(Trace::read(&trace.write()), Ok(trace));
            }
        }
    }

    #[test]
    fn loops_that_never_end_and_other_files_are_refused() {
        let mut trace = built(&[vec![(0, 1, 5); 9]]);
        assert_eq!(trace.sequences.len(), 2);
        trace.sequences[0].clear();
        let why = Trace::read(&trace.write()).unwrap_err();
        assert!(why.contains("a loop without calls"), "{why}");
        assert!(Trace::read(b"#!/bin/sh").unwrap_err().contains("no trace"));
    }

    #[test]
    fn a_long_run_of_equal_steps_takes_few_bytes() {
        let step = [(0, 1, 0), (0, -1, 0), (1, 1, 0)];
        let ranks = vec![step.repeat(10_000); 8];
        assert!(built(&ranks).write().len() < 1000);
    }
}
