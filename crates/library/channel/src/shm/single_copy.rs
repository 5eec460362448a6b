//! Reads and writes of a peer's memory (`process_vm_readv`, `process_vm_writev`), where the system
//! allows them.
//!
//! Access is probed once for each peer: each rank publishes the address and the value of a secret
//! in its memory, and a rank that reads this value there can access the right process. After a
//! refusal (another user, a security module, a container without the permission) the bytes travel
//! as packets.
//!
//! Invariant: a copy that fails because its peer ends never counts as a refusal.

use std::{fs, io};

use datatype::double::{self, Primitive};
use libc::iovec;

use super::segment::{Board, Segment};
use crate::run_list::{CheckedRuns, MOST_RUNS};
use crate::sync::Ordering;
use crate::{Fault, Result, Transfer};

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Standing {
    #[default]
    Unknown,
    Works,
    Refused,
}

/// The source of a single copy: the first bytes from a copy that the peer has made, the others from
/// the peer's buffer.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// The memory of all bytes of the message, the copied ones included.
    pub(crate) rest: Memory<'a>,
    /// The address of the first byte in the sender's copy.
    pub(crate) copy: u64,
    /// The number of bytes to be read from the sender's copy.
    pub(crate) copied: usize,
}

/// Memory of a peer's process.
#[derive(Clone, Copy)]
pub(crate) enum Memory<'a> {
    /// The contiguous memory that begins at this address.
    Run(u64),
    /// These runs of memory, without this number of bytes at their beginning.
    Runs(&'a CheckedRuns, u64),
}

impl Memory<'_> {
    /// The memory behind the first `skipped` bytes.
    fn behind(self, skipped: u64) -> Self {
        match self {
            Memory::Run(address) => Memory::Run(address.wrapping_add(skipped)),
            Memory::Runs(runs, before) => Memory::Runs(runs, before.wrapping_add(skipped)),
        }
    }
}

impl Source<'_> {
    /// One run of bytes of which the peer has made no copy.
    pub(crate) fn run(address: u64) -> Self {
        Source {
            rest: Memory::Run(address),
            copy: 0,
            copied: 0,
        }
    }

    /// The bytes behind the first `skipped` ones.
    pub(crate) fn behind(self, skipped: usize) -> Self {
        Source {
            rest: self.rest.behind(skipped as u64),
            copy: self.copy.wrapping_add(skipped as u64),
            copied: self.copied.saturating_sub(skipped),
        }
    }

    /// Sets `parts` to the parts of the peer's memory with the first `len` bytes, or with as many
    /// of them as one call of the kernel takes. One or two parts need no memory.
    fn parts<'a>(
        self,
        len: usize,
        few: &'a mut [iovec; 2],
        many: &'a mut Vec<iovec>,
    ) -> &'a [iovec] {
        let copied = self.copied.min(len);
        let rest = len - copied;
        few[0] = part(self.copy, copied);
        match self.rest.behind(copied as u64) {
            Memory::Run(address) => {
                few[1] = part(address, rest);
                &few[usize::from(copied == 0)..]
            }
            Memory::Runs(..) if rest == 0 => &few[..1],
            Memory::Runs(runs, start) => {
                many.clear();
                many.extend((copied > 0).then_some(few[0]));
                let room = MOST_RUNS - many.len();
                let parts = runs.parts(start..start.saturating_add(rest as u64));
                many.extend(parts.take(room).map(|(at, len)| part(at, len as usize)));
                many
            }
        }
    }
}

/// A part of a peer's memory, in the form that the kernel takes.
fn part(address: u64, len: usize) -> iovec {
    iovec {
        iov_base: address as usize as *mut libc::c_void,
        iov_len: len,
    }
}

/// The single copies of a rank, and whether they work with each peer.
pub(crate) struct SingleCopy {
    /// True if the settings allow single copies, until `close`.
    is_allowed: bool,
    standing: Vec<Standing>,
    /// This rank's secret, which peers read to probe their access.
    _token: Box<u64>,
}

impl SingleCopy {
    /// Publishes the secret of local rank `place` to its peers, in a job of `job` ranks.
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
        // If the Yama module restricts tracing to descendants, siblings need this rank's consent.
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
                // The peer has not attached to the memory yet: probe it later.
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
        from: Source,
        into: &mut [u8],
    ) -> Result<Transfer> {
        if !self.works(peer, board) {
            return Ok(Transfer::Refused);
        }
        let pid = board.pid.load(Ordering::Relaxed);
        let done = read_process(pid, from, into);
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

    /// Ends single copies: withdraws the consent that peers may access this rank's memory.
    pub(crate) fn close(&mut self) {
        if std::mem::take(&mut self.is_allowed) {
            consent(0);
        }
    }

    /// The result of a copy with a peer with which copies worked before. A failure is a refusal
    /// unless the peer has ended.
    fn judge(&mut self, peer: usize, pid: u32, done: io::Result<()>) -> Result<Transfer> {
        let Err(why) = done else {
            return Ok(Transfer::Done);
        };
        if why.raw_os_error() == Some(libc::ESRCH) || is_ending(pid) {
            return Err(Fault::Gone { peer }.into());
        }
        if !is_of_these_bytes(&why) {
            self.standing[peer] = Standing::Refused;
        }
        Ok(Transfer::Refused)
    }
}

