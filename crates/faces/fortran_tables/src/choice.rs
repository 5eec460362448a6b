//! Generator of the entry points of `mpi_f08` that get descriptors of choice buffers. An argument
//! without gaps is passed to the entry point without sections; for others the kind of the buffer
//! determines the form in which the library gets it.

use crate::conversion::Conversion;
use crate::kinds::FortranParameter;
use std::fmt::Write;
use tables::table::{Access, Parameter, Procedure};

/// The form in which the library gets a buffer with gaps (`sections` of `fortran_convert`).
enum Way {
    /// A datatype describes the buffer. The fields are the names of its count and its datatype.
    Described(String, String),
    /// The buffer is copied. The field is an expression for the number of bytes that the call uses.
    Packed(String),
    /// The buffer holds one element of this datatype.
    Element(String),
    /// The buffer is memory that the library keeps, which must have no gaps.
    Memory,
    /// Only the address of the buffer is used.
    Address,
}

/// The body of the entry point; `None` if the procedure has no choice buffers.
pub(crate) fn body(
    procedure: &Procedure,
    large: bool,
    conversions: &[Conversion],
) -> Option<String> {
    let all: Vec<_> = procedure.parameters(large).collect();
    let buffers: Vec<_> = all
        .iter()
        .filter(|parameter| parameter.is_choice())
        .collect();
    if buffers.is_empty() {
        return None;
    }
    let name = procedure.c_name("", large).to_ascii_lowercase();
    let call = |ierror: &str| {
        let mut arguments: Vec<_> = conversions.iter().filter_map(Conversion::name).collect();
        arguments.push(ierror.into());
        arguments.extend(conversions.iter().filter_map(|c| c.length.clone()));
        format!("{name}::<P>({})", arguments.join(", "))
    };
    let names = |end: &str| {
        let names = buffers.iter().map(|buffer| format!("{}{end}", buffer.name));
        names.collect::<Vec<_>>().join(", ")
    };
    let mut text = format!(
        "    if let ({},) = ({},) {{\n        return {};\n    }}\n",
        buffers
            .iter()
            .map(|buffer| format!("Some({})", buffer.name))
            .collect::<Vec<_>>()
            .join(", "),
        names(".contiguous()"),
        call("ierror")
    );
    let lifetime = match procedure.name.ends_with("_init") {
        true => "Starts",
        false if request(&all).is_some() => "Request",
        false => "Call",
    };
    writeln!(
        text,
        "    let (mut sections, mut code) = (Sections::<Program>::new(Lifetime::{lifetime}), 0);"
    )
    .unwrap();
    for buffer in &buffers {
        write_way(&mut text, procedure, &all, buffer);
    }
    let request = request(&all).map_or("null()".into(), |name| format!("{name}.cast_const()"));
    write!(
        text,
        "    if let Some(refused) = sections.refused({}) {{\n        return give_code(ierror, refused);\n    }}\n    \
         {};\n    sections.end(code, {request});\n    give_code(ierror, code);\n",
        object(&all),
        call("&mut code"),
    )
    .unwrap();
    Some(text)
}

fn write_way(text: &mut String, procedure: &Procedure, all: &[&Parameter], buffer: &Parameter) {
    let name = buffer.name.as_str();
    match way(procedure, all, buffer) {
        Way::Described(count, datatype) => writeln!(
            text,
            "    let mut {name}_part = sections.described({name}, {count}, {datatype});\n    \
             let ({name}, {count}, {datatype}) = ({name}_part.address, &raw mut {name}_part.count, \
             &raw mut {name}_part.datatype);"
        ),
        Way::Packed(reach) => {
            let is_written = buffer.kind.word() == "out";
            writeln!(
                text,
                "    let {name} = sections.packed({name}, {is_written}, || {reach});"
            )
        }
        Way::Element(datatype) => {
            writeln!(
                text,
                "    let {name} = sections.element({name}, {datatype});"
            )
        }
        Way::Memory => writeln!(text, "    let {name} = sections.memory({name});"),
        Way::Address => writeln!(text, "    let {name} = {name}.address();"),
    }
    .unwrap();
}

/// The parameters that follow a buffer and describe it. If buffers share them, they follow the last
/// one.
fn following<'a>(all: &[&'a Parameter], buffer: &Parameter) -> Vec<&'a Parameter> {
    let own = all
        .iter()
        .position(|p| p.name == buffer.name)
        .expect("it is one of them")
        + 1;
    let behind = all[own..].iter().copied();
    let rest = behind.skip_while(|parameter| parameter.is_choice());
    rest.take_while(|parameter| !parameter.is_choice())
        .collect()
}

