//! Generator of the code that converts one parameter. The code follows from the parameter's kind.

use crate::conversion::Conversion;
use crate::special::special;
use tables::table::{Access, Length, Parameter, Procedure};

/// The classes of handles that differ in the program's ABI. A file is a pointer in both ABIs.
pub const HANDLES: [&str; 10] = [
    "comm",
    "datatype",
    "errhandler",
    "group",
    "info",
    "message",
    "op",
    "request",
    "session",
    "win",
];

/// Integers that are constants: procedure (`*`: all), parameter, and the name of the conversion,
/// for which `convert` has a function for each direction.
const MEANINGS: &[(&str, &str, &str)] = &[
    ("Abort", "errorcode", ""),
    ("Init_thread", "required", "thread"),
    ("*", "provided", "thread"),
    ("*", "comm_keyval", "keyval"),
    ("*", "type_keyval", "keyval"),
    ("*", "win_keyval", "keyval"),
    ("*", "keyval", "keyval"),
    ("*", "errorcode", "error"),
    ("*", "errorclass", "error"),
    ("Status_get_error", "error", "error"),
    ("Status_set_error", "error", "error"),
    ("Status_get_source", "source", "rank"),
    ("Status_set_source", "source", "rank"),
    ("Status_get_tag", "tag", "tag"),
    ("Status_set_tag", "tag", "tag"),
    ("Topo_test", "status", "topology"),
    ("Comm_compare", "result", "comparison"),
    ("Group_compare", "result", "comparison"),
    ("*", "combiner", "combiner"),
    ("*", "split_type", "split_type"),
    ("*", "typeclass", "type_class"),
    ("*", "order", "order"),
    ("*", "array_of_distribs", "distribution"),
    ("*", "array_of_dargs", "default_argument"),
    ("*", "lock_type", "lock_type"),
    ("*", "assert", "assertion"),
    ("*", "amode", "file_mode"),
    ("*", "whence", "whence"),
    ("*", "verbosity", "verbosity"),
    ("*", "bind", "bind"),
    ("*", "scope", "scope"),
    ("*", "var_class", "variable_class"),
    ("File_set_view", "disp", "displacement"),
    ("Group_translate_ranks", "ranks1", "rank"),
    ("Group_translate_ranks", "ranks2", "rank"),
    ("*", "rank_source", "rank"),
    ("*", "rank_dest", "rank"),
    ("*", "remote_leader", "rank"),
];

/// The conversion of a parameter.
pub(crate) fn conversion(
    procedure: &Procedure,
    parameter: &Parameter,
    large: bool,
    is_shorter: &dyn Fn(&str) -> bool,
) -> Conversion {
    let name = &parameter.name;
    let word = parameter.kind.word();
    special(procedure, parameter, large)
        .or_else(|| match word {
            _ if HANDLES.contains(&word) => Some(handle(procedure, parameter, large)),
            "file" => Some(file(parameter)),
            "status" => Some(status(procedure, parameter)),
            "in" | "out" if name.starts_with("sendbuf") || name.starts_with("recvbuf") => Some(
                Conversion::argument(format!("convert::buffer::<Program, _>({name})")),
            ),
            "str" => text(procedure, parameter, is_shorter),
            _ => meaning(procedure, parameter).map(|meaning| integer(parameter, large, meaning)),
        })
        .unwrap_or_else(|| Conversion::argument(name.clone()))
}

/// The name of the conversion of an integer that is a constant; `None` for other integers.
pub fn meaning(procedure: &Procedure, parameter: &Parameter) -> Option<&'static str> {
    let rows = MEANINGS.iter();
    let mut found = rows
        .filter(|(of, name, _)| *name == parameter.name && (*of == "*" || *of == procedure.name));
    if let Some((_, _, meaning)) = found.next() {
        return Some(*meaning).filter(|meaning| !meaning.is_empty());
    }
    match parameter.kind.word() {
        "dest" | "source" | "root" | "rank" => Some("rank"),
        "tag" | "tag_any" => Some("tag"),
        _ => None,
    }
}

