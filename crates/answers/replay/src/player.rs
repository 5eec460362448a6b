//! The calls of one rank.

use std::rc::Rc;
use std::sync::Arc;

use mpi::comm::WORLD;
use mpi::request::{Persistent, RequestId, Template};
use mpi_abi::handle::Request;
use mpi_abi::hosted::{Hosted, RECORDED};
use trace::{Access, Call, FIRST_MADE, Fact, Length, Parameter, Signature, Trace, Value};

use crate::Outcome;
use crate::arguments::{Arguments, buffer_of};
use crate::attached::{Attached, Regions};
use crate::bounds::reach;
use crate::choices::done;
use crate::files::Files;
use crate::handles::{Handles, REQUEST};
use crate::names::{Method, Names};
use crate::plan::{Argument, Kind, Plan};
use crate::scratch::Scratch;

/// The addresses below which no program has memory.
const FIRST_PAGE: isize = 4096;
/// MPI_ANY_SOURCE.
pub(crate) const ANY_SOURCE: i64 = -1;
/// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY, which take the place of an array of weights.
const WEIGHTS: [i64; 2] = [0xa, 0xb];

/// A replayed rank, which makes the calls of its part of the trace.
pub(crate) struct Player<'a> {
    hosted: &'a Hosted,
    trace: &'a Trace,
    names: &'a Rc<Names>,
    scratch: &'a Scratch,
    files: &'a Files,
    rank: usize,
    handles: Handles,
    /// The arguments of the last call, whose memory the next one uses.
    arguments: Arguments,
    attached: Attached<'a>,
    other_choices: u64,
}

