//! The treatment of a procedure's parameters by a replay, found once for each signature of a trace:
//! a replay makes millions of calls of few procedures.

use trace::{Access, Call, Length, Parameter, Signature};

use crate::choices;
use crate::handles::Class;

/// The kind of memory or value that an argument stands for. Arguments without a kind are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Info,
    Text,
    /// Memory that is attached to a window, or detached.
    Attached,
    /// A displacement in the memory of another rank.
    Target,
    /// A buffer that the call reads.
    Sent,
    /// A buffer that the call writes.
    Received,
    Weights,
    Number,
}

/// A parameter as a replay sees it.
pub(crate) struct Argument {
    pub kind: Kind,
    /// The class of the handles that the parameter has, if it has some.
    pub class: Option<Class>,
    /// The number of the parameter that has the array's length, and the numbers of an element.
    pub length: Option<(usize, i64)>,
}

/// The parameters of a procedure as a replay sees them.
pub(crate) struct Plan {
    pub arguments: Vec<Argument>,
    /// The number of the parameter with the communicator of a call.
    pub comm: Option<usize>,
    /// True if a call moves data of the program.
    pub has_buffers: bool,
    /// True if a call makes or changes handles.
    pub sets_handles: bool,
    /// True if time decides which requests a call finds complete.
    pub chooses: bool,
    /// True if a call makes a dynamic window.
    pub makes_window: bool,
}

impl Plan {
    /// The plan of the procedure with this signature.
    pub(crate) fn of(signature: &Signature) -> Plan {
        let parameters = &signature.parameters;
        let arguments: Vec<Argument> = parameters
            .iter()
            .map(|parameter| Argument {
                kind: kind(signature, parameter),
                class: Class::of(&parameter.kind),
                length: length(signature, parameter),
            })
            .collect();
        let is_set = |parameter: &Parameter| {
            matches!(parameter.access, Access::Out | Access::InOut) && parameter.is_handle()
        };
        let is_buffer = |parameter: &Parameter| ["in", "out"].contains(&parameter.kind.as_str());
        Plan {
            comm: signature.first_of("comm"),
            has_buffers: parameters.iter().any(is_buffer),
            sets_handles: parameters.iter().any(is_set),
            chooses: choices::are_made(signature),
            makes_window: signature.name.starts_with("MPI_Win_create_dynamic"),
            arguments,
        }
    }
}

impl Argument {
    /// The length of the array in a call, if a parameter has it.
    pub(crate) fn length_in(&self, call: &Call) -> Option<i64> {
        let (at, elements) = self.length?;
        let length = call.values[at].number().unwrap_or(0);
        Some(length.max(0).saturating_mul(elements))
    }

    /// True if the parameter is a buffer of the program.
    pub(crate) fn is_buffer(&self) -> bool {
        matches!(self.kind, Kind::Sent | Kind::Received | Kind::Attached)
    }
}

fn kind(signature: &Signature, parameter: &Parameter) -> Kind {
    let attaches = ["MPI_Win_attach", "MPI_Win_detach"].contains(&signature.name.as_str());
    match parameter.kind.as_str() {
        "info" => Kind::Info,
        "str" => Kind::Text,
        "in" | "out" if attaches => Kind::Attached,
        "in" => Kind::Sent,
        "out" => Kind::Received,
        "aint" if parameter.name == "target_disp" => Kind::Target,
        "weight" => Kind::Weights,
        _ => Kind::Number,
    }
}

fn length(signature: &Signature, parameter: &Parameter) -> Option<(usize, i64)> {
    let Length::Named(name) = &parameter.length else {
        return None;
    };
    let elements = if parameter.kind == "triple" { 3 } else { 1 };
    Some((signature.position(name)?, elements))
}
