//! The recorder of one rank's calls.

use rustc_hash::FxHashMap;
use std::ffi::c_int;
use std::io;
use std::sync::Arc;
use trace::{Fact, Inside, Job, Measured, Parameter, RawWriter, Signature, Value};

use crate::addresses::Addresses;
use crate::capture::View;
use crate::handles::{Buffers, Handles};
use crate::library::{Library, MOVED_NOTHING};
use crate::plan::{Plan, Row, Words};
use crate::repeats::{Repeat, Repeats};
use crate::standard::MPI_SUCCESS;
use crate::sums::Sums;
use crate::table::RECORDED;
use crate::wildcards::{Asked, Wildcards, made};

mod simple;

/// The place to which a recorder appends the blocks of its part.
pub type Sink = Box<dyn FnMut(&[u8]) -> io::Result<()> + Send>;

/// Memory for statuses that the recorder needs and the program does not request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusMemory {
    /// The number of the parameter that gets it.
    pub parameter: usize,
    /// Its address, which is valid until the results of the call are passed.
    pub address: u64,
}

/// The name of a sleep in a trace. It reads no clock.
const SLEEP: &str = "sleep";
/// The line of the signature of MPI_Pcontrol, whose further arguments are the tool's own.
const PCONTROL: &str = "MPI_Pcontrol level:level";

/// The kinds of parameters by which a call reaches other ranks.
const MOVERS: [&str; 5] = ["comm", "file", "message", "request", "win"];

/// The recorder of one rank's calls.
pub struct Recorder {
    sink: Sink,
    pub(crate) writer: RawWriter,
    handles: Handles,
    buffers: Buffers,
    addresses: Addresses,
    procedures: Vec<Option<Arc<Procedure>>>,
    /// For each procedure that has been called, the meaning of the words of its calls.
    words: Vec<Words>,
    /// The numbers of simple calls in the part, by their keys.
    known: FxHashMap<Box<[u64]>, u64>,
    row: Row,
    repeats: Repeats,
    sums: Sums,
    pub(crate) wildcards: Wildcards,
    /// The call that is in progress.
    current: Option<Current>,
    /// The reason why the rank's part of the recording is unusable.
    unusable: Option<String>,
}

/// A procedure that has been called.
struct Procedure {
    signature: Signature,
    plan: Option<Plan>,
}

/// The call that is in progress, with its arguments.
struct Current {
    name: &'static str,
    /// The computing time before the call, in nanoseconds.
    nanos: u64,
    /// The time that another process had the core before the call, in nanoseconds.
    taken: u64,
    arguments: Option<Box<Arguments>>,
    /// The number of the procedure, if the arguments are in the row.
    simple: Option<usize>,
    /// The number of the call in the part, if it is known.
    number: Option<u64>,
    /// The place of the call among those that are remembered, and what is known of it.
    place: Option<(usize, Option<Repeat>)>,
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
    /// The recording of rank number `rank`, whose part goes to `sink`.
    pub fn new(sink: Sink, rank: usize) -> Recorder {
        Recorder {
            sink,
            writer: RawWriter::new(rank as u32),
            handles: Handles::default(),
            buffers: Buffers::default(),
            addresses: Addresses::default(),
            procedures: vec![None; RECORDED.len()],
            words: vec![Words::default(); RECORDED.len()],
            known: FxHashMap::default(),
            row: Row::default(),
            repeats: Repeats::default(),
            sums: Sums::default(),
            wildcards: Wildcards::default(),
            current: None,
            unusable: None,
        }
    }

    /// Begins a call after `nanos` nanoseconds of computing.
    pub fn enter(&mut self, name: &'static str, nanos: u64) {
        self.current = Some(Current {
            name,
            nanos,
            taken: 0,
            arguments: None,
            simple: None,
            number: None,
            place: None,
            level: None,
        });
    }

    /// Keeps that another process had the core for `nanos` nanoseconds before the call that has
    /// begun.
    pub fn taken(&mut self, nanos: u64) {
        if let Some(current) = &mut self.current {
            current.taken = nanos;
        }
    }

