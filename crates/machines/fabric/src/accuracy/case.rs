//! The cases of which errors are known apart: what a source names of a machine, or of two.

use crate::catalogue::{NamedValue, Sheet};
use crate::system::System;

/// A case: the facts known of a machine, or of two machines whose figures are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Case {
    /// A machine whose MPI library is named and in the catalogue, or a benchmark of its devices.
    Named,
    /// A machine whose MPI library is assumed: that of this project stands in.
    Assumed,
    /// Messages by TCP.
    Tcp,
    /// Two machines with equal hosts and libraries.
    RatioEqual,
    /// Two machines whose hosts or libraries differ, both libraries named.
    RatioNamed,
    /// Two machines whose hosts or libraries differ, one library or both assumed.
    RatioAssumed,
    /// Two machines of which one, or both, send by TCP.
    RatioTcp,
}

impl Case {
    /// All cases, in the order of tables.
    pub const ALL: [Case; 7] = [
        Case::Named,
        Case::Assumed,
        Case::Tcp,
        Case::RatioEqual,
        Case::RatioNamed,
        Case::RatioAssumed,
        Case::RatioTcp,
    ];

    /// The case of one machine.
    pub fn of(system: &System, library_is_named: bool) -> Case {
        match (system.hca.polled, library_is_named) {
            (true, _) => Case::Tcp,
            (false, true) => Case::Named,
            (false, false) => Case::Assumed,
        }
    }

    /// The case of a ratio of two machines in these cases. `are_equal`: their hosts and libraries.
    pub fn of_ratio(one: Case, other: Case, are_equal: bool) -> Case {
        match [one, other] {
            both if both.contains(&Case::Tcp) => Case::RatioTcp,
            _ if are_equal => Case::RatioEqual,
            [Case::Named, Case::Named] => Case::RatioNamed,
            _ => Case::RatioAssumed,
        }
    }

    /// The case is of two machines.
    pub fn is_ratio(self) -> bool {
        self >= Case::RatioEqual
    }

    /// The name in tables.
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

/// A document names the MPI library of a machine.
pub fn names_library(machine: &Sheet) -> bool {
    let assumed = machine.uncertain().into_iter();
    !assumed
        .into_iter()
        .any(|one| one.path == "software" && one.standing == "assumed")
}

/// Hosts and MPI libraries of two machines cost the same.
pub fn have_equal_hosts(one: &Sheet, other: &Sheet) -> bool {
    // Neither makes a message slower.
    const FREE: [&str; 2] = ["cores", "price"];
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
