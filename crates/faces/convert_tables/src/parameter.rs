//! The conversion of one parameter: statements before the call of the standard ABI, the argument,
//! and statements after it.

use tables::table::{Access, Length, Parameter, Procedure};

#[derive(Default)]
pub(crate) struct Conversion {
    pub(crate) before: Vec<String>,
    pub(crate) argument: String,
    pub(crate) after: Vec<String>,
}

/// Classes of handles that the program has in a form of its own. A file is a pointer.
const HANDLES: &[&str] = &[
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

/// Integers with meanings of their own: procedure (`*`: all), parameter, and the conversion, for
/// which `convert` has a function for each direction.
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

impl Conversion {
    pub(crate) fn of(
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
                _ => {
                    meaning(procedure, parameter).map(|meaning| integer(parameter, large, meaning))
                }
            })
            .unwrap_or_else(|| Conversion::argument(name.clone()))
    }

    fn argument(argument: String) -> Conversion {
        Conversion {
            argument,
            ..Conversion::default()
        }
    }
}

/// The meaning of an integer.
fn meaning(procedure: &Procedure, parameter: &Parameter) -> Option<&'static str> {
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

/// Statements that make an array and fill it where it lies: it is too large to be moved. ARRAY
/// stands for it in the second.
fn array(name: &str, fill: &str) -> Vec<String> {
    let fill = fill.replace("ARRAY.", &format!("{name}."));
    vec![
        format!("let mut {name} = Array::null();"),
        fill.replace("ARRAY", &format!("&mut {name}")),
    ]
}

/// Keys of attributes have one name in statements.
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
        // Tools: the length is unknown, and no library of ours fills it.
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