    /// Keeps the level of the call of MPI_Pcontrol that has begun.
    pub fn level(&mut self, level: c_int) {
        if let Some(current) = &mut self.current {
            current.level = Some(level);
        }
    }

    /// Keeps that the rank has computed with this number of threads at the same time.
    pub fn threads(&mut self, threads: usize) {
        self.note(Fact::Threads, vec![Value::Number(threads as i64)]);
    }

    /// Keeps the arguments of the call that has begun. Returns memory for statuses that it needs,
    /// which takes the place of that argument.
    ///
    /// # Safety
    /// The words are the arguments of the procedure with this number, as C promises them.
    pub unsafe fn arguments(
        &mut self,
        library: &dyn Library,
        procedure: usize,
        words: &[u64],
    ) -> Option<StatusMemory> {
        let called = self.procedure(procedure);
        // SAFETY: the caller's promise.
        if unsafe { self.is_simple(library, &called, procedure, words) } {
            return None;
        }
        let signature = &called.signature;
        let view = View {
            library,
            procedure,
            signature,
            words,
        };
        let all = 0..words.len();
        // SAFETY: the caller's promise.
        let values = all
            .clone()
            .map(|at| unsafe { view.before(at, &self.handles, &mut self.buffers) });
        let values: Result<Vec<Value>, String> = values.collect();
        let mut given = None;
        match values {
            Ok(mut values) => {
                if ["MPI_Get_address", "MPI_Address"].contains(&&*signature.name) {
                    self.addresses.asked(words[0]);
                }
                for (parameter, value) in signature.parameters.iter().zip(&mut values) {
                    if let (true, Value::Numbers(all)) = (parameter.kind == "extent", value) {
                        self.addresses.replace(all);
                    }
                }
                let (asked, memory) = self.wildcards.ask(&view, &values).unzip();
                given = memory.flatten();
                // SAFETY: the caller's promise.
                let handles = all.map(|at| unsafe { view.changed_handles(at) }).collect();
                // SAFETY: the caller's promise.
                unsafe { self.note_facts(&view, &values) };
                if let Some(current) = &mut self.current {
                    current.arguments = Some(Box::new(Arguments {
                        procedure,
                        values,
                        handles,
                        asked,
                        begun: None,
                    }));
                }
            }
            Err(why) => {
                self.refuse(RECORDED[procedure].name, &why);
                self.current = None;
            }
        }
        // MPI_Finalize ends the recording before it returns.
        if signature.name == "MPI_Finalize" {
            self.write(None);
        }
        given
    }

