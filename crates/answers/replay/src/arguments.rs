//! The arguments of a call in memory, as C passes them, from the values of a trace.

use std::ffi::{CString, c_int};
use std::ops::Range;

use mpi_abi::entry::{MPI_Info_create, MPI_Info_free, MPI_Info_set};
use mpi_abi::handle::Info;
use mpi_abi::hosted::RECORDED;
use trace::{NUMBER_OF_MEMORY, Parameter, Value};

/// The ABI's handle of MPI_INFO_NULL.
const INFO_NULL: u64 = 0x130;
/// The words of a result that is a text.
const TEXT: usize = 8192 / 8;
/// The words of any other single result, more than each kind needs.
const RESULT: usize = 2;
/// The most elements of an array of results.
const MOST_RESULTS: i64 = 1 << 22;

/// The arguments of a call: a word for each, and the memory that words point to. One list serves
/// all calls of a rank, one after another.
#[derive(Default)]
pub(crate) struct Arguments {
    /// The arguments as words, in the order of the procedure's parameters. Those that are pointers
    /// are valid after [`Arguments::point`].
    pub(crate) words: Vec<u64>,
    /// For each argument that is a pointer the words of `memory` to which it points.
    pointers: Vec<Option<Range<usize>>>,
    memory: Vec<u64>,
    texts: Vec<CString>,
    infos: Vec<Info>,
    procedure: usize,
}

impl Arguments {
    /// Begins an empty list of arguments for the procedure with this number.
    pub(crate) fn begin(&mut self, procedure: usize) {
        self.words.clear();
        self.pointers.clear();
        self.memory.clear();
        self.texts.clear();
        self.procedure = procedure;
    }

    /// Adds an argument that the procedure gets by value.
    #[inline]
    pub(crate) fn word(&mut self, word: u64) {
        self.words.push(word);
        self.pointers.push(None);
    }

    /// Adds a pointer to these numbers, with 64 or 32 bits each as the parameter has them. The
    /// first number that is an error ends the list.
    pub(crate) fn numbers(
        &mut self,
        numbers: impl Iterator<Item = Result<i64, String>>,
    ) -> Result<(), String> {
        let wide = RECORDED[self.procedure].wide[self.words.len()];
        let start = self.memory.len();
        for (at, number) in numbers.enumerate() {
            let number = number? as u64;
            match self.memory.last_mut() {
                Some(low) if !wide && at % 2 == 1 => *low |= number << 32,
                _ if wide => self.memory.push(number),
                _ => self.memory.push(number & u64::from(u32::MAX)),
            }
        }
        self.pointer(start);
        Ok(())
    }

    /// Adds a pointer to memory for a result: an array of `length` elements, or a single one.
    pub(crate) fn result(&mut self, parameter: &Parameter, length: i64) -> Result<(), String> {
        // A caller may want no status.
        if parameter.kind == "status" {
            self.word(0);
            return Ok(());
        }
        if !(0..=MOST_RESULTS).contains(&length) {
            return Err(format!("{length} elements of {}", parameter.name));
        }
        let words = match parameter.is_array() {
            _ if parameter.kind == "str" => TEXT,
            true => length as usize,
            false => RESULT,
        };
        let start = self.memory.len();
        self.memory.resize(start + words, 0);
        self.pointer(start);
        Ok(())
    }

    /// Adds an argument that is a text.
    pub(crate) fn text(&mut self, text: &[u8]) -> Result<(), String> {
        let text = CString::new(text).map_err(|_| "a text with a zero byte".to_string())?;
        self.word(text.as_ptr() as usize as u64);
        self.texts.push(text);
        Ok(())
    }

    /// Adds an info object with these pairs, each part of which ends with a zero byte.
    pub(crate) fn info(&mut self, value: &Value) -> Result<(), String> {
        let Value::Text(pairs) = value else {
            self.word(INFO_NULL);
            return Ok(());
        };
        let mut info = Info(0);
        // SAFETY: the address of a handle.
        unsafe { MPI_Info_create(&mut info) };
        self.infos.push(info);
        let mut parts = pairs.split_inclusive(|byte| *byte == 0);
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            let [key, value] = [key, value].map(CString::from_vec_with_nul_of);
            let (key, value) = (key?, value?);
            // SAFETY: texts of C.
            let code = unsafe { MPI_Info_set(info, key.as_ptr(), value.as_ptr()) };
            if code != 0 {
                return Err("an info object with a wrong pair".into());
            }
        }
        self.word(info.0 as u64);
        Ok(())
    }

    fn pointer(&mut self, start: usize) {
        self.words.push(0);
        self.pointers.push(Some(start..self.memory.len()));
    }

    /// Makes the arguments that are pointers point to their memory, after the last argument. A
    /// pointer to no elements is null.
    pub(crate) fn point(&mut self) {
        let base = self.memory.as_mut_ptr().expose_provenance() as u64;
        for (word, pointer) in self.words.iter_mut().zip(&self.pointers) {
            if let Some(memory) = pointer {
                let address = base + 8 * memory.start as u64;
                *word = if memory.is_empty() { 0 } else { address };
            }
        }
    }

    /// The element of an array, or the single result, that an argument points to.
    pub(crate) fn element(&self, at: usize, index: usize) -> Option<i64> {
        let memory = &self.memory[self.pointers[at].clone()?];
        match RECORDED[self.procedure].wide[at] {
            true => memory.get(index).map(|word| *word as i64),
            false => {
                let word = memory.get(index / 2)?;
                Some(((word >> (index % 2 * 32)) as u32 as c_int).into())
            }
        }
    }

    /// Frees the objects that were made for the call, after its end.
    pub(crate) fn end(&mut self) {
        for mut info in self.infos.drain(..) {
            // SAFETY: the address of a handle that `info` has made.
            unsafe { MPI_Info_free(&mut info) };
        }
    }
}

impl Drop for Arguments {
    fn drop(&mut self) {
        self.end();
    }
}

/// A type of C's texts that can be made from bytes that end with a zero byte.
trait FromParts: Sized {
    fn from_vec_with_nul_of(part: &[u8]) -> Result<Self, String>;
}

impl FromParts for CString {
    fn from_vec_with_nul_of(part: &[u8]) -> Result<CString, String> {
        CString::from_vec_with_nul(part.to_vec()).map_err(|_| "an info object cut off".into())
    }
}

/// The number of the buffer of a value, from 0 on. `None`: the value is a constant such as
/// MPI_IN_PLACE. NULL, with which a call may not move anything, counts as a buffer.
pub(crate) fn buffer_of(value: &Value) -> Option<u64> {
    match value {
        Value::Number(0) => Some(0),
        Value::Number(number) => u64::try_from(number - NUMBER_OF_MEMORY).ok(),
        _ => None,
    }
}
