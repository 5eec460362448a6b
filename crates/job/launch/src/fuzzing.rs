//! Fuzz targets for the parsers of this crate, which are private; crate `fuzzed` runs the targets.
//! A target takes any bytes, and panics if a promise is broken.

use std::fs::File;
use std::io;

use crate::agent::frame::{FromAgent, LONGEST, LONGEST_ORDER, ToAgent};
use crate::agent::link::FrameLink;
use crate::allocation::{Allocation, AllocationChoice, Surroundings};
use crate::host_list::HostList;
use crate::hosts::{Places, place};
use crate::needs::fuzzing::read_anything;

/// Fuzz target: the bytes of an agent or of a launcher, split at arbitrary positions: lines, then
/// frames of either direction.
///
/// The promises: a frame that was decoded and is encoded again is decoded to the same frame;
/// invalid bytes, and an order that is not possible, give a reason.
pub fn agents(bytes: &[u8]) {
    let (mode, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let (reader, writer) = rustix::pipe::pipe().expect("descriptors are left");
    let answers = File::options().write(true).open("/dev/null");
    let answers = answers.expect("there is /dev/null").into();
    let longest = match mode & 2 {
        0 => LONGEST,
        _ => LONGEST_ORDER,
    };
    let mut link = FrameLink::new(reader, answers, longest).expect("a new pipe");
    for piece in bytes.chunks(usize::from(mode >> 2).max(1)) {
        let written = rustix::io::write(&writer, piece);
        assert_eq!(written, Ok(piece.len()), "a piece is shorter than a pipe");
        link.pull();
        if mode & 1 == 1 && link.next_line().is_some() {
            continue;
        }
        let ended = match mode & 2 {
            0 => frames::<FromAgent>(&mut link, |_| {}),
            _ => frames(&mut link, obey),
        };
        if ended {
            return;
        }
    }
}

/// Checks a start order of the launcher as an agent does. Ignores other frames.
fn obey(frame: &ToAgent) {
    if let ToAgent::Start(order) = frame {
        match order.placed() {
            Ok(hosts) => assert!(hosts.ranks() == order.ranks && order.count > 0),
            Err(why) => assert!(!why.is_empty()),
        }
    }
}

/// Decodes the frames that have arrived. True: the bytes are not valid frames.
fn frames<T: serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug>(
    link: &mut FrameLink,
    take: impl Fn(&T),
) -> bool {
    loop {
        match link.next::<T>() {
            Ok(None) => return false,
            Ok(Some(frame)) => {
                let bytes = postcard::to_stdvec(&frame).expect("a frame that was read");
                let again: T = postcard::from_bytes(&bytes).expect("a frame that was written");
                assert_eq!(format!("{again:?}"), format!("{frame:?}"));
                take(&frame);
            }
            Err(why) => {
                assert!(!why.is_empty());
                return true;
            }
        }
    }
}

/// Fuzz target: a hostfile, or the value of `--hosts`, and the placement of ranks on these hosts.
///
/// The promises: no rank is lost or placed twice; an error has a reason.
pub fn hosts(bytes: &[u8]) {
    let Some(([mode, ranks, per_host], text)) = bytes.split_first_chunk() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    let list = match mode & 1 {
        0 => HostList::parse_lines(&text, "hosts"),
        _ => HostList::parse(&text),
    };
    let list = match list {
        Ok(list) => list,
        Err(why) => return assert!(!why.is_empty()),
    };
    let some = |bit: u8, number: u8| (mode >> bit & 1 == 1).then_some(usize::from(number));
    let wanted = Places {
        ranks: some(1, *ranks).map(|ranks| ranks + 1),
        per_host: some(2, *per_host).map(|most| most + 1),
        oversubscribe: mode >> 3 & 1 == 1,
        launch_with: (mode >> 4 & 1 == 1).then_some("reach {host} --"),
        allocation: None,
    };
    match place(&list, wanted) {
        Err(why) => assert!(!why.is_empty()),
        Ok(hosts) => {
            let placed = hosts
                .iter()
                .fold(0, |sum: usize, host| sum.saturating_add(host.ranks));
            assert!(
                hosts
                    .iter()
                    .all(|host| host.ranks > 0 && !host.name.is_empty())
            );
            assert!(wanted.ranks.is_none_or(|ranks| ranks == placed));
        }
    }
}

/// Fuzz target: the environment of a process in an allocation, as records that end with a zero
/// byte, of the form `NAME=VALUE`. The name of a file begins with `/`, that of a command with `$`.
///
/// The promises: each host has a name that no command takes for an option, and that only one host
/// has; an error has a reason.
pub fn allocations(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let records: Vec<(&str, &str)> = text
        .split('\0')
        .filter_map(|record| record.split_once('='))
        .collect();
    let value = |wanted: &str| {
        let record = records.iter().find(|(name, _)| *name == wanted);
        record.map(|(_, value)| (*value).to_string())
    };
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let surroundings = Surroundings {
        variable: &value,
        file: &|path| value(&path.to_string_lossy()).ok_or_else(missing),
        command: &|words| value(&format!("${}", words.join(" "))).ok_or_else(missing),
    };
    match Allocation::find(AllocationChoice::Any, &surroundings) {
        Err(why) => assert!(!why.is_empty()),
        Ok(None) => {}
        Ok(Some(allocation)) => {
            let list = allocation.list();
            let mut names: Vec<&str> = list.hosts.iter().map(|host| &*host.name).collect();
            assert!(!names.is_empty() && !allocation.describe().is_empty());
            assert!(
                names
                    .iter()
                    .all(|name| !name.is_empty() && !name.starts_with('-'))
            );
            names.sort_unstable();
            assert!(names.windows(2).all(|two| two[0] != two[1]));
            let fitting = allocation.restrict(&list, false);
            assert_eq!(fitting.map(|fitting| fitting.hosts), Ok(list.hosts.clone()));
        }
    }
}

/// Fuzz target: an object file, the cache of the dynamic linker, or the first line of a script.
///
/// The promises: the number and the length of names are within the limits, and each name is in the
/// bytes.
pub fn objects(bytes: &[u8]) {
    read_anything(bytes);
}
