//! The repetition of a benchmark's iteration: warm-up, timing, and validation of the data.
//!
//! If nothing needs to be done between two iterations, all are timed together, so that reading the
//! clock costs nothing.

use anyhow::{Context, Result, bail};
use memmap2::MmapMut;
use results::sizes::size_label;

use crate::ffi::Mpi;
use crate::overlap::Overlapped;
use crate::plan::Repeats;

/// One iteration of a benchmark, with its preparation and validation.
pub(crate) trait Iteration {
    /// True if the procedure must time each iteration and call [`Iteration::between`] after it.
    const TIMED_EACH: bool = false;

    /// Runs one iteration: the only part that is timed.
    fn step(&mut self, size: usize) -> Result<()>;

    /// Prepares for the iterations of a size. Called before the first of them.
    fn prepare(&mut self, _size: usize) -> Result<()> {
        Ok(())
    }

    /// Prepares for the timed iterations. Called before the first of them.
    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    /// Called after each iteration, if iterations are timed one by one.
    fn between(&mut self) -> Result<()> {
        Ok(())
    }

    /// Ends the iterations of a size. Called after the last of them.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Repeats the iteration with computing for `pure` seconds in it. `None` if the benchmark has
    /// no such iterations.
    fn overlap(
        &mut self,
        _size: usize,
        _repeats: Repeats,
        _pure: f64,
    ) -> Result<Option<Overlapped>> {
        Ok(None)
    }

    /// For validation: fills the buffers before the ranks synchronise.
    fn fill(&mut self, size: usize, iteration: usize);

    /// For validation: checks the received data.
    fn check(&self, size: usize, iteration: usize) -> Result<()>;
}

/// An [`Iteration`] with its repetition, as a trait object.
pub(crate) trait Procedure {
    /// Repeats messages of `size` bytes and returns the times that this rank measured: one for all
    /// timed iterations together, or one for each.
    fn repeat(&mut self, size: usize, repeats: Repeats, timing: Timing) -> Result<Timed>;

    /// Repeats messages of `size` bytes with computing for `pure` seconds during each; `None` if
    /// the benchmark has no such iterations.
    fn overlap(&mut self, size: usize, repeats: Repeats, pure: f64) -> Result<Option<Overlapped>>;
}

/// The synchronisation of the ranks before iterations, and the part that is timed as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Timing {
    /// Iterations follow each other without synchronisation; one time covers all of them.
    Together,
    /// Iterations follow each other without synchronisation; each has a time of its own.
    Each,
    /// A barrier precedes each iteration, and every second rank begins it this many seconds late;
    /// ranks of either parity alternate. The time of an iteration starts when the late ranks begin,
    /// so that it is comparable with one without a skew.
    Skewed(f64),
}

/// The times of the timed iterations of one size on one rank.
pub(crate) struct Timed {
    /// The time of all iterations together, or of each, in seconds.
    pub(crate) seconds: Vec<f64>,
    /// The time of the clock before the first timed iteration and after the last, in seconds.
    pub(crate) span: (f64, f64),
}

pub(crate) struct Repeated<'a, I> {
    pub(crate) mpi: &'a Mpi,
    pub(crate) validate: bool,
    pub(crate) iteration: I,
}

impl<I: Iteration> Procedure for Repeated<'_, I> {
    fn repeat(&mut self, size: usize, repeats: Repeats, timing: Timing) -> Result<Timed> {
        self.iteration.prepare(size)?;
        let timed = match timing != Timing::Together || self.validate || I::TIMED_EACH {
            true => self.one_by_one(size, repeats, timing),
            false => self.together(size, repeats),
        }?;
        self.iteration.finish()?;
        Ok(timed)
    }

    fn overlap(&mut self, size: usize, repeats: Repeats, pure: f64) -> Result<Option<Overlapped>> {
        self.iteration.overlap(size, repeats, pure)
    }
}

