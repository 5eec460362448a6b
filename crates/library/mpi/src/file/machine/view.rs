//! The view of a file, with its datatypes and its data representation (MPI 5.0 §14.3).

use datatype::{Predefined, Type};
use file_io::View;

use super::Representation;
use crate::{Class, Error, Result};

/// The view of a file: which of its bytes a rank accesses.
#[derive(Clone)]
pub(crate) struct FileView {
    /// The bytes of the file that the rank accesses through the view.
    pub(crate) bytes: View,
    pub(crate) etype: Type,
    pub(crate) filetype: Type,
    pub(crate) representation: Representation,
}

impl Default for FileView {
    fn default() -> FileView {
        FileView {
            bytes: View::default(),
            etype: Predefined::BYTE.into(),
            filetype: Predefined::BYTE.into(),
            representation: Representation::Native,
        }
    }
}

impl FileView {
    /// Makes a view. `is_written`: the file may be written through it.
    ///
    /// # Errors
    /// The datatypes do not make a valid view.
    pub(crate) fn new(
        displacement: u64,
        etype: Type,
        filetype: Type,
        representation: Representation,
        is_written: bool,
    ) -> Result<FileView> {
        let layouts = [
            representation.layout(&etype)?,
            representation.layout(&filetype)?,
        ];
        // Programs written for ROMIO expect this error class.
        let bytes = View::new(displacement, &layouts[0], &layouts[1])
            .map_err(|error| Error::new(Class::IO, error.to_string()))?;
        if is_written && bytes.overlaps() {
            let detail = "parts of the filetype overlap, and the file can be written";
            return Err(Error::new(Class::IO, detail));
        }
        Ok(FileView {
            bytes,
            etype,
            filetype,
            representation,
        })
    }

    /// The number of etypes that lie wholly or in part before an offset of the file.
    pub(crate) fn etypes_before(&self, offset: u64) -> i64 {
        self.bytes.bytes_before(offset).div_ceil(self.bytes.etype()) as i64
    }

    /// The position in bytes of an offset in etypes; `None` if it does not fit 63 bits.
    pub(crate) fn position_of(&self, etypes: i64) -> Option<u64> {
        let etypes = u64::try_from(etypes).ok()?;
        let position = etypes.checked_mul(self.bytes.etype())?;
        (position <= i64::MAX as u64).then_some(position)
    }
}
