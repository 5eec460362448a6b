//! Errors in settings.

use std::fmt;

/// Reason why a setting cannot be used. Its text names the variable, the value, and the valid
/// values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The variable has our prefix and is not known.
    Unknown {
        /// The variable.
        variable: String,
        /// A known variable with a similar name.
        nearest: Option<String>,
    },
    /// The value is not of the setting's type, or out of its range.
    Invalid {
        /// The variable.
        variable: String,
        /// The value of the variable.
        value: String,
        /// The valid values.
        expected: String,
    },
    /// Two names of one setting have different values.
    Twice {
        /// One variable.
        first: String,
        /// The other.
        second: String,
    },
    /// The file that a setting names cannot be used.
    File {
        /// The variable.
        variable: String,
        /// The file.
        path: String,
        /// The reason, and what to do.
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
