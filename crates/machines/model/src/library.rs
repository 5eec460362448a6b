//! The MPI library that a machine predicts: this project's own, or the one that the machine names.
//! The protocols of a named library are expressed as settings of this library and values of the
//! machine, so that this library itself does not know them.

use fabric::{Bytes, Software, System, ZeroCopy};

use crate::config::MachineConfig;

/// The bytes that this library adds to an eager message.
const HEADER: u64 = 40;
/// The longest packet of this library unless a setting says otherwise, in bytes.
const PACKET: u64 = 16 << 10;
/// The longest ring that this library uses, in bytes.
const LONGEST_RING: u64 = 64 << 20;
/// The peers of a rank that have a ring where a named library is predicted: more than exchange
/// messages in a ring or a tree, and few enough for the memory of an exchange of all with all.
const RINGS: usize = 512;

impl MachineConfig {
    /// This machine with the MPI library `software`, if it is a particular one. The ranks also need
    /// the library's [`settings`].
    pub fn with_library(mut self, software: &Software) -> MachineConfig {
        if software.is_library() {
            self.system = under(&self.system, software);
        }
        self
    }
}

fn under(system: &System, software: &Software) -> System {
    let mut system = system.with_hcas(|hca| {
        let indirect = software.indirect_inline.filter(|_| !hca.direct);
        if let Some(inline) = indirect.or(software.inline) {
            hca.inline = hca.inline.min(inline);
        }
        // A header is posted with the request: it determines how many lines the processor writes.
        if let Some(header) = software.header {
            let bytes = (hca.work_request.0 + header.0).saturating_sub(HEADER);
            hca.work_request = Bytes(bytes.max(1));
        }
    });
    system.software = *software;
    system
}

/// The settings, as variables and values, by which this library follows the protocols of
/// `software`. Empty if `software` has no protocols of its own.
pub fn settings(software: &Software) -> Vec<(&'static str, String)> {
    let Some(eager) = software.eager else {
        return Vec::new();
    };
    let mut set = vec![
        ("FISHPLATE_EAGER_LIMIT", eager.0.to_string()),
        ("FISHPLATE_RTR", "off".to_owned()),
    ];
    let packet = match software.segment {
        Some(segment) => segment.0,
        None => eager.0.max(PACKET),
    };
    set.push(("FISHPLATE_RDMA_CHUNK", packet.to_string()));
    if software.segment.is_some() {
        set.push(("FISHPLATE_RDMA_PIECES_LIMIT", eager.0.to_string()));
    }
    if let Some(longest) = software.blocking {
        set.push(("FISHPLATE_RDMA_BLOCKING_LIMIT", longest.0.to_string()));
    }
    if let Some(buffers) = software.buffers {
        // The longest packets get a little more than half of a ring.
        let ring = (2 * packet * u64::from(buffers)).min(LONGEST_RING);
        set.push(("FISHPLATE_RDMA_RING_BYTES", ring.to_string()));
    }
    // The connections of a named library are alike. This library's late peers, without rings, send
    // messages, which cost both ends more.
    set.push(("FISHPLATE_RDMA_RINGS", RINGS.to_string()));
    set.push(match software.zero_copy {
        ZeroCopy::Read => ("FISHPLATE_RENDEZVOUS", "read".to_owned()),
        ZeroCopy::Write => ("FISHPLATE_RENDEZVOUS", "write".to_owned()),
        ZeroCopy::None => ("FISHPLATE_RDMA_DESIGN", "pipeline".to_owned()),
    });
    if !software.coalesces {
        set.push(("FISHPLATE_RDMA_GATHER", "off".to_owned()));
    }
    if software.shared_queue {
        set.push(("FISHPLATE_RAIL_QPS", "shared".to_owned()));
    }
    if let Some(uncut) = software.uncut {
        set.push(("FISHPLATE_RAIL_POLICY", "stripe".to_owned()));
        set.push(("FISHPLATE_STRIPE_THRESHOLD", uncut.0.to_string()));
        set.push(("FISHPLATE_STRIPE_ABOVE_EAGER", "on".to_owned()));
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::catalogue::Catalogue;
    use knobs::Knobs;

    fn software(name: &str) -> Software {
        let sheet = Catalogue::builtin().sheet("software", name).unwrap();
        sheet.build().unwrap()
    }

    #[test]
    fn every_library_of_the_catalogue_has_settings_that_are_valid() {
        let catalogue = Catalogue::builtin();
        let names = catalogue.entries().filter(|entry| entry.kind == "software");
        let mut libraries = 0;
        for name in names.map(|entry| entry.name) {
            let software = software(name);
            let set = settings(&software);
            assert_eq!(set.is_empty(), software.eager.is_none(), "{name}");
            libraries += usize::from(software.is_library());
            let variables = set
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value));
            let knobs = Knobs::parse(variables).unwrap();
            if let Some(eager) = software.eager {
                assert_eq!(knobs.eager_limit.get() as u64, eager.0, "{name}");
                let longest = software.segment.unwrap_or(eager);
                assert!(knobs.rdma_chunk.get() as u64 >= longest.0, "{name}");
                assert!(knobs.rdma_ring_bytes.get() >= 16 * knobs.rdma_chunk.get());
                assert_eq!(knobs.rdma_rings, RINGS, "{name}");
            }
        }
        assert!(libraries >= 6, "{libraries}");
    }

    #[test]
    fn libraries_that_cut_eager_messages_have_limits_of_pieces() {
        let limits = |name: &str| {
            let set = settings(&software(name)).into_iter();
            let limits = set.filter(|(name, _)| name.ends_with("_LIMIT"));
            limits.map(|(_, value)| value).collect::<Vec<_>>()
        };
        assert_eq!(limits("mvapich"), ["12288"]);
        assert_eq!(limits("ucx"), ["12288", "12288"]);
        assert_eq!(limits("hpcx"), ["12288", "12288", "262143"]);
        assert_eq!(limits("intelmpi-verbs"), ["131072", "131072"]);
    }

    #[test]
    fn a_machine_predicts_this_library_unless_it_is_given_another() {
        let system = Catalogue::builtin().system("blog-fdr").unwrap();
        let own = MachineConfig::new(&system, 2, 1, 1).unwrap();
        assert!(!own.system.software.is_library());
        assert_eq!(own.system.software.send, system.software.send);
        assert_eq!(own.system.hca, system.hca);
        let named = own.clone().with_library(&system.software);
        assert_eq!(named.system.software, system.software);
        assert_eq!(named.system.hca.inline, Bytes(128));
        // A longer header fills more cache lines of a request.
        let header = Some(Bytes(HEADER + 64));
        let longer = own.clone().with_library(&Software {
            header,
            ..system.software
        });
        let bytes = own.system.hca.work_request.0 + 64;
        assert_eq!(longer.system.hca.work_request, Bytes(bytes));
        let none = own.clone().with_library(&software("nehalem"));
        assert_eq!(none, own);
    }
}
