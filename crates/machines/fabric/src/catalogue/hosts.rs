//! Systems in other hosts: the network of one system with the hosts of another.
//!
//! Three parts of a system belong to its hosts: the host, the MPI library, whose costs are times of
//! the host's processor, and the kernel's network path. All others are its network. A host of the
//! catalogue has the library and the kernel of the first system with this host.
//!
//! Invariant: a system in another host equals the system that a file defines by starting from the
//! first one and naming these three parts. So the slots of rails are those of the new host, unless
//! a rail names its own, and a bus has the slower generation and the fewer lanes of slot and HCA.

use super::parts::Catalogue;
use super::problem::Problem;
use super::resolve::{find, unknown_name};
use super::sheet::{Field, FieldValue, Sheet};
use crate::components::{Host, Part};
use crate::kernel::Kernel;
use crate::software::Software;
use crate::system::System;

/// The keys of the parts of a system that belong to its hosts.
pub const HOST_KEYS: [&str; 3] = [Host::KIND, Software::KIND, Kernel::KIND];

/// The parts of a system that belong to its hosts: the host, the MPI library, and the kernel's
/// network path.
#[derive(Clone, Debug)]
pub struct HostParts {
    /// The name of the kind of host in the catalogue.
    pub name: String,
    /// The fields of the host's table, with the keys [`HOST_KEYS`].
    fields: Vec<Field>,
}

impl HostParts {
    /// The parts of a system that belong to its hosts.
    fn of(system: &Sheet) -> HostParts {
        let fields = HOST_KEYS.iter().filter_map(|key| system.field(key));
        HostParts {
            name: system.part(Host::KIND).unwrap_or_default().to_owned(),
            fields: fields.cloned().collect(),
        }
    }
}

impl Catalogue {
    /// The host parts that `word` names, in upper or lower case: a host of the catalogue, or a
    /// system, whose hosts are then meant. `source` becomes the source of the choice if it is a
    /// host of the catalogue.
    pub fn host_parts(&self, word: &str, source: &str) -> Result<HostParts, Problem> {
        let (kinds, name): (&[&str], &str) = match word.split_once('.') {
            Some((Host::KIND, name)) => (&[Host::KIND], name),
            Some((System::KIND, name)) => (&[System::KIND], name),
            _ => (&[Host::KIND, System::KIND], word),
        };
        let find = |kind: &&str| find(&self.parts, kind, name);
        let Some(at) = kinds.iter().find_map(find) else {
            let name = name.to_lowercase();
            return Err(Problem::anywhere(unknown_name(
                &self.parts,
                kinds[0],
                &name,
                None,
            )));
        };
        let part = self.part_at(at)?;
        match part.kind {
            System::KIND => Ok(HostParts::of(&part)),
            _ => self.with_first_system(part, source),
        }
    }

    /// The parts of a host: itself, with the library and the kernel of the first system that has
    /// it.
    fn with_first_system(&self, host: Sheet, source: &str) -> Result<HostParts, Problem> {
        let systems = (0..self.parts.len()).filter(|at| self.parts[*at].kind == System::KIND);
        let mut systems = systems.filter_map(|at| self.part_at(at).ok());
        let first = systems.find(|system| system.part(Host::KIND) == Some(&host.name));
        let first = first.ok_or_else(|| {
            Problem::anywhere(format!(
                "no system has the host {}, so its MPI library and its kernel are unknown; name a system that has it",
                host.name
            ))
        })?;
        let mut parts = HostParts::of(&first);
        for field in &mut parts.fields {
            field.source = match field.key.name {
                Host::KIND => source.to_owned(),
                _ => format!("assumed: that of {}, the first with this host", first.path),
            };
            if field.key.name == Host::KIND {
                field.value = FieldValue::Part(host.clone());
            }
        }
        Ok(parts)
    }

