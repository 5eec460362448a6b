//! Facts: lines among the calls of a rank that are no calls. They tell what a reader of the calls
//! cannot know, and take no time.

use crate::signature::Signature;

/// A kind of fact about a recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A step of the program begins, whose time a replay reports.
    Step,
    /// The next call finds a file of this size under this name, or none if the size is 0.
    FileSize,
    /// The source of the message for the persistent receive from any source that the next call
    /// starts.
    Source,
    /// The memory that the next call attaches to a dynamic window had this address, to which
    /// accesses of other ranks refer.
    Address,
    /// The next call makes a datatype of this size in bytes.
    TypeSize,
    /// The rank has computed with this number of threads at the same time.
    Threads,
}

impl Fact {
    const ALL: [Fact; 6] = [
        Fact::Step,
        Fact::FileSize,
        Fact::Source,
        Fact::Address,
        Fact::TypeSize,
        Fact::Threads,
    ];

    /// The line of the fact's signature.
    pub fn line(self) -> &'static str {
        match self {
            Fact::Step => "step",
            Fact::FileSize => "file_size filename:str size:offset",
            Fact::Source => "source request:request source:source",
            Fact::Address => "address base:aint",
            Fact::TypeSize => "type_size datatype:datatype size:count",
            Fact::Threads => "threads number:count",
        }
    }

    /// The name of the fact's signature.
    pub fn name(self) -> &'static str {
        let line = self.line();
        line.split_once(' ').map_or(line, |(name, _)| name)
    }

    /// The signature of the fact.
    pub fn signature(self) -> Signature {
        Signature::parse(self.line()).expect("the line of a fact is a signature")
    }

    /// The fact with this signature. `None`: the signature is that of an MPI call.
    pub fn of(signature: &Signature) -> Option<Fact> {
        let mut all = Fact::ALL.into_iter();
        all.find(|fact| fact.name() == signature.name && fact.signature() == *signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_by_their_whole_signature() {
        for fact in Fact::ALL {
            assert_eq!(Fact::of(&fact.signature()), Some(fact));
            assert_eq!(fact.signature().line(), fact.line());
        }
        let other = Signature::parse("step request:request").unwrap();
        assert_eq!(Fact::of(&other), None);
    }
}
