//! The parser of `procedures.txt`, whose head explains its columns, and of `removed.txt`.

use crate::kinds::Kind;

/// A chapter of the standard, and its procedures in C.
pub struct Chapter {
    /// The number of the chapter in the standard; 0 for names that are not in the ABI.
    pub number: u32,
    /// The title of the chapter in the standard.
    pub title: String,
    /// The procedures of the chapter in the order of the table.
    pub procedures: Vec<Procedure>,
}

/// A procedure: a row of the table.
pub struct Procedure {
    /// The name without `MPI_`.
    pub name: String,
    /// The number of the chapter; 0 for a name that is not in the ABI.
    pub chapter: u32,
    /// True if the procedure also has a form `_c`, with MPI_Count where this one has int.
    pub large: bool,
    /// True if the procedure may be called before MPI_Init and after MPI_Finalize.
    pub early: bool,
    /// The version of the standard that deprecated the procedure, if one did.
    pub deprecated: Option<String>,
    /// The kind of the return value, if it is not an error code.
    pub returns: Option<Kind>,
    /// The state of the implementation.
    pub state: State,
    /// The parameters in C, including those that only the `_c` form has.
    pub parameters: Vec<Parameter>,
}

/// The state of the implementation of a procedure.
pub enum State {
    /// The function of the procedure's own name implements it.
    Works,
    /// The function of another procedure, which is named, implements it.
    WorksAs(String),
    /// The procedure does not work yet. The field is the name of the planned work that will
    /// implement it.
    Waits(String),
}

/// A parameter of a procedure.
pub struct Parameter {
    /// The name of the parameter in C.
    pub name: String,
    /// The kind of the parameter, which determines its types and its check.
    pub kind: Kind,
    /// The access to the parameter's value: read, written or both.
    pub access: Access,
    /// The length of the parameter, if it is an array.
    pub length: Length,
    /// True if NULL is allowed.
    pub optional: bool,
    /// True if only the `_c` form has the parameter.
    pub only_large: bool,
}

/// The access to a parameter's value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// By value, or an array that is read.
    In,
    /// `<`: read through a pointer.
    Read,
    /// `>`: written.
    Out,
    /// `<>`: read and written.
    InOut,
}

/// The length of a parameter that may be an array.
#[derive(PartialEq, Eq)]
pub enum Length {
    /// The parameter is no array.
    One,
    /// `[*]`: the length follows from the communicator.
    Unknown,
    /// `[NAME]`: the length is another parameter, or a constant if the name begins with `MPI_`.
    Named(String),
}

impl Procedure {
    /// The name of the Rust function that implements the procedure.
    pub(crate) fn face(&self) -> String {
        match &self.state {
            State::WorksAs(other) => other.to_ascii_lowercase(),
            _ => self.name.to_ascii_lowercase(),
        }
    }

    /// True if the library implements the procedure.
    pub fn works(&self) -> bool {
        !matches!(self.state, State::Waits(_))
    }

    /// True if the procedure belongs to the tools interface, whose errors go through no handler.
    pub fn is_tools(&self) -> bool {
        self.name.starts_with("T_")
    }

    /// True if a trace of the program's calls includes the procedure.
    pub(crate) fn is_announced(&self) -> bool {
        self.works() && !self.is_tools() && !self.early && self.returns.is_none()
    }

    /// True if the procedure makes an object with an error handler that it gets, and which also
    /// gets the errors of this call (MPI 5.0 §7.4.2, §11.3.1).
    pub(crate) fn makes_with_errhandler(&self) -> bool {
        let has = |words: &[&str], access: Access| {
            let mut parameters = self.parameters.iter();
            parameters.any(|p| words.contains(&p.kind.word()) && p.access == access)
        };
        has(&["errhandler"], Access::In) && has(&["comm", "session"], Access::Out)
    }

    /// True if the procedure makes or frees a communicator, a window or a file.
    pub(crate) fn constructs(&self) -> bool {
        let is_shared = |p: &Parameter| {
            ["comm", "win", "file"].contains(&p.kind.word()) && p.length == Length::One
        };
        let is_changed = |p: &Parameter| matches!(p.access, Access::Out | Access::InOut);
        self.parameters
            .iter()
            .any(|p| is_shared(p) && is_changed(p))
    }

    /// The memory of the program that a call uses until it returns, or until its request is
    /// complete: the parameters for address, count and datatype, and true if the memory is written.
    /// Empty except for messages and operations on windows.
    pub(crate) fn used_memory(&self) -> Vec<([&Parameter; 3], bool)> {
        let is_told = matches!(self.chapter, 3 | 12) && !self.name.ends_with("_init");
        let all: Vec<&Parameter> = self.parameters.iter().filter(|_| is_told).collect();
        let triples = all.windows(3).filter_map(|three| {
            let [address, count, datatype] = [three[0], three[1], three[2]];
            let is_written = match address.kind.word() {
                "in" => false,
                "out" => true,
                _ => return None,
            };
            let fits = count.kind.word() == "count" && datatype.kind.word() == "datatype";
            fits.then_some(([address, count, datatype], is_written))
        });
        triples.collect()
    }

