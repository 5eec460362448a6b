//! Generator of the conversions of parameters of the few procedures that need more than conversions
//! of single values.

use crate::conversion::Conversion;
use tables::table::{Access, Parameter, Procedure};

/// The conversion of a parameter; `None` if it needs no special one.
pub(crate) fn special(
    procedure: &Procedure,
    parameter: &Parameter,
    large: bool,
) -> Option<Conversion> {
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

/// The conversion of the error codes of spawned processes. There is one code for each process, and
/// only the root has the number of processes.
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

/// The conversion of a parameter of `MPI_Register_datarep`: the functions of a data representation
/// and their extra state. `large`: the `_c` form, whose counts are wider. `None`: the parameter
/// needs no conversion of its own.
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

/// The conversion of the functions of attributes, which get the program's handles. `None`: the
/// procedure has no such functions.
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

/// The conversion of buffers of buffered sends, which must be larger for the standard ABI. `None`:
/// the parameter is no such buffer.
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
