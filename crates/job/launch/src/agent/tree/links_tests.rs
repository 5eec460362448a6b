//! Links with children that know the secret and break the rules.

use std::io::Write;
use std::net::Ipv4Addr;

use super::*;
use crate::exchange::Put;

/// The most memory of what a child has sent and nobody has taken.
const UNREAD: usize = 256 << 10;

/// The links of an agent with two children, and the address at which it listens.
fn parent() -> (TreeLinks, SocketAddr) {
    let mut links = TreeLinks::new(TreePlace {
        host: 0,
        children: 1..3,
        secret: secret(),
        patience: Duration::ZERO,
    });
    links.follow(TreeOrder::Listen(vec![Ipv4Addr::LOCALHOST.into()]));
    match links.take_reports().as_slice() {
        [TreeReport::Listening(at)] => (links, at[0]),
        other => panic!("{other:?}"),
    }
}

fn secret() -> Secret {
    Secret::from_bytes([3; Secret::LENGTH])
}

/// A child that has proved that it knows the secret.
fn join(parent: &mut TreeLinks, at: SocketAddr, host: usize) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut call = Call::begin(&mut stream, &secret(), introduction(host)).unwrap();
    while !call.step(&mut stream).unwrap() {
        parent.step(true, Instant::now());
    }
    while parent.children[host - 1].is_none() {
        parent.step(true, Instant::now());
    }
    stream
}

fn frame(frame: &FromAgent) -> Vec<u8> {
    let body = postcard::to_stdvec(frame).unwrap();
    let length = (body.len() as u32).to_le_bytes();
    [&length[..], &body].concat()
}

/// A child floods its parent with repetitions of these bytes. The parent looks after each write.
/// The flood ends after `most` bytes, or when the tree has failed. The result is the largest number
/// of messages of one look.
fn flood(parent: &mut TreeLinks, child: &mut TcpStream, bytes: &[u8], most: usize) -> usize {
    let block = bytes.repeat((64 << 10) / bytes.len() + 1);
    let (mut sent, mut messages) = (0, 0);
    while sent < most && !parent.has_failed {
        // The rest of a frame that did not fit comes first.
        let from = sent % block.len();
        sent += child.write(&block[from..]).unwrap_or(0);
        messages = messages.max(parent.step(true, Instant::now()).len());
        let kept = parent.children.iter().flatten();
        assert!(kept.map(|peer| peer.link.unread()).sum::<usize>() <= UNREAD);
    }
    messages
}

fn failure(parent: &mut TreeLinks) -> String {
    let reports = parent.take_reports();
    let failed = reports.into_iter().find_map(|report| match report {
        TreeReport::Failed(why) => Some(why),
        _ => None,
    });
    failed.expect("the tree has failed")
}

#[test]
fn each_look_takes_a_limited_part_of_a_flood() {
    for flooded in [FromAgent::Beat, FromAgent::Up(Up::default())] {
        let (mut parent, at) = parent();
        let mut child = join(&mut parent, at, 1);
        let most = flood(&mut parent, &mut child, &frame(&flooded), 4 << 20);
        assert!(!parent.has_failed);
        assert!(most <= UNREAD / frame(&flooded).len(), "{most}");
    }
}

#[test]
fn a_frame_without_end_and_one_for_the_launcher_break_the_tree() {
    let forbidden = FromAgent::Leaving("no reason".into());
    let endless = u32::MAX.to_le_bytes().to_vec();
    for (bytes, words) in [
        (frame(&forbidden), "for the launcher"),
        (endless, "a frame of 4294967295 bytes"),
        (vec![1, 0, 0, 0, 99], "bytes that are no frame"),
    ] {
        let (mut parent, at) = parent();
        let mut child = join(&mut parent, at, 2);
        flood(&mut parent, &mut child, &bytes, 4 << 20);
        let why = failure(&mut parent);
        assert!(
            why.contains("agents 0 and 2") && why.contains(words),
            "{why}"
        );
        assert!(parent.children.iter().all(Option::is_none));
    }
}

#[test]
fn a_child_that_does_not_read_fails_at_a_limit() {
    let (mut parent, at) = parent();
    let _silent = join(&mut parent, at, 1);
    let value = Put {
        by: 0,
        key: "key".into(),
        value: "v".repeat(3000),
    };
    let down = Down {
        values: vec![value; 100],
        ..Down::default()
    };
    while !parent.has_failed {
        parent.send_down(0, down.clone());
        let kept = parent.children.iter().flatten();
        assert!(kept.map(|peer| peer.link.backlog()).sum::<usize>() <= BACKLOG);
    }
    assert_eq!(failure(&mut parent), "an agent does not read");
}

#[test]
fn a_second_child_of_a_host_is_sent_away() {
    let (mut parent, at) = parent();
    let mut first = join(&mut parent, at, 1);
    let _second = join(&mut parent, at, 1);
    flood(
        &mut parent,
        &mut first,
        &frame(&FromAgent::Up(Up::default())),
        1000,
    );
    assert!(!parent.has_failed && parent.children[1].is_none());
}
