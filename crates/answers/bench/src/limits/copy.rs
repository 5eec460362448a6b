//! The bandwidth of copies: within a process, from cached and from uncached memory, and from
//! another process with `process_vm_readv`.

use std::hint::black_box;
use std::io::{BufRead, BufReader, IoSliceMut, Read, Write, stdin, stdout};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::uio::{RemoteIoVec, process_vm_readv as read_from};
use nix::unistd::Pid;
use results::Unit;

use super::figure::Figure;
use crate::message::SUBCOMMAND;

const FIRST: usize = 64;
const LAST: usize = 4 << 20;
/// The memory through which uncached copies go, in bytes: larger than any cache.
const COLD: usize = 256 << 20;
/// The measuring time of one copy bandwidth in one round.
const SLICE: Duration = Duration::from_millis(20);
/// The worker's argument instead of a library and a plan: allocate memory for the parent to read.
pub(crate) const LEND: &str = "lend-memory";

pub(crate) fn memcpy() -> Result<Vec<Figure>> {
    let (from, mut to) = (vec![1u8; LAST], vec![2u8; LAST]);
    let mut figures = Vec::new();
    for size in sizes(FIRST, LAST) {
        let seconds = time(|| {
            to[..size].copy_from_slice(black_box(&from[..size]));
            black_box(&mut to);
            Ok(())
        })?;
        figures.push(figure("memcpy", size, seconds));
    }
    let (from, mut to) = (vec![1u8; COLD], vec![2u8; COLD]);
    for size in sizes(4 << 10, LAST) {
        let mut at = 0;
        let seconds = time(|| {
            to[at..at + size].copy_from_slice(black_box(&from[at..at + size]));
            black_box(&mut to);
            at = if at + 2 * size > COLD { 0 } else { at + size };
            Ok(())
        })?;
        figures.push(figure("memcpy-cold", size, seconds));
    }
    Ok(figures)
}

pub(crate) fn process_vm_readv(command: &Path) -> Result<Vec<Figure>> {
    let lender = Lender::start(command)?;
    let mut to = vec![0u8; LAST];
    let mut figures = Vec::new();
    for size in sizes(FIRST, LAST) {
        let remote = [RemoteIoVec {
            base: lender.address,
            len: size,
        }];
        let seconds = time(|| {
            let mut local = [IoSliceMut::new(&mut to[..size])];
            let read = read_from(lender.pid(), &mut local, &remote)
                .context("the system refuses process_vm_readv")?;
            if read != size {
                bail!("process_vm_readv read {read} of {size} bytes");
            }
            Ok(())
        })?;
        figures.push(figure("vm-readv", size, seconds));
    }
    Ok(figures)
}

/// The time of one `step` in seconds, from as many as fit into [`SLICE`] after a warm-up.
fn time(mut step: impl FnMut() -> Result<()>) -> Result<f64> {
    step()?;
    let (mut batch, start) = (1u32, Instant::now());
    loop {
        let before = Instant::now();
        for _ in 0..batch {
            step()?;
        }
        let took = before.elapsed();
        // A batch takes a good part of the slice, so that the time of reading the clock is
        // negligible.
        if start.elapsed() >= SLICE && took >= SLICE / 4 {
            return Ok(took.as_secs_f64() / f64::from(batch));
        }
        batch = batch.saturating_mul(2);
    }
}

/// The sizes `first`, `2 * first`, and so on, up to `last`.
fn sizes(first: usize, last: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(first), |size| Some(size * 2)).take_while(move |&size| size <= last)
}

fn figure(name: &'static str, size: usize, seconds: f64) -> Figure {
    let value = size as f64 / 1e6 / seconds;
    Figure {
        name,
        size,
        unit: Unit::MegabytesPerSecond,
        value,
    }
}

/// A child process with memory that this process reads. It ends when its standard input is closed.
struct Lender {
    child: Child,
    address: usize,
}

impl Lender {
    fn start(command: &Path) -> Result<Lender> {
        let mut child = Command::new(command)
            .args([SUBCOMMAND, LEND])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the process whose memory is read")?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let lender = Lender {
            child,
            address: line.trim().parse().unwrap_or(0),
        };
        if lender.address == 0 {
            bail!("the process whose memory is read printed {line:?} instead of an address");
        }
        Ok(lender)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The main function of the child: prints the address of its memory and waits.
pub(crate) fn lend_memory() -> ExitCode {
    let memory = vec![3u8; LAST];
    let printed =
        writeln!(stdout(), "{}", memory.as_ptr() as usize).and_then(|()| stdout().flush());
    // Wait until the parent closes the pipe or ends.
    let waited = stdin().read_to_end(&mut Vec::new());
    black_box(memory);
    if printed.and(waited.map(|_| ())).is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
