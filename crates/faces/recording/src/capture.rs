//! The arguments of a call as values of a trace.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};

use trace::{Access, Length, NUMBER_OF_MEMORY, Parameter, Signature, Value};

use crate::facts::without_prefix;
use crate::handles::{Buffers, Class, Handles};
use crate::library::Library;
use crate::table::RECORDED;

/// The arguments of a call that is recorded.
pub struct View<'a> {
    pub(crate) library: &'a dyn Library,
    /// The number of the procedure.
    pub(crate) procedure: usize,
    pub(crate) signature: &'a Signature,
    /// The arguments, each as a word.
    pub(crate) words: &'a [u64],
}

impl View<'_> {
    /// The length of the array at `at`, which no parameter has; `None` if the call does not read
    /// it.
    ///
    /// # Safety
    /// The words are arguments of the procedure; arrays without a parameter for their length may be
    /// of any.
    ///
    /// # Errors
    /// The communicator does not fit the call.
    pub unsafe fn length_of(
        library: &dyn Library,
        procedure: usize,
        words: &[u64],
        at: usize,
    ) -> Result<Option<usize>, String> {
        let signature = Signature::parse(RECORDED[procedure].line);
        let signature = signature.expect("a line of the generated table is a signature");
        let view = View {
            library,
            procedure,
            signature: &signature,
            words,
        };
        // SAFETY: the caller's promise.
        unsafe { view.unknown_length(&signature.parameters[at].name) }
    }

    /// The argument for the parameter with this name, as a word.
    pub(crate) fn word(&self, name: &str) -> Option<u64> {
        Some(self.words[self.signature.position(name)?])
    }

    /// The rank's own number in the communicator of the call.
    pub(crate) fn own_rank(&self) -> i64 {
        let members = self.library.members(self.comm());
        members.map_or(0, |members| members.rank)
    }

    /// The value of a parameter before the call.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    pub(crate) unsafe fn before(
        &self,
        at: usize,
        handles: &Handles,
        buffers: &mut Buffers,
    ) -> Result<Value, String> {
        let (parameter, word) = (&self.signature.parameters[at], self.words[at]);
        if parameter.access == Access::Out {
            return Ok(Value::Absent);
        }
        // SAFETY: the caller's promise.
        unsafe {
            match parameter.kind.as_str() {
                "in" | "out" => Ok(Value::Number(buffers.number(word))),
                "str" if parameter.name == "filename" => Ok(match self.text(at) {
                    Some(name) => Value::Text(self.library.file_name(without_prefix(name))),
                    None => Value::Absent,
                }),
                "str" => Ok(self
                    .text(at)
                    .map_or(Value::Absent, |text| Value::Text(text.to_vec()))),
                "info" if parameter.length == Length::One => self.pairs(word),
                "ptr" | "attr" | "state" | "memory" | "detached" | "status" => Ok(Value::Absent),
                "argv" | "argvs" | "argv_ptr" | "commands" | "info" => Ok(Value::Absent),
                kind if kind.starts_with("fn_") => Ok(Value::Absent),
                _ if parameter.is_array() => self.array(at, handles),
                _ => Ok(self.single(at, handles)),
            }
        }
    }

    /// The value of a single argument.
    ///
    /// # Safety
    /// As for [`View::before`].
    unsafe fn single(&self, at: usize, handles: &Handles) -> Value {
        let parameter = &self.signature.parameters[at];
        let number = match parameter.access {
            Access::In => self.words[at] as i64,
            _ if self.words[at] == 0 => return Value::Absent,
            // SAFETY: the caller's promise: it is the address of a value.
            _ => unsafe { self.element(at, 0) },
        };
        match parameter.kind.as_str() {
            "dest" | "source" => self.peer(number),
            kind if parameter.is_handle() => known(handles.number(class(kind), number as usize, 0)),
            _ => Value::Number(number),
        }
    }

    /// The value of an array.
    ///
    /// # Safety
    /// As for [`View::before`].
    unsafe fn array(&self, at: usize, handles: &Handles) -> Result<Value, String> {
        let (parameter, word) = (&self.signature.parameters[at], self.words[at]);
        // SAFETY: the caller's promise.
        let length = unsafe { self.length(parameter)? };
        let Some(length) = length.filter(|length| word != 0 && *length > 0) else {
            return Ok(Value::Absent);
        };
        if word < NUMBER_OF_MEMORY as u64 {
            return Ok(Value::Number(word as i64));
        }
        // SAFETY: the caller's promise: the array has that length.
        let numbers = unsafe { self.elements(at, length) };
        if !parameter.is_handle() {
            return Ok(Value::Numbers(numbers));
        }
        let mut seen = HashMap::new();
        let of = |handle: &i64| {
            let before = seen.entry(*handle).or_insert(0);
            *before += 1;
            handles.number(class(&parameter.kind), *handle as usize, *before - 1)
        };
        let numbers: Option<Vec<i64>> = numbers.iter().map(of).collect();
        numbers.map(Value::Numbers).ok_or_else(|| {
            let name = &parameter.name;
            format!("{name} has a handle that no recorded call has made")
        })
    }

    /// The number of elements of an array; `None` if the call does not read it.
    ///
    /// # Safety
    /// As for [`View::before`].
    unsafe fn length(&self, parameter: &Parameter) -> Result<Option<usize>, String> {
        match &parameter.length {
            Length::One => Ok(Some(1)),
            Length::Named(name) => {
                let elements = if parameter.kind == "triple" { 3 } else { 1 };
                let length = self.word(name).map_or(0, |word| word as i64);
                Ok(Some(length.max(0) as usize * elements))
            }
            // SAFETY: the caller's promise.
            Length::Unknown => unsafe { self.unknown_length(&parameter.name) },
        }
    }

    /// The elements of an array, or none for NULL.
    ///
    /// # Safety
    /// The parameter is an array of that length, or NULL.
    pub(crate) unsafe fn elements(&self, at: usize, length: usize) -> Vec<i64> {
        match self.words[at] {
            0 => Vec::new(),
            // SAFETY: the caller's promise.
            _ => (0..length)
                .map(|index| unsafe { self.element(at, index) })
                .collect(),
        }
    }

    /// An element of an array, or the value behind a pointer.
    ///
    /// # Safety
    /// The parameter points to an array with this element.
    unsafe fn element(&self, at: usize, index: usize) -> i64 {
        let start = self.words[at] as usize as *const u8;
        // SAFETY: the caller's promise.
        unsafe { self.library.element(self.procedure, at, start, index) }
    }

    /// The text that a parameter points to; `None` for NULL.
    ///
    /// # Safety
    /// The parameter is NULL or the address of a C string.
    pub(crate) unsafe fn text(&self, at: usize) -> Option<&[u8]> {
        let text = self.words[at] as usize as *const c_char;
        // SAFETY: the caller's promise.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
    }

    /// The pairs of an info object as a value of the trace.
    fn pairs(&self, word: u64) -> Result<Value, String> {
        let pairs = self.library.pairs(word)?;
        let parts = pairs.iter().flat_map(|(key, value)| [key, value]);
        let bytes = parts.flat_map(|part| part.iter().copied().chain([0]));
        let bytes: Vec<u8> = bytes.collect();
        Ok(match bytes.is_empty() {
            true => Value::Absent,
            false => Value::Text(bytes),
        })
    }

    /// A peer, as its distance from this rank, if the call has a communicator.
    fn peer(&self, peer: i64) -> Value {
        if peer < 0 || self.signature.first_of("comm").is_none() {
            return Value::Number(peer);
        }
        match self.library.members(self.comm()) {
            Ok(members) => Value::Relative(peer - members.rank),
            Err(_) => Value::Number(peer),
        }
    }

    /// The handles of a parameter that the call may change.
    ///
    /// # Safety
    /// As for [`View::before`].
    pub(crate) unsafe fn changed_handles(&self, at: usize) -> Vec<usize> {
        let parameter = &self.signature.parameters[at];
        if parameter.access != Access::InOut || !parameter.is_handle() {
            return Vec::new();
        }
        // SAFETY: the caller's promise.
        let handles = unsafe {
            let length = self.length(parameter).ok().flatten().unwrap_or(0);
            self.elements(at, length)
        };
        handles.into_iter().map(|handle| handle as usize).collect()
    }

    /// The number of elements that an array of handles has at most after the call.
    fn filled(&self) -> usize {
        if !self.signature.name.starts_with("MPI_Type_get_contents") {
            return usize::MAX;
        }
        let datatype = self.word("datatype").unwrap_or(0);
        self.library.type_members(datatype)
    }

    /// The value of a parameter after the call, if the call has set it. `before`: the handles that
    /// it had, and `value` their numbers.
    ///
    /// # Safety
    /// As for [`View::before`], after the call.
    pub(crate) unsafe fn after(
        &self,
        at: usize,
        before: &[usize],
        value: &Value,
        handles: &mut Handles,
    ) -> Option<Value> {
        let (parameter, kind) = (
            &self.signature.parameters[at],
            &self.signature.parameters[at].kind,
        );
        for (index, &handle) in before.iter().enumerate() {
            // SAFETY: the caller's promise: the array has as many handles as before.
            if unsafe { self.element(at, index) } as usize != handle {
                let number = value.number().or(value.numbers().get(index).copied());
                handles.gone(class(kind), handle, number.unwrap_or(0));
            }
        }
        if parameter.access != Access::Out || self.words[at] == 0 {
            return None;
        }
        let is_result = ["flag", "index"].contains(&kind.as_str()) || parameter.name == "outcount";
        // SAFETY: the caller's promise.
        unsafe {
            match (parameter.is_handle(), parameter.is_array()) {
                (true, false) => {
                    let handle = self.element(at, 0) as usize;
                    Some(Value::Number(handles.returned(class(kind), handle)))
                }
                (true, true) => {
                    let length = self.length(parameter).ok().flatten()?;
                    let all = self.elements(at, length.min(self.filled()));
                    let all = all
                        .into_iter()
                        .map(|handle| handles.returned(class(kind), handle as usize));
                    Some(Value::Numbers(all.collect()))
                }
                (false, false) if is_result => Some(Value::Number(self.element(at, 0))),
                (false, true) if kind == "index" => {
                    let count = self.signature.position("outcount")?;
                    let count = self.element(count, 0).max(0) as usize;
                    Some(Value::Numbers(self.elements(at, count)))
                }
                _ => None,
            }
        }
    }
}

/// The class of a kind of parameters that are handles.
fn class(kind: &str) -> Class {
    Class::of(kind).expect("a handle has a class")
}

/// The number of a handle. A handle that no call has made may occur where the call does not read
/// it, such as the datatype of a receive buffer that only the root has.
fn known(number: Option<i64>) -> Value {
    number.map_or(Value::Absent, Value::Number)
}