impl<I: Iteration> Repeated<'_, I> {
    fn together(&mut self, size: usize, repeats: Repeats) -> Result<Timed> {
        for _ in 0..repeats.skip {
            self.iteration.step(size)?;
        }
        self.iteration.start()?;
        let start = self.mpi.seconds();
        for _ in 0..repeats.iterations {
            self.iteration.step(size)?;
        }
        let end = self.mpi.seconds();
        Ok(Timed {
            seconds: vec![end - start],
            span: (start, end),
        })
    }

    fn one_by_one(&mut self, size: usize, repeats: Repeats, timing: Timing) -> Result<Timed> {
        let mut span = (0.0, 0.0);
        let mut seconds = Vec::with_capacity(repeats.iterations);
        for iteration in 0..repeats.skip + repeats.iterations {
            if self.validate {
                self.iteration.fill(size, iteration);
                // Timing must not begin while another rank still checks its data.
                synchronise(self.mpi)?;
            }
            if iteration == repeats.skip {
                self.iteration.start()?;
            }
            let start = match timing {
                Timing::Skewed(skew) => self.begin_skewed(iteration, skew)?,
                Timing::Together | Timing::Each => self.mpi.seconds(),
            };
            self.iteration.step(size)?;
            // A rank that began early may have finished before the late ranks began.
            let end = self.mpi.seconds().max(start);
            if iteration >= repeats.skip {
                if seconds.is_empty() {
                    span.0 = start;
                }
                span.1 = end;
                seconds.push(end - start);
            }
            if self.validate {
                let checked = self.iteration.check(size, iteration);
                checked.with_context(|| format!("validation of iteration {iteration} failed"))?;
            }
            self.iteration.between()?;
        }
        Ok(Timed { seconds, span })
    }

    /// Waits for all ranks, and then, on every second rank, for another `skew` seconds. Returns the
    /// time at which the late ranks begin, in seconds.
    fn begin_skewed(&self, iteration: usize, skew: f64) -> Result<f64> {
        self.mpi.barrier()?;
        let late = self.mpi.seconds() + skew;
        if is_late(self.mpi.rank(), iteration) {
            while self.mpi.seconds() < late {
                std::hint::spin_loop();
            }
        }
        Ok(late)
    }
}

/// True if a rank begins this iteration late: the ranks of either parity alternate.
fn is_late(rank: usize, iteration: usize) -> bool {
    (rank + iteration) % 2 == 1
}

const TAG_SYNCHRONISE: i32 = 93;

/// Waits for all ranks with plain sends, so that a point-to-point benchmark needs no collective.
pub(crate) fn synchronise(mpi: &Mpi) -> Result<()> {
    let mut nothing = [0u8; 1];
    if mpi.rank() != 0 {
        mpi.send(&nothing, 0, TAG_SYNCHRONISE)?;
        return mpi.recv(&mut nothing, 0, TAG_SYNCHRONISE);
    }
    for rank in 1..mpi.size() {
        mpi.recv(&mut nothing, rank, TAG_SYNCHRONISE)?;
    }
    for rank in 1..mpi.size() {
        mpi.send(&nothing, rank, TAG_SYNCHRONISE)?;
    }
    Ok(())
}

/// The largest buffer of a rank, in bytes.
const LARGEST_BUFFER: usize = 1 << 30;

/// A buffer of whole pages, all of them touched.
pub(crate) fn buffer(bytes: usize) -> Result<MmapMut> {
    if bytes > LARGEST_BUFFER {
        bail!(
            "a rank would need a buffer of {}, more than {}: lower the largest size with -m",
            size_label(bytes),
            size_label(LARGEST_BUFFER)
        );
    }
    let mut map = MmapMut::map_anon(bytes.max(64))
        .with_context(|| format!("cannot allocate a buffer of {bytes} bytes"))?;
    map.fill(b'a');
    Ok(map)
}

/// Byte `at` of the data of `sender` in an iteration. Neighbouring bytes differ, and each byte
/// differs from that of the previous iteration.
pub(crate) fn pattern(sender: usize, iteration: usize, at: usize) -> u8 {
    (at.wrapping_mul(7) ^ (at >> 8)).wrapping_add(sender * 31 + iteration * 13 + 1) as u8
}

/// Fills `block` with the data of `sender` in an iteration.
pub(crate) fn paint(block: &mut [u8], sender: usize, iteration: usize) {
    for (at, byte) in block.iter_mut().enumerate() {
        *byte = pattern(sender, iteration, at);
    }
}

/// Compares the received data with the expected bytes.
pub(crate) fn verify(found: &[u8], expected: impl Fn(usize) -> u8) -> Result<()> {
    match found
        .iter()
        .enumerate()
        .find(|&(at, &byte)| byte != expected(at))
    {
        None => Ok(()),
        Some((at, &byte)) => bail!(
            "byte {at} of {} is {byte:#04x} instead of {:#04x}",
            found.len(),
            expected(at)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_two_neighbours_is_late_and_each_in_turn() {
        for iteration in 0..4 {
            assert_ne!(is_late(3, iteration), is_late(4, iteration));
            assert_ne!(is_late(3, iteration), is_late(3, iteration + 1));
        }
    }

    #[test]
    fn a_wrong_byte_is_found_and_named() {
        let mut data: Vec<u8> = (0..5000).map(|at| pattern(1, 7, at)).collect();
        verify(&data, |at| pattern(1, 7, at)).unwrap();
        assert!(verify(&data, |at| pattern(1, 8, at)).is_err());
        assert!(verify(&data, |at| pattern(0, 7, at)).is_err());
        assert!(verify(&data[1..], |at| pattern(1, 7, at)).is_err());
        data[4321] ^= 1;
        let error = verify(&data, |at| pattern(1, 7, at))
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("byte 4321 of 5000"), "{error}");
    }
}
