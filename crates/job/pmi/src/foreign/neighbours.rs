//! The ranks of one host under another launcher: their shared segment, and the detection of deaths.
//!
//! The lowest rank of a host, the *keeper*, makes the segment and listens on an abstract socket
//! with a random name. The others connect to it, and each receives the segment's descriptor. The
//! kernel confirms that both ends belong to the same user. The connections stay open: if one closes
//! without a farewell, its rank has died. So a death is detected even if the launcher lets the
//! other ranks wait. Nothing of this is in a file system, so nothing is left behind.

use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::{FileType, SealFlags, fcntl_get_seals, fstat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, acceptfrom_with,
    bind, connect, listen, recv, recvmsg, send, sendmsg, socket_with, sockopt,
};
use rustix::process::geteuid;
use secret::Secret;

use crate::hex;

/// The longest wait for the rank number of a process that has connected to the keeper.
const WORD: Duration = Duration::from_secs(5);
/// The longest time between the connections of two ranks to their keeper. All of them have left a
/// fence before.
const ARRIVAL: Duration = Duration::from_secs(10);
/// The time within which a launcher normally ends the job of a rank that has died.
pub(super) const LAUNCHER_ENDS: Duration = Duration::from_secs(3);
/// The farewell message of a rank that has completed MPI_Finalize.
const FAREWELL: &[u8] = b"end";

/// The listening socket at which the other ranks of a host connect to its keeper.
#[derive(Debug)]
pub(crate) struct Meeting {
    socket: OwnedFd,
    name: String,
}

/// The connections between the keeper of a host and the other ranks on it.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// An epoll descriptor, which is readable when one of the connections is.
    events: OwnedFd,
    state: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    open: BTreeMap<usize, OwnedFd>,
    /// The first rank that has died, and the time at which its death was detected.
    dead: Option<(usize, Instant)>,
}

impl Meeting {
    /// Opens the listening socket for the other ranks of a host; `others` is their number.
    pub(crate) fn open(others: usize) -> Result<Meeting, String> {
        let name = Secret::draw().map_err(|why| format!("no random bytes: {why}"))?;
        let name = format!("fishplate-{}", hex(&name.as_bytes()[..16]));
        let open = || {
            let socket = unix_socket()?;
            bind(&socket, &address(&name)?)?;
            listen(&socket, i32::try_from(others).unwrap_or(i32::MAX))?;
            Ok(socket)
        };
        let socket = open().map_err(|errno: Errno| format!("no socket on this host: {errno}"))?;
        Ok(Meeting { socket, name })
    }

    /// The name of the socket in the abstract namespace.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the ranks `others` have connected, and passes the segment to each. `check` is
    /// called from time to time, and fails if the launcher is gone.
    pub(crate) fn gather(
        self,
        others: &[usize],
        segment: BorrowedFd<'_>,
        check: impl Fn() -> Result<(), String>,
    ) -> Result<Neighbours, String> {
        let mut open = BTreeMap::new();
        let mut latest = Instant::now();
        while open.len() < others.len() {
            check()?;
            if !is_readable(self.socket.as_fd(), Duration::from_millis(50)) {
                let missing = others.iter().find(|&rank| !open.contains_key(rank));
                if latest.elapsed() > ARRIVAL {
                    let missing = missing.copied().unwrap_or_default();
                    let seconds = ARRIVAL.as_secs();
                    return Err(format!(
                        "rank {missing} has not come for the shared memory of its host for {seconds} s: has it died?"
                    ));
                }
                continue;
            }
            latest = Instant::now();
            // A stranger, or a process that sends nothing, is dropped.
            let Some((rank, connection)) = self.accept() else {
                continue;
            };
            if others.contains(&rank) && pass(&connection, segment).is_ok() {
                open.insert(rank, connection);
            }
        }
        Neighbours::new(open).map_err(failed)
    }