/// True if a copy failed because of its memory, such as a mapping of a device: other memory of the
/// peer may be copied.
fn is_of_these_bytes(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(libc::EFAULT | libc::ENOMEM))
        || why.kind() == io::ErrorKind::UnexpectedEof
}

/// Sets which process may access this process's memory: any process or none.
fn consent(to: libc::c_ulong) {
    // SAFETY: prctl with integers.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, to, 0, 0, 0) };
}

/// True if the process has ended or is ending: its memory is released before the process is gone.
fn is_ending(pid: u32) -> bool {
    /// The flag of an ending task in the kernel's `task_struct::flags`.
    const PF_EXITING: u64 = 4;
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        // A process whose memory this one may not read can be hidden.
        return !exists(pid);
    };
    // The name in parentheses may contain anything. State and flags are fields 3 and 9.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = fields.split_ascii_whitespace();
    let ended = matches!(fields.next(), Some("Z" | "X"));
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u64>().ok());
    ended || flags.is_some_and(|flags| flags & PF_EXITING != 0)
}

/// True if there is a process with this number, which may be a zombie.
fn exists(pid: u32) -> bool {
    // SAFETY: the signal 0 is not sent.
    let asked = unsafe { libc::kill(pid as libc::pid_t, 0) };
    asked == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

fn probe(board: &Board) -> bool {
    let pid = board.pid.load(Ordering::Acquire);
    let mut seen = [0u8; 8];
    let at = Source::run(board.token_address.load(Ordering::Relaxed));
    pid != 0
        && read_process(pid, at, &mut seen).is_ok()
        && u64::from_ne_bytes(seen) == board.token.load(Ordering::Relaxed)
}

/// Charges a copy of `len` bytes to the double of this thread. True: it need not be performed.
///
/// # Errors
/// The double's kernel refuses copies between processes.
fn is_priced(len: usize) -> io::Result<bool> {
    if double::ask(|double| double.has_kernel_copies()) == Some(false) {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    Ok(double::has_priced(Primitive::Kernel(len), len))
}

fn read_process(pid: u32, from: Source, into: &mut [u8]) -> io::Result<()> {
    if is_priced(into.len())? {
        return Ok(());
    }
    let (base, len) = (into.as_mut_ptr(), into.len());
    // SAFETY: the kernel writes only into our exclusive slice, of which the pieces are parts; the
    // remote memory is only read, and the kernel checks its addresses.
    move_all(base, len, from, |local, remote| unsafe {
        let count = remote.len() as libc::c_ulong;
        libc::process_vm_readv(pid as libc::pid_t, local, 1, remote.as_ptr(), count, 0)
    })
}

fn write_process(pid: u32, address: u64, from: &[u8]) -> io::Result<()> {
    if is_priced(from.len())? {
        return Ok(());
    }
    let (base, len) = (from.as_ptr().cast_mut(), from.len());
    let to = Source::run(address);
    // SAFETY: the kernel only reads our slice; the remote bytes belong to the receiver, which has
    // exposed them to us for this, and the kernel checks their addresses.
    move_all(base, len, to, |local, remote| unsafe {
        let count = remote.len() as libc::c_ulong;
        libc::process_vm_writev(pid as libc::pid_t, local, 1, remote.as_ptr(), count, 0)
    })
}

/// Calls `step`, which moves some bytes and returns their number, until all `len` bytes are moved.
/// Its arguments are memory of this process, and parts of the peer's memory.
fn move_all(
    base: *mut u8,
    len: usize,
    remote: Source,
    step: impl Fn(&iovec, &[iovec]) -> libc::ssize_t,
) -> io::Result<()> {
    let (mut few, mut many) = ([part(0, 0); 2], Vec::new());
    let mut done = 0;
    while done < len {
        let local = iovec {
            iov_base: base.wrapping_add(done).cast(),
            iov_len: len - done,
        };
        let parts = remote.behind(done).parts(len - done, &mut few, &mut many);
        match step(&local, parts) {
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

    /// The result of a copy from a process that could be read before.
    fn copy_from(pid: u32) -> Result<Transfer> {
        let segment = one_segment(2);
        let mut copies = SingleCopy::new(&segment, 0, 2, true);
        copies.standing[1] = Standing::Works;
        let board = segment.board(1);
        board.pid.store(pid, Ordering::Release);
        let at = Source::run(4096);
        let answer = copies.read(1, board, at, &mut [0; 64]);
        assert!(
            copies.standing[1] == Standing::Works,
            "other memory can be read"
        );
        answer
    }

    #[test]
    fn a_process_that_has_ended_is_gone() {
        let mut child = sleeper();
        child.kill().unwrap();
        // Nothing waits for the child yet: it is ending first, and then a zombie.
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
