//! The parameters of a procedure as steps: what a call needs most often, decided once.
//!
//! Most calls of a program repeat earlier ones: the same buffers, peers and sizes. A call of a
//! *simple* procedure becomes a short row of numbers, its key. A key that is known is the number of
//! a call in the trace, and only a new one is turned into values.

use trace::{Access, Length, NUMBER_OF_MEMORY, Parameter, Signature, Value};

use crate::handles::{Buffers, Class, Handles};
use crate::library::{Library, Members};
use crate::standard::MPI_ANY_SOURCE;

/// A parameter of a simple procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nothing that a trace has.
    Absent,
    Buffer,
    Number,
    Handle(Class),
    Peer,
    /// A request that the call may complete.
    Request,
    /// An array of requests, whose length is the parameter with this number.
    Requests(usize),
    /// A request that the call makes.
    Made,
    /// A flag, an index or a count that the call returns.
    Result,
}

/// A simple procedure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// The parameter that is the communicator.
    pub(crate) comm: Option<usize>,
    source: Option<usize>,
    /// True if the call completes requests, and has statuses that name their sources.
    pub(crate) completes: bool,
    pub(crate) words: Words,
}

/// The words of a procedure's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// True if they decide the row of the call, with the request that it makes: nothing behind an
    /// address does.
    pub(crate) decide: bool,
    /// The parameter that gets a request that the call makes.
    pub(crate) made: Option<u8>,
}

/// The most parameters of a simple procedure.
const MOST_PARAMETERS: usize = 16;
/// The most requests of a call that is simple.
const MOST_REQUESTS: i64 = 64;

impl Plan {
    /// The plan of a procedure; `None`: it is not simple.
    pub(crate) fn of(signature: &Signature) -> Option<Plan> {
        // Starts of persistent requests, addresses and the end of the recording have further rules.
        let name = signature.name.as_str();
        let others = ["MPI_Start", "MPI_Startall", "MPI_Finalize"];
        if others.contains(&name) || name.contains("_init") || name.contains("ddress") {
            return None;
        }
        let parameters = signature.parameters.iter();
        let steps: Option<Vec<Step>> = parameters.map(|one| step(signature, one)).collect();
        let steps = steps.filter(|steps| steps.len() <= MOST_PARAMETERS)?;
        let is_out_status = |one: &Parameter| one.kind == "status" && one.access == Access::Out;
        let is_request = |step: &Step| matches!(step, Step::Request | Step::Requests(_));
        let is_word =
            |step: &Step| !matches!(step, Step::Request | Step::Requests(_) | Step::Result);
        Some(Plan {
            words: Words {
                decide: steps.iter().all(is_word),
                made: steps
                    .iter()
                    .position(|step| *step == Step::Made)
                    .map(|at| at as u8),
            },
            comm: signature.first_of("comm"),
            source: signature.first_of("source"),
            completes: steps.iter().any(is_request)
                && signature.parameters.iter().any(is_out_status),
            steps,
        })
    }
}

fn step(signature: &Signature, parameter: &Parameter) -> Option<Step> {
    let kind = parameter.kind.as_str();
    let is_single = parameter.length == Length::One;
    if kind == "status" {
        return Some(Step::Absent);
    }
    Some(match (parameter.access, kind) {
        (Access::In, "in" | "out") if is_single => Step::Buffer,
        (Access::In, "dest" | "source") if is_single => Step::Peer,
        (Access::In, _) if parameter.is_handle() && is_single => Step::Handle(Class::of(kind)?),
        (
            Access::In,
            "count" | "count_at_root" | "root" | "rank" | "tag" | "tag_any" | "n" | "int" | "aint"
            | "offset" | "displ" | "xcount",
        ) if is_single => Step::Number,
        (Access::InOut, "request") => match &parameter.length {
            Length::One => Step::Request,
            Length::Named(name) => Step::Requests(signature.position(name)?),
            Length::Unknown => return None,
        },
        (Access::Out, "request") if is_single => Step::Made,
        (Access::Out, "flag" | "index") if is_single => Step::Result,
        (Access::Out, _) if parameter.name == "outcount" => Step::Result,
        _ => return None,
    })
}

/// The row of numbers of the call in progress.
#[derive(Default)]
pub(crate) struct Row {
    /// The number of the procedure, marks of parameters, and the numbers of their values.
    pub(crate) key: Vec<u64>,
    /// The handles of requests before the call.
    handles: Vec<u64>,
}

/// The places in a key of the marks of absent values and of distances.
const ABSENT: usize = 1;
const RELATIVE: usize = 2;
const HEAD: usize = 3;

/// The objects of a rank, as numbers of the trace.
pub(crate) struct Objects<'a> {
    pub(crate) library: &'a dyn Library,
    pub(crate) handles: &'a mut Handles,
    pub(crate) buffers: &'a mut Buffers,
}