fn way(procedure: &Procedure, all: &[&Parameter], buffer: &Parameter) -> Way {
    let own = following(all, buffer);
    let find = |words: &[&str]| {
        own.iter()
            .copied()
            .find(|p| words.contains(&p.kind.word()) && p.access == Access::In)
    };
    let count = find(&["count", "count_at_root", "bytes"]);
    let datatype = find(&["datatype"]);
    let is_kept = all
        .iter()
        .any(|p| ["size", "partitions"].contains(&p.name.as_str()));
    match (count, datatype) {
        _ if is_kept => Way::Memory,
        (None, None) => Way::Address,
        (None, Some(datatype)) => Way::Element(datatype.name.clone()),
        // A buffer of bytes: packed data.
        (Some(count), None) => Way::Packed(format!("Ok(reach::Integer::get(*{}))", count.name)),
        (Some(count), Some(datatype)) => match reach(procedure, all, buffer, count, datatype) {
            Some(reach) => Way::Packed(reach),
            None => Way::Described(count.name.clone(), datatype.name.clone()),
        },
    }
}

/// An expression for the bytes that a call uses of a buffer that is copied: one with several
/// blocks, of a reduction, or of a conversion. `None`: the buffer is described by a datatype.
fn reach(
    procedure: &Procedure,
    all: &[&Parameter],
    buffer: &Parameter,
    count: &Parameter,
    datatype: &Parameter,
) -> Option<String> {
    let has = |word: &str| all.iter().any(|parameter| parameter.kind.word() == word);
    let name = procedure.name.to_ascii_lowercase();
    let receives = buffer.kind.word() == "out";
    let (count_name, types) = (&count.name, &datatype.name);
    let standard = format!("from_integer::<Program, Datatype>(*{types})");
    // A conversion needs the program's datatype, not one of bytes.
    if name.contains("external") {
        return Some(format!(
            "reach::blocks::<Program, _>(*{count_name}, {standard}, 1)"
        ));
    }
    if ![6, 8].contains(&procedure.chapter) {
        return None;
    }
    if has("op") {
        return Some(reach_of_reduction(
            &name,
            receives,
            count,
            &standard,
            has("root"),
        ));
    }
    // The buffers of these procedures have one block for each peer.
    let is_many = name.contains("alltoall")
        || name.contains("gather") && receives
        || name.contains("scatter") && !receives;
    if !is_many {
        return None;
    }
    let peers = match name.contains("neighbor") {
        true => format!("peers::neighbours::<Program>(comm, {receives})"),
        false => "peers::ranks::<Program>(comm)".into(),
    };
    let displacements = following(all, buffer);
    let displacements = displacements.iter().find(|p| p.name.ends_with("displs"));
    let reach = match displacements {
        None => format!("reach::blocks::<Program, _>(*{count_name}, {standard}, {peers})"),
        Some(places) if datatype.is_array() => {
            format!(
                "reach::mixed::<Program, _, _>({count_name}, {}, {types}, {peers})",
                places.name
            )
        }
        Some(places) => format!(
            "reach::vector::<Program, _, _>({count_name}, {}, {standard}, {peers})",
            places.name
        ),
    };
    Some(match has("root") {
        true => format!("reach::at_root::<Program>(comm, *root, || {reach})"),
        false => reach,
    })
}

fn reach_of_reduction(
    name: &str,
    receives: bool,
    count: &Parameter,
    datatype: &str,
    has_root: bool,
) -> String {
    let count_name = &count.name;
    // The result of a rank is one block, unless it replaces the operand (MPI_IN_PLACE).
    let whole_or = |whole: String, own: String| match receives {
        true => {
            format!("if buffer::is_in_place::<Program>(sendbuf) {{ {whole} }} else {{ {own} }}")
        }
        false => whole,
    };
    let one = format!("reach::blocks::<Program, _>(*{count_name}, {datatype}, 1)");
    if count.is_array() {
        let whole = format!(
            "reach::sum::<Program, _>({count_name}, {datatype}, peers::size::<Program>(comm))"
        );
        return whole_or(
            whole,
            format!("reach::own::<Program, _>(comm, {count_name}, {datatype})"),
        );
    }
    if name.contains("scatter_block") {
        let whole = format!(
            "reach::blocks::<Program, _>(*{count_name}, {datatype}, peers::size::<Program>(comm))"
        );
        return whole_or(whole, one);
    }
    match receives && has_root {
        true => format!("reach::at_root::<Program>(comm, *root, || {one})"),
        false => one,
    }
}

/// The name of the request that the call makes; `None` if it makes none.
fn request<'a>(all: &[&'a Parameter]) -> Option<&'a str> {
    let mut all = all.iter();
    all.find(|p| p.kind.word() == "request" && p.access == Access::Out)
        .map(|p| p.name.as_str())
}

/// The object whose error handler is called, as an expression.
fn object(all: &[&Parameter]) -> String {
    let classes = [
        ("comm", "Comm"),
        ("win", "Win"),
        ("file", "File"),
        ("session", "Session"),
    ];
    let found = classes.iter().find_map(|(word, class)| {
        let parameter = all
            .iter()
            .find(|p| p.kind.word() == *word && p.access == Access::In && !p.is_array())?;
        Some(format!("Object::{class}({})", parameter.name))
    });
    found.unwrap_or("Object::None".into())
}
