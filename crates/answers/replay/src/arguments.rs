//! The arguments of a call in memory, as C passes them, from the values of a trace.

use std::ffi::{CString, c_int};

use mpi_abi::entry::{MPI_Info_create, MPI_Info_free, MPI_Info_set};
use mpi_abi::handle::Info;
use mpi_abi::hosted::RECORDED;
use trace::{NUMBER_OF_MEMORY, Parameter, Value};

/// The ABI's handle of MPI_INFO_NULL.
const INFO_NULL: u64 = 0x130;
/// The bytes of a result that is no array; the longest is a text.
const RESULT: usize = 8192;
/// The most elements of an array of results.
const MOST_RESULTS: i64 = 1 << 22;

/// The arguments of a call: a word for each, and the memory that words point to.
pub(crate) struct Arguments {
    /// The arguments as words, in the order of the procedure's parameters.
    pub(crate) words: Vec<u64>,
    memory: Vec<Option<Vec<u64>>>,
    texts: Vec<CString>,
    infos: Vec<Info>,
    procedure: usize,
}

impl Arguments {
    /// An empty list of arguments for the procedure with this number.
    pub(crate) fn new(procedure: usize) -> Arguments {
        Arguments {
            words: Vec::new(),
            memory: Vec::new(),
            texts: Vec::new(),
            infos: Vec::new(),
            procedure,
        }
    }

    /// Adds an argument that the procedure gets by value.
    pub(crate) fn word(&mut self, word: u64) {
        self.words.push(word);
        self.memory.push(None);
    }

    /// Adds a pointer to these numbers, with 64 or 32 bits each as the parameter has them.
    pub(crate) fn numbers(&mut self, numbers: &[i64]) {
        let memory: Vec<u64> = match RECORDED[self.procedure].wide[self.words.len()] {
            true => numbers.iter().map(|number| *number as u64).collect(),
            false => {
                let pair = |two: &[i64]| {
                    let [low, high] = [0, 1].map(|at| two.get(at).copied().unwrap_or(0) as u32);
                    u64::from(low) | u64::from(high) << 32
                };
                numbers.chunks(2).map(pair).collect()
            }
        };
        self.memory(memory);
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
        let bytes = match parameter.is_array() {
            true if parameter.kind != "str" => length as usize * 8,
            _ => RESULT,
        };
        self.memory(vec![0; bytes / 8]);
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

    fn memory(&mut self, mut memory: Vec<u64>) {
        let address = match memory.is_empty() {
            true => 0,
            false => memory.as_mut_ptr().expose_provenance() as u64,
        };
        self.words.push(address);
        self.memory.push(Some(memory));
    }

    /// The element of an array, or the single result, that an argument points to.
    pub(crate) fn element(&self, at: usize, index: usize) -> Option<i64> {
        let memory = self.memory[at].as_ref()?;
        match RECORDED[self.procedure].wide[at] {
            true => memory.get(index).map(|word| *word as i64),
            false => {
                let word = memory.get(index / 2)?;
                Some(((word >> (index % 2 * 32)) as u32 as c_int).into())
            }
        }
    }
}

impl Drop for Arguments {
    fn drop(&mut self) {
        for info in &mut self.infos {
            // SAFETY: the address of a handle that `info` has made.
            unsafe { MPI_Info_free(info) };
        }
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
