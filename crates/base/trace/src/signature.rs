//! The signature of a procedure: its name and its parameters in a line of text, such as
//! `MPI_Send buf:in count datatype dest tag comm`. The words are those of `procedures.txt`.

/// The most parameters of a procedure. The standard's have at most 14.
const MOST: usize = 32;

/// The kinds of parameters that are handles of objects that a rank makes.
pub const HANDLE_CLASSES: [&str; 8] = [
    "comm", "datatype", "file", "group", "message", "op", "request", "win",
];

/// A procedure with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The name of the procedure in C, such as `MPI_Send_c`.
    pub name: String,
    /// The parameters of the procedure, in order.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a procedure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// The name of the parameter in C.
    pub name: String,
    /// The kind of the parameter, such as `dest` or `datatype`.
    pub kind: String,
    /// The access to the parameter's value.
    pub access: Access,
    /// The length of the parameter, if it is an array.
    pub length: Length,
}

/// The access of a procedure to the value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

impl Access {
    const SIGNS: [(&'static str, Access); 4] = [
        ("<>", Access::InOut),
        (">", Access::Out),
        ("<", Access::Read),
        ("", Access::In),
    ];
}

/// The length of a parameter that may be an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    /// The parameter is no array.
    One,
    /// `[*]`: an array whose length follows from the communicator.
    Unknown,
    /// `[NAME]`: an array whose length is another parameter, or a constant.
    Named(String),
}

impl Signature {
    /// Parses the line of a signature. `None`: it is none.
    pub fn parse(line: &str) -> Option<Signature> {
        let mut words = line.split(' ');
        let name = words.next().filter(|name| is_name(name))?.to_string();
        let parameters: Option<Vec<Parameter>> = words.map(Parameter::parse).collect();
        let parameters = parameters.filter(|all| all.len() <= MOST)?;
        Some(Signature { name, parameters })
    }

    /// The line of the signature.
    pub fn line(&self) -> String {
        let mut line = self.name.clone();
        for parameter in &self.parameters {
            line.push(' ');
            line.push_str(&parameter.word());
        }
        line
    }

    /// The position of the parameter with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.parameters.iter().position(|one| one.name == name)
    }

    /// The number of the first parameter of this kind that is no array and is passed by value.
    pub fn first_of(&self, kind: &str) -> Option<usize> {
        let fits = |one: &Parameter| {
            one.kind == kind && one.access == Access::In && one.length == Length::One
        };
        self.parameters.iter().position(fits)
    }
}

impl Parameter {
    fn parse(word: &str) -> Option<Parameter> {
        let (name, rest) = word.split_once(':')?;
        let (sign, access) = Access::SIGNS
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))?;
        let rest = &rest[sign.len()..];
        let (kind, length) = match rest.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
            Some((kind, "*")) => (kind, Length::Unknown),
            Some((kind, length)) if is_name(length) => (kind, Length::Named(length.into())),
            Some(_) => return None,
            None => (rest, Length::One),
        };
        (is_name(name) && is_name(kind)).then(|| Parameter {
            name: name.into(),
            kind: kind.into(),
            access,
            length,
        })
    }

    fn word(&self) -> String {
        let sign = Access::SIGNS.iter().find(|row| row.1 == self.access);
        let sign = sign.map_or("", |row| row.0);
        let length = match &self.length {
            Length::One => String::new(),
            Length::Unknown => "[*]".into(),
            Length::Named(name) => format!("[{name}]"),
        };
        format!("{}:{sign}{}{length}", self.name, self.kind)
    }

    /// True if the parameter is an array.
    pub fn is_array(&self) -> bool {
        self.length != Length::One
    }

    /// True if the parameter is a handle of a class whose objects a rank makes.
    pub fn is_handle(&self) -> bool {
        HANDLE_CLASSES.contains(&self.kind.as_str())
    }
}

fn is_name(word: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !word.is_empty() && word.len() <= 64 && word.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_back_as_it_was() {
        let line = "MPI_Waitall count:n r:<>request[count] s:>status[count] x:count[*] y:<int";
        let signature = Signature::parse(line).unwrap();
        assert_eq!(signature.line(), line);
        assert_eq!(signature.parameters[1].access, Access::InOut);
        assert_eq!(signature.parameters[3].length, Length::Unknown);
        assert_eq!(signature.position("s"), Some(2));
        assert!(signature.parameters[1].is_handle() && signature.parameters[1].is_array());
        for wrong in [
            "",
            "MPI_Send buf",
            "MPI_Send b:in[",
            "MPI_Send b:in[]",
            "a b:>",
            "a :in",
        ] {
            assert_eq!(Signature::parse(wrong), None, "{wrong}");
        }
    }
}