    /// The forms of the procedure: `[false]`, or `[false, true]` if it has a `_c` form.
    pub fn forms(&self) -> &'static [bool] {
        if self.large { &[false, true] } else { &[false] }
    }

    /// The name in C, with `prefix` before it.
    pub fn c_name(&self, prefix: &str, large: bool) -> String {
        format!("{prefix}{}{}", self.name, if large { "_c" } else { "" })
    }

    /// The parameters of the large or of the plain form.
    pub fn parameters(&self, large: bool) -> impl Iterator<Item = &Parameter> {
        self.parameters
            .iter()
            .filter(move |parameter| large || !parameter.only_large)
    }
}

/// Parses a table of procedures.
///
/// # Errors
/// The number of an invalid line, and the reason.
pub fn parse(text: &str) -> Result<Vec<Chapter>, String> {
    let mut chapters: Vec<Chapter> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |why: String| format!("procedures.txt:{}: {why}: {line}", index + 1);
        if let Some(heading) = line.strip_prefix("chapter ") {
            let (number, title) = heading
                .split_once(' ')
                .ok_or_else(|| at("a chapter is `chapter NUMBER TITLE`".into()))?;
            chapters.push(Chapter {
                number: number
                    .parse()
                    .map_err(|_| at(format!("`{number}` is no number")))?,
                title: title.into(),
                procedures: Vec::new(),
            });
            continue;
        }
        let chapter = chapters
            .last_mut()
            .ok_or_else(|| at("a procedure before the first chapter".into()))?;
        let procedure = parse_procedure(line, chapter.number).map_err(at)?;
        chapter.procedures.push(procedure);
    }
    Ok(chapters)
}

fn parse_procedure(line: &str, chapter: u32) -> Result<Procedure, String> {
    let mut columns = line.split_whitespace();
    let mut column = |what| columns.next().ok_or(format!("no {what}"));
    let name = column("name")?.to_string();
    let marks = column("marks")?;
    let state = match column("state")? {
        "works" => State::Works,
        work => match work.strip_prefix("works=") {
            Some(other) => State::WorksAs(other.into()),
            None => State::Waits(work.into()),
        },
    };
    let (marks, returns) = match marks.split_once('=') {
        Some((marks, kind)) => (marks, Some(Kind::named(kind)?)),
        None => (marks, None),
    };
    let (marks, deprecated) = match marks.split_once('d') {
        Some((marks, version)) => (marks, Some(version.to_string())),
        None => (marks, None),
    };
    if let Some(unknown) = marks.chars().find(|mark| !"-ce".contains(*mark)) {
        return Err(format!("unknown mark `{unknown}`"));
    }
    let parameters = columns
        .map(parse_parameter)
        .collect::<Result<Vec<_>, _>>()?;
    for (index, parameter) in parameters.iter().enumerate() {
        if let Length::Named(length) = &parameter.length {
            // Arguments are decoded in order.
            let mut before = parameters[..index]
                .iter()
                .filter(|p| p.access == Access::In);
            if !length.starts_with("MPI_") && !before.any(|p| &p.name == length) {
                return Err(format!(
                    "`{length}` is no value before `{}`",
                    parameter.name
                ));
            }
        }
    }
    Ok(Procedure {
        name,
        chapter,
        large: marks.contains('c'),
        early: marks.contains('e'),
        deprecated,
        returns,
        state,
        parameters,
    })
}

/// Parses `name:>kind[length]?@c`, of which only the kind is required.
fn parse_parameter(text: &str) -> Result<Parameter, String> {
    let (name, rest) = match text.split_once(':') {
        Some((name, rest)) => (Some(name), rest),
        None => (None, text),
    };
    let (rest, only_large) = strip_end(rest, "@c");
    let (rest, optional) = strip_end(rest, "?");
    let (access, rest) = [
        ("<>", Access::InOut),
        (">", Access::Out),
        ("<", Access::Read),
    ]
    .into_iter()
    .find_map(|(sign, access)| Some((access, rest.strip_prefix(sign)?)))
    .unwrap_or((Access::In, rest));
    let (kind, length) = match rest.strip_suffix(']').and_then(|r| r.split_once('[')) {
        Some((kind, "*" | "")) => (kind, Length::Unknown),
        Some((kind, length)) => (kind, Length::Named(length.into())),
        None => (rest, Length::One),
    };
    Ok(Parameter {
        name: name.unwrap_or(kind).into(),
        kind: Kind::named(kind)?,
        access,
        length,
        optional,
        only_large,
    })
}

fn strip_end<'a>(text: &'a str, end: &str) -> (&'a str, bool) {
    match text.strip_suffix(end) {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}
