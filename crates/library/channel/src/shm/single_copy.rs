//! Reading a peer's memory directly (`process_vm_readv`), where the machine allows it.
//!
//! Access is probed once for each peer: the peer shows the address and the value of a secret in its
//! memory, and a rank that reads this value there has the right process. After a refusal (another
//! user, a security module, a container without the permission) the bytes travel as packets.
//!
//! Invariant: a copy that fails because its peer ends is never taken for a refusal.

use std::{fs, io};

use super::segment::{Board, Segment};
use crate::sync::Ordering;
use crate::{Fault, Result, Transfer};

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Standing {
    #[default]
    Unknown,
    Works,
    Refused,
}

/// The single copies of a rank, and its access to its peers.
pub(crate) struct SingleCopy {
    /// The settings allow them, and the rank has not closed.
    is_allowed: bool,
    standing: Vec<Standing>,
    /// The secret by which peers probe their access.
    _token: Box<u64>,
}

impl SingleCopy {
    /// Shows the token of the rank at `place` to its peers in a job of `job` ranks.
    pub(crate) fn new(segment: &Segment, place: usize, job: usize, is_allowed: bool) -> SingleCopy {
        let mut secret = [0u8; 8];
        // SAFETY: the buffer is eight bytes long.
        unsafe {
            libc::getrandom(
                secret.as_mut_ptr().cast(),
                secret.len(),
                libc::GRND_NONBLOCK,
            )
        };
        let token = Box::new(
            u64::from_ne_bytes(secret) ^ u64::from(std::process::id()) << 17 ^ place as u64,
        );
        // If the Yama module restricts tracing to children, siblings need this rank's consent.
        if is_allowed {
            consent(libc::PR_SET_PTRACER_ANY);
        }
        let board = segment.board(place);
        board.token.store(*token, Ordering::Relaxed);
        board
            .token_address
            .store(&raw const *token as u64, Ordering::Relaxed);
        board.pid.store(std::process::id(), Ordering::Release);
        SingleCopy {
            is_allowed,
            standing: vec![Standing::default(); job],
            _token: token,
        }
    }

    pub(crate) fn works(&mut self, peer: usize, board: &Board) -> bool {
        if self.standing[peer] == Standing::Unknown {
            if board.pid.load(Ordering::Acquire) == 0 {
                // The peer has not joined the memory yet: it can be asked later.
                return self.is_allowed;
            }
            self.standing[peer] = if self.is_allowed && probe(board) {
                Standing::Works
            } else {
                Standing::Refused
            };
        }
        self.standing[peer] == Standing::Works
    }

    pub(crate) fn read(
        &mut self,
        peer: usize,
        board: &Board,
        address: u64,
        into: &mut [u8],
    ) -> Result<Transfer> {
        if !self.works(peer, board) {
            return Ok(Transfer::Refused);
        }
        let pid = board.pid.load(Ordering::Relaxed);
        let done = read_process(pid, address, into);
        self.judge(peer, pid, done)
    }

    pub(crate) fn write(
        &mut self,
        peer: usize,
        board: &Board,
        address: u64,
        from: &[u8],
    ) -> Result<Transfer> {
        if !self.works(peer, board) {
            return Ok(Transfer::Refused);
        }
        let pid = board.pid.load(Ordering::Relaxed);
        let done = write_process(pid, address, from);
        self.judge(peer, pid, done)
    }

    /// This rank's memory needs no copies any more: takes its consent back.
    pub(crate) fn close(&mut self) {
        if std::mem::take(&mut self.is_allowed) {
            consent(0);
        }
    }

    /// The end of a copy with a peer whose memory could be reached before.
    fn judge(&mut self, peer: usize, pid: u32, done: io::Result<()>) -> Result<Transfer> {
        let Err(why) = done else {
            return Ok(Transfer::Done);
        };
        if why.raw_os_error() == Some(libc::ESRCH) || is_ending(pid) {
            return Err(Fault::Gone { peer }.into());
        }
        self.standing[peer] = Standing::Refused;
        Ok(Transfer::Refused)
    }
}

/// Names the process that may read this one's memory: any, or none.
fn consent(to: libc::c_ulong) {
    // SAFETY: prctl with integers.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, to, 0, 0, 0) };
}

