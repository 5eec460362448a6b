//! Calls whose arguments are a row of numbers, and those that repeat an earlier one.

use super::{Procedure, Recorder};
use crate::handles::Class;
use crate::library::Library;
use crate::plan::{Objects, Plan};
use crate::repeats::Repeat;
use crate::table::RECORDED;

impl Recorder {
    /// True if the call that has begun repeats an earlier one, so that its arguments need not be
    /// kept. The words may have the library's own values: only addresses are read.
    pub fn repeats(&mut self, procedure: usize, words: &[u64]) -> bool {
        let decide = self.words[procedure].decide;
        let Some(current) = self.current.as_mut().filter(|_| decide) else {
            return false;
        };
        let generation = self.handles.generation();
        current.place = self.repeats.find(procedure, generation, words);
        let is_known = current.place.is_some_and(|(_, known)| known.is_some());
        current.simple = is_known.then_some(procedure);
        is_known
    }

    /// Reads the arguments of a call into the row. False: they need more than that.
    ///
    /// # Safety
    /// As for [`Recorder::arguments`].
    pub(super) unsafe fn is_simple(
        &mut self,
        library: &dyn Library,
        called: &Procedure,
        procedure: usize,
        words: &[u64],
    ) -> bool {
        let Some(plan) = &called.plan else {
            return false;
        };
        if plan.completes && !self.wildcards.is_empty() {
            return false;
        }
        let objects = &mut Objects {
            library,
            handles: &mut self.handles,
            buffers: &mut self.buffers,
        };
        // SAFETY: the caller's promise.
        let is_simple = unsafe { self.row.before(plan, objects, procedure, words) };
        if let Some(current) = &mut self.current {
            current.simple = is_simple.then_some(procedure);
        }
        is_simple
    }

    /// Keeps the results of a call whose arguments are in the row.
    ///
    /// # Safety
    /// As for [`Recorder::arguments`].
    pub(super) unsafe fn simple_results(
        &mut self,
        library: &dyn Library,
        procedure: usize,
        words: &[u64],
    ) {
        let place = self.current.as_ref().and_then(|current| current.place);
        if let Some((at, Some(known))) = place {
            // SAFETY: the caller's promise.
            return unsafe { self.repeated(library, procedure, words, (at, known)) };
        }
        let called = self.procedure(procedure);
        let Some(plan) = &called.plan else {
            return;
        };
        let objects = &mut Objects {
            library,
            handles: &mut self.handles,
            buffers: &mut self.buffers,
        };
        // SAFETY: the caller's promise.
        let made = unsafe { self.row.after(plan, objects, words) };
        let number = self.numbered(plan, procedure, words, made);
        if let Some((at, None)) = place {
            self.remember(at, procedure, number, made);
        }
    }

    /// Keeps the results of a call that repeats the one in this place.
    ///
    /// # Safety
    /// As for [`Recorder::arguments`].
    unsafe fn repeated(
        &mut self,
        library: &dyn Library,
        procedure: usize,
        words: &[u64],
        (at, known): (usize, Repeat),
    ) {
        let made = self.words[procedure].made.map(usize::from);
        let made = made.filter(|made| words[*made] != 0);
        let made = made.map(|made| {
            let start = words[made] as usize as *const u8;
            // SAFETY: the caller's promise: results have their memory.
            let handle = unsafe { library.element(procedure, made, start, 0) };
            (made, self.handles.returned(Class::REQUEST, handle as usize))
        });
        let number = made.map_or(known.made, |(_, number)| number);
        if number == known.made {
            self.forget(made.map(|(_, number)| number));
            if let Some(current) = &mut self.current {
                current.number = Some(known.number);
            }
            return;
        }
        self.row.repeat(self.repeats.key(at), made);
        let called = self.procedure(procedure);
        if let Some(plan) = &called.plan {
            let made = Some(number);
            let number = self.numbered(plan, procedure, words, made);
            self.remember(at, procedure, number, made);
        }
    }

    fn remember(&mut self, at: usize, procedure: usize, number: u64, made: Option<i64>) {
        let of = (procedure, self.handles.generation());
        let made = made.unwrap_or(0);
        let repeat = Repeat { number, made };
        self.repeats.keep(at, of, repeat, &self.row.key);
    }

    /// Forgets the receive from any source that had the number of a new request.
    fn forget(&mut self, made: Option<i64>) {
        if let Some(made) = made.filter(|_| !self.wildcards.is_empty()) {
            self.wildcards.forget(made);
        }
    }

    /// The number in the part of the call in the row, which is that of the current call.
    fn numbered(&mut self, plan: &Plan, procedure: usize, words: &[u64], made: Option<i64>) -> u64 {
        self.forget(made);
        let known = self.known.get(&*self.row.key).copied();
        let number = known.unwrap_or_else(|| {
            let values = self.row.values(plan, words);
            let comm = plan.comm.and_then(|at| values[at].number());
            let number = self.writer.number(RECORDED[procedure].line, values);
            self.sums.know(number, (RECORDED[procedure].name, comm));
            self.known.insert(self.row.key.clone().into(), number);
            number
        });
        if let Some(current) = &mut self.current {
            current.number = Some(number);
        }
        number
    }
}
