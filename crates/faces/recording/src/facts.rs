//! Facts of a trace: what a replay cannot know of the surroundings of a call.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use trace::{Access, FIRST_MADE, Fact, Value};

use crate::capture::View;
use crate::recorder::Recorder;
use crate::standard::MPI_ANY_SOURCE;

/// The prefixes of a file's name that name a kind of file system.
const PREFIXES: [&[u8]; 8] = [
    b"ufs:", b"nfs:", b"xfs:", b"lustre:", b"gpfs:", b"panfs:", b"pvfs2:", b"testfs:",
];

/// The name of a file without a prefix that names a kind of file system.
pub fn without_prefix(name: &[u8]) -> &[u8] {
    let mut prefixes = PREFIXES.iter();
    let rest = prefixes.find_map(|prefix| name.strip_prefix(*prefix));
    rest.unwrap_or(name)
}

impl Recorder {
    /// Keeps the facts about a call that has begun. `values`: those of its parameters in the trace.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them.
    pub(crate) unsafe fn note_facts(&mut self, view: &View, values: &[Value]) {
        match view.signature.name.as_str() {
            // SAFETY: the caller's promise.
            "MPI_File_open" => unsafe { self.note_file(view, values) },
            "MPI_Start" | "MPI_Startall" => self.note_sources(values),
            "MPI_Win_attach" => {
                let base = view.word("base").unwrap_or(0);
                self.note(Fact::Address, vec![Value::Number(base as i64)]);
            }
            _ => (),
        }
    }

    /// Keeps that the persistent receives from any source which a call starts will each get a
    /// source.
    fn note_sources(&mut self, values: &[Value]) {
        let single = values.iter().filter_map(Value::number);
        let requests = single.chain(values.iter().flat_map(Value::numbers).copied());
        for (request, own) in self.wildcards.persistent_among(requests) {
            let source = Value::Number(MPI_ANY_SOURCE);
            let call = self.writer.count();
            self.note(Fact::Source, vec![Value::Number(request), source]);
            self.wildcards.begin((request, own), call);
        }
    }

    /// Keeps the size of the file that a call with these values is about to open.
    ///
    /// # Safety
    /// As for [`note_facts`](Recorder::note_facts).
    unsafe fn note_file(&mut self, view: &View, values: &[Value]) {
        let Some(at) = view.signature.position("filename") else {
            return;
        };
        // SAFETY: the caller's promise.
        let (Some(path), Value::Text(name)) = (unsafe { view.text(at) }, &values[at]) else {
            return;
        };
        let found = std::fs::metadata(OsStr::from_bytes(without_prefix(path)));
        let size = found.map_or(0, |file| file.len()) as i64;
        let name = Value::Text(without_prefix(name).to_vec());
        self.note(Fact::FileSize, vec![name, Value::Number(size)]);
    }

    /// Keeps the sizes of datatypes that a call has made. `values`: those of its parameters.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them, after the call.
    pub(crate) unsafe fn note_sizes(&mut self, view: &View, values: &[Value]) {
        for (at, parameter) in view.signature.parameters.iter().enumerate() {
            if parameter.kind != "datatype" || parameter.access != Access::Out {
                continue;
            }
            let single = values[at].number();
            let numbers = single.as_slice().iter().chain(values[at].numbers());
            // SAFETY: the caller's promise: the call has set as many handles.
            let handles = unsafe { view.elements(at, numbers.clone().count()) };
            for (&number, handle) in numbers.zip(handles).filter(|of| *of.0 >= FIRST_MADE) {
                if let Some(size) = view.library.type_size(handle as u64) {
                    let values = [number, size as i64].map(Value::Number);
                    self.note(Fact::TypeSize, values.to_vec());
                }
            }
        }
    }

    /// Keeps a fact, which comes before the call that has begun.
    pub(crate) fn note(&mut self, fact: Fact, values: Vec<Value>) {
        let block = self.writer.call(fact.line(), values, 0);
        if let Some(block) = block {
            self.append(&block);
        }
    }
}
