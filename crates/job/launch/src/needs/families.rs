//! The recognition of MPI libraries, and of the ABI of each, by their file names.

use crate::library::is_library;

/// The ABI of an MPI library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Abi {
    /// The standard ABI of MPI 5.0.
    Standard,
    /// The ABI of MPICH, Intel MPI and MVAPICH.
    Mpich,
    /// The ABI of Open MPI 4 and 5.
    OpenMpi,
    /// The ABI of another library, or of an old version.
    Other,
}

impl Abi {
    /// The name of the ABI in messages for the user.
    pub fn name(self) -> &'static str {
        match self {
            Abi::Standard => "the standard ABI",
            Abi::Mpich => "the ABI of MPICH and Intel MPI",
            Abi::OpenMpi => "the ABI of Open MPI",
            Abi::Other => "an ABI of another library",
        }
    }

    /// The name of the ABI in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Abi::Standard => "standard",
            Abi::Mpich => "mpich",
            Abi::OpenMpi => "openmpi",
            Abi::Other => "other",
        }
    }
}

/// The facts about an MPI library that follow from its file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Family {
    pub abi: Abi,
    /// A description of the library's contents, for messages.
    pub contents: &'static str,
    /// True if Fortran programs need the library.
    pub is_fortran: bool,
}

const fn of_c(abi: Abi, contents: &'static str) -> Family {
    Family {
        abi,
        contents,
        is_fortran: false,
    }
}

const fn of_fortran(abi: Abi, contents: &'static str) -> Family {
    Family {
        abi,
        contents,
        is_fortran: true,
    }
}

/// The beginnings of the file names of MPI libraries, with the facts that follow from each. The
/// first beginning that fits a name is used.
const FAMILIES: &[(&str, Family)] = &[
    ("libmpi_abi.so", of_c(Abi::Standard, "the standard ABI")),
    (
        "libmpi.so.12",
        of_c(Abi::Mpich, "the ABI of MPICH and Intel MPI"),
    ),
    ("libmpi.so.40", of_c(Abi::OpenMpi, "the ABI of Open MPI")),
    ("libmpi.so", of_c(Abi::Other, "an ABI of another library")),
    ("libmpich.so.12", of_c(Abi::Mpich, "the ABI of MPICH")),
    ("libmpich.so", of_c(Abi::Other, "an ABI of an old MPICH")),
    ("libpmpi.so.12", of_c(Abi::Mpich, "the PMPI names of MPICH")),
    ("libmpicxx.so", of_c(Abi::Mpich, "MPICH's C++")),
    ("libmpichcxx.so", of_c(Abi::Mpich, "MPICH's C++")),
    ("libmpi_cxx.so", of_c(Abi::OpenMpi, "Open MPI's C++")),
    ("libmpi_java.so", of_c(Abi::OpenMpi, "Open MPI's Java")),
    ("libmpifort.so", of_fortran(Abi::Mpich, "MPICH's Fortran")),
    ("libmpichfort.so", of_fortran(Abi::Mpich, "MPICH's Fortran")),
    ("libmpichf90.so", of_fortran(Abi::Mpich, "MPICH's Fortran")),
    (
        "libmpi_mpifh.so",
        of_fortran(Abi::OpenMpi, "Open MPI's Fortran"),
    ),
    (
        "libmpi_usempi",
        of_fortran(Abi::OpenMpi, "Open MPI's Fortran"),
    ),
];

/// The facts about the MPI library of this file name. `None` if it is not an MPI library.
pub(crate) fn family(name: &str) -> Option<Family> {
    let mut rows = FAMILIES.iter();
    let row = rows.find(|(beginning, _)| name.starts_with(beginning))?;
    // A library of another version of the standard ABI is not one of ours.
    let is_old = row.1.abi == Abi::Standard && !is_library(name.as_ref());
    Some(match is_old {
        true => of_c(Abi::Other, "another version of the standard ABI"),
        false => row.1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_counts_first() {
        let is = |name: &str| family(name).map(|family| (family.abi, family.is_fortran));
        assert_eq!(is("libmpi.so.12"), Some((Abi::Mpich, false)));
        assert_eq!(is("libmpi.so.40"), Some((Abi::OpenMpi, false)));
        assert_eq!(is("libmpi.so.20"), Some((Abi::Other, false)));
        assert_eq!(is("libmpi_abi.so.1"), Some((Abi::Standard, false)));
        assert_eq!(is("libmpi_abi.so.0"), Some((Abi::Standard, false)));
        assert_eq!(is("libmpi_abi.so.2"), Some((Abi::Other, false)));
        assert_eq!(is("libmpich.so.3"), Some((Abi::Other, false)));
        assert_eq!(is("libmpi_usempif08.so.40"), Some((Abi::OpenMpi, true)));
        assert_eq!(is("libmpiwrapper.so"), None);
        assert_eq!(is("libm.so.6"), None);
    }
}
