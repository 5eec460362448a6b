use std::net::Ipv4Addr;
use std::thread::{JoinHandle, spawn};

use super::*;
use crate::benchmark::{Benchmark, TransportService};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

fn plan() -> PerfPlan {
    PerfPlan::new(Benchmark::WriteLat, TransportService::Rc)
}

const HOST: &str = "127.0.0.1";

fn secret(byte: u8) -> Secret {
    Secret::from_bytes([byte; Secret::LENGTH])
}

/// A listener at the loopback interface, with its address.
fn listener() -> (Listener, SocketAddr) {
    let listener = Listener::new(&[(Ipv4Addr::LOCALHOST, 0).into()]).unwrap();
    let at = (Ipv4Addr::LOCALHOST, listener.port().unwrap()).into();
    (listener, at)
}

fn accept(
    listener: &mut Listener,
    plan: &PerfPlan,
    wait: Duration,
    patience: Duration,
) -> Result<ControlLink> {
    let secret = secret(1);
    let terms = Terms {
        secret: &secret,
        plan,
        patience,
    };
    listener.accept(&terms, wait)
}

fn connect_with(
    secret: &Secret,
    to: SocketAddr,
    plan: &PerfPlan,
    patience: Duration,
) -> Result<ControlLink> {
    let terms = Terms {
        secret,
        plan,
        patience,
    };
    ControlLink::connect((HOST, &[to]), &terms, patience)
}

/// Connects two sides with these plans.
fn ends(
    own: PerfPlan,
    other: PerfPlan,
    patience: Duration,
) -> (Result<ControlLink>, Result<ControlLink>) {
    let (mut listener, at) = listener();
    let server = spawn(move || accept(&mut listener, &own, LONG, patience));
    let client = connect_with(&secret(1), at, &other, LONG);
    (server.join().unwrap(), client)
}

/// Starts a stranger that connects, sends these bytes, and reads until the other side closes the
/// connection.
fn stranger(to: SocketAddr, words: &'static [u8]) -> JoinHandle<Vec<u8>> {
    spawn(move || {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.write_all(words).ok();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).ok();
        said
    })
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
    assert_eq!(server.receive().unwrap(), "one");
    assert_eq!(server.receive().unwrap(), "two\n\"three\"");
    server.say("four").unwrap();
    server.check().unwrap();
    assert_eq!(client.receive().unwrap(), "four");
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
    let (mut listener, at) = listener();
    let other = spawn(move || {
        let mut stream = TcpStream::connect(at).unwrap();
        admission::prove(&mut stream, &secret(1), LONG).unwrap();
        stream
            .write_all(b"{\"fishplate-perf\": 999, \"plan\": 7}\n")
            .unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).ok();
        said
    });
    let words = outcome(accept(&mut listener, &plan(), LONG, LONG));
    assert!(words.contains("uses version 999"), "{words}");
    let said = other.join().unwrap();
    assert!(
        said.contains(&format!("\"fishplate-perf\":{VERSION}")),
        "{said}"
    );
}

/// A stranger's connection is closed without an answer, and the listener still waits for the other
/// side.
#[test]
fn strangers_are_sent_away() {
    for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"{}\n", b"\xff\xfe\n", b""] {
        // Long enough for a complete message of a greeting.
        let words = words.repeat(40).leak();
        let (mut listener, at) = listener();
        let stranger = stranger(at, words);
        let server = spawn(move || accept(&mut listener, &plan(), LONG, LONG));
        if !words.is_empty() {
            assert!(stranger.join().unwrap().is_empty());
        }
        let client = connect_with(&secret(1), at, &plan(), LONG);
        assert!(
            client.is_ok() && server.join().unwrap().is_ok(),
            "{words:?}"
        );
    }
}

/// More silent strangers than the listener keeps do not delay others: the other side is admitted at
/// once.
#[test]
fn silent_strangers_keep_nobody_waiting() {
    let (mut listener, at) = listener();
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(at).unwrap()).collect();
    let client = spawn(move || connect_with(&secret(1), at, &plan(), LONG));
    let server = accept(&mut listener, &plan(), LONG, LONG);
    assert!(server.is_ok() && client.join().unwrap().is_ok());
    assert!(listener.callers.strangers() >= 100 - 63);
    drop(silent);
}

#[test]
fn a_side_with_another_secret_is_sent_away() {
    let (mut listener, at) = listener();
    let server = spawn(move || accept(&mut listener, &plan(), LONG, LONG));
    let words = outcome(connect_with(&secret(2), at, &plan(), LONG));
    assert!(
        words.contains("the secrets of the two sides differ"),
        "{words}"
    );
    let client = connect_with(&secret(1), at, &plan(), LONG);
    assert!(client.is_ok() && server.join().unwrap().is_ok());
}

/// A listener that does not know the secret learns nothing from the caller, and is rejected.
#[test]
fn a_listener_with_another_secret_is_not_believed() {
    let (mut listener, at) = listener();
    let strange = spawn(move || {
        let other = secret(2);
        let plan = plan();
        let terms = Terms {
            secret: &other,
            plan: &plan,
            patience: SHORT,
        };
        outcome(listener.accept(&terms, SHORT))
    });
    assert!(connect_with(&secret(1), at, &plan(), LONG).is_err());
    assert!(strange.join().unwrap().contains("no peer has connected"));
}

#[test]
fn endless_lines_end() {
    let (server, client) = ends(plan(), plan(), LONG);
    let (mut server, mut client) = (server.unwrap(), client.unwrap());
    let writer = spawn(move || while client.stream.write_all(&[b'a'; 4096]).is_ok() {});
    assert!(outcome(server.receive()).contains("a line of more than"));
    drop(server);
    writer.join().unwrap();
}

#[test]
fn nobody_is_waited_for_for_ever() {
    let (mut listener, at) = listener();
    assert!(
        outcome(accept(&mut listener, &plan(), SHORT, SHORT))
            .contains("no peer has connected within 0.2 s")
    );
    drop(listener);
    let words = outcome(connect_with(&secret(1), at, &plan(), SHORT));
    assert!(
        words.contains("cannot connect to 127.0.0.1") && words.contains("refused"),
        "{words}"
    );
    // This peer sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    let words = outcome(connect_with(&secret(1), at, &plan(), SHORT));
    assert!(words.contains("sent nothing for 0.2 s"), "{words}");
}

#[test]
fn death_and_last_words_are_noticed() {
    let (server, client) = ends(plan(), plan(), LONG);
    let (mut server, mut client) = (server.unwrap(), client.unwrap());
    client.say("something").unwrap();
    client.failed("no memory");
    // Earlier texts stay available.
    let until = Instant::now() + LONG;
    while server.check().is_ok() && Instant::now() < until {
        sleep(Duration::from_millis(1));
    }
    assert!(outcome(server.check()).contains("failed: no memory"));
    assert_eq!(server.receive().unwrap(), "something");
    assert!(outcome(server.receive()).contains("failed: no memory"));
    drop(client);
    assert!(outcome(server.receive()).contains("has closed the connection"));
}
