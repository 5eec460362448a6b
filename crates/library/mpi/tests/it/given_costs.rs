//! Costs that the user gives in a file.

use std::path::PathBuf;

use mpi::comm::WORLD;
use mpi::{Mode, Rank};

use crate::common::{out, pattern, room, run_shared};

/// A file of costs, while it exists.
struct CostFile(PathBuf);

impl CostFile {
    /// A file for cores at any distance, in which this path is the fastest from 256 KiB on.
    fn with_fastest(fastest: &str) -> CostFile {
        let name = format!("fishplate-costs-{fastest}-{}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut text = String::new();
        for (cores, others_wait) in ["near", "far"]
            .iter()
            .flat_map(|of| [(of, true), (of, false)])
        {
            text += &format!(
                "[[messages]]\nfrom = \"256K\"\ncores = \"{cores}\"\nothers_wait = {others_wait}\n"
            );
            for path in ["cooperative_copy", "read", "packets"] {
                let ps = if path == fastest { 50 } else { 500 };
                text += &format!("{path}_ps_per_byte = {ps}\n");
            }
        }
        std::fs::write(&path, text).unwrap();
        CostFile(path)
    }
}

impl Drop for CostFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Exchanges long messages of several lengths, one at a time and several at once.
fn exchange(rank: &Rank) {
    let (me, peer) = (rank.rank(), 1 - rank.rank() as i32);
    for round in 0..20 {
        let len = [1 << 20, 300 << 10, 512 << 10][round % 3];
        let sent: Vec<Vec<u8>> = (0..4).map(|at| pattern(len, me + 2 * at + round)).collect();
        let mut got = vec![vec![0; len]; sent.len()];
        let receives = got.iter_mut().map(|got| {
            let receive = rank.lock().receive(room(got), peer, 0, WORLD);
            receive.unwrap()
        });
        let receives: Vec<_> = receives.collect();
        for message in &sent {
            rank.send("MPI_Send", Mode::Standard, out(message), peer, 0, WORLD)
                .unwrap();
        }
        for receive in receives {
            rank.wait("MPI_Wait", receive).unwrap();
        }
        for (at, got) in got.iter().enumerate() {
            assert!(
                *got == pattern(len, 1 - me + 2 * at + round),
                "round {round}"
            );
        }
    }
}

/// The protocol of messages of 1 MiB in an explanation.
fn of_long_messages(text: &str) -> &str {
    let row = &text[text.find(r#"{"size":1048576,"#).unwrap()..];
    let name = &row[row.find(r#""protocol":""#).unwrap() + 12..];
    &name[..name.find('"').unwrap()]
}

#[test]
fn long_messages_take_the_fastest_path_of_the_file_and_nothing_is_learned() {
    for (fastest, protocol) in [
        ("packets", "rendezvous by packets"),
        ("read", "read rendezvous"),
        ("packets", "rendezvous by packets"),
    ] {
        let file = CostFile::with_fastest(fastest);
        let path = file.0.to_string_lossy().into_owned();
        let settings = [("FISHPLATE_COSTS", path.as_str())];
        run_shared(2, &settings, move |rank| {
            for _ in 0..2 {
                exchange(rank);
            }
            // Without reads of a peer's memory there is only one path.
            let capabilities = rank.capabilities(1 - rank.rank());
            let text = rank.explain_choices();
            if capabilities.zero_copy.is_some() {
                assert_eq!(of_long_messages(&text), protocol, "{text}");
                // Only messages in packets fill the ring so often that it is settled.
                assert_eq!(capabilities.settled, fastest == "packets");
            }
            assert!(text.contains(r#""learned":[],"#), "{text}");
            let kind = r#""kind":"protocol","is_learned":false"#;
            assert!(text.contains(kind), "{text}");
        });
    }
}

/// A learning rank reports costs, and a rank that is given them takes the same paths.
#[test]
fn learned_costs_are_reported_as_a_file_has_them() {
    run_shared(2, &[], |rank| {
        for _ in 0..4 {
            exchange(rank);
        }
        let capabilities = rank.capabilities(1 - rank.rank());
        let text = rank.explain_choices();
        let has_learned = text.contains(r#""learned":[{"from":"#);
        assert_eq!(has_learned, capabilities.zero_copy.is_some(), "{text}");
    });
}
