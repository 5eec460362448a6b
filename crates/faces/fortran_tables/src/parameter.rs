//! Generator of the code that converts one parameter from Fortran to C. The code follows from the
//! parameter's kind.

use crate::conversion::{Conversion, dummy};
use crate::kinds::{FortranParameter, FortranProcedure};
use tables::table::{Access, Length, Parameter, Procedure};

/// The generated conversion of a parameter.
pub(crate) fn conversion(procedure: &Procedure, parameter: &Parameter, large: bool) -> Conversion {
    let name = parameter.name.as_str();
    let word = parameter.kind.word();
    let is_dummy = procedure
        .fortran_parameters(large)
        .any(|other| other.name == name);
    if !is_dummy {
        let of_main = if parameter.rust(large).starts_with('*') {
            "null_mut()"
        } else {
            "0"
        };
        return Conversion {
            argument: of_main.into(),
            ..Conversion::default()
        };
    }
    if parameter.handle().is_some() {
        return handle(procedure, parameter);
    }
    match word {
        _ if parameter.is_function() => function(procedure, parameter, large).long(),
        "in" | "out" => {
            let choice = dummy(name, "c_void", format!("buffer::choice::<Program>({name})"));
            Conversion {
                is_choice: true,
                known: Some((format!("buffer::is_memory({name})"), name.into())),
                ..choice
            }
        }
        // The type of this argument is wrong in `mpi`, where it is therefore unused (MPI 5.0 §3.6).
        "detached" => {
            let unused = format!("let (mut detached, _) = (null_mut::<c_void>(), {name});");
            let of_mpi = dummy(name, "c_void", "(&raw mut detached).cast()".into());
            Conversion {
                f08: Some(format!("{name}.cast()")),
                f08_after: Some(format!(
                    "if code == 0 {{ buffer::detached::<Program>({name}.cast()); }}"
                )),
                ..of_mpi.before(unused)
            }
        }
        "ptr" => dummy(name, "c_void", name.into()),
        "status" => status(parameter),
        "str" => text(procedure, parameter),
        "commands" | "argv" | "argvs" => spawn(parameter),
        "flag" => flag(parameter),
        "index" => index(parameter),
        "weight" => dummy(name, "c_int", format!("buffer::weights::<Program>({name})")).long(),
        "errcode" => dummy(
            name,
            "c_int",
            format!("buffer::errcodes::<Program>({name})"),
        )
        .long(),
        "attr" => attribute(procedure, parameter).long(),
        "state" => state(procedure, parameter).long(),
        "memory" => dummy(name, "c_void", format!("{name}.cast()")),
        _ => integer(procedure, parameter, large),
    }
}

/// The number of elements of an array, as an expression of the generated code.
fn length(procedure: &Procedure, parameter: &Parameter) -> String {
    let name = parameter.name.as_str();
    match &parameter.length {
        Length::Named(length) => format!("*{length} as i64"),
        _ if name == "remain_dims" => "peers::dimensions::<Program>(comm)".into(),
        _ if procedure.name.contains("eighbor") => {
            let receives = name.starts_with("recv");
            format!("peers::neighbours::<Program>(comm, {receives})")
        }
        // With MPI_IN_PLACE the types of sent data are not significant.
        _ if name.starts_with("send") => {
            "if buffer::is_in_place::<Program>(sendbuf) { 0 } else { peers::ranks::<Program>(comm) }".into()
        }
        _ => "peers::ranks::<Program>(comm)".into(),
    }
}

fn handle(procedure: &Procedure, parameter: &Parameter) -> Conversion {
    let converted = handle_of_class(procedure, parameter);
    if class(parameter) != "Request" || parameter.access == Access::Out {
        return converted;
    }
    let length = match parameter.is_array() {
        true => length(procedure, parameter),
        false => "1".into(),
    };
    let name = parameter.name.as_str();
    match (parameter.access, procedure.starts_requests()) {
        (_, true) => converted.before(format!("requests::start({name}, {length});")),
        (Access::In, _) => converted.after(format!(
            "requests::all_unchanged::<Program>({name}, {length});"
        )),
        _ => converted,
    }
}

