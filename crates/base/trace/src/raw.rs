//! The calls of a rank as the rank writes them while it runs, and the reading of the parts of all
//! ranks after the job.
//!
//! All ranks append to one file, in *blocks*: the rank, a length, and bytes. The bytes of a rank's
//! blocks together are its *part*: signatures and calls, each before its first use, then for each
//! call its number and the nanoseconds of computing before it, the times of the program's reduction
//! functions, the sources that earlier receives from any source have met, and an end with the
//! reason why the part is unusable, if it is. The part of a recorder of any MPI library begins with
//! the job and ends with the times that the rank has measured.

use std::collections::HashMap;

use crate::build::Builder;
use crate::bytes::{Bytes, Result, put, put_bytes, put_signed};
use crate::gaps::Gaps;
use crate::measured::{Measured, Taken};
use crate::signature::Signature;
use crate::value::{Call, Value};

const SIGNATURE: u64 = 0;
const CALL: u64 = 1;
const END: u64 = 2;
const FUNCTION: u64 = 3;
const MET: u64 = 4;
const JOB: u64 = 5;
const MEASURED: u64 = 6;
const TAKEN: u64 = 7;
/// The number of a part's first call.
const FIRST: u64 = 8;

/// The bytes before those of a block: the rank, and the length of the rest.
pub const BLOCK_HEAD: usize = 8;
/// The length at which a block is complete.
const BLOCK: usize = 1 << 16;

/// The job that a recorder of any MPI library has recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// The name of the program.
    pub program: String,
    /// The name and the version of the MPI library.
    pub library: String,
    /// The name of the rank's host.
    pub host: String,
    /// The number of ranks.
    pub size: usize,
    /// The time at which the recording began, in nanoseconds since 1970.
    pub began: u64,
}

/// A part that has been added to a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Added {
    /// The job, if a recorder of any MPI library has made the part.
    pub job: Option<Job>,
    /// True if the part has its end.
    pub is_whole: bool,
}

/// The part of a trace that a rank writes while it runs.
pub struct RawWriter {
    rank: u32,
    block: Vec<u8>,
    /// The numbers of the signatures, by their lines: a call that failed is a bare name.
    signatures: HashMap<&'static str, u32>,
    calls: HashMap<Vec<u8>, u64>,
    /// The number of calls that the rank has made so far.
    count: u64,
}

impl RawWriter {
    /// The part of a rank that has made no call yet.
    pub fn new(rank: u32) -> RawWriter {
        RawWriter {
            rank,
            block: vec![0; BLOCK_HEAD],
            signatures: HashMap::new(),
            calls: HashMap::new(),
            count: 0,
        }
    }

    /// Adds a call with `nanos` of computing before it. `line` is the line of the
    /// procedure's signature. Returns a block if one is complete.
    pub fn call(&mut self, line: &'static str, values: Vec<Value>, nanos: u64) -> Option<Vec<u8>> {
        let number = self.number(line, values);
        self.again(number, nanos)
    }

    /// The number of a call in the part, to which a new one is added.
    pub fn number(&mut self, line: &'static str, values: Vec<Value>) -> u64 {
        let next = self.signatures.len() as u32;
        let signature = *self.signatures.entry(line).or_insert_with(|| {
            put(&mut self.block, SIGNATURE);
            put_bytes(&mut self.block, line.as_bytes());
            next
        });
        let mut bytes = Vec::new();
        Call { signature, values }.put(&mut bytes);
        let next = FIRST + self.calls.len() as u64;
        match self.calls.get(&bytes) {
            Some(number) => *number,
            None => {
                put(&mut self.block, CALL);
                self.block.extend(&bytes);
                self.calls.insert(bytes, next);
                next
            }
        }
    }

    /// Adds a call that has this number in the part. Returns a block if one is complete.
    pub fn again(&mut self, number: u64, nanos: u64) -> Option<Vec<u8>> {
        put(&mut self.block, number);
        put(&mut self.block, nanos);
        self.count += 1;
        (self.block.len() >= BLOCK).then(|| self.take())
    }

    /// The number of calls that the rank has made so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds the source of the message that call number `call`, a receive from any source, received,
    /// as a distance.
    pub fn met(&mut self, call: u64, distance: i64) {
        put(&mut self.block, MET);
        put(&mut self.block, call);
        put_signed(&mut self.block, distance);
    }

    /// Adds a call of a reduction function of the program, which took `picos` picoseconds.
    pub fn function(&mut self, picos: u64) {
        put(&mut self.block, FUNCTION);
        put(&mut self.block, picos);
    }

    /// Adds that another process had the core for `nanos` nanoseconds before the next call.
    pub fn taken(&mut self, nanos: u64) {
        put(&mut self.block, TAKEN);
        put(&mut self.block, nanos);
    }

