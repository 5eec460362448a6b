//! What can be wrong with a setting.

use std::fmt;

/// A variable that cannot be used. Its text names the variable, the value, and what would be valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// It begins like ours and is not known.
    Unknown {
        variable: String,
        nearest: Option<String>,
    },
    /// Its value is not of its type.
    Invalid {
        variable: String,
        value: String,
        expected: String,
    },
    /// A name and its alias say different things.
    Twice { first: String, second: String },
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
            Error::Twice { first, second } => {
                write!(
                    f,
                    "{first} and {second} are the same setting and say different things: unset one of them"
                )
            }
        }
    }
}

impl std::error::Error for Error {}
