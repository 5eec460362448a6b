//! The times of a recorded run as a rank of it has measured them: what a replay on the machine of
//! the recording is compared with.

use crate::bytes::{Bytes, Result, put, put_bytes, put_signed};

/// The times that a rank of the recorded run has measured, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The number of the rank's host, from 0 on in the order of their first ranks. In the part of a
    /// rank it is 0.
    pub host: u64,
    /// The time from the end of `MPI_Init` to the begin of `MPI_Finalize`.
    pub elapsed: u64,
    /// The time outside MPI.
    pub outside: u64,
    /// The part of it in spans so long that the processor time was read.
    pub known: u64,
    /// The part of the known time in which the process slept.
    pub slept: u64,
    /// The part of the known time in which another process had the core.
    pub interrupted: u64,
    /// The times inside MPI, by procedure, communicator and phase.
    pub inside: Vec<Inside>,
    /// The interruptions of the known time, by the numbers of the calls that followed them.
    pub taken: Vec<Taken>,
}

/// A time in which another process had the core, and which the computing before the call leaves
/// out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The number of the call among those of the rank, from 0 on.
    pub call: u64,
    /// The time, in nanoseconds.
    pub nanos: u64,
}

/// The calls of a procedure in a communicator and a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inside {
    /// The name of the procedure.
    pub procedure: String,
    /// The rank's number of the communicator; `None`: the procedure has none.
    pub comm: Option<i64>,
    /// The level of the last call of `MPI_Pcontrol` before; `None`: there was none.
    pub phase: Option<i64>,
    /// The number of its calls.
    pub calls: u64,
    /// The time in them, in nanoseconds.
    pub nanos: u64,
}

/// Reads a number that may be missing.
fn known(from: &mut Bytes) -> Result<Option<i64>> {
    Ok(match from.below(2, "the flag")? {
        0 => None,
        _ => Some(from.signed()?),
    })
}

impl Measured {
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        for number in [
            self.host,
            self.elapsed,
            self.outside,
            self.known,
            self.slept,
            self.interrupted,
            self.inside.len() as u64,
        ] {
            put(to, number);
        }
        for inside in &self.inside {
            put_bytes(to, inside.procedure.as_bytes());
            for number in [inside.comm, inside.phase] {
                put(to, number.is_some().into());
                number.into_iter().for_each(|number| put_signed(to, number));
            }
            put(to, inside.calls);
            put(to, inside.nanos);
        }
        put(to, self.taken.len() as u64);
        let mut next = 0;
        for taken in &self.taken {
            put(to, taken.call - next);
            put(to, taken.nanos);
            next = taken.call + 1;
        }
    }

    /// Reads the times of a rank with `calls` calls.
    pub(crate) fn read(from: &mut Bytes, calls: u64) -> Result<Measured> {
        Ok(Measured {
            host: from.number()?,
            elapsed: from.number()?,
            outside: from.number()?,
            known: from.number()?,
            slept: from.number()?,
            interrupted: from.number()?,
            inside: {
                let count = from.count()?;
                let all = (0..count).map(|_| {
                    Ok(Inside {
                        procedure: from.text()?.to_string(),
                        comm: known(from)?,
                        phase: known(from)?,
                        calls: from.number()?,
                        nanos: from.number()?,
                    })
                });
                all.collect::<Result<Vec<Inside>>>()?
            },
            taken: {
                let (count, mut next) = (from.count()?, 0u64);
                let mut taken = Vec::new();
                for _ in 0..count {
                    let call = next.saturating_add(from.number()?);
                    if call >= calls {
                        return from
                            .wrong("an interruption before a call that the rank does not make");
                    }
                    let nanos = from.number()?;
                    taken.push(Taken { call, nanos });
                    next = call + 1;
                }
                taken
            },
        })
    }

    /// Leaves out the interruptions from call number `calls` on.
    pub(crate) fn end_before(&mut self, calls: u64) {
        self.taken.retain(|taken| taken.call < calls);
    }
}
