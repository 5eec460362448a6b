//! The recording of this rank's calls as its part of a trace (crate `trace`).
//!
//! The announcement of a call (`call_guard`) passes the call's arguments as words of memory, before
//! the call and after it. The table of announced procedures, generated from `procedures.txt`, gives
//! the kind of each, by which `capture` turns it into a value of the trace. So a procedure needs no
//! code of its own here.
//!
//! Invariants:
//! - a rank that is not recorded pays nothing: its calls are not announced;
//! - no call is left out: what cannot be recorded makes the part unusable, with the reason.

mod addresses;
mod capture;
mod facts;
mod handles;
mod lengths;
mod wildcards;

use crate::constants::*;
use crate::error::Error;
use crate::handle::Info;
use crate::info::Pair;
use crate::recorded::RECORDED;
use addresses::Addresses;
pub(crate) use capture::InfoPairs;
use capture::View;
use handles::{Buffers, Handles};
use std::collections::HashMap;
use std::ffi::c_int;
use std::fs::File;
use std::sync::Arc;
use trace::{Fact, RawWriter, Signature, Value};
use wildcards::{Asked, Wildcards, made};

/// The name of a sleep in a trace. It reads no clock.
const SLEEP: &str = "sleep";
/// The line of the signature of MPI_Pcontrol, whose further arguments are the tool's own.
const PCONTROL: &str = "MPI_Pcontrol level:level";

/// The errors that a call returns before it moves anything: those about its arguments.
const MOVED_NOTHING: [c_int; 22] = [
    MPI_ERR_BUFFER,
    MPI_ERR_COUNT,
    MPI_ERR_TYPE,
    MPI_ERR_TAG,
    MPI_ERR_COMM,
    MPI_ERR_RANK,
    MPI_ERR_REQUEST,
    MPI_ERR_ROOT,
    MPI_ERR_GROUP,
    MPI_ERR_OP,
    MPI_ERR_TOPOLOGY,
    MPI_ERR_DIMS,
    MPI_ERR_ARG,
    MPI_ERR_KEYVAL,
    MPI_ERR_INFO,
    MPI_ERR_WIN,
    MPI_ERR_DISP,
    MPI_ERR_AMODE,
    MPI_ERR_ACCESS,
    MPI_ERR_FILE,
    MPI_ERR_FILE_EXISTS,
    MPI_ERR_NO_SUCH_FILE,
];

/// The recorder of one rank's calls.
pub(crate) struct Recorder {
    file: File,
    writer: RawWriter,
    handles: Handles,
    buffers: Buffers,
    addresses: Addresses,
    signatures: HashMap<usize, Arc<Signature>>,
    wildcards: Wildcards,
    /// The call that is in progress.
    current: Option<Current>,
    /// The reason why the rank's part of the recording is unusable.
    unusable: Option<String>,
}

/// The call that is in progress, with its arguments.
struct Current {
    name: &'static str,
    /// The computing time before the call, in nanoseconds.
    nanos: u64,
    arguments: Option<Arguments>,
    /// The level of MPI_Pcontrol.
    level: Option<c_int>,
}

/// The arguments of a call as they were when it began.
struct Arguments {
    procedure: usize,
    values: Vec<Value>,
    /// For each parameter, the handles before the call that it may change.
    handles: Vec<Vec<usize>>,
    /// The statuses that name the sources of receives from any source.
    asked: Option<Asked>,
    /// The request of a receive from any source that the call has begun, and the rank's own number
    /// in the communicator.
    begun: Option<(i64, i64)>,
}

impl Recorder {
    /// The recording of rank number `rank`, which appends its part to `file`.
    pub(crate) fn new(file: File, rank: usize) -> Recorder {
        Recorder {
            file,
            writer: RawWriter::new(rank as u32),
            handles: Handles::default(),
            buffers: Buffers::default(),
            addresses: Addresses::default(),
            signatures: HashMap::new(),
            wildcards: Wildcards::default(),
            current: None,
            unusable: None,
        }
    }