fn handle_of_class(procedure: &Procedure, parameter: &Parameter) -> Conversion {
    let name = parameter.name.as_str();
    let class = class(parameter);
    let standard = format!("{name}_standard");
    let alone = !parameter.is_array();
    match parameter.access {
        Access::In if alone => {
            let of = |function| format!("handle::{function}::<Program, {class}>(*{name})");
            Conversion {
                known: Some((of("is_known"), of("known"))),
                ..dummy(name, "c_int", of("from_integer"))
            }
        }
        Access::In if parameter.length == Length::Unknown => late_types(procedure, parameter),
        Access::In => dummy(name, "c_int", format!("{standard}.as_ptr()"))
            .before(format!("let mut {standard} = Array::null();"))
            .before(format!(
                "handle::fill::<Program, {class}>(&mut {standard}, {name}, {});",
                length_at_root(procedure, parameter)
            )),
        Access::InOut if alone => dummy(name, "c_int", format!("&mut {standard}"))
            .before(format!(
                "let mut {standard} = handle::from_integer::<Program, {class}>(*{name});"
            ))
            .after(format!(
                "handle::update::<Program, {class}>({name}, {standard});"
            )),
        Access::InOut => dummy(name, "c_int", format!("{standard}.as_mut_ptr()"))
            .before(format!("let mut {standard} = Array::null();"))
            .before(format!(
                "handle::fill::<Program, {class}>(&mut {standard}, {name}, {});",
                length(procedure, parameter)
            ))
            .after(format!(
                "handle::update_all::<Program, {class}>({name}, {standard}.as_slice());"
            )),
        _ if alone => {
            let give = dummy(name, "c_int", format!("&mut {standard}"))
                .variable(format!("let mut {standard} = 0;"))
                .after(format!(
                    "handle::give::<Program, {class}>({name}, {standard});"
                ));
            if has_late_types(procedure) && class == "Request" {
                return give.after(format!("types.keep({standard});"));
            }
            give
        }
        _ => dummy(name, "c_int", format!("{standard}.as_mut_ptr()"))
            .before(format!("let mut {standard} = Array::null();"))
            .before(format!(
                "{standard}.fill({}, |_| 0);",
                length(procedure, parameter)
            ))
            .after(format!(
                "handle::give_all::<Program, {class}>({name}, {standard}.as_slice());"
            )),
    }
}

/// The Rust type that represents a class of handles.
fn class(parameter: &Parameter) -> String {
    let word = parameter.kind.word();
    word[..1].to_ascii_uppercase() + &word[1..]
}

/// True if the library may read arrays of handles after the call.
fn has_late_types(procedure: &Procedure) -> bool {
    let name = procedure.name.to_ascii_lowercase();
    name.contains("alltoallw") && procedure.outlasts()
}

/// The conversion of the datatypes of a collective with one type for each peer.
fn late_types(procedure: &Procedure, parameter: &Parameter) -> Conversion {
    let name = parameter.name.as_str();
    let length = length(procedure, parameter);
    let types = dummy(name, "c_int", format!("{name}_standard"));
    let types = match name.starts_with("send") {
        true => types.before("let mut types = LateTypes::<Program>::new();"),
        false => types,
    };
    types.before(format!(
        "let {name}_standard = types.add({name}, {length});"
    ))
}

/// The length of an array that is significant at the root only, where other ranks may pass
/// anything.
fn length_at_root(procedure: &Procedure, parameter: &Parameter) -> String {
    let length = length(procedure, parameter);
    match procedure.name.as_str() {
        "Comm_spawn_multiple" => format!("peers::at_root::<Program>(comm, *root, {length})"),
        _ => length,
    }
}

fn function(procedure: &Procedure, parameter: &Parameter, large: bool) -> Conversion {
    let name = parameter.name.as_str();
    let kind = parameter.kind.word().trim_start_matches("fn_");
    let form = match kind {
        _ if procedure.is_old() && kind.ends_with("attr_function") => "old_",
        "user_function" | "datarep_conversion_function" if large => "large_",
        _ => "",
    };
    // Two functions of one kind are distinguished by their indices in the state.
    let place = match kind {
        "datarep_conversion_function" => format!(", {}", usize::from(name.starts_with("write"))),
        _ => String::new(),
    };
    dummy(
        name,
        "c_void",
        format!("callbacks::{form}{kind}::<Program{place}>({name})"),
    )
}

