//! The connection over PMI-1 or PMI-2 to another launcher: the socket whose descriptor PMI_FD
//! names.
//!
//! A launcher answers one request at a time, so further requests wait in a queue.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::message::{Arriving, Malformed, Message, Request, shown};
use super::wire::{Answer, Wire};
use super::{mapping, pmi1, pmi2};
use crate::{Hosts, KvsError, LauncherGone};

/// The longest wait for an answer while the rank starts, and for the launcher to read a request.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for the answer to the last request.
const FAREWELL: Duration = Duration::from_secs(2);
/// The key of the job's placement in the launcher's key-value space.
const MAPPING: &str = "PMI_process_mapping";

/// A version of PMI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// PMI-1: messages are lines of text.
    One,
    /// PMI-2: messages begin with their length.
    Two,
}

/// A connection to a launcher over PMI-1 or PMI-2.
#[derive(Debug)]
pub(crate) struct PmiWire {
    socket: OwnedFd,
    talk: Mutex<Talk>,
}

/// The state of the exchange of requests and answers with the launcher.
#[derive(Debug)]
struct Talk {
    version: Version,
    /// The name of the launcher's key-value space in PMI-1, or of the job in PMI-2.
    space: String,
    value_limit: usize,
    waiting: VecDeque<Request>,
    /// The outstanding request, whose answer arrives next.
    asked: Option<Request>,
    arriving: Arriving,
    answers: VecDeque<Answer>,
}

/// Facts of the job that the launcher reports to each rank.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) hosts: Hosts,
    pub(crate) program: usize,
}

/// The error of a rank with whom the launcher does not communicate.
const CLOSED: &str = "it has closed the connection of this rank before MPI_Init: an MPI program has \
                      run before in the place of this one, such as in `sh -c './a; ./b'`, for which \
                      this launcher has no second connection, or the launcher has died";

impl PmiWire {
    /// Begins the dialogue of rank `rank` of `size` over a connected socket. `wanted` is the
    /// version that is tried first, `job` the job's name in the environment.
    pub(crate) fn open(
        socket: OwnedFd,
        wanted: Version,
        rank: usize,
        size: usize,
        job: &str,
    ) -> Result<(PmiWire, Facts), KvsError> {
        let wire = PmiWire {
            socket,
            talk: Mutex::new(Talk {
                version: wanted,
                space: job.to_string(),
                value_limit: 1024,
                waiting: VecDeque::new(),
                asked: None,
                arriving: Arriving::default(),
                answers: VecDeque::new(),
            }),
        };
        let begun = wire.agree().and_then(|()| match wire.version() {
            Version::One => wire.begin_one(rank),
            Version::Two => wire.begin_two(rank),
        });
        let (program, placement) = begun.map_err(|error| match error {
            KvsError::Gone(LauncherGone::Dead) => KvsError::Launcher(CLOSED.into()),
            other => other,
        })?;
        let hosts = match placement {
            _ if size == 1 => Hosts::one(1),
            Some(text) => mapping::parse(&text, size).ok_or_else(|| {
                let text = shown(&text);
                KvsError::Launcher(format!("{MAPPING} is {text}, which places no {size} ranks"))
            })?,
            None => {
                return Err(KvsError::Launcher(format!(
                    "it does not say which ranks share a host ({MAPPING})"
                )));
            }
        };
        Ok((wire, Facts { hosts, program }))
    }

    /// The version of PMI that rank and launcher have agreed on.
    pub(crate) fn version(&self) -> Version {
        self.talk().version
    }

    /// Agrees on a version with the launcher: the wanted one, or else the other.
    fn agree(&self) -> Result<(), KvsError> {
        let wanted = self.talk().version;
        let other = match wanted {
            Version::One => Version::Two,
            Version::Two => Version::One,
        };
        let mut named = String::new();
        for version in [wanted, other] {
            self.talk().version = version;
            let answer = self.call(Request::Init)?;
            let (major, _) = version.numbers();
            if answer.is_success() && answer.number("pmi_version") == Ok(major) {
                return Ok(());
            }
            named = shown(answer.get("pmi_version").unwrap_or("none"));
        }
        Err(KvsError::Launcher(format!(
            "it speaks neither PMI 1.1 nor PMI 2.0, but version {named}"
        )))
    }