    /// Begins a call after `nanos` nanoseconds of computing.
    pub(crate) fn enter(&mut self, name: &'static str, nanos: u64) {
        self.current = Some(Current {
            name,
            nanos,
            arguments: None,
            level: None,
        });
    }

    /// Keeps the level of the call of MPI_Pcontrol that has begun.
    pub(crate) fn level(&mut self, level: c_int) {
        if let Some(current) = &mut self.current {
            current.level = Some(level);
        }
    }

    /// Keeps that the rank has computed with this number of threads at the same time.
    pub(crate) fn threads(&mut self, threads: usize) {
        self.note(Fact::Threads, vec![Value::Number(threads as i64)]);
    }

    /// Keeps the arguments of the call that has begun. Returns other arguments for it, with memory
    /// for statuses that the recorder needs and the program does not request. They are valid until
    /// the results are passed.
    ///
    /// # Safety
    /// The words are the arguments of the procedure with this number, as C promises them.
    pub(crate) unsafe fn arguments(
        &mut self,
        rank: &mpi::Rank,
        infos: &InfoPairs,
        procedure: usize,
        words: &[u64],
    ) -> Option<Vec<u64>> {
        let signature = self.signature(procedure);
        let view = View {
            rank,
            signature: &signature,
            wide: RECORDED[procedure].wide,
            words,
            infos,
        };
        let all = 0..words.len();
        // SAFETY: the caller's promise.
        let values = all
            .clone()
            .map(|at| unsafe { view.before(at, &self.handles, &mut self.buffers) });
        let values: Result<Vec<Value>, String> = values.collect();
        let mut replaced = None;
        match values {
            Ok(mut values) => {
                if signature.name == "MPI_Get_address" {
                    self.addresses.asked(words[0]);
                }
                for (parameter, value) in signature.parameters.iter().zip(&mut values) {
                    if let (true, Value::Numbers(all)) = (parameter.kind == "extent", value) {
                        self.addresses.replace(all);
                    }
                }
                let (asked, words) = self.wildcards.ask(&view, &values).unzip();
                replaced = words;
                // SAFETY: the caller's promise.
                let handles = all.map(|at| unsafe { view.changed_handles(at) }).collect();
                self.note_facts(&signature, view.words, &values);
                if let Some(current) = &mut self.current {
                    current.arguments = Some(Arguments {
                        procedure,
                        values,
                        handles,
                        asked,
                        begun: None,
                    });
                }
            }
            Err(why) => {
                self.refuse(RECORDED[procedure].name, &why);
                self.current = None;
            }
        }
        // MPI_Finalize ends the recording before it returns.
        if signature.name == "MPI_Finalize" {
            self.write();
        }
        replaced
    }

    /// Keeps the results of the call, which has returned this code.
    ///
    /// # Safety
    /// As for [`Recorder::arguments`].
    pub(crate) unsafe fn results(&mut self, rank: &mpi::Rank, words: &[u64], code: c_int) {
        let Some(current) = &mut self.current else {
            return;
        };
        let (name, Some(arguments)) = (current.name, &mut current.arguments) else {
            return;
        };
        if code != MPI_SUCCESS {
            return self.failed(name, code);
        }
        let procedure = arguments.procedure;
        let handles = std::mem::take(&mut arguments.handles);
        let values = std::mem::take(&mut arguments.values);
        let asked = arguments.asked.take();
        let signature = self.signature(procedure);
        let view = View {
            rank,
            signature: &signature,
            wide: RECORDED[procedure].wide,
            words,
            infos: &no_pairs,
        };
        let all = handles.iter().zip(values).enumerate();
        let results = all.map(|(at, (before, value))| {
            // SAFETY: the caller's promise.
            let result = unsafe { view.after(at, before, &value, &mut self.handles) };
            result.unwrap_or(value)
        });
        let mut results: Vec<Value> = results.collect();
        // SAFETY: the caller's promise.
        unsafe { self.note_sizes(&view, &results) };
        if let Some(number) = made(&signature).and_then(|at| results[at].number()) {
            self.wildcards.forget(number);
            self.wildcards.made(&view, &results);
        }
        let mut begun = None;
        if let Some(asked) = asked {
            // SAFETY: the caller's promise, and `ask` has given memory for missing statuses.
            let told = unsafe { self.wildcards.tell(&view, &asked, &results) };
            if let (Some(distance), Some(at)) = (told.own, signature.first_of("source")) {
                results[at] = Value::Met(distance);
            }
            for (call, distance) in told.earlier {
                self.writer.met(call, distance);
            }
            begun = told.begun;
        }
        let current = self.current.as_mut();
        if let Some(arguments) = current.and_then(|current| current.arguments.as_mut()) {
            arguments.values = results;
            arguments.begun = begun;
        }
    }