impl<'a> Player<'a> {
    /// A replayed rank before its first call.
    pub(crate) fn new(
        hosted: &'a Hosted,
        trace: &'a Trace,
        names: &'a Rc<Names>,
        scratch: &'a Scratch,
        files: &'a Arc<Files>,
        regions: &'a Regions,
        rank: usize,
    ) -> Player<'a> {
        let storage = Arc::clone(files);
        hosted.mpi().objects().files_mut().set_storage(storage);
        Player {
            hosted,
            trace,
            names,
            scratch,
            files,
            rank,
            handles: Handles::default(),
            arguments: Arguments::default(),
            attached: Attached::new(regions, scratch, rank),
            other_choices: 0,
        }
    }

    /// Makes all calls of the rank's part of the trace.
    pub(crate) fn play(mut self) -> Result<Outcome, String> {
        for (number, nanos) in self.trace.calls_of(self.rank) {
            let call = &self.trace.calls[number as usize];
            match self.names.method(call.signature) {
                Method::Told(fact) => self.note(fact, call)?,
                Method::Slept => self.hosted.sleep(nanos),
                Method::Passed(name, is_sure) => self.hosted.pass(name, !is_sure, nanos),
                Method::Called(procedure) => {
                    let name = RECORDED[procedure].name;
                    let called = self.call(procedure, number, nanos);
                    called.map_err(|why| format!("{name}: {why}"))?;
                }
                Method::Finished => {
                    let end = self.hosted.finish(nanos).map_err(|why| why.to_string())?;
                    return Ok(Outcome {
                        picos: end,
                        other_choices: self.other_choices,
                    });
                }
            }
        }
        Err("its calls end without MPI_Finalize".into())
    }

    /// Applies a fact of the trace: it marks a step, or describes a file or memory.
    fn note(&mut self, fact: Fact, call: &Call) -> Result<(), String> {
        match (fact, &call.values[..]) {
            (Fact::Step, _) => self.hosted.mpi().begin_step(),
            (Fact::FileSize, [Value::Text(name), Value::Number(size)]) => {
                self.files.found(name, *size as u64);
            }
            (Fact::Source, [Value::Number(request), source]) => self.meet(*request, source)?,
            (Fact::Address, [Value::Number(address)]) => self.attached.had(*address as u64),
            (Fact::TypeSize | Fact::Threads, _) => (),
            _ => return Err(format!("{}: a value that it cannot have", fact.name())),
        }
        Ok(())
    }

    fn call(&mut self, procedure: usize, number: u32, nanos: u64) -> Result<(), String> {
        let call = &self.trace.calls[number as usize];
        let signature = &self.trace.signatures[call.signature as usize];
        let plan = self.names.plan(call.signature);
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.begin(procedure);
        let values = signature.parameters.iter().zip(&call.values);
        for ((parameter, value), argument) in values.zip(&plan.arguments) {
            self.add(
                &mut arguments,
                (signature, plan),
                call,
                (parameter, argument, value),
            )
            .map_err(|why| format!("{}: {why}", parameter.name))?;
        }
        arguments.point();
        self.check_lengths(procedure, (signature, plan), call, &arguments)?;
        if plan.has_buffers && !self.names.passed(number).get() {
            self.check_memory(signature, plan, call, &arguments)?;
            let is_common = is_common(signature, plan, call);
            self.names.passed(number).set(is_common);
        }
        // SAFETY: each argument is of its parameter's kind: pointers lead to memory of `arguments`
        // with the lengths that the call reads, and buffers to memory that is long enough, which
        // stays until all ranks have ended.
        let code = unsafe { self.hosted.call(procedure, &arguments.words, nanos) };
        if code != 0 {
            return Err(format!("it returned error {code}"));
        }
        if plan.sets_handles {
            self.keep_handles(signature, plan, call, &arguments);
        }
        if plan.makes_window {
            self.keep_window(signature, plan, call);
        }
        if plan.chooses {
            self.settle(signature, call, &arguments)?;
        }
        arguments.end();
        self.arguments = arguments;
        Ok(())
    }

    /// Sets the source of a persistent receive that is about to be started.
    fn meet(&mut self, request: i64, met: &Value) -> Result<(), String> {
        let handle = Request(self.handles.get(REQUEST, request)?);
        let mut state = self.hosted.mpi().lock();
        let comm = match state.requests_mut().persistent_mut(RequestId(handle.id())) {
            Some(Persistent {
                template: Template::Receive { comm, .. },
                ..
            }) => *comm,
            _ => return Err("source: its request is no persistent receive".into()),
        };
        let own = state.objects().comms().get(comm);
        let own = own.map_err(|why| why.to_string())?.core.rank as i64;
        let wanted = match met {
            Value::Relative(distance) => own.wrapping_add(*distance),
            _ => ANY_SOURCE,
        };
        let persistent = state.requests_mut().persistent_mut(RequestId(handle.id()));
        if let Some(Template::Receive { source, .. }) = persistent.map(|one| &mut one.template) {
            *source = i32::try_from(wanted).map_err(|_| "source: no rank")?;
        }
        Ok(())
    }

    /// Adds the argument of one parameter to a call.
    fn add(
        &self,
        arguments: &mut Arguments,
        (signature, plan): (&Signature, &Plan),
        call: &Call,
        (parameter, argument, value): (&Parameter, &Argument, &Value),
    ) -> Result<(), String> {
        match (argument.kind, parameter.access, value) {
            (Kind::Info, Access::In, _) => return arguments.info(value),
            (Kind::Text, Access::In, Value::Text(text)) => return arguments.text(text),
            (Kind::Attached, ..) => {
                let number = value.number().ok_or("no memory")?;
                arguments.word(self.attached.base(signature, call, number)?);
            }
            (Kind::Target, Access::In, Value::Number(number)) => {
                arguments.word(self.attached.target(signature, call, *number)? as u64);
            }
            (Kind::Sent | Kind::Received, ..) => match (buffer_of(value), value) {
                (Some(number), _) => {
                    let receives = argument.kind == Kind::Received;
                    let address = self.scratch.address(self.rank, receives, number);
                    arguments.word(address.ok_or("more buffers than a replay can have")?);
                }
                (None, Value::Number(1)) => arguments.word(1),
                _ => return Err("an address that no program has".into()),
            },
            (_, Access::Out, _) => {
                let length = argument.length_in(call).unwrap_or(1);
                return arguments.result(parameter, length);
            }
            (_, Access::In, Value::Relative(distance)) => {
                let own = self.own_rank(plan, call)?;
                arguments.word(own.wrapping_add(*distance) as u64);
            }
            (_, Access::In, Value::Met(_)) => arguments.word(ANY_SOURCE as u64),
            (_, Access::In, Value::Number(number)) if !parameter.is_array() => {
                let word = match argument.class {
                    Some(class) => self.handles.get(class, *number)? as u64,
                    None => *number as u64,
                };
                arguments.word(word);
            }
            (Kind::Weights, _, Value::Number(number)) if WEIGHTS.contains(number) => {
                arguments.word(*number as u64);
            }
            (_, _, Value::Number(number)) if parameter.access == Access::InOut => {
                self.add_numbers(arguments, argument, &[*number])?;
            }
            (_, _, Value::Numbers(numbers)) => {
                self.add_numbers(arguments, argument, numbers)?;
            }
            (_, _, Value::Absent) => arguments.word(0),
            _ => return Err("a value that it cannot have".into()),
        }
        Ok(())
    }

    fn add_numbers(
        &self,
        arguments: &mut Arguments,
        argument: &Argument,
        numbers: &[i64],
    ) -> Result<(), String> {
        let numbers = numbers.iter();
        match argument.class {
            Some(class) => {
                let handle = |number: &i64| Ok(self.handles.get(class, *number)? as i64);
                arguments.numbers(numbers.map(handle))
            }
            None => arguments.numbers(numbers.map(|number| Ok(*number))),
        }
    }

    /// The communicator of a call.
    fn comm(&self, plan: &Plan, call: &Call) -> Option<u32> {
        let at = plan.comm?;
        let number = call.values[at].number()?;
        let handle = self.handles.get(plan.arguments[at].class?, number).ok()?;
        u32::try_from(handle).ok()
    }

    /// The number of this rank in the communicator of a call.
    fn own_rank(&self, plan: &Plan, call: &Call) -> Result<i64, String> {
        let comm = self.comm(plan, call);
        if comm == Some(WORLD) {
            return Ok(self.rank as i64);
        }
        let state = self.hosted.mpi().lock();
        let found = comm.and_then(|comm| state.objects().comms().get(comm).ok());
        let found = found.ok_or("a rank of a communicator that does not exist")?;
        Ok(found.core.rank as i64)
    }

    /// Checks that arrays have the lengths that the call reads.
    fn check_lengths(
        &self,
        procedure: usize,
        (signature, plan): (&Signature, &Plan),
        call: &Call,
        arguments: &Arguments,
    ) -> Result<(), String> {
        let arrays = || {
            let all = signature.parameters.iter().zip(&call.values).enumerate();
            all.filter(|(_, (parameter, value))| {
                parameter.access != Access::Out && matches!(value, Value::Numbers(_))
            })
        };
        let wrong = |parameter: &Parameter| format!("{} has another length", parameter.name);
        for (at, (parameter, value)) in arrays() {
            let length = plan.arguments[at].length_in(call);
            if length.is_some_and(|length| value.numbers().len() as i64 != length) {
                return Err(wrong(parameter));
            }
        }
        for (at, (parameter, value)) in arrays() {
            if parameter.length == Length::Unknown {
                // SAFETY: arrays whose length is a parameter have been checked.
                let length = unsafe { self.hosted.length(procedure, &arguments.words, at) }?;
                if length.is_some_and(|length| length > value.numbers().len()) {
                    return Err(wrong(parameter));
                }
            }
        }
        Ok(())
    }

    /// Checks that the buffers of the call lie in the memory of the replay.
    fn check_memory(
        &self,
        signature: &Signature,
        plan: &Plan,
        call: &Call,
        arguments: &Arguments,
    ) -> Result<(), String> {
        let mut datatypes = Vec::new();
        for (at, parameter) in signature.parameters.iter().enumerate() {
            if parameter.kind == "datatype" && parameter.access == Access::In {
                let count = call.values[at].numbers().len();
                let elements = (0..count).filter_map(|index| arguments.element(at, index));
                datatypes.extend(elements.map(|handle| handle as u32));
                datatypes.extend((!parameter.is_array()).then_some(arguments.words[at] as u32));
            }
        }
        let state = self.hosted.mpi().lock();
        let objects = state.objects();
        let comm = self.comm(plan, call);
        let mut ranks = 1;
        if let Some(found) = comm.and_then(|comm| objects.comms().get(comm).ok()) {
            ranks = found.core.size().max(found.core.peers().len());
        }
        if let Some(topology) = comm.and_then(|comm| objects.neighbourhood(comm).ok()) {
            let neighbours = &topology.neighbours;
            let most = neighbours
                .sources()
                .len()
                .max(neighbours.destinations().len());
            ranks = ranks.max(most);
        }
        let reach = reach(&state, signature, call, &datatypes, ranks as u64);
        let begins_late = |datatype: &u32| {
            let ty = objects.types().get(*datatype);
            ty.is_ok_and(|ty| ty.true_lb() >= FIRST_PAGE)
        };
        let mut words = plan.arguments.iter().zip(&arguments.words);
        let is_in_place = words.any(|(argument, word)| argument.is_buffer() && *word == 1)
            && datatypes.iter().any(begins_late);
        match reach <= self.scratch.reach().into() && !is_in_place {
            true => Ok(()),
            false => {
                Err("its buffers are absolute addresses, or longer than a replay can have".into())
            }
        }
    }

    /// Keeps the handles that the call has made or changed.
    fn keep_handles(
        &mut self,
        signature: &Signature,
        plan: &Plan,
        call: &Call,
        arguments: &Arguments,
    ) {
        let all = signature.parameters.iter().zip(&plan.arguments);
        for (at, ((parameter, argument), value)) in all.zip(&call.values).enumerate() {
            let is_set = matches!(parameter.access, Access::Out | Access::InOut);
            let Some(class) = argument.class.filter(|_| is_set) else {
                continue;
            };
            let single = value.number();
            let numbers = single.as_slice().iter().chain(value.numbers());
            for (index, &number) in numbers.enumerate() {
                if let Some(handle) = arguments.element(at, index) {
                    self.handles.set(class, number, handle as usize);
                }
            }
        }
    }

    /// Keeps the members of a dynamic window that the call has made.
    fn keep_window(&mut self, signature: &Signature, plan: &Plan, call: &Call) {
        let win = signature.position("win").map(|at| &call.values[at]);
        let comm = self.comm(plan, call);
        let state = self.hosted.mpi().lock();
        let comm = comm.and_then(|comm| state.objects().comms().get(comm).ok());
        if let (Some(win), Some(comm)) = (win.and_then(Value::number), comm) {
            self.attached.made(win, comm.core.clone());
        }
    }

    /// Waits for the requests that the recorded call found complete and the replayed call did not.
    fn settle(
        &mut self,
        signature: &Signature,
        call: &Call,
        arguments: &Arguments,
    ) -> Result<(), String> {
        let Some((before, now)) = done(signature, call, arguments) else {
            return Ok(());
        };
        if before == now {
            return Ok(());
        }
        self.other_choices += 1;
        let parameters = signature.parameters.iter();
        let requests = parameters
            .zip(&call.values)
            .find(|(one, _)| one.kind == "request");
        let Some((_, requests)) = requests else {
            return Ok(());
        };
        let single = requests.number();
        let numbers: Vec<i64> = single.iter().chain(requests.numbers()).copied().collect();
        for place in before.iter().filter(|place| !now.contains(place)) {
            let number = *numbers
                .get(*place)
                .ok_or("a request that it does not have")?;
            let handle = self.handles.get(REQUEST, number)?;
            let handle = self.hosted.wait(handle)?;
            self.handles.set(REQUEST, number, handle);
        }
        Ok(())
    }
}

/// True if what [`Player::check_memory`] finds for a call is the same on all ranks: its datatypes
/// and its communicator are predefined.
fn is_common(signature: &Signature, plan: &Plan, call: &Call) -> bool {
    let is_made = |number: &i64| *number >= FIRST_MADE;
    let datatypes = signature.parameters.iter().zip(&call.values);
    let mut datatypes = datatypes.filter(|(parameter, _)| parameter.kind == "datatype");
    let comm = plan.comm.and_then(|at| call.values[at].number());
    !comm.as_ref().is_some_and(is_made)
        && !datatypes.any(|(_, value)| {
            value.number().as_ref().is_some_and(is_made) || value.numbers().iter().any(is_made)
        })
}