impl Row {
    /// Reads the arguments of a call that begins. False: the call needs more than a row.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    pub(crate) unsafe fn before(
        &mut self,
        plan: &Plan,
        objects: &mut Objects,
        procedure: usize,
        words: &[u64],
    ) -> bool {
        if plan
            .source
            .is_some_and(|at| words[at] as i64 == MPI_ANY_SOURCE)
        {
            return false;
        }
        self.handles.clear();
        self.key.clear();
        self.key.extend([procedure as u64, 0, 0]);
        for (at, (step, &word)) in plan.steps.iter().zip(words).enumerate() {
            let number = match *step {
                Step::Absent | Step::Made | Step::Result => None,
                Step::Buffer => Some(objects.buffers.number(word)),
                Step::Number => Some(word as i64),
                Step::Handle(class) => objects.handles.number(class, word as usize, 0),
                Step::Peer => Some(self.peer(plan, objects, words, at)),
                // SAFETY: the caller's promise.
                Step::Request => match unsafe { self.requests(objects, procedure, at, word, 1) } {
                    true => continue,
                    false => return false,
                },
                Step::Requests(length) => {
                    let length = words[length] as i64;
                    if word < NUMBER_OF_MEMORY as u64 || !(1..=MOST_REQUESTS).contains(&length) {
                        return false;
                    }
                    // SAFETY: the caller's promise.
                    match unsafe { self.requests(objects, procedure, at, word, length) } {
                        true => continue,
                        false => return false,
                    }
                }
            };
            if number.is_none() {
                self.key[ABSENT] |= 1 << at;
            }
            self.key.push(number.unwrap_or(0) as u64);
        }
        true
    }

    fn peer(&mut self, plan: &Plan, objects: &Objects, words: &[u64], at: usize) -> i64 {
        let peer = words[at] as i64;
        let members = plan.comm.filter(|_| peer >= 0);
        let members = members.and_then(|comm| objects.library.members(words[comm]).ok());
        match members {
            Some(Members { rank, .. }) => {
                self.key[RELATIVE] |= 1 << at;
                peer - rank
            }
            None => peer,
        }
    }

    /// Adds the requests at an address. False: no call has made one of them.
    ///
    /// # Safety
    /// The parameter with this number points to as many requests.
    unsafe fn requests(
        &mut self,
        objects: &Objects,
        procedure: usize,
        at: usize,
        word: u64,
        length: i64,
    ) -> bool {
        let start = word as usize as *const u8;
        if start.is_null() {
            return false;
        }
        let (first, shares) = (self.handles.len(), objects.handles.shares(Class::REQUEST));
        for index in 0..length as usize {
            // SAFETY: the caller's promise.
            let handle = unsafe { objects.library.element(procedure, at, start, index) } as u64;
            let earlier = match shares {
                true => &self.handles[first..],
                false => &[],
            };
            let before = earlier.iter().filter(|one| **one == handle).count();
            let number = objects
                .handles
                .number(Class::REQUEST, handle as usize, before);
            let Some(number) = number else {
                return false;
            };
            self.handles.push(handle);
            self.key.push(number as u64);
        }
        true
    }

    /// Reads the results of the call. Returns the number of the request that it has made.
    ///
    /// # Safety
    /// As for [`Row::before`], after the call.
    pub(crate) unsafe fn after(
        &mut self,
        plan: &Plan,
        objects: &mut Objects,
        words: &[u64],
    ) -> Option<i64> {
        let procedure = self.key[0] as usize;
        let (mut place, mut handle, mut made) = (HEAD, 0, None);
        for (at, (step, &word)) in plan.steps.iter().zip(words).enumerate() {
            let start = word as usize as *const u8;
            let library = objects.library;
            // SAFETY: the caller's promise: results have their memory.
            let element = |index| unsafe { library.element(procedure, at, start, index) };
            let length = match *step {
                Step::Request => 1,
                Step::Requests(length) => words[length] as usize,
                Step::Made | Step::Result if start.is_null() => {
                    place += 1;
                    continue;
                }
                Step::Made => {
                    let number = objects
                        .handles
                        .returned(Class::REQUEST, element(0) as usize);
                    made = Some(number);
                    self.set(at, place, number);
                    place += 1;
                    continue;
                }
                Step::Result => {
                    self.set(at, place, element(0));
                    place += 1;
                    continue;
                }
                _ => {
                    place += 1;
                    continue;
                }
            };
            for index in 0..length {
                let before = self.handles[handle];
                if element(index) as u64 != before {
                    let number = self.key[place] as i64;
                    objects
                        .handles
                        .gone(Class::REQUEST, before as usize, number);
                }
                (place, handle) = (place + 1, handle + 1);
            }
        }
        made
    }

    /// Fills the row with that of an earlier call of a procedure whose words decide it. `made`: the
    /// parameter that got a request, and the request's number.
    pub(crate) fn repeat(&mut self, key: &[u64], made: Option<(usize, i64)>) {
        self.key.clear();
        self.key.extend_from_slice(key);
        if let Some((at, number)) = made {
            self.set(at, HEAD + at, number);
        }
    }

    fn set(&mut self, at: usize, place: usize, number: i64) {
        self.key[ABSENT] &= !(1 << at);
        self.key[place] = number as u64;
    }

    /// The values of the parameters.
    pub(crate) fn values(&self, plan: &Plan, words: &[u64]) -> Vec<Value> {
        let mut numbers = self.key[HEAD..].iter().map(|number| *number as i64);
        let value = |(at, step): (usize, &Step)| {
            if let Step::Requests(length) = *step {
                let length = words[length] as usize;
                return Value::Numbers(numbers.by_ref().take(length).collect());
            }
            let number = numbers.next().unwrap_or(0);
            match (self.key[ABSENT] >> at & 1, self.key[RELATIVE] >> at & 1) {
                (1, _) => Value::Absent,
                (_, 1) => Value::Relative(number),
                _ => Value::Number(number),
            }
        };
        plan.steps.iter().enumerate().map(value).collect()
    }
}