    /// All values of a system with other hosts. An error if its HCAs do not fit these hosts.
    pub fn sheet_in(&self, system: &str, hosts: &HostParts) -> Result<Sheet, Problem> {
        let sheet = self.part_with(self.position(System::KIND, system)?, &hosts.fields)?;
        sheet.check().map_err(|why| {
            let name = &hosts.name;
            Problem::anywhere(format!("{system} cannot have {name} hosts: {}", why.what))
        })?;
        Ok(sheet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    fn put(catalogue: &Catalogue, system: &str, host: &str) -> System {
        let hosts = catalogue.host_parts(host, "test").unwrap();
        let sheet = catalogue.sheet_in(system, &hosts).unwrap();
        sheet.build().unwrap()
    }

    #[test]
    fn every_host_of_the_catalogue_has_a_library_and_a_kernel() {
        let catalogue = Catalogue::builtin();
        for entry in catalogue.entries().filter(|entry| entry.kind == Host::KIND) {
            let parts = catalogue.host_parts(entry.name, "test").unwrap();
            assert_eq!(parts.name, entry.name);
            assert_eq!(parts.fields.len(), HOST_KEYS.len(), "{}", entry.name);
            // No system has the name of a host, so a word names only one of the two.
            assert!(catalogue.sheet(System::KIND, entry.name).is_err());
        }
    }

    #[test]
    fn a_system_in_another_host_is_what_a_file_makes_of_it() {
        for (base, listed) in [
            ("qdr", ""),
            ("qdr-2port", ""),
            ("2xqdr", "rails = [{}, { lanes = 8 }]"),
        ] {
            let mut catalogue = Catalogue::builtin();
            let text = format!(
                "[system.before]\nfrom = \"{base}\"\nsource = \"assumed: a test\"\n{listed}\n[system.after]\nfrom = \"before\"\n\
                 host = \"haswell\"\nsoftware = \"haswell\"\nkernel = \"haswell\"\nsource = \"assumed: a test\"\n"
            );
            catalogue.add("test.toml", &text).unwrap();
            let after = catalogue.system("after").unwrap();
            assert_eq!(put(&catalogue, "before", "haswell"), after);
            assert_eq!(put(&catalogue, "before", "after"), after);
            assert_ne!(catalogue.system("before").unwrap(), after);
        }
    }

    #[test]
    fn a_card_keeps_its_generation_and_a_slot_its_own() {
        let catalogue = Catalogue::builtin();
        // A card of PCI Express 2 x8 in a slot of PCI Express 3 x16, with the chipset of that host.
        let (old, new) = (
            catalogue.system("qdr").unwrap(),
            put(&catalogue, "qdr", "haswell"),
        );
        assert_eq!((new.bus(), new.lanes()), (old.bus(), 8));
        assert_eq!(new.host, catalogue.system("edr").unwrap().host);
        // A card of PCI Express 4 x16 in that slot carries no more than the slot.
        let (own, narrow) = (
            catalogue.system("hdr").unwrap(),
            put(&catalogue, "hdr", "haswell"),
        );
        assert_eq!((narrow.bus(), narrow.lanes()), (narrow.host.bus, 16));
        let peaks = [&own, &narrow].map(|system| Figures::of(system, 0).peak.as_mb_per_sec());
        assert!(peaks[1] < 0.6 * peaks[0], "{peaks:?}");
        // With its own hosts a system stays unchanged.
        for name in ["qdr", "hdr", "2x-unequal", "mpich2-2003"] {
            assert_eq!(put(&catalogue, name, name), catalogue.system(name).unwrap());
        }
    }

    #[test]
    fn names_of_hosts_have_no_case_and_wrong_ones_are_explained() {
        let mut catalogue = Catalogue::builtin();
        assert_eq!(
            catalogue.host_parts("Haswell", "test").unwrap().name,
            "haswell"
        );
        assert_eq!(catalogue.host_parts("EDR", "test").unwrap().name, "haswell");
        let why = |catalogue: &Catalogue, word: &str| {
            let found = catalogue.host_parts(word, "test");
            found.map(drop).unwrap_err().to_string()
        };
        let unknown = why(&catalogue, "Haswel");
        assert!(
            unknown.starts_with("there is no host named haswel; did you mean haswell?")
                && unknown.contains("`fishplate fabric list host`"),
            "{unknown}"
        );
        let text = "[host.mine]\nfrom = \"haswell\"\nsource = \"assumed: a test\"\n";
        catalogue.add("mine.toml", text).unwrap();
        let alone = why(&catalogue, "mine");
        assert!(alone.starts_with("no system has the host mine"), "{alone}");
    }

    #[test]
    fn a_card_that_does_not_fit_the_slots_is_refused() {
        let catalogue = Catalogue::builtin();
        let hosts = catalogue.host_parts("haswell", "test").unwrap();
        let why = catalogue.sheet_in("mpich2-2003", &hosts).unwrap_err();
        let why = why.to_string();
        assert!(
            why.starts_with("mpich2-2003 cannot have haswell hosts:") && why.contains("PCI-X"),
            "{why}"
        );
    }

    #[test]
    fn the_chosen_host_is_no_assumption_and_its_library_is_one() {
        let catalogue = Catalogue::builtin();
        let hosts = catalogue.host_parts("haswell", "--host").unwrap();
        let sheet = catalogue.sheet_in("qdr", &hosts).unwrap();
        let uncertain = sheet.uncertain();
        let of = |path: &str| uncertain.iter().find(|one| one.path == path);
        assert_eq!(of("host"), None);
        assert_eq!(of("software").unwrap().value, "haswell");
        assert_eq!(
            of("software").unwrap().reason,
            "that of system.edr, the first with this host"
        );
    }
}
