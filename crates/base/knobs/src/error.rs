//! The reasons why a setting cannot be used, such as an unknown variable or an invalid value.

use std::fmt;

/// The reason why a setting cannot be used. The text of the error names the variable, the value,
/// and the valid values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The variable begins with `FISHPLATE_` and is not known.
    Unknown {
        /// The name of the variable.
        variable: String,
        /// The known variable with the most similar name, if one is similar.
        nearest: Option<String>,
    },
    /// The value is not of the setting's type, or out of its range.
    Invalid {
        /// The name of the variable.
        variable: String,
        /// The invalid value.
        value: String,
        /// A description of the valid values.
        expected: String,
    },
    /// Two variables for one setting have different values.
    Twice {
        /// The name of the first variable.
        first: String,
        /// The name of the second variable.
        second: String,
    },
    /// The file that a setting names cannot be used.
    File {
        /// The name of the variable.
        variable: String,
        /// The path of the file.
        path: String,
        /// The reason, and the remedy.
        why: String,
    },
}

impl Error {
    pub(crate) fn invalid(variable: &str, value: &str, expected: &str) -> Self {
        Error::Invalid {
            variable: variable.into(),
            value: value.into(),
            expected: expected.into(),
        }
    }

    pub(crate) fn out_of_range(variable: &str, value: &str, low: &str, high: &str) -> Self {
        Self::invalid(variable, value, &format!("from {low} to {high}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unknown { variable, nearest } => {
                write!(f, "{variable} is not a setting")?;
                if let Some(nearest) = nearest {
                    write!(f, "; did you mean {nearest}?")?;
                }
                write!(f, " (`fishplate knobs` lists all settings)")
            }
            Error::Invalid {
                variable,
                value,
                expected,
            } => {
                write!(
                    f,
                    "{variable}={value}: expected {expected} (`fishplate knobs` describes it)"
                )
            }
            Error::File {
                variable,
                path,
                why,
            } => write!(f, "{variable}={path}: {why}"),
            Error::Twice { first, second } => {
                write!(
                    f,
                    "{first} and {second} are the same setting and have different values: unset one of them"
                )
            }
        }
    }
}

impl std::error::Error for Error {}