    fn begin_one(&self, rank: usize) -> Result<(usize, Option<String>), KvsError> {
        let limits = self.call(Request::Begin { rank })?;
        let space = self.call(Request::Space)?;
        let program = self.call(Request::Program)?;
        let name = space.get("kvsname").unwrap_or_default().to_string();
        {
            let mut talk = self.talk();
            talk.value_limit = limits.number("vallen_max").map_err(malformed)?;
            talk.space = name;
        }
        Ok((program.number("appnum").unwrap_or(0), self.placement()?))
    }

    fn begin_two(&self, rank: usize) -> Result<(usize, Option<String>), KvsError> {
        let identity = self.call(Request::Begin { rank })?;
        let job = self.call(Request::Space)?;
        if let Some(job) = job.get("jobid") {
            self.talk().space = job.to_string();
        }
        Ok((identity.number("appnum").unwrap_or(0), self.placement()?))
    }

    fn placement(&self) -> Result<Option<String>, KvsError> {
        let key = MAPPING.to_string();
        let answer = self.ask(Request::Attribute { key })?;
        let found = answer.is_success().then(|| answer.get("value")).flatten();
        Ok(found.map(str::to_string))
    }

    fn talk(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and waits for its answer. Fails if the launcher reports a failure, except in
    /// answer to `Init`.
    fn call(&self, request: Request) -> Result<Message, KvsError> {
        let may_fail = request == Request::Init;
        let answer = self.ask(request)?;
        match may_fail || answer.is_success() {
            true => Ok(answer),
            false => Err(KvsError::Launcher(answer.failure())),
        }
    }

    /// Sends a request and waits for its answer. No other request may be outstanding.
    fn ask(&self, request: Request) -> Result<Message, KvsError> {
        let mut talk = self.talk();
        self.send(&talk.encode(&request))?;
        talk.asked = Some(request);
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(message) = talk.take_message()? {
                talk.asked = None;
                return Ok(message);
            }
            if !self.receive(&mut talk)? {
                self.wait(PollFlags::IN, end)?;
            }
        }
    }

    /// Sends queued requests and takes answers, as far as possible without blocking.
    fn go_on(&self, talk: &mut Talk) -> Result<(), KvsError> {
        loop {
            if talk.asked.is_none() {
                let Some(request) = talk.waiting.pop_front() else {
                    // This read detects a launcher that is gone.
                    return self.receive(talk).map(drop);
                };
                self.send(&talk.encode(&request))?;
                talk.asked = Some(request);
            }
            match talk.take_message()? {
                Some(message) => talk.accept(&message)?,
                None if !self.receive(talk)? => return Ok(()),
                None => {}
            }
        }
    }

    fn queue(&self, request: Request) -> Result<(), KvsError> {
        let mut talk = self.talk();
        talk.waiting.push_back(request);
        self.go_on(&mut talk)
    }

    /// Receives bytes without blocking. Returns false if none have arrived.
    fn receive(&self, talk: &mut Talk) -> Result<bool, KvsError> {
        let mut bytes = [0; 4096];
        loop {
            match recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(LauncherGone::Dead.into()),
                Ok((_, length)) => {
                    talk.arriving.push(&bytes[..length.min(bytes.len())]);
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(gone(errno).into()),
            }
        }
    }

    fn send(&self, mut bytes: &[u8]) -> Result<(), KvsError> {
        let end = Instant::now() + PATIENCE;
        while !bytes.is_empty() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&self.socket, bytes, flags) {
                Ok(length) => bytes = &bytes[length..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, end)?,
                Err(errno) => return Err(gone(errno).into()),
            }
        }
        Ok(())
    }

    fn wait(&self, flags: PollFlags, end: Instant) -> Result<(), KvsError> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let seconds = PATIENCE.as_secs();
            return Err(KvsError::Launcher(format!(
                "it has not answered for {seconds} s"
            )));
        }
        let time = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.socket, flags)], Some(&time)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(gone(errno).into()),
        }
    }

    /// Queues the last request behind the others, and waits for a short time for its answer.
    fn end(&self, request: Request) -> Result<(), KvsError> {
        self.queue(request)?;
        let end = Instant::now() + FAREWELL;
        while Instant::now() < end {
            let mut talk = self.talk();
            self.go_on(&mut talk)?;
            if talk.asked.is_none() && talk.waiting.is_empty() {
                break;
            }
            drop(talk);
            self.wait(PollFlags::IN, end)?;
        }
        Ok(())
    }
}

