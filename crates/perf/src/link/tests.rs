use std::thread::{JoinHandle, spawn};

use super::*;
use crate::plan::{Benchmark, Transport};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

fn plan() -> Plan {
    Plan::new(Benchmark::WriteLat, Transport::Rc)
}

/// Two ends of these plans.
fn ends(own: Plan, other: Plan, patience: Duration) -> (Result<Link>, Result<Link>) {
    let listener = Listener::new(0).unwrap();
    let port = listener.port().unwrap();
    let server = spawn(move || listener.accept(&own, LONG, patience));
    let client = Link::connect("127.0.0.1", port, &other, LONG, patience);
    (server.join().unwrap(), client)
}

/// Somebody who connects and says this.
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

fn told<T>(result: Result<T>) -> String {
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
fn different_options_are_told_at_both_ends() {
    let other = Plan {
        size: Some(64),
        qps: 2,
        ..Plan::new(Benchmark::SendLat, Transport::Ud)
    };
    let (server, client) = ends(plan(), other, LONG);
    let words = told(server);
    for part in [
        "different options",
        "write-lat here, send-lat there",
        "--size nothing here, 64 there",
        "--qps 1 here, 2 there",
        "--transport rc here, ud there",
    ] {
        assert!(words.contains(part), "{words}");
    }
    assert!(told(client).contains("--size 64 here, nothing there"));
}

#[test]
fn another_version_is_told() {
    let (listener, stranger) = stranger(b"{\"fishplate-perf\": 999, \"plan\": 7}\n");
    let words = told(listener.accept(&plan(), LONG, LONG));
    assert!(words.contains("speaks version 999"), "{words}");
    let said = String::from_utf8(stranger.join().unwrap()).unwrap();
    assert!(
        said.contains(&format!("\"fishplate-perf\":{VERSION}")),
        "{said}"
    );
}

/// Whoever speaks something else is sent away, and the true other end is still waited for.
#[test]
fn strangers_are_sent_away() {
    for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"{}\n", b"\xff\xfe\n", b""] {
        let (listener, stranger) = stranger(words);
        let port = listener.port().unwrap();
        let server = spawn(move || listener.accept(&plan(), LONG, SHORT));
        stranger.join().unwrap();
        let client = Link::connect("127.0.0.1", port, &plan(), LONG, LONG);
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
    assert!(told(server.hear()).contains("a line of more than"));
    drop(server);
    writer.join().unwrap();
}

#[test]
fn nobody_is_waited_for_for_ever() {
    let listener = Listener::new(0).unwrap();
    assert!(
        told(listener.accept(&plan(), SHORT, SHORT))
            .contains("no other end has connected for 0.2 s")
    );
    let port = listener.port().unwrap();
    drop(listener);
    let words = told(Link::connect("127.0.0.1", port, &plan(), SHORT, SHORT));
    assert!(
        words.contains("cannot reach the other end at 127.0.0.1") && words.contains("refused"),
        "{words}"
    );
    // Who is there and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let words = told(Link::connect("127.0.0.1", port, &plan(), SHORT, SHORT));
    assert!(words.contains("said nothing for 0.2 s"), "{words}");
}

#[test]
fn death_and_last_words_are_noticed() {
    let (server, client) = ends(plan(), plan(), LONG);
    let (mut server, mut client) = (server.unwrap(), client.unwrap());
    client.say("something").unwrap();
    client.failed("no memory");
    // The words before stay to be heard.
    let until = Instant::now() + LONG;
    while server.check().is_ok() && Instant::now() < until {
        sleep(Duration::from_millis(1));
    }
    assert!(told(server.check()).contains("gave up: no memory"));
    assert_eq!(server.hear().unwrap(), "something");
    assert!(told(server.hear()).contains("gave up: no memory"));
    drop(client);
    assert!(told(server.hear()).contains("has gone"));
}
