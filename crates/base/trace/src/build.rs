//! The making of a trace, rank by rank.

use std::collections::HashMap;
use std::hash::Hash;

use crate::fold::Folder;
use crate::gaps::Gaps;
use crate::measured::Measured;
use crate::signature::Signature;
use crate::value::{Call, Value};
use crate::{RankCalls, Trace};

/// A trace under construction.
pub struct Builder {
    program: String,
    notes: Vec<String>,
    work: Vec<String>,
    signatures: Table<Signature>,
    calls: Table<Call>,
    folder: Folder,
    ranks: Vec<RankCalls>,
}

impl Builder {
    /// A trace that has no ranks yet.
    pub fn new(program: String) -> Builder {
        Builder {
            program: program.replace(char::is_control, "?"),
            notes: Vec::new(),
            work: Vec::new(),
            signatures: Table::default(),
            calls: Table::default(),
            folder: Folder::default(),
            ranks: Vec::new(),
        }
    }

    /// Adds a note about the recorded run, or about what has been changed since.
    pub fn note(&mut self, note: &str) {
        self.notes.push(note.replace(char::is_control, "?"));
    }

    /// Sets the times of work inside MPI, each a line.
    pub fn work(&mut self, lines: &str) {
        self.work = lines.lines().map(str::to_string).collect();
    }

    /// The number of a signature in the trace's table, to which a new one is added.
    pub fn signature(&mut self, signature: Signature) -> u32 {
        self.signatures.number(signature)
    }

    /// The signatures that the trace has so far.
    pub(crate) fn signatures(&self) -> &[Signature] {
        &self.signatures.entries
    }

    /// The number of a call in the trace's table, to which a new one is added.
    pub fn call(&mut self, signature: u32, values: Vec<Value>) -> u32 {
        self.calls.number(Call { signature, values })
    }

    /// Adds the next rank, with the numbers of its calls, the computing before each, and the times
    /// of the program's functions.
    pub fn rank(&mut self, calls: &[u32], gaps: Gaps, functions: Gaps) {
        let sequence = self.folder.fold(calls.iter().copied());
        self.ranks.push(RankCalls {
            sequence,
            gaps,
            functions,
            measured: None,
        });
    }

    /// Adds the times that the last rank has measured.
    pub fn measured(&mut self, measured: Measured) {
        if let Some(rank) = self.ranks.last_mut() {
            rank.measured = Some(measured);
        }
    }

    /// Sets the name of the program.
    pub fn program(&mut self, program: &str) {
        self.program = program.replace(char::is_control, "?");
    }

    /// Returns the finished trace.
    pub fn finish(self) -> Trace {
        Trace {
            program: self.program,
            notes: self.notes,
            work: self.work,
            signatures: self.signatures.entries,
            calls: self.calls.entries,
            sequences: self.folder.into_sequences(),
            ranks: self.ranks,
        }
    }
}

/// A table in which each different entry has one number.
struct Table<T> {
    entries: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            entries: Vec::new(),
            numbers: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn number(&mut self, entry: T) -> u32 {
        if let Some(&number) = self.numbers.get(&entry) {
            return number;
        }
        let number = self.entries.len() as u32;
        self.entries.push(entry.clone());
        self.numbers.insert(entry, number);
        number
    }
}
