//! Procedures that the library lacks: their names in messages from rank to launcher, and the text
//! for the user.

/// The length of the longest name of a procedure, in bytes.
const NAME_LIMIT: usize = 64;

/// True if the text can be the name of an MPI procedure.
pub(crate) fn is_procedure(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.starts_with("MPI_") && name.len() <= NAME_LIMIT && name.bytes().all(is_letter)
}

/// The message to the user about the first call of a procedure that the library lacks, if the error
/// handler has returned to the program.
pub fn unsupported_text(procedure: &str) -> String {
    let code = match procedure.starts_with("MPI_T_") {
        true => "MPI_T_ERR_NOT_SUPPORTED",
        false => "MPI_ERR_UNSUPPORTED_OPERATION",
    };
    format!(
        "{procedure}: this procedure is not supported yet; the call did nothing but give {code}, and the program goes on"
    )
}

#[cfg(test)]
mod tests {
    use super::is_procedure;

    #[test]
    fn a_procedure_has_a_name_of_the_standard() {
        assert!(is_procedure("MPI_File_open") && is_procedure("MPI_Put_c"));
        let long = format!("MPI_{}", "x".repeat(61));
        for name in ["", "File_open", "MPI_File open", "MPI_\x1b[31m", &long] {
            assert!(!is_procedure(name), "{name:?}");
        }
    }
}