    /// Keeps a call that returned an error as its bare name, because it has moved nothing. If it
    /// may have, the recording is unusable.
    fn failed(&mut self, name: &'static str, code: c_int) {
        match MOVED_NOTHING.contains(&code) {
            true => self
                .current
                .iter_mut()
                .for_each(|call| call.arguments = None),
            false => {
                self.current = None;
                self.refuse(name, &format!("it returned error {code}"));
            }
        }
    }

    /// Ends the call.
    pub(crate) fn leave(&mut self) {
        self.write();
    }

    /// Keeps that the program has slept for `nanos` nanoseconds.
    pub(crate) fn slept(&mut self, nanos: u64) {
        let current = self.current.take();
        self.enter(SLEEP, nanos);
        self.write();
        self.current = current;
    }

    /// Keeps a call of a reduction function of the program, which took `picos` picoseconds.
    pub(crate) fn function(&mut self, picos: u64) {
        self.writer.function(picos);
    }

    /// Makes the recording of this rank unusable, because `call` cannot be recorded for the reason
    /// `why`.
    pub(crate) fn refuse(&mut self, call: &str, why: &str) {
        let why = format!("{call} cannot be recorded: {why}");
        self.unusable.get_or_insert(why);
    }

    /// Ends the rank's part of the recording.
    pub(crate) fn finish(&mut self) {
        let why = self.unusable.take().unwrap_or_default();
        let block = self.writer.end(&why);
        self.append(&block);
    }

    fn write(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        let (line, values) = match current.arguments {
            Some(arguments) => {
                if let Some(begun) = arguments.begun {
                    self.wildcards.begin(begun, self.writer.count());
                }
                (RECORDED[arguments.procedure].line, arguments.values)
            }
            None => match current.level {
                Some(level) => (PCONTROL, vec![Value::Number(level.into())]),
                None => (current.name, Vec::new()),
            },
        };
        let block = self.writer.call(current.name, line, values, current.nanos);
        if let Some(block) = block {
            self.append(&block);
        }
    }

    fn append(&mut self, block: &[u8]) {
        if let Err(why) = memory_file::append(&self.file, block) {
            // The end of the part is missing too, so the launcher finds it cut off.
            self.refuse("a call", &why.to_string());
        }
    }

    fn signature(&mut self, procedure: usize) -> Arc<Signature> {
        let signature = self.signatures.entry(procedure).or_insert_with(|| {
            let parsed = Signature::parse(RECORDED[procedure].line);
            Arc::new(parsed.expect("a line of the generated table is a signature"))
        });
        Arc::clone(signature)
    }
}

/// Returns no pairs: for calls whose info arguments are not recorded.
fn no_pairs(_: Info) -> Result<Vec<Pair>, Error> {
    Ok(Vec::new())
}

/// The length of the array at `at`, which no parameter has; `None` if the call does not read it.
///
/// # Safety
/// The words are arguments of the procedure; arrays without a parameter for their length may be of
/// any.
pub(crate) unsafe fn unknown_length(
    rank: &mpi::Rank,
    procedure: usize,
    words: &[u64],
    at: usize,
) -> Result<Option<usize>, String> {
    let signature = Signature::parse(RECORDED[procedure].line);
    let signature = signature.expect("a line of the generated table is a signature");
    let view = View {
        rank,
        signature: &signature,
        wide: RECORDED[procedure].wide,
        words,
        infos: &no_pairs,
    };
    // SAFETY: the caller's promise.
    unsafe { view.unknown_length(&signature.parameters[at].name) }
}
