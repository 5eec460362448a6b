//! Fuzz target: the parsers of the lines between a rank and its launcher, of the status of a rank,
//! and of the list of hosts of a job's ranks.
//!
//! The promises: a line that is read is written so that it is read again as the same; texts have
//! one line and no control characters.

use pmi::{FromLauncher, FromRank, Hosts, RankStatus, hex, unhex};

pub(crate) fn run(bytes: &[u8]) {
    let (kind, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let text = String::from_utf8_lossy(bytes);
    match kind % 4 {
        0 => text.lines().for_each(from_rank),
        1 => text.lines().for_each(from_launcher),
        2 => status(&text),
        _ => places(&text, usize::from(kind >> 2)),
    }
}

fn from_rank(line: &str) {
    let Ok(read) = line.parse::<FromRank>() else {
        return;
    };
    let written = read.to_string();
    assert!(!written.contains('\n'), "{written:?}");
    let text = match &read {
        FromRank::Abort { message: text, .. }
        | FromRank::Fault { text, .. }
        | FromRank::Warning { text, .. }
        | FromRank::Status { text } => text,
        _ => "",
    };
    assert!(!text.contains(char::is_control), "{text:?}");
    let again: FromRank = written.parse().expect("a line that was written");
    // A control character at an end of a text has become a space, which is cut off.
    let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
    assert_eq!(words(&again.to_string()), words(&written));
}

fn from_launcher(line: &str) {
    if let Ok(read) = line.parse::<FromLauncher>() {
        let written = read.to_string();
        let again: FromLauncher = written.parse().expect("a line that was written");
        assert_eq!(again.to_string().trim_end(), written.trim_end());
    }
}

fn status(text: &str) {
    let Ok(read) = text.parse::<RankStatus>() else {
        return;
    };
    read.sentence();
    let again: RankStatus = read.to_string().parse().expect("a status that was written");
    assert_eq!(again, read);
}

fn places(text: &str, ranks: usize) {
    if let Ok(hosts) = Hosts::parse(text, ranks) {
        assert_eq!(hosts.ranks(), ranks);
        let placed: usize = (0..hosts.count() as u32).map(|host| hosts.on(host).count()).sum();
        assert!(placed <= ranks);
    }
    if let Some(bytes) = unhex(text) {
        assert_eq!(hex(&bytes), text.to_lowercase());
    }
}
