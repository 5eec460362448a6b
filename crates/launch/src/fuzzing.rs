//! Targets of the fuzzer for the parsers of this crate, which are private: crate `fuzzed` runs
//! them. A target takes any bytes, and panics where a promise is broken.

use std::fs::File;

use crate::agent::frame::{FrameLink, FromAgent, ToAgent};
use crate::hosts::{HostList, Places, place};

/// The bytes of an agent or of a launcher, cut anywhere: lines, then frames of either direction.
///
/// The promises: a frame that is read leaves no more bytes than came; a frame that is posted again
/// is read again with the same words; bytes that are no frame give a reason.
pub fn agents(bytes: &[u8]) {
    let (mode, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let (reader, writer) = rustix::pipe::pipe().expect("descriptors are left");
    let answers = File::options().write(true).open("/dev/null");
    let answers = answers.expect("there is /dev/null").into();
    let mut link = FrameLink::new(reader, answers).expect("a new pipe");
    for piece in bytes.chunks(usize::from(mode >> 2).max(1)) {
        let written = rustix::io::write(&writer, piece);
        assert_eq!(written, Ok(piece.len()), "a piece is shorter than a pipe");
        link.pull();
        if mode & 1 == 1 && link.next_line().is_some() {
            continue;
        }
        let ended = match mode & 2 {
            0 => frames::<FromAgent>(&mut link),
            _ => frames::<ToAgent>(&mut link),
        };
        if ended {
            return;
        }
    }
}

/// Takes the frames that have come. True: the bytes are none.
fn frames<T: serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug>(
    link: &mut FrameLink,
) -> bool {
    loop {
        match link.next::<T>() {
            Ok(None) => return false,
            Ok(Some(frame)) => {
                let bytes = postcard::to_stdvec(&frame).expect("a frame that was read");
                let again: T = postcard::from_bytes(&bytes).expect("a frame that was written");
                assert_eq!(format!("{again:?}"), format!("{frame:?}"));
            }
            Err(why) => {
                assert!(!why.is_empty());
                return true;
            }
        }
    }
}

/// A hostfile, or the words of `--hosts`, and the placement of ranks on these hosts.
///
/// The promises: no rank is lost or placed twice; an error says what is wrong.
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