    /// Begins the part of a recorder of any MPI library.
    pub fn job(&mut self, job: &Job) {
        put(&mut self.block, JOB);
        for text in [&job.program, &job.library, &job.host] {
            let text = text.replace(char::is_control, "?");
            put_bytes(&mut self.block, text.as_bytes());
        }
        put(&mut self.block, job.size as u64);
        put(&mut self.block, job.began);
    }

    /// Adds the times that the rank has measured.
    pub fn measured(&mut self, measured: &Measured) {
        put(&mut self.block, MEASURED);
        measured.put(&mut self.block);
    }

    /// Returns the block that has been begun; `None` if nothing is in it.
    pub fn flush(&mut self) -> Option<Vec<u8>> {
        (self.block.len() > BLOCK_HEAD).then(|| self.take())
    }

    /// Ends the part, with the reason why it is unusable, or an empty one. Returns the last block.
    pub fn end(&mut self, why: &str) -> Vec<u8> {
        put(&mut self.block, END);
        put_bytes(
            &mut self.block,
            why.replace(char::is_control, "?").as_bytes(),
        );
        self.take()
    }

    fn take(&mut self) -> Vec<u8> {
        let mut block = std::mem::replace(&mut self.block, vec![0; BLOCK_HEAD]);
        let length = (block.len() - BLOCK_HEAD) as u32;
        block[..4].copy_from_slice(&self.rank.to_le_bytes());
        block[4..BLOCK_HEAD].copy_from_slice(&length.to_le_bytes());
        block
    }
}

/// The bytes of the trace that a rank has written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part(Vec<u8>);

/// The parts of `ranks` ranks in the file that they have written.
///
/// # Errors
/// The file is cut off, or it has blocks of other ranks.
pub fn parts(file: &[u8], ranks: usize) -> Result<Vec<Part>> {
    let mut parts = vec![Part::default(); ranks];
    let from = &mut Bytes::new(file);
    while !from.is_empty() {
        let word = |bytes: &[u8]| {
            bytes
                .iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | *byte as usize)
        };
        let (rank, length) = (word(from.take(4)?), word(from.take(4)?));
        match parts.get_mut(rank) {
            Some(part) => part.0.extend(from.take(length)?),
            None => return from.wrong(&format!("a block of rank {rank}, of {ranks}")),
        }
    }
    Ok(parts)
}

impl Part {
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Adds the part to a trace as that of the next rank.
    ///
    /// # Errors
    /// The reason why the part is unusable.
    pub fn add_to(&self, builder: &mut Builder) -> Result<Added> {
        self.add(builder, false)
    }

    /// Adds the part to a trace as that of the next rank, up to its last whole call if it has been
    /// cut off.
    ///
    /// # Errors
    /// The reason why the part is unusable.
    pub fn add_beginning_to(&self, builder: &mut Builder) -> Result<Added> {
        self.add(builder, true)
    }

    /// The job with which the part begins, if a recorder of any MPI library has made it.
    pub fn job(&self) -> Option<Job> {
        let from = &mut Bytes::new(&self.0);
        let mut read = Read::default();
        read.next(from, &mut Builder::new(String::new())).ok()?;
        read.added.job
    }

    fn add(&self, builder: &mut Builder, may_be_cut: bool) -> Result<Added> {
        let from = &mut Bytes::new(&self.0);
        let mut read = Read::default();
        while !(read.added.is_whole || may_be_cut && from.is_empty()) {
            read.next(from, builder)?;
        }
        let calls = numbered(builder, &read.known, &read.calls, &read.met);
        builder.rank(&calls, read.gaps, read.functions);
        read.measured
            .into_iter()
            .for_each(|measured| builder.measured(measured));
        Ok(read.added)
    }
}

/// The part of a rank as far as it has been read.
#[derive(Default)]
struct Read {
    signatures: Vec<Signature>,
    /// The numbers of the signatures in the trace.
    numbers: Vec<u32>,
    /// The different calls.
    known: Vec<Call>,
    calls: Vec<u32>,
    gaps: Gaps,
    functions: Gaps,
    /// The distances of the sources that receives from any source have met, by their calls.
    met: HashMap<usize, i64>,
    measured: Option<Measured>,
    taken: Vec<Taken>,
    added: Added,
}

