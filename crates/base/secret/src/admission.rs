//! Admission to a TCP connection: the hello ([`crate::hello`]) over nonblocking sockets.
//!
//! The listening side ([`Callers`]) polls all callers one after the other, so a silent one delays
//! no other. Its user polls the listening socket and passes the current time.
//!
//! Invariants: at most [`MOST_CALLERS`] connections wait, none for longer than [`PATIENCE`]. No
//! byte after the hello is read before the peer has proved that it knows the secret.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::Secret;
use crate::hello::{self, CALL, PROOF};

/// The most callers that wait at once. One more replaces the oldest.
pub const MOST_CALLERS: usize = 64;
/// The time within which a caller must prove its knowledge of the secret.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The callers of a listening socket that have not yet proved their knowledge of the secret.
#[derive(Debug, Default)]
pub struct Callers {
    waiting: VecDeque<Caller>,
    strangers: u64,
    first: Option<(SocketAddr, String)>,
}

#[derive(Debug)]
struct Caller {
    stream: TcpStream,
    from: SocketAddr,
    until: Instant,
    /// The bytes that have arrived of the message that this caller has to send next.
    arrived: Vec<u8>,
    /// The hello, once the CALL of this caller has arrived and was answered.
    hello: Option<hello::Listener>,
}

impl Callers {
    /// Accepts new callers of the nonblocking `socket`, and reads the messages of all callers.
    /// Returns the nonblocking connection of the first caller that has proved its knowledge of the
    /// secret.
    pub fn accept(
        &mut self,
        socket: &TcpListener,
        secret: &Secret,
        now: Instant,
    ) -> io::Result<Option<TcpStream>> {
        // Bounded: a flood of callers must not keep this loop running.
        for _ in 0..MOST_CALLERS {
            match socket.accept() {
                Ok((stream, from)) => self.add(stream, from, now)?,
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                // The caller has closed its connection already.
                Err(why) if why.kind() == ErrorKind::ConnectionAborted => {}
                Err(why) => return Err(why),
            }
        }
        for _ in 0..self.waiting.len() {
            let Some(mut caller) = self.waiting.pop_front() else {
                break;
            };
            match caller.step(secret) {
                Ok(true) => return Ok(Some(caller.stream)),
                Ok(false) if now < caller.until => self.waiting.push_back(caller),
                Ok(false) => {
                    let seconds = PATIENCE.as_secs();
                    self.send_away(caller.from, format!("it was silent for {seconds} s"));
                }
                Err(why) => self.send_away(caller.from, why),
            }
        }
        Ok(None)
    }

    /// The number of callers that were rejected as strangers.
    pub fn strangers(&self) -> u64 {
        self.strangers
    }

    /// The address of the first caller that was sent away, and the reason. Later ones are not
    /// reported.
    pub fn take_first_stranger(&mut self) -> Option<(SocketAddr, String)> {
        self.first.take()
    }

    fn add(&mut self, stream: TcpStream, from: SocketAddr, now: Instant) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        if self.waiting.len() == MOST_CALLERS
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.send_away(oldest.from, "too many others have connected since".into());
        }
        self.waiting.push_back(Caller {
            stream,
            from,
            until: now + PATIENCE,
            arrived: Vec::new(),
            hello: None,
        });
        Ok(())
    }

    fn send_away(&mut self, from: SocketAddr, why: String) {
        self.strangers += 1;
        if self.strangers == 1 {
            self.first = Some((from, why));
        }
    }
}

impl Caller {
    /// Reads the bytes that have arrived. True: the caller has proved its knowledge of the secret.
    fn step(&mut self, secret: &Secret) -> Result<bool, String> {
        let words = |why: io::Error| why.kind().to_string();
        if self.hello.is_none() {
            let call = message::<CALL>(&mut self.stream, &mut self.arrived);
            let Some(call) = call.map_err(words)? else {
                return Ok(false);
            };
            let (hello, answer) =
                hello::Listener::answer(secret, &call).map_err(|why| why.to_string())?;
            // The send buffer of a new connection has room for an ANSWER, so this does not block.
            self.stream.write_all(&answer).map_err(words)?;
            self.hello = Some(hello);
        }
        let proof = message::<PROOF>(&mut self.stream, &mut self.arrived);
        let Some(proof) = proof.map_err(words)? else {
            return Ok(false);
        };
        let hello = self.hello.take().ok_or("its greeting was over")?;
        let heard = hello.check_proof(&proof);
        heard.map(|_| true).map_err(|why| why.to_string())
    }
}

