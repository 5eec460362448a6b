//! Reading a peer's memory directly (`process_vm_readv`), where the machine allows it.
//!
//! Access is probed once for each peer: the peer shows the address and the value of a secret in its
//! memory, and a rank that reads this value there has the right process. After a refusal (another
//! user, a security module, a container without the permission) the bytes travel as packets.

use std::io;

use super::segment::{Board, Segment};
use crate::Transfer;
use crate::sync::Ordering;

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Standing {
    #[default]
    Unknown,
    Works,
    Refused,
}

/// The single copies of a rank, and its access to its peers.
pub(crate) struct SingleCopy {
    allowed: bool,
    standing: Vec<Standing>,
    /// The secret by which peers probe their access.
    _token: Box<u64>,
}

impl SingleCopy {
    /// Shows the token of the rank at `place` to its peers in a job of `job` ranks. If not
    /// `allowed`, no peer is read.
    pub(crate) fn new(segment: &Segment, place: usize, job: usize, allowed: bool) -> SingleCopy {
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
        // Where the Yama module restricts tracing to children, siblings need this rank's consent.
        // SAFETY: prctl with integers.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
        let board = segment.board(place);
        board.token.store(*token, Ordering::Relaxed);
        board
            .token_address
            .store(&raw const *token as u64, Ordering::Relaxed);
        board.pid.store(std::process::id(), Ordering::Release);
        SingleCopy {
            allowed,
            standing: vec![Standing::default(); job],
            _token: token,
        }
    }

    pub(crate) fn works(&mut self, peer: usize, board: &Board) -> bool {
        if self.standing[peer] == Standing::Unknown {
            if board.pid.load(Ordering::Acquire) == 0 {
                // The peer has not joined the memory yet: it can be asked later.
                return self.allowed;
            }
            self.standing[peer] = if self.allowed && probe(board) {
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
    ) -> Transfer {
        if !self.works(peer, board) {
            return Transfer::Refused;
        }
        let pid = board.pid.load(Ordering::Relaxed);
        let done = read_process(pid, address, into);
        self.judge(peer, done)
    }

    pub(crate) fn write(
        &mut self,
        peer: usize,
        board: &Board,
        address: u64,
        from: &[u8],
    ) -> Transfer {
        if !self.works(peer, board) {
            return Transfer::Refused;
        }
        let pid = board.pid.load(Ordering::Relaxed);
        let done = write_process(pid, address, from);
        self.judge(peer, done)
    }

    fn judge(&mut self, peer: usize, done: io::Result<()>) -> Transfer {
        match done {
            Ok(()) => Transfer::Done,
            Err(_) => {
                self.standing[peer] = Standing::Refused;
                Transfer::Refused
            }
        }
    }
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
