//! Access modes (MPI 5.0 §14.2.1).

use crate::{Class, Error, Result};

/// The access mode (`MPI_MODE_...`) in which a file is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AccessMode(i32);

const APPEND: i32 = 1;
const CREATE: i32 = 2;
const DELETE_ON_CLOSE: i32 = 4;
const EXCL: i32 = 8;
const RDONLY: i32 = 16;
const RDWR: i32 = 32;
const SEQUENTIAL: i32 = 64;
const UNIQUE_OPEN: i32 = 128;
const WRONLY: i32 = 256;
const ALL: i32 =
    APPEND | CREATE | DELETE_ON_CLOSE | EXCL | RDONLY | RDWR | SEQUENTIAL | UNIQUE_OPEN | WRONLY;

impl AccessMode {
    /// Checks an access mode that has the ABI's value.
    pub(crate) fn new(value: i32) -> Result<AccessMode> {
        let mode = AccessMode(value);
        let wrong = |why: &str| {
            let detail = format!("the access mode {value} is not valid: {why}");
            Err(Error::new(Class::AMODE, detail))
        };
        if value & !ALL != 0 {
            return wrong("it has bits that no mode has");
        }
        if (value & (RDONLY | RDWR | WRONLY)).count_ones() != 1 {
            return wrong("it needs one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY");
        }
        if mode.has(RDONLY) && value & (CREATE | EXCL) != 0 {
            return wrong("MPI_MODE_RDONLY allows neither MPI_MODE_CREATE nor MPI_MODE_EXCL");
        }
        if mode.has(RDWR) && mode.has(SEQUENTIAL) {
            return wrong("MPI_MODE_RDWR does not allow MPI_MODE_SEQUENTIAL");
        }
        Ok(mode)
    }

    /// The access mode as a value of the ABI.
    pub(crate) fn value(self) -> i32 {
        self.0
    }

    pub(crate) fn can_read(self) -> bool {
        !self.has(WRONLY)
    }

    pub(crate) fn can_write(self) -> bool {
        !self.has(RDONLY)
    }

    pub(crate) fn creates(self) -> bool {
        self.has(CREATE)
    }

    pub(crate) fn is_exclusive(self) -> bool {
        self.has(EXCL)
    }

    pub(crate) fn is_sequential(self) -> bool {
        self.has(SEQUENTIAL)
    }

    pub(crate) fn appends(self) -> bool {
        self.has(APPEND)
    }

    pub(crate) fn deletes_on_close(self) -> bool {
        self.has(DELETE_ON_CLOSE)
    }

    fn has(self, bit: i32) -> bool {
        self.0 & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_the_standard_forbids() {
        for value in [
            0,
            RDONLY | RDWR,
            RDONLY | CREATE,
            RDONLY | EXCL,
            RDWR | SEQUENTIAL,
        ] {
            assert_eq!(
                AccessMode::new(value).unwrap_err().class,
                Class::AMODE,
                "{value}"
            );
        }
        assert!(AccessMode::new(RDWR | 1 << 12).is_err());
        let mode = AccessMode::new(WRONLY | CREATE | SEQUENTIAL | APPEND).unwrap();
        assert!(mode.can_write() && !mode.can_read() && mode.creates() && mode.appends());
        assert!(mode.is_sequential() && !mode.is_exclusive() && !mode.deletes_on_close());
    }
}