fn status(parameter: &Parameter) -> Conversion {
    let name = parameter.name.as_str();
    let argument = match (parameter.access, parameter.is_array()) {
        (Access::Out, false) => format!("buffer::status::<Program, _>({name})"),
        (Access::Out, true) => format!("buffer::statuses::<Program, _>({name})"),
        _ => name.into(),
    };
    dummy(name, "Status", argument)
}

fn text(procedure: &Procedure, parameter: &Parameter) -> Conversion {
    let name = parameter.name.as_str();
    let standard = format!("{name}_standard");
    let own = format!("{name}, {name}_length");
    let converted = match (parameter.access, &parameter.length) {
        (Access::In, _) => {
            let function = if name == "key" || name == "value" {
                "trimmed"
            } else {
                "input"
            };
            dummy(name, "u8", format!("{standard}.as_ptr()"))
                .before(format!("let {standard} = text::{function}({own});"))
        }
        (_, Length::Named(limit)) => {
            let limit = match limit.starts_with("MPI_") {
                true => format!("Program::{limit} as usize"),
                false => format!("text::room(*{limit})"),
            };
            dummy(name, "u8", format!("{standard}.as_mut_ptr()"))
                .before(format!("let mut {standard} = text::Output::new({limit});"))
                .after(output(procedure, name))
        }
        // The length is the parameter before, which is read and written.
        _ => dummy(name, "u8", format!("{standard}.as_mut_ptr()"))
            .before(format!(
                "let mut {standard} = text::Output::new(text::room(*{}));",
                length_name(procedure)
            ))
            .after(output(procedure, name)),
    };
    converted.with_length(name)
}

/// The statement that writes a string of the library to the program's variable.
fn output(procedure: &Procedure, name: &str) -> String {
    let found = procedure.parameters.iter().any(|p| p.name == "flag");
    let condition = if found {
        "code == 0 && flag_standard != 0"
    } else {
        "code == 0"
    };
    format!("if {condition} {{ {name}_standard.write({name}, {name}_length); }}")
}

/// The parameter with the size of the buffer for a string, which includes NUL only in C.
fn length_name(procedure: &Procedure) -> &str {
    let mut parameters = procedure.parameters.iter();
    let found = parameters.find(|p| matches!(p.name.as_str(), "buflen" | "pset_len"));
    found.map_or_else(
        || panic!("MPI_{}: no length of the text", procedure.name),
        |p| &p.name,
    )
}

fn spawn(parameter: &Parameter) -> Conversion {
    let name = parameter.name.as_str();
    let function = match parameter.kind.word() {
        "commands" => "commands".into(),
        word => format!("{word}::<Program>"),
    };
    let count = match parameter.kind.word() {
        "argv" => String::new(),
        _ => ", peers::at_root::<Program>(comm, *root, *count as i64)".into(),
    };
    dummy(name, "u8", format!("{name}_standard.as_mut_ptr()"))
        .before(format!(
            "let mut {name}_standard = spawn::{function}({name}, {name}_length{count});"
        ))
        .with_length(name)
}

fn flag(parameter: &Parameter) -> Conversion {
    let name = parameter.name.as_str();
    let standard = format!("{name}_standard");
    match (parameter.access, &parameter.length) {
        (Access::In, Length::One) => dummy(name, "c_int", format!("logical::to_c(*{name})")),
        (Access::In, length) => {
            let length = match length {
                Length::Named(length) => format!("*{length} as i64"),
                _ => "peers::dimensions::<Program>(comm)".into(),
            };
            dummy(name, "c_int", format!("{standard}.as_ptr()"))
                .before(format!("let mut {standard} = Array::null();"))
                .before(format!("logical::fill(&mut {standard}, {name}, {length});"))
        }
        (_, Length::One) => dummy(name, "c_int", format!("&mut {standard}"))
            .variable(format!("let mut {standard} = 0;"))
            .after(format!(
                "if code == 0 {{ *{name} = logical::from_c({standard}); }}"
            )),
        (_, length) => {
            let Length::Named(length) = length else {
                panic!("an array of flags without a length")
            };
            // An element has the size of an int, so the library writes to the program's array.
            dummy(name, "c_int", name.into()).after(format!(
                "if code == 0 {{ logical::convert({name}, *{length}); }}"
            ))
        }
    }
}