/// The process has ended or is ending: its memory disappears before it does.
fn is_ending(pid: u32) -> bool {
    /// The mark of an ending task in the kernel's `task_struct::flags`.
    const PF_EXITING: u64 = 4;
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    // The name in parentheses may contain anything. State and flags are the fields 3 and 9.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = fields.split_ascii_whitespace();
    let ended = matches!(fields.next(), Some("Z" | "X"));
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u64>().ok());
    ended || flags.is_some_and(|flags| flags & PF_EXITING != 0)
}

fn probe(board: &Board) -> bool {
    let pid = board.pid.load(Ordering::Acquire);
    let mut seen = [0u8; 8];
    pid != 0
        && read_process(pid, board.token_address.load(Ordering::Relaxed), &mut seen).is_ok()
        && u64::from_ne_bytes(seen) == board.token.load(Ordering::Relaxed)
}

fn read_process(pid: u32, address: u64, into: &mut [u8]) -> io::Result<()> {
    let (base, len) = (into.as_mut_ptr(), into.len());
    // SAFETY: the kernel writes only into our exclusive slice, of which the pieces are parts; the
    // remote side is only read, and the kernel checks its addresses.
    move_all(base, len, address, |local, remote| unsafe {
        libc::process_vm_readv(pid as libc::pid_t, local, 1, remote, 1, 0)
    })
}

fn write_process(pid: u32, address: u64, from: &[u8]) -> io::Result<()> {
    let (base, len) = (from.as_ptr().cast_mut(), from.len());
    // SAFETY: the kernel only reads our slice; the remote bytes are the receiver's, which has
    // exposed them to us for this, and the kernel checks their addresses.
    move_all(base, len, address, |local, remote| unsafe {
        libc::process_vm_writev(pid as libc::pid_t, local, 1, remote, 1, 0)
    })
}

/// Calls `step` until all bytes have been moved.
fn move_all(
    base: *mut u8,
    len: usize,
    address: u64,
    step: impl Fn(&libc::iovec, &libc::iovec) -> libc::ssize_t,
) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let local = libc::iovec {
            iov_base: base.wrapping_add(done).cast(),
            iov_len: len - done,
        };
        let remote = libc::iovec {
            iov_base: (address as usize + done) as *mut libc::c_void,
            iov_len: len - done,
        };
        match step(&local, &remote) {
            moved @ 1.. => done += moved as usize,
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {
                let why = io::Error::last_os_error();
                if why.kind() != io::ErrorKind::Interrupted {
                    return Err(why);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::process::{Child, Command, Stdio};

    use crate::shm::tests::one_segment;

    /// A process that waits until it is killed.
    fn sleeper() -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000").stdout(Stdio::null()).spawn().unwrap()
    }

    /// The answer to a copy from a process that could be read before.
    fn copy_from(pid: u32) -> Result<Transfer> {
        let segment = one_segment(2);
        let mut copies = SingleCopy::new(&segment, 0, 2, true);
        copies.standing[1] = Standing::Works;
        let board = segment.board(1);
        board.pid.store(pid, Ordering::Release);
        let answer = copies.read(1, board, 4096, &mut [0; 64]);
        assert_eq!(copies.standing[1] == Standing::Refused, answer.is_ok());
        answer
    }

    #[test]
    fn a_process_that_has_ended_is_gone() {
        let mut child = sleeper();
        child.kill().unwrap();
        // Nothing waits for the child yet: it is ending, and then a zombie.
        while !is_ending(child.id()) {
            std::thread::yield_now();
        }
        let answer = copy_from(child.id()).unwrap_err();
        assert!(
            matches!(answer.fault(), Fault::Gone { peer: 1 }),
            "{answer}"
        );
        let pid = child.id();
        child.wait().unwrap();
        let answer = copy_from(pid).unwrap_err();
        assert_eq!(answer.to_string(), "rank 1 is gone");
    }

    #[test]
    fn a_process_that_lives_refuses() {
        let mut child = sleeper();
        // The first page of a process is never mapped.
        assert_eq!(copy_from(child.id()).unwrap(), Transfer::Refused);
        assert!(!is_ending(child.id()) && !is_ending(std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