    fn accept(&self) -> Option<(usize, OwnedFd)> {
        let connection = acceptfrom_with(&self.socket, SocketFlags::CLOEXEC).ok()?.0;
        if !is_same_user(connection.as_fd()) || !is_readable(connection.as_fd(), WORD) {
            return None;
        }
        let mut rank = [0; 4];
        let (_, length) = recv(&connection, &mut rank, RecvFlags::DONTWAIT).ok()?;
        (length == rank.len()).then(|| (u32::from_le_bytes(rank) as usize, connection))
    }
}

/// Connects rank `own` to the keeper of its host, rank `keeper`, at the socket `name`. Returns the
/// segment of the host and the connection.
pub(crate) fn join(
    name: &str,
    keeper: usize,
    own: usize,
    check: impl Fn() -> Result<(), String>,
) -> Result<(OwnedFd, Neighbours), String> {
    let reach = |errno: Errno| {
        format!(
            "the launcher says that rank {keeper} is on the same host, but its shared memory cannot be reached from \
             here ({errno}): has that rank died, or do the ranks of a host run in different containers?"
        )
    };
    let connection = unix_socket().map_err(reach)?;
    connect(&connection, &address(name).map_err(reach)?).map_err(reach)?;
    if !is_same_user(connection.as_fd()) {
        return Err(reach(Errno::PERM));
    }
    let word = (own as u32).to_le_bytes();
    send(&connection, &word, SendFlags::NOSIGNAL).map_err(reach)?;
    while !is_readable(connection.as_fd(), Duration::from_millis(50)) {
        check()?;
    }
    let segment = receive(&connection).map_err(reach)?;
    check_segment(segment.as_fd())?;
    let open = BTreeMap::from([(keeper, connection)]);
    Ok((segment, Neighbours::new(open).map_err(failed)?))
}

/// Checks that the file belongs to this user and is memory that cannot shrink, as a launcher makes
/// it.
fn check_segment(file: BorrowedFd<'_>) -> Result<(), String> {
    let stat = fstat(file).map_err(failed)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let seals = fcntl_get_seals(file).unwrap_or(SealFlags::empty());
    match is_file && stat.st_uid == geteuid().as_raw() && seals.contains(SealFlags::SHRINK) {
        true => Ok(()),
        false => {
            Err("what the lowest rank of this host passes is not the shared memory of a job".into())
        }
    }
}

impl Neighbours {
    fn new(open: BTreeMap<usize, OwnedFd>) -> Result<Neighbours, Errno> {
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (&rank, connection) in &open {
            let data = epoll::EventData::new_u64(rank as u64);
            epoll::add(&events, connection, data, epoll::EventFlags::IN)?;
        }
        let state = Connections { open, dead: None };
        Ok(Neighbours {
            events,
            state: Mutex::new(state),
        })
    }

    /// The descriptor that is readable when [`Neighbours::dead`] has a connection to check.
    pub(crate) fn event_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    fn state(&self) -> MutexGuard<'_, Connections> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A rank of this host that has died while the launcher did not end the job. `None` as long as
    /// the launcher may still end it.
    pub(crate) fn dead(&self) -> Option<usize> {
        let mut state = self.state();
        let mut ready = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 16];
        let now = Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        });
        let count = epoll::wait(&self.events, &mut ready[..], now).unwrap_or(0);
        for event in &ready[..count] {
            let rank = event.data.u64() as usize;
            let Some(connection) = state.open.remove(&rank) else {
                continue;
            };
            let mut word = [0; FAREWELL.len()];
            let said = recv(&connection, &mut word, RecvFlags::DONTWAIT);
            if !matches!(said, Ok((_, length)) if &word[..length.min(word.len())] == FAREWELL) {
                state.dead.get_or_insert((rank, Instant::now()));
            }
        }
        let (rank, noticed) = state.dead?;
        (noticed.elapsed() > LAUNCHER_ENDS).then_some(rank)
    }

    /// Notifies the other ranks of this host that the end of this rank is no failure.
    pub(crate) fn leave(&self) {
        for connection in std::mem::take(&mut self.state().open).into_values() {
            // A rank that is gone needs no farewell.
            let _ = send(
                &connection,
                FAREWELL,
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            );
        }
    }
}

