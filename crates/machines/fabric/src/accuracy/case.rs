//! The cases by which the errors of predictions are grouped: the facts that are known of a machine,
//! or of two machines that are compared.

use crate::catalogue::{NamedValue, Sheet};
use crate::system::System;

/// A case: the facts known of a machine, or of two machines whose figures are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Case {
    /// A machine whose MPI library is named and in the catalogue, or a benchmark of a machine's
    /// devices.
    Named,
    /// A machine whose MPI library is assumed: this project's library is modelled in its stead.
    Assumed,
    /// A machine whose ranks exchange messages over TCP.
    Tcp,
    /// Two compared machines whose hosts and libraries are equal.
    RatioEqual,
    /// Two machines whose hosts or libraries differ, if both libraries are named.
    RatioNamed,
    /// Two machines whose hosts or libraries differ, if one library or both are assumed.
    RatioAssumed,
    /// Two machines of which one, or both, send by TCP.
    RatioTcp,
}

impl Case {
    /// All cases for which errors are summed up, in the order of tables.
    pub const ALL: [Case; 7] = [
        Case::Named,
        Case::Assumed,
        Case::Tcp,
        Case::RatioEqual,
        Case::RatioNamed,
        Case::RatioAssumed,
        Case::RatioTcp,
    ];

    /// The case of one machine. `library_is_named`: a document names its MPI library.
    pub fn of(system: &System, library_is_named: bool) -> Case {
        match (system.hca.polled, library_is_named) {
            (true, _) => Case::Tcp,
            (false, true) => Case::Named,
            (false, false) => Case::Assumed,
        }
    }

    /// The case of the ratio of the figures of two machines, which are of the cases `one` and
    /// `other`. `are_equal`: both machines have equal hosts and libraries.
    pub fn of_ratio(one: Case, other: Case, are_equal: bool) -> Case {
        match [one, other] {
            both if both.contains(&Case::Tcp) => Case::RatioTcp,
            _ if are_equal => Case::RatioEqual,
            [Case::Named, Case::Named] => Case::RatioNamed,
            _ => Case::RatioAssumed,
        }
    }

    /// True if the case is that of a ratio of two machines' figures.
    pub fn is_ratio(self) -> bool {
        self >= Case::RatioEqual
    }

    /// The name of the case in tables.
    pub fn name(self) -> &'static str {
        match self {
            Case::Named => "library named",
            Case::Assumed => "library assumed",
            Case::Tcp => "TCP",
            Case::RatioEqual => "ratio: hosts and libraries equal",
            Case::RatioNamed => "ratio: hosts or libraries differ",
            Case::RatioAssumed => "ratio: a library assumed",
            Case::RatioTcp => "ratio: TCP",
        }
    }
}

/// True if a document names the MPI library of a machine.
pub fn names_library(machine: &Sheet) -> bool {
    let assumed = machine.uncertain().into_iter();
    !assumed
        .into_iter()
        .any(|one| one.path == "software" && one.standing == "assumed")
}

/// True if the hosts and the MPI libraries of two machines have equal costs.
pub fn have_equal_hosts(one: &Sheet, other: &Sheet) -> bool {
    // None of these values makes a message slower.
    const FREE: [&str; 3] = ["cores", "library", "price"];
    let values = |machine: &Sheet| -> Vec<_> {
        let counts = |value: &NamedValue| {
            let top = value.path.split('.').next();
            top.is_some_and(|top| ["host", "software"].contains(&top)) && !FREE.contains(&value.key)
        };
        let values = machine.values().into_iter().filter(counts);
        values.map(|value| (value.path, value.raw)).collect()
    };
    values(one) == values(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::components::Part;

    fn case(name: &str) -> (Case, Sheet) {
        let sheet = Catalogue::builtin().sheet(System::KIND, name).unwrap();
        let system = sheet.build().unwrap();
        (Case::of(&system, names_library(&sheet)), sheet)
    }

    fn ratio(one: &str, other: &str) -> Case {
        let ((one, of_one), (other, of_other)) = (case(one), case(other));
        Case::of_ratio(one, other, have_equal_hosts(&of_one, &of_other))
    }

    #[test]
    fn a_library_that_stands_in_is_assumed() {
        assert_eq!(case("qdr").0, Case::Assumed);
        assert_eq!(case("c6320-edr").0, Case::Named);
        assert_eq!(case("10gbe-tcp").0, Case::Tcp);
    }

    #[test]
    fn two_machines_share_errors_where_hosts_and_libraries_are_equal() {
        assert_eq!(ratio("qdr", "2xqdr"), Case::RatioEqual);
        assert_eq!(ratio("c6320-edr", "c6320-fdr"), Case::RatioEqual);
        assert_eq!(ratio("qdr", "edr"), Case::RatioAssumed);
        assert_eq!(ratio("c6320-edr", "edr"), Case::RatioAssumed);
        assert_eq!(ratio("c6320-edr", "azure-hc"), Case::RatioNamed);
        assert_eq!(ratio("25gbe-tcp", "100gbe-tcp"), Case::RatioTcp);
        assert_eq!(ratio("edr", "100gbe-tcp"), Case::RatioTcp);
    }
}
