use std::thread::{JoinHandle, spawn};

use super::*;
use crate::benchmark::{Benchmark, TransportService};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

fn plan() -> PerfPlan {
    PerfPlan::new(Benchmark::WriteLat, TransportService::Rc)
}

/// Two sides with these plans.
fn ends(
    own: PerfPlan,
    other: PerfPlan,
    patience: Duration,
) -> (Result<ControlLink>, Result<ControlLink>) {
    let listener = Listener::new(0).unwrap();
    let port = listener.port().unwrap();
    let server = spawn(move || listener.accept(&own, LONG, patience));
    let client = ControlLink::connect("127.0.0.1", port, &other, LONG, patience);
    (server.join().unwrap(), client)
}

/// A stranger who connects and sends this.
fn stranger(words: &'static [u8]) -> (Listener, JoinHandle<Vec<u8>>) {
    let listener = Listener::new(0).unwrap();
    let port = listener.port().unwrap();
    let stranger = spawn(move || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(words).ok();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).ok();
        said
    });
    (listener, stranger)
}

fn outcome<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => "it went well".into(),
        Err(why) => format!("{why:#}"),
    }
}

#[test]
fn words_arrive_in_order_and_signs_of_life_are_no_words() {
    let (server, client) = ends(plan(), plan(), LONG);
    let (mut server, mut client) = (server.unwrap(), client.unwrap());
    assert_eq!(server.heard().unwrap(), None);
    client.say("one").unwrap();
    client.alive().unwrap();
    client.say("two\n\"three\"").unwrap();
    assert_eq!(server.hear().unwrap(), "one");
    assert_eq!(server.hear().unwrap(), "two\n\"three\"");
    server.say("four").unwrap();
    server.check().unwrap();
    assert_eq!(client.hear().unwrap(), "four");
}

#[test]
fn different_options_are_reported_on_both_sides() {
    let other = PerfPlan {
        size: Some(64),
        qps: 2,
        ..PerfPlan::new(Benchmark::SendLat, TransportService::Ud)
    };
    let (server, client) = ends(plan(), other, LONG);
    let words = outcome(server);
    for part in [
        "different options",
        "write-lat here, send-lat there",
        "--size nothing here, 64 there",
        "--qps 1 here, 2 there",
        "--transport rc here, ud there",
    ] {
        assert!(words.contains(part), "{words}");
    }
    assert!(outcome(client).contains("--size 64 here, nothing there"));
}

#[test]
fn another_version_is_reported() {
    let (listener, stranger) = stranger(b"{\"fishplate-perf\": 999, \"plan\": 7}\n");
    let words = outcome(listener.accept(&plan(), LONG, LONG));
    assert!(words.contains("uses version 999"), "{words}");
    let said = String::from_utf8(stranger.join().unwrap()).unwrap();
    assert!(
        said.contains(&format!("\"fishplate-perf\":{VERSION}")),
        "{said}"
    );
}

/// A stranger's connection is closed, and the listener still waits for the other side.
#[test]
fn strangers_are_sent_away() {
    for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"{}\n", b"\xff\xfe\n", b""] {
        let (listener, stranger) = stranger(words);
        let port = listener.port().unwrap();
        let server = spawn(move || listener.accept(&plan(), LONG, SHORT));
        stranger.join().unwrap();
        let client = ControlLink::connect("127.0.0.1", port, &plan(), LONG, LONG);
        assert!(
            client.is_ok() && server.join().unwrap().is_ok(),
            "{words:?}"
        );
    }
}

#[test]
fn endless_lines_end() {
    let (server, client) = ends(plan(), plan(), LONG);
    let (mut server, mut client) = (server.unwrap(), client.unwrap());
    let writer = spawn(move || while client.stream.write_all(&[b'a'; 4096]).is_ok() {});
    assert!(outcome(server.hear()).contains("a line of more than"));
    drop(server);
    writer.join().unwrap();
}

#[test]
fn nobody_is_waited_for_for_ever() {
    let listener = Listener::new(0).unwrap();
    assert!(
        outcome(listener.accept(&plan(), SHORT, SHORT))
            .contains("no peer has connected within 0.2 s")
    );
    let port = listener.port().unwrap();
    drop(listener);
    let words = outcome(ControlLink::connect(
        "127.0.0.1",
        port,
        &plan(),
        SHORT,
        SHORT,
    ));
    assert!(
        words.contains("cannot connect to 127.0.0.1") && words.contains("refused"),
        "{words}"
    );
    // A peer that sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let words = outcome(ControlLink::connect(
        "127.0.0.1",
        port,
        &plan(),
        SHORT,
        SHORT,
    ));
    assert!(words.contains("sent nothing for 0.2 s"), "{words}");
}

#[test]
fn death_and_last_words_are_noticed() {
    let (server, client) = ends(plan(), plan(), LONG);
    let (mut server, mut client) = (server.unwrap(), client.unwrap());
    client.say("something").unwrap();
    client.failed("no memory");
    // Earlier words stay available.
    let until = Instant::now() + LONG;
    while server.check().is_ok() && Instant::now() < until {
        sleep(Duration::from_millis(1));
    }
    assert!(outcome(server.check()).contains("failed: no memory"));
    assert_eq!(server.hear().unwrap(), "something");
    assert!(outcome(server.hear()).contains("failed: no memory"));
    drop(client);
    assert!(outcome(server.hear()).contains("has closed the connection"));
}
