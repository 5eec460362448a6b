//! The storage of a machine, which all its hosts share.

use crate::components::part;
use crate::units::{GbPerSec, Nanos};

part! {
    /// A storage: one server for all hosts, which serves one request after the other. Reads and
    /// writes cost alike.
    Storage "storage" {
        value bandwidth: GbPerSec, "Rate of all reads and writes together.";
        value latency: Nanos, "Time of a request to the storage beyond that of its bytes.";
    }
    check |_| Ok(())
}

#[cfg(all(test, feature = "toml"))]
mod tests {
    use crate::System;
    use crate::catalogue::Catalogue;

    /// The system `mine`, whose table ends with `text`, or the errors of that file.
    fn read(text: &str) -> Result<System, String> {
        let mut catalogue = Catalogue::builtin();
        let text = format!("[system.mine]\nfrom = \"qdr\"\nsource = \"assumed: a test\"\n{text}");
        let added = catalogue.add("mine.toml", &text);
        added.map_err(|problems| problems.to_string())?;
        let system = catalogue.system("mine");
        system.map_err(|problem| problem.to_string())
    }

    const GIVEN: &str = r#"storage = { bandwidth = "4 GB/s", latency = "200 us" }"#;

    #[test]
    fn a_system_has_a_storage_or_none() {
        let storage = read(GIVEN).unwrap().storage.unwrap();
        assert_eq!(storage.bandwidth.as_mb_per_sec(), 4000.0);
        assert_eq!(storage.latency.as_nanos(), 200_000.0);
        assert_eq!(read("").unwrap().storage, None);
        let named = "storage = \"shared\"\n[storage.shared]\nsource = \"assumed: a test\"\n\
                     bandwidth = \"4 GB/s\"\nlatency = \"200 us\"\n";
        assert_eq!(read(named).unwrap().storage, Some(storage));
    }

    #[test]
    fn a_compiled_system_keeps_its_storage() {
        for text in [GIVEN, ""] {
            let system = read(text).unwrap();
            assert_eq!(System::decode(&system.encode()), Ok(system));
        }
    }

    #[test]
    fn wrong_storages_are_refused_by_their_line() {
        for (text, says) in [
            (
                r#"storage = { bandwidth = "4 GB/s" }"#,
                "latency is missing",
            ),
            (
                r#"storage = { bandwidth = "4", latency = "1 us" }"#,
                "bandwidth: \"4\" is not valid; valid is a rate",
            ),
            (
                r#"storage = { bandwidth = "4 GB/s", latency = "1 us", servers = 2 }"#,
                "servers: not a key of a storage",
            ),
            ("storage = 7", "must be the name of a storage"),
            (r#"storage = "lustre""#, "there is no storage named lustre"),
            (
                r#"storage = { bandwidth = "4 GB/s", latency = -1 }"#,
                "latency: -1 is not valid",
            ),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(says), "{text}: {problem}");
            assert!(problem.contains("mine.toml:4"), "{text}: {problem}");
        }
    }
}