fn integer(parameter: &Parameter, large: bool, meaning: &str) -> Conversion {
    let name = &parameter.name;
    match (&parameter.length, parameter.access) {
        (Length::One, Access::In) => Conversion {
            before: vec![format!(
                "let {}_standard = convert::{meaning}_in::<Program>({name});",
                of_keyval(name)
            )],
            argument: format!("{}_standard", of_keyval(name)),
            after: Vec::new(),
        },
        (Length::One, Access::InOut) => Conversion {
            before: vec![format!(
                "let mut word = convert::at({name}, convert::{meaning}_in::<Program>);"
            )],
            argument: format!("convert::address({name}, &mut word)"),
            after: vec![format!(
                "if !{name}.is_null() {{ *{name} = convert::{meaning}_out::<Program>(word); }}"
            )],
        },
        (Length::One, _) => Conversion {
            after: vec![format!(
                "if code == 0 && !{name}.is_null() {{ *{name} = convert::{meaning}_out::<Program>(*{name}); }}"
            )],
            ..Conversion::argument(name.clone())
        },
        (_, Access::In) => Conversion {
            before: array(
                &format!("{name}_standard"),
                &format!(
                    "convert::integers(ARRAY, {name}, {}, convert::{meaning}_in::<Program>);",
                    length(parameter, large)
                ),
            ),
            argument: format!("{name}_standard.as_ptr()"),
            after: Vec::new(),
        },
        _ => Conversion {
            after: vec![format!(
                "if code == 0 {{ convert::integers_out({name}, {}, convert::{meaning}_out::<Program>); }}",
                length(parameter, large)
            )],
            ..Conversion::argument(name.clone())
        },
    }
}

/// Statements that make an array and fill it in the same variable, because it is too large to be
/// moved. ARRAY stands for the array in `fill`.
fn array(name: &str, fill: &str) -> Vec<String> {
    let fill = fill.replace("ARRAY.", &format!("{name}."));
    vec![
        format!("let mut {name} = Array::null();"),
        fill.replace("ARRAY", &format!("&mut {name}")),
    ]
}

/// The name of a parameter in generated statements, where all keys of attributes have one name.
fn of_keyval(name: &str) -> &str {
    if name.ends_with("keyval") {
        "keyval"
    } else {
        name
    }
}

fn handle(procedure: &Procedure, parameter: &Parameter, large: bool) -> Conversion {
    let name = &parameter.name;
    let class = format!("CLASSES.{}", parameter.kind.word());
    let standard = format!("{name}_standard");
    match (&parameter.length, parameter.access) {
        (Length::One, Access::In) => Conversion {
            before: vec![format!("let {standard} = {class}.standard({name});")],
            argument: standard,
            after: Vec::new(),
        },
        (Length::One, Access::InOut) => Conversion {
            before: vec![format!("let mut {standard} = {class}.standard_at({name});")],
            argument: format!("convert::address({name}, &mut {standard})"),
            after: vec![format!("{class}.update({name}, {standard});")],
        },
        (Length::One, _) => {
            let mut after = vec![format!("{class}.give({name}, {standard});")];
            if has_late_arrays(procedure) && class == "CLASSES.request" {
                after = vec![format!("arrays.keep::<Program>({name}, {standard});")];
            }
            Conversion {
                before: vec![format!("let mut {standard} = 0;")],
                argument: format!("convert::address({name}, &mut {standard})"),
                after,
            }
        }
        (Length::Unknown, _)
            if procedure.name.ends_with('w') || procedure.name.ends_with("w_init") =>
        {
            types_of_comm(procedure, parameter)
        }
        (_, Access::In) => Conversion {
            before: array(
                &standard,
                &format!(
                    "{class}.array(ARRAY, {name}, {});",
                    length_at_root(procedure, parameter, large)
                ),
            ),
            argument: format!("{standard}.as_ptr()"),
            after: Vec::new(),
        },
        (_, Access::InOut) => Conversion {
            before: array(
                &standard,
                &format!(
                    "{class}.array(ARRAY, {name}, {});",
                    length(parameter, large)
                ),
            ),
            argument: format!("{standard}.as_mut_ptr()"),
            after: vec![format!(
                "{class}.update_all({name}, {standard}.as_slice());"
            )],
        },
        // Tools interface: the length is unknown, and our library fills no such array.
        (Length::Unknown, _) => Conversion::argument(format!("convert::unsupported({name})")),
        _ => Conversion {
            before: array(
                &standard,
                &format!(
                    "if !{name}.is_null() {{ ARRAY.fill({}, |_| 0usize); }}",
                    length(parameter, large)
                ),
            ),
            argument: format!("{standard}.as_mut_ptr()"),
            after: vec![format!("{class}.give_all({name}, {standard}.as_slice());")],
        },
    }
}