/// Reads a message of `LENGTH` bytes. `None`: it has not arrived completely; `arrived` keeps its
/// first bytes.
fn message<const LENGTH: usize>(
    stream: &mut TcpStream,
    arrived: &mut Vec<u8>,
) -> io::Result<Option<[u8; LENGTH]>> {
    let mut some = [0; LENGTH];
    while arrived.len() < LENGTH {
        let missing = LENGTH - arrived.len();
        match stream.read(&mut some[..missing]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => arrived.extend_from_slice(&some[..count]),
            Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    some.copy_from_slice(arrived);
    arrived.clear();
    Ok(Some(some))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello::ANSWER;

    const INTRODUCED: [u8; 32] = *b"a test that calls another test.\0";

    fn secret(byte: u8) -> Secret {
        Secret::from_bytes([byte; Secret::LENGTH])
    }

    fn listener() -> (TcpListener, SocketAddr) {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let at = socket.local_addr().unwrap();
        (socket, at)
    }

    /// A caller that has sent its first message.
    fn caller(at: SocketAddr, byte: u8) -> (TcpStream, hello::Caller) {
        let mut stream = TcpStream::connect(at).unwrap();
        let (hello, call) = hello::Caller::call(&secret(byte), INTRODUCED).unwrap();
        stream.write_all(&call).unwrap();
        (stream, hello)
    }

    fn waiting(callers: &Callers) -> usize {
        callers.waiting.len()
    }

    #[test]
    fn who_knows_the_secret_is_admitted_beside_silent_strangers() {
        let (socket, at) = listener();
        let mut callers = Callers::default();
        let silent: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(at).unwrap()).collect();
        let (mut stream, hello) = caller(at, 7);
        let now = Instant::now();
        stream.set_nonblocking(true).unwrap();
        let mut arrived = Vec::new();
        let answer = loop {
            assert!(callers.accept(&socket, &secret(7), now).unwrap().is_none());
            if let Some(answer) = message::<ANSWER>(&mut stream, &mut arrived).unwrap() {
                break answer;
            }
        };
        stream
            .write_all(&hello.check_answer(&answer).unwrap())
            .unwrap();
        let admitted = loop {
            if let Some(admitted) = callers.accept(&socket, &secret(7), now).unwrap() {
                break admitted;
            }
        };
        assert_eq!(admitted.peer_addr().ok(), stream.local_addr().ok());
        assert_eq!((waiting(&callers), callers.strangers()), (3, 0));
        let late = now + PATIENCE;
        assert!(callers.accept(&socket, &secret(7), late).unwrap().is_none());
        assert_eq!((waiting(&callers), callers.strangers()), (0, 3));
        assert!(callers.take_first_stranger().unwrap().1.contains("silent"));
        drop(silent);
    }

    #[test]
    fn who_does_not_know_the_secret_is_sent_away() {
        let (socket, at) = listener();
        let mut callers = Callers::default();
        let (mut stream, _) = caller(at, 8);
        while callers.strangers() == 0 {
            let admitted = callers.accept(&socket, &secret(7), Instant::now()).unwrap();
            assert!(admitted.is_none());
        }
        let (_, why) = callers.take_first_stranger().unwrap();
        assert!(why.contains("does not know the secret"), "{why}");
        // It gets no answer.
        assert!(!matches!(stream.read(&mut [0]), Ok(1)));
    }

    #[test]
    fn a_crowd_takes_bounded_room() {
        let (socket, at) = listener();
        let mut callers = Callers::default();
        let now = Instant::now();
        let mut streams = Vec::new();
        while callers.strangers() == 0 {
            streams.push(TcpStream::connect(at).unwrap());
            callers.accept(&socket, &secret(7), now).unwrap();
            assert!(waiting(&callers) <= MOST_CALLERS);
        }
        assert!(streams.len() > MOST_CALLERS);
        let (_, why) = callers.take_first_stranger().unwrap();
        assert!(why.contains("too many others"), "{why}");
    }
}