/// The conversion of an index of an array, which begins with 1 in Fortran.
fn index(parameter: &Parameter) -> Conversion {
    let name = parameter.name.as_str();
    let convert = match parameter.is_array() {
        true => format!("index::all_from_c::<Program>(code, {name}, *outcount);"),
        false => format!("index::from_c({name});"),
    };
    dummy(name, "c_int", name.into()).after(convert)
}

fn attribute(procedure: &Procedure, parameter: &Parameter) -> Conversion {
    let name = parameter.name.as_str();
    let old = procedure.is_old();
    let ty = if old { "c_int" } else { "isize" };
    let standard = format!("{name}_standard");
    if parameter.access == Access::In {
        return dummy(name, ty, format!("attributes::store(*{name} as isize)"));
    }
    let keyval = procedure
        .parameters
        .iter()
        .find(|p| p.name.ends_with("keyval"));
    let keyval = keyval.map_or("", |p| &p.name);
    dummy(name, ty, format!("(&raw mut {standard}).cast()"))
        .before(format!("let mut {standard} = null_mut::<c_void>();"))
        .after(format!(
            "if code == 0 && flag_standard != 0 {{ *{name} = attributes::load::<Program>(Program::keyval(*{keyval}), {standard}) as {ty}; }}"
        ))
}

/// The conversion of the extra state of users' functions: the library gets our state, which
/// contains the addresses of the program's functions and its extra state.
fn state(procedure: &Procedure, parameter: &Parameter) -> Conversion {
    let name = parameter.name.as_str();
    let functions = procedure.parameters.iter().filter(|p| p.is_function());
    let functions: Vec<_> = functions.map(|p| p.name.as_str()).collect();
    let ty = if procedure.is_old() { "c_int" } else { "isize" };
    let argument = format!(
        "callbacks::state(&[{}], *{name} as isize, {name}.cast())",
        functions.join(", ")
    );
    dummy(name, ty, argument)
}

fn integer(procedure: &Procedure, parameter: &Parameter, large: bool) -> Conversion {
    let name = parameter.name.as_str();
    let ty = parameter.kind.rust(large);
    let alone = !parameter.is_array();
    if procedure.is_old() && ty == "isize" {
        return old_integer(procedure, parameter);
    }
    if matches!(name, "buflen" | "pset_len") {
        return dummy(name, ty, format!("&mut {name}_standard"))
            .before(format!(
                "let mut {name}_standard = text::length_to_c(*{name});"
            ))
            .after(format!(
                "text::length_from_c(code, {name}, {name}_standard);"
            ));
    }
    match parameter.access {
        Access::In if alone && name.ends_with("keyval") => {
            dummy(name, ty, format!("Program::keyval(*{name})"))
        }
        Access::In if alone => dummy(name, ty, format!("*{name}")),
        _ => dummy(name, ty, name.into()),
    }
}

/// The conversion of an address of MPI 1, which is an integer of the default kind.
fn old_integer(procedure: &Procedure, parameter: &Parameter) -> Conversion {
    let name = parameter.name.as_str();
    let standard = format!("{name}_standard");
    match (parameter.access, parameter.is_array()) {
        (Access::In, false) => dummy(name, "c_int", format!("*{name} as isize")),
        (Access::In, true) => dummy(name, "c_int", format!("{standard}.as_ptr()"))
            .before(format!("let mut {standard} = Array::null();"))
            .before(format!(
                "integers::widen(&mut {standard}, {name}, {});",
                length(procedure, parameter)
            )),
        _ => dummy(name, "c_int", format!("&mut {standard}"))
            .before(format!("let mut {standard} = 0isize;"))
            .after(format!("if code == 0 {{ *{name} = {standard} as c_int; }}")),
    }
}