impl Read {
    /// Reads the next entry.
    fn next(&mut self, from: &mut Bytes, builder: &mut Builder) -> Result<()> {
        match from.number()? {
            SIGNATURE => match Signature::parse(from.text()?) {
                Some(signature) => {
                    self.numbers.push(builder.signature(signature.clone()));
                    self.signatures.push(signature);
                }
                None => return from.wrong("a signature that is none"),
            },
            CALL => {
                let call = Call::read(from, &self.signatures)?;
                let signature = self.numbers[call.signature as usize];
                self.known.push(Call { signature, ..call });
            }
            END => {
                let why = from.text()?;
                if !why.is_empty() {
                    return Err(why.into());
                }
                self.added.is_whole = true;
            }
            MET => {
                let call = from.below(self.calls.len(), "the call")?;
                self.met.insert(call as usize, from.signed()?);
            }
            FUNCTION => self.functions.push(from.number()?, 1),
            JOB => {
                let mut text = || Ok::<_, String>(from.text()?.to_string());
                let [program, library, host] = [text()?, text()?, text()?];
                self.added.job = Some(Job {
                    program,
                    library,
                    host,
                    size: from.number()? as usize,
                    began: from.number()?,
                });
            }
            TAKEN => {
                let (call, nanos) = (self.calls.len() as u64, from.number()?);
                match self.taken.last_mut().filter(|last| last.call == call) {
                    Some(last) => last.nanos = last.nanos.saturating_add(nanos),
                    None => self.taken.push(Taken { call, nanos }),
                }
            }
            MEASURED => {
                let mut measured = Measured::read(from, self.calls.len() as u64)?;
                measured.taken = std::mem::take(&mut self.taken);
                measured.end_before(self.calls.len() as u64);
                self.measured = Some(measured);
            }
            number => {
                if number - FIRST >= self.known.len() as u64 {
                    return from.wrong("a call that does not exist");
                }
                self.calls.push((number - FIRST) as u32);
                self.gaps.push(from.number()?, 1);
            }
        }
        Ok(())
    }
}

/// The numbers of a rank's calls in a trace. `known`: its different calls. `met`: the distances of
/// the sources that receives from any source have met, by the numbers of the calls.
fn numbered(
    builder: &mut Builder,
    known: &[Call],
    calls: &[u32],
    met: &HashMap<usize, i64>,
) -> Vec<u32> {
    let mut numbers = vec![None; known.len()];
    let numbered = calls.iter().enumerate().map(|(at, &own)| {
        let call = &known[own as usize];
        match met.get(&at) {
            Some(distance) => {
                let values = call.met(&builder.signatures()[call.signature as usize], *distance);
                builder.call(call.signature, values)
            }
            None => *numbers[own as usize]
                .get_or_insert_with(|| builder.call(call.signature, call.values.clone())),
        }
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Trace;

    #[test]
    fn a_call_that_failed_and_one_that_did_not_are_kept_apart() {
        const LINE: &str = "MPI_Probe source:source";
        let mut writer = RawWriter::new(0);
        for source in [3, 4] {
            writer.call("MPI_Probe", Vec::new(), 1);
            writer.call(LINE, vec![Value::Number(source)], 1);
        }
        let mut builder = Builder::new("test".into());
        let added = parts(&writer.end(""), 1).unwrap()[0].add_to(&mut builder);
        assert!(added.unwrap().is_whole);
        let lengths: Vec<usize> = builder
            .finish()
            .calls
            .iter()
            .map(|call| call.values.len())
            .collect();
        assert_eq!(lengths, [0, 1, 1]);
    }

    #[test]
    fn interruptions_belong_to_the_calls_that_follow_them() {
        let mut writer = RawWriter::new(0);
        for (taken, nanos) in [(0, 10), (300, 20), (0, 30), (40, 0)] {
            if taken > 0 {
                writer.taken(taken);
            }
            writer.call("MPI_Barrier", Vec::new(), nanos);
        }
        // Nothing follows this one.
        writer.taken(7);
        writer.measured(&Measured::default());
        let mut builder = Builder::new("test".into());
        let part = &parts(&writer.end(""), 1).unwrap()[0];
        part.add_to(&mut builder).unwrap();
        let trace = builder.finish();
        assert_eq!(Trace::read(&trace.write()).unwrap(), trace);
        let measured = trace.ranks[0].measured.as_ref().unwrap();
        let taken = measured.taken.iter().map(|one| (one.call, one.nanos));
        assert_eq!(taken.collect::<Vec<_>>(), [(1, 300), (3, 40)]);
    }

    #[test]
    fn a_receive_from_any_source_gets_the_source_that_a_later_call_tells() {
        const LINE: &str = "MPI_Irecv source:source request:>request";
        let begun = || vec![Value::Number(-1), Value::Number(4096)];
        let mut writer = RawWriter::new(0);
        for _ in 0..3 {
            assert_eq!(writer.call(LINE, begun(), 0), None);
        }
        assert_eq!(writer.count(), 3);
        writer.met(1, -2);
        let of = |block: &[u8]| {
            let mut builder = Builder::new("test".into());
            let added = parts(block, 1).unwrap()[0].add_to(&mut builder);
            added.map(|_| builder.finish())
        };
        let trace = of(&writer.end("")).unwrap();
        let read = Trace::read(&trace.write()).unwrap();
        assert_eq!(read, trace);
        let sources: Vec<Value> = read
            .calls_of(0)
            .map(|(call, _)| read.calls[call as usize].values[0].clone())
            .collect();
        let any = Value::Number(-1);
        assert_eq!(sources, [any.clone(), Value::Met(-2), any]);
        let mut writer = RawWriter::new(0);
        writer.met(0, 1);
        assert!(
            of(&writer.end(""))
                .unwrap_err()
                .contains("the call 0, of 0")
        );
    }
}