/// The conversion of the datatypes of a collective with one type for each peer.
fn types_of_comm(procedure: &Procedure, parameter: &Parameter) -> Conversion {
    let name = &parameter.name;
    let receives = name.starts_with("recv");
    let count = if procedure.name.contains("eighbor") {
        format!("peers::neighbours(comm_standard, {receives})")
    } else {
        "peers::ranks(comm_standard)".into()
    };
    // With MPI_IN_PLACE the types of sent data are not significant.
    let count = if receives {
        count
    } else {
        format!("if convert::is_in_place::<Program>(sendbuf) {{ 0 }} else {{ {count} }}")
    };
    let mut before = Vec::new();
    if !receives {
        // The communicator's parameter comes later, and its variable then shadows this one.
        before.push("let comm_standard = CLASSES.comm.standard(comm);".into());
        before.push("let mut arrays = LateArrays::default();".into());
    }
    before.push(format!(
        "let {name}_standard = arrays.types::<Program>({name}, {count});"
    ));
    Conversion {
        before,
        argument: format!("{name}_standard"),
        after: Vec::new(),
    }
}

/// True if the library may read arrays of handles after the call.
fn has_late_arrays(procedure: &Procedure) -> bool {
    procedure.name.to_ascii_lowercase().contains("alltoallw")
}

/// The length of an array that is significant at the root only, where other ranks may pass
/// anything.
fn length_at_root(procedure: &Procedure, parameter: &Parameter, large: bool) -> String {
    let length = length(parameter, large);
    if procedure.name == "Comm_spawn_multiple" {
        return format!("if peers::is_rank::<Program>(comm, root) {{ {length} }} else {{ 0 }}");
    }
    length
}

fn file(parameter: &Parameter) -> Conversion {
    let name = &parameter.name;
    match parameter.access {
        Access::In => Conversion::argument(format!("convert::file_in::<Program>({name})")),
        _ => Conversion {
            before: vec![format!(
                "let mut {name}_standard = convert::at({name}, convert::file_in::<Program>);"
            )],
            argument: format!("convert::address({name}, &mut {name}_standard)"),
            after: vec![format!(
                "if !{name}.is_null() {{ *{name} = convert::file_out::<Program>({name}_standard); }}"
            )],
        },
    }
}

fn status(procedure: &Procedure, parameter: &Parameter) -> Conversion {
    let name = &parameter.name;
    let standard = format!("{name}_standard");
    let cancellable = procedure
        .parameters
        .iter()
        .any(|p| p.kind.word() == "request");
    match (&parameter.length, parameter.access) {
        (Length::One, Access::Out) => Conversion {
            before: vec![format!("let mut {standard} = StandardStatus::unset();")],
            argument: format!("status::argument::<Program>({name}, &mut {standard})"),
            after: vec![format!(
                "status::give::<Program, {cancellable}>({name}, &{standard});"
            )],
        },
        (Length::One, access) => Conversion {
            before: vec![format!(
                "let mut {standard} = status::standard::<Program>({name});"
            )],
            argument: format!("convert::address({name}.cast_mut(), &mut {standard})"),
            after: match access {
                Access::InOut => vec![format!(
                    "status::give::<Program, true>({name}, &{standard});"
                )],
                _ => Vec::new(),
            },
        }
        .with_mutable(access),
        _ => Conversion {
            // The requests precede their statuses; without requests, no statuses are written.
            before: array(
                &standard,
                &format!(
                    "if !array_of_requests_standard.as_ptr().is_null() {{ status::unset::<Program>(ARRAY, {name}, {}); }}",
                    length(parameter, false)
                ),
            ),
            argument: format!("{standard}.as_mut_ptr()"),
            after: vec![format!(
                "status::give_all::<Program>({name}, {standard}.as_slice());"
            )],
        },
    }
}

/// The conversion of a string whose greatest length is lower in the program's ABI: it is limited to
/// the caller's. `None` for other strings.
fn text(
    procedure: &Procedure,
    parameter: &Parameter,
    is_shorter: &dyn Fn(&str) -> bool,
) -> Option<Conversion> {
    let Length::Named(limit) = &parameter.length else {
        return None;
    };
    if !is_shorter(limit) || parameter.access == Access::In {
        return None;
    }
    let name = &parameter.name;
    let mut parameters = procedure.parameters.iter();
    let is_measured = parameters.any(|parameter| parameter.name == "resultlen");
    let measure = if is_measured {
        "resultlen"
    } else {
        "std::ptr::null_mut()"
    };
    Some(Conversion {
        before: vec![format!(
            "let mut {name}_standard = [0 as c_char; standard_constants::{limit} as usize];"
        )],
        argument: format!("convert::address({name}, &mut {name}_standard).cast()"),
        after: vec![format!(
            "if code == 0 {{ convert::text(&{name}_standard, {name}, Program::{limit} as usize, {measure}); }}"
        )],
    })
}

/// The length of an array, as an expression of the generated code.
fn length(parameter: &Parameter, _large: bool) -> String {
    match &parameter.length {
        Length::Named(length) if length.starts_with("MPI_") => {
            format!("standard_constants::{length}")
        }
        Length::Named(length) => format!("{length} as i64"),
        _ => "0".into(),
    }
}