/// The datatypes of an exchange with one type for each peer.
fn types_of_comm(procedure: &Procedure, parameter: &Parameter) -> Conversion {
    let name = &parameter.name;
    let receives = name.starts_with("recv");
    let count = if procedure.name.contains("eighbor") {
        format!("peers::neighbours(comm_standard, {receives})")
    } else {
        "peers::ranks(comm_standard)".into()
    };
    // With MPI_IN_PLACE the types of what is sent are not significant.
    let count = if receives {
        count
    } else {
        format!("if convert::is_in_place::<Program>(sendbuf) {{ 0 }} else {{ {count} }}")
    };
    let mut before = Vec::new();
    if !receives {
        // The communicator's parameter comes later, and its name then hides this one.
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

/// Whether the library may read arrays of handles after the call.
fn has_late_arrays(procedure: &Procedure) -> bool {
    procedure.name.to_ascii_lowercase().contains("alltoallw")
}

/// The length of an array that is significant at the root alone, where others may pass anything.
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
            // The requests stand before their statuses; without requests there are none to write.
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

impl Conversion {
    /// A pointer that is written needs no cast.
    fn with_mutable(mut self, access: Access) -> Conversion {
        if access == Access::InOut {
            self.argument = self.argument.replace(".cast_mut()", "");
        }
        self
    }
}

/// Texts whose longest form is shorter in the program's ABI are written by the caller's limit.
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

/// Parameters of the few procedures that have more to convert than words.
fn special(procedure: &Procedure, parameter: &Parameter, large: bool) -> Option<Conversion> {
    let (name, word) = (&parameter.name, parameter.kind.word());
    if let Some(conversion) = attribute(procedure, parameter) {
        return Some(conversion);
    }
    if let Some(class) = word
        .strip_prefix("fn_")
        .and_then(|w| w.strip_suffix("_errhandler_function"))
    {
        return Some(Conversion::argument(format!(
            "callbacks::{class}_errhandler::<Program>({name})"
        )));
    }
    if word == "fn_user_function" {
        let form = if large {
            "user_function_c"
        } else {
            "user_function"
        };
        return Some(Conversion::argument(format!(
            "callbacks::{form}::<Program>({name})"
        )));
    }
    if word == "t_pvar_handle" && parameter.access == Access::In {
        return Some(Conversion::argument(format!(
            "convert::variable_handle::<Program>({name})"
        )));
    }
    let is_weight = matches!(name.as_str(), "weights" | "sourceweights" | "destweights");
    if is_weight && parameter.access == Access::In {
        return Some(Conversion::argument(format!(
            "convert::weights::<Program>({name})"
        )));
    }
    if procedure.name.starts_with("Grequest_start") {
        return match name.as_str() {
            "query_fn" => Some(Conversion {
                before: vec!["let grequest = callbacks::grequest::<Program>(query_fn, free_fn, cancel_fn, extra_state);".into(), "let grequest_functions = callbacks::grequest_functions::<Program>();".into()],
                argument: "grequest_functions[0]".into(),
                after: vec!["callbacks::started_grequest::<Program>(code, grequest);".into()],
            }),
            "free_fn" => Some(Conversion::argument("grequest_functions[1]".into())),
            "cancel_fn" => Some(Conversion::argument("grequest_functions[2]".into())),
            "extra_state" => Some(Conversion::argument("grequest".into())),
            _ => None,
        };
    }
    if name == "array_of_errcodes" {
        return Some(codes_of_processes(procedure, name));
    }
    if procedure.name == "Register_datarep" {
        return representation(name, large);
    }
    buffered(procedure, parameter)
}

/// Error codes of spawned processes. They are as many as processes, which the root alone says.
fn codes_of_processes(procedure: &Procedure, name: &str) -> Conversion {
    let length = match procedure.name.as_str() {
        "Comm_spawn" => "maxprocs as i64",
        _ => "peers::sum(array_of_maxprocs, count)",
    };
    Conversion {
        after: vec![format!(
            "if !{name}.is_null() && peers::is_rank::<Program>(comm, root) {{ convert::integers_out({name}, {length}, convert::error_out::<Program>); }}"
        )],
        ..Conversion::argument(name.to_string())
    }
}

/// The functions of a data representation of files.
fn representation(name: &str, large: bool) -> Option<Conversion> {
    let field = match name {
        "read_conversion_fn" => "read",
        "write_conversion_fn" => "write",
        "dtype_file_extent_fn" => "extent",
        "extra_state" => "extra_state",
        _ => return None,
    };
    let count = if large { "i64" } else { "c_int" };
    let mut conversion = Conversion::argument(format!("functions.{field}"));
    if field == "read" {
        conversion.before.push(format!(
            "let functions = datarep::Functions::new::<Program, {count}>(read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, extra_state);"
        ));
    }
    Some(conversion)
}

/// The functions of attributes, which get the program's handles.
fn attribute(procedure: &Procedure, parameter: &Parameter) -> Option<Conversion> {
    let (name, word) = (&parameter.name, parameter.kind.word());
    let procedure_name = procedure.name.to_ascii_lowercase();
    if !procedure_name.ends_with("create_keyval") && procedure_name != "keyval_create" {
        return None;
    }
    if word.contains("copy_attr") {
        let class = ["type", "win"]
            .into_iter()
            .find(|class| word.starts_with(&format!("fn_{class}")));
        let class = match class {
            Some("type") => "Datatype",
            Some(_) => "Win",
            None => "Comm",
        };
        let delete = &procedure.parameters[1].name;
        return Some(Conversion {
            before: vec![format!(
                "let functions = attributes::Functions::new::<Program, classes::{class}>({name}, {delete}, extra_state);"
            )],
            argument: "functions.copy".into(),
            after: Vec::new(),
        });
    }
    if word.contains("delete_attr") {
        return Some(Conversion::argument("functions.delete".into()));
    }
    if name == "extra_state" {
        return Some(Conversion::argument("functions.extra_state".into()));
    }
    None
}

/// Buffers of buffered sends, which need more room behind the standard ABI.
fn buffered(procedure: &Procedure, parameter: &Parameter) -> Option<Conversion> {
    let name = parameter.name.as_str();
    let attaches = procedure
        .name
        .to_ascii_lowercase()
        .ends_with("attach_buffer")
        || procedure.name == "Buffer_attach";
    let detaches = procedure.name.ends_with("detach_buffer") || procedure.name == "Buffer_detach";
    match name {
        "buffer" if attaches && !detaches => Some(Conversion {
            before: vec![
                "let attached = buffers::Attached::new::<Program>(buffer, size as i64);".into(),
            ],
            argument: "attached.address".into(),
            after: vec!["attached.settle(code);".into()],
        }),
        "size" if attaches && !detaches => Some(Conversion::argument("attached.size as _".into())),
        "size" if detaches => Some(Conversion {
            after: vec![
                "if code == 0 { buffers::detach::<Program, _>(buffer_addr, size); }".into(),
            ],
            ..Conversion::argument("size".into())
        }),
        _ => None,
    }
}

/// The length of an array, as an expression.
fn length(parameter: &Parameter, _large: bool) -> String {
    match &parameter.length {
        Length::Named(length) if length.starts_with("MPI_") => {
            format!("standard_constants::{length}")
        }
        Length::Named(length) => format!("{length} as i64"),
        _ => "0".into(),
    }
}