fn failed(errno: Errno) -> String {
    format!("the ranks of this host cannot be joined: {errno}")
}

fn unix_socket() -> Result<OwnedFd, Errno> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    socket_with(family, kind, SocketFlags::CLOEXEC, None)
}

fn address(name: &str) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(name.as_bytes())
}

fn is_same_user(connection: BorrowedFd<'_>) -> bool {
    sockopt::socket_peercred(connection).is_ok_and(|peer| peer.uid == geteuid())
}

fn is_readable(file: BorrowedFd<'_>, longest: Duration) -> bool {
    let time = Timespec {
        tv_sec: longest.as_secs() as i64,
        tv_nsec: longest.subsec_nanos().into(),
    };
    let wanted = &mut [PollFd::from_borrowed_fd(file, PollFlags::IN)];
    matches!(poll(wanted, Some(&time)), Ok(1))
}

/// Passes a file descriptor over the connection.
fn pass(connection: &OwnedFd, file: BorrowedFd<'_>) -> Result<(), Errno> {
    let files = [file];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let word = [IoSlice::new(b"segment")];
    sendmsg(connection, &word, &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// Receives a file descriptor, and makes it close-on-exec.
fn receive(connection: &OwnedFd) -> Result<OwnedFd, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0; 16];
    let word = &mut [IoSliceMut::new(&mut word)];
    recvmsg(connection, word, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    // If the peer has closed the connection, there is no descriptor.
    files.flatten().next().ok_or(Errno::CONNRESET)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::empty_segment;

    fn connect() -> (Neighbours, Neighbours, Neighbours, OwnedFd) {
        let meeting = Meeting::open(2).unwrap();
        let name = meeting.name().to_string();
        let segment = empty_segment().unwrap();
        std::thread::scope(|scope| {
            let joined = [5, 7].map(|rank| {
                let name = &name;
                scope.spawn(move || join(name, 3, rank, || Ok(())).unwrap())
            });
            let all = meeting.gather(&[5, 7], segment.as_fd(), || Ok(())).unwrap();
            let [(file, one), (_, other)] = joined.map(|thread| thread.join().unwrap());
            (all, one, other, file)
        })
    }

    /// The first rank whose connection closed without a farewell.
    fn noticed(neighbours: &Neighbours) -> Option<usize> {
        neighbours.dead();
        neighbours.state().dead.map(|(rank, _)| rank)
    }

    #[test]
    fn all_ranks_of_a_host_get_one_segment_and_notice_a_death() {
        let (keeper, one, other, file) = connect();
        check_segment(file.as_fd()).unwrap();
        assert_eq!((noticed(&keeper), noticed(&one)), (None, None));
        one.leave();
        drop(one);
        assert_eq!(noticed(&keeper), None, "rank 5 has said farewell");
        drop(other);
        assert_eq!(noticed(&keeper), Some(7));
        assert_eq!(keeper.dead(), None, "the launcher has time to end the job");
    }

    #[test]
    fn the_others_notice_the_death_of_the_keeper() {
        let (keeper, one, other, _) = connect();
        drop(keeper);
        assert_eq!((noticed(&one), noticed(&other)), (Some(3), Some(3)));
    }

    #[test]
    fn a_process_with_another_rank_gets_nothing() {
        let meeting = Meeting::open(1).unwrap();
        let name = meeting.name().to_string();
        let segment = empty_segment().unwrap();
        std::thread::scope(|scope| {
            let (own, name) = (&meeting, &name);
            let liar = scope.spawn(move || join(name, 0, 9, || Ok(())).map(drop));
            while !is_readable(own.socket.as_fd(), WORD) {}
            let (rank, connection) = own.accept().unwrap();
            assert_eq!(rank, 9);
            drop(connection);
            assert!(
                liar.join()
                    .unwrap()
                    .unwrap_err()
                    .contains("cannot be reached")
            );
        });
        // A file that can be truncated is not accepted as a segment.
        let plain = rustix::fs::memfd_create("plain", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert!(check_segment(plain.as_fd()).is_err());
        check_segment(segment.as_fd()).unwrap();
    }
}
