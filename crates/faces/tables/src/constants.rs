//! The parser of `constants.txt`, and the generator of the module `constants`.

use std::fmt::Write;

/// A group of constants with the same subject.
pub struct Group {
    /// The title of the group in the table.
    pub title: String,
    /// The constants in the order of the table.
    pub constants: Vec<Constant>,
}

/// A constant: a row of the table.
pub struct Constant {
    /// The name of the constant in C.
    pub name: String,
    /// The value as text of the table: decimal, or hexadecimal for values that are not integers in
    /// C.
    pub value: String,
    /// The type of the constant in C, or `fortran`.
    pub c_type: String,
}

impl Constant {
    /// True if the constant exists in C.
    pub fn in_c(&self) -> bool {
        self.c_type != "fortran"
    }
}

/// Parses `constants.txt`.
///
/// # Errors
/// The number of an invalid line, and the reason.
pub fn parse(text: &str) -> Result<Vec<Group>, String> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix("group ") {
            groups.push(Group {
                title: title.into(),
                constants: Vec::new(),
            });
            continue;
        }
        let mut columns = line.split_whitespace();
        let (Some(name), Some(value)) = (columns.next(), columns.next()) else {
            return Err(format!(
                "constants.txt:{}: not NAME VALUE TYPE: {line}",
                index + 1
            ));
        };
        let group = groups.last_mut().ok_or_else(|| {
            format!(
                "constants.txt:{}: a constant before the first group",
                index + 1
            )
        })?;
        group.constants.push(Constant {
            name: name.into(),
            value: value.into(),
            c_type: columns.collect::<Vec<_>>().join(" "),
        });
    }
    Ok(groups)
}

/// The source text of the module `constants`.
pub fn generate(groups: &[Group]) -> String {
    let mut text = String::new();
    for group in groups {
        writeln!(text, "\n// {}", group.title).unwrap();
        for constant in group.constants.iter().filter(|constant| constant.in_c()) {
            let Constant {
                name,
                value,
                c_type,
            } = constant;
            let (ty, value) = rust(c_type, value);
            writeln!(
                text,
                "/// `{name}`: {}.\npub const {name}: {ty} = {value};",
                group.title
            )
            .unwrap();
        }
    }
    write_class_names(&mut text, groups);
    text
}

/// The Rust type and the Rust expression of a constant.
fn rust(c_type: &str, value: &str) -> (String, String) {
    let plain = |ty: &str| (ty.to_string(), value.to_string());
    let pointer = |ty: &str| {
        (
            format!("*mut {ty}"),
            format!("without_provenance_mut({value})"),
        )
    };
    match c_type {
        "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => plain("c_int"),
        "MPI_Offset" => plain("i64"),
        "void *" => pointer("c_void"),
        "int *" => pointer("c_int"),
        // The values of other pointers and of functions are only compared, as addresses.
        pointer if pointer.ends_with('*') => plain("usize"),
        tools if tools.starts_with("MPI_T_") => {
            ("ToolsHandle".into(), format!("ToolsHandle({value})"))
        }
        handle => {
            let class = handle.trim_start_matches("MPI_");
            (class.into(), format!("{class}({value})"))
        }
    }
}

fn write_class_names(text: &mut String, groups: &[Group]) {
    text.push_str(
        "\n/// The standard's name of a predefined error class.\n\
         pub fn error_class_name(class: c_int) -> Option<&'static str> {\n    Some(match class {\n",
    );
    let classes = groups.iter().filter(|group| group.title == "Error classes");
    for Constant { name, value, .. } in classes.flat_map(|group| &group.constants) {
        writeln!(text, "        {value} => \"{name}\",").unwrap();
    }
    text.push_str("        _ => return None,\n    })\n}\n");
}