    /// Keeps the results of the call, which has returned this code.
    ///
    /// # Safety
    /// As for [`Recorder::arguments`].
    pub unsafe fn results(&mut self, library: &dyn Library, words: &[u64], code: c_int) {
        let Some(current) = &mut self.current else {
            return;
        };
        let called = current.arguments.as_ref().map(|one| one.procedure);
        if let Some(procedure) = current.simple.or(called)
            && i64::from(code) != MPI_SUCCESS
        {
            return self.failed(procedure, code, library.class(code));
        }
        if let Some(procedure) = current.simple {
            // SAFETY: the caller's promise.
            return unsafe { self.simple_results(library, procedure, words) };
        }
        let Some(arguments) = &mut current.arguments else {
            return;
        };
        let procedure = arguments.procedure;
        let handles = std::mem::take(&mut arguments.handles);
        let values = std::mem::take(&mut arguments.values);
        let asked = arguments.asked.take();
        let called = self.procedure(procedure);
        let signature = &called.signature;
        let view = View {
            library,
            procedure,
            signature,
            words,
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
        if let Some(number) = made(signature).and_then(|at| results[at].number()) {
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
    fn failed(&mut self, procedure: usize, code: c_int, class: i64) {
        let signature = &self.procedure(procedure).signature;
        let moves = |one: &Parameter| MOVERS.contains(&one.kind.as_str());
        let is_local = !signature.parameters.iter().any(moves);
        match is_local || MOVED_NOTHING.contains(&class) {
            true => self
                .current
                .iter_mut()
                .for_each(|call| (call.arguments, call.simple) = (None, None)),
            false => {
                self.current = None;
                self.refuse(
                    RECORDED[procedure].name,
                    &format!("it returned error {code}"),
                );
            }
        }
    }

    /// Ends the call.
    pub fn leave(&mut self) {
        self.write(None);
    }

    /// Ends the call, whose time counts in the sums: this number of ticks.
    pub fn leave_after(&mut self, ticks: u64) {
        self.write(Some(ticks));
    }

    /// The sums of the times in calls. `nanos` turns ticks into nanoseconds.
    pub fn inside(&mut self, nanos: impl Fn(u64) -> u64) -> Vec<Inside> {
        self.sums.all(nanos)
    }

    /// Keeps that the program has slept for `nanos` nanoseconds.
    pub fn slept(&mut self, nanos: u64) {
        let current = self.current.take();
        self.enter(SLEEP, nanos);
        self.write(None);
        self.current = current;
    }

    /// Keeps a call of a reduction function of the program, which took `picos` picoseconds.
    pub fn function(&mut self, picos: u64) {
        self.writer.function(picos);
    }

    /// Makes the recording of this rank unusable, because `call` cannot be recorded for the reason
    /// `why`.
    pub fn refuse(&mut self, call: &str, why: &str) {
        let why = format!("{call} cannot be recorded: {why}");
        self.unusable.get_or_insert(why);
    }

    /// Ends the rank's part of the recording.
    pub fn finish(&mut self) {
        let why = self.unusable.take().unwrap_or_default();
        let block = self.writer.end(&why);
        self.append(&block);
    }

    /// Begins the part of a recorder of any MPI library.
    pub fn job(&mut self, job: &Job) {
        self.writer.job(job);
    }

    /// Keeps the times that the rank has measured.
    pub fn measured(&mut self, measured: &Measured) {
        self.writer.measured(measured);
    }

    /// Writes the calls that are in memory.
    pub fn flush(&mut self) {
        if let Some(block) = self.writer.flush() {
            self.append(&block);
        }
    }

    fn write(&mut self, inside: Option<u64>) {
        let Some(current) = self.current.take() else {
            return;
        };
        if current.taken > 0 {
            self.writer.taken(current.taken);
        }
        let (nanos, level) = (current.nanos, current.level);
        let number = match current.number {
            Some(number) => number,
            None => self.number_of(current),
        };
        if let Some(block) = self.writer.again(number, nanos) {
            self.append(&block);
        }
        if let Some(ticks) = inside {
            self.sums.add(number, ticks);
        }
        if let Some(level) = level {
            self.sums.begin(level.into());
        }
    }

    /// The number in the part of a call that has none yet.
    fn number_of(&mut self, current: Current) -> u64 {
        let mut comm = None;
        let (line, values) = match current.arguments {
            Some(arguments) => {
                if let Some(begun) = arguments.begun {
                    self.wildcards.begin(begun, self.writer.count());
                }
                let at = self.procedure(arguments.procedure);
                let at = at.signature.first_of("comm");
                comm = at.and_then(|at| arguments.values[at].number());
                (RECORDED[arguments.procedure].line, arguments.values)
            }
            None => match current.level {
                Some(level) => (PCONTROL, vec![Value::Number(level.into())]),
                None => (current.name, Vec::new()),
            },
        };
        let number = self.writer.number(line, values);
        self.sums.know(number, (current.name, comm));
        number
    }

    pub(crate) fn append(&mut self, block: &[u8]) {
        if let Err(why) = (self.sink)(block) {
            // The end of the part is missing too, so the launcher finds it cut off.
            self.refuse("a call", &why.to_string());
        }
    }

    fn procedure(&mut self, procedure: usize) -> Arc<Procedure> {
        let called = self.procedures[procedure].get_or_insert_with(|| {
            let parsed = Signature::parse(RECORDED[procedure].line);
            let signature = parsed.expect("a line of the generated table is a signature");
            let plan = Plan::of(&signature);
            self.words[procedure] = plan.as_ref().map_or_else(Words::default, |plan| plan.words);
            Arc::new(Procedure { signature, plan })
        });
        Arc::clone(called)
    }
}