impl Version {
    fn numbers(self) -> (usize, usize) {
        match self {
            Version::One => pmi1::VERSION,
            Version::Two => pmi2::VERSION,
        }
    }
}

impl Talk {
    fn encode(&self, request: &Request) -> Vec<u8> {
        match self.version {
            Version::One => pmi1::encode(request, &self.space),
            Version::Two => pmi2::encode(request, &self.space),
        }
    }

    /// Takes the answer to the outstanding request from the received bytes, if it is complete.
    fn take_message(&mut self) -> Result<Option<Message>, KvsError> {
        let Some(asked) = &self.asked else {
            return Ok(None);
        };
        let by_line = self.version == Version::One || *asked == Request::Init;
        let bytes = match by_line {
            true => self.arriving.line(),
            false => self.arriving.counted(),
        };
        let Some(bytes) = bytes.map_err(malformed)? else {
            return Ok(None);
        };
        let message = match by_line {
            true => pmi1::decode(&bytes),
            false => pmi2::decode(&bytes),
        };
        let expected = match self.version {
            Version::One => pmi1::answer(asked),
            Version::Two => pmi2::answer(asked),
        };
        match message.get("cmd") == Some(expected) {
            true => Ok(Some(message)),
            false => {
                let found = shown(message.get("cmd").unwrap_or("nothing"));
                let why = format!("it answers with {found} instead of {expected}");
                Err(KvsError::Launcher(why))
            }
        }
    }

    /// Processes the answer to the outstanding request, which ends the request.
    fn accept(&mut self, message: &Message) -> Result<(), KvsError> {
        match self.asked.take() {
            Some(Request::Get { key }) => {
                let value = message.is_success().then(|| message.get("value"));
                let value = value.flatten().map(str::to_string);
                self.answers.push_back(Answer::Value { key, value });
            }
            Some(_) if !message.is_success() => {
                return Err(KvsError::Launcher(message.failure()));
            }
            Some(Request::Fence) => self.answers.push_back(Answer::Fence),
            _ => {}
        }
        Ok(())
    }
}

impl Wire for PmiWire {
    fn value_limit(&self) -> usize {
        // One byte may be the terminating zero of a C string.
        self.talk().value_limit.saturating_sub(1)
    }

    fn put(&self, key: &str, value: &str) -> Result<(), KvsError> {
        let (key, value) = (key.to_string(), value.to_string());
        self.queue(Request::Put { key, value })
    }

    fn get(&self, key: &str, _owner: usize) -> Result<(), KvsError> {
        self.queue(Request::Get { key: key.into() })
    }

    fn enter_fence(&self) -> Result<(), KvsError> {
        self.queue(Request::Fence)
    }

    fn next(&self) -> Result<Option<Answer>, KvsError> {
        let mut talk = self.talk();
        if talk.answers.is_empty() {
            self.go_on(&mut talk)?;
        }
        Ok(talk.answers.pop_front())
    }

    fn abort(&self, code: i32, text: &str) {
        let text = text.to_string();
        let request = Request::Abort { code, text };
        let talk = self.talk();
        // If the launcher is gone, nothing needs to be done. No answer is sent to an abort.
        let _ = self.send(&talk.encode(&request));
    }

    fn finalize(&self) {
        // If the launcher is gone, nothing needs to be done.
        let _ = self.end(Request::Finalize);
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn lost_fd(&self) -> io::Result<(OwnedFd, PollFlags)> {
        Ok((self.socket.try_clone()?, PollFlags::RDHUP))
    }
}

fn malformed(why: Malformed) -> KvsError {
    KvsError::Launcher(why.0)
}

/// The reason why the socket failed. A program that closes the descriptor may then open another
/// file under the same number.
fn gone(errno: Errno) -> LauncherGone {
    match errno {
        Errno::BADF | Errno::NOTSOCK => LauncherGone::Closed,
        _ => LauncherGone::Dead,
    }
}
