//! A queue pair of a device without immediates; its messages have headings.

use super::headings::{Headings, IMMEDIATE, Incoming, LONGEST, PLAIN, WRITTEN, pieces};
use crate::wr_table::Sends;
use crate::{Device, Error, Operation, Qp, Remote, Result, Work};

pub(super) struct Pair {
    pub life: u8,
    pub sends: Sends,
    pub out: Headings,
    /// The receive queue; `None`: receives come from a shared queue.
    pub incoming: Option<Incoming>,
}

impl Pair {
    /// Posts a plain write and, behind it, a heading with the immediate.
    ///
    /// # Safety
    /// As for [`Device::post`].
    pub(super) unsafe fn write_with_immediate(
        &mut self,
        device: &mut dyn Device,
        qp: Qp,
        work: &Work,
        to: Remote,
        immediate: u32,
    ) -> Result<()> {
        let len: u64 = work.local.iter().map(|slice| u64::from(slice.len)).sum();
        if len > LONGEST {
            return Err(Error::Invalid(format!(
                "queue pair {}: {len} bytes; valid are up to {LONGEST}",
                qp.0
            )));
        }
        let heading = WRITTEN | len << 32 | u64::from(immediate);
        let heading = [self.out.write(self.sends.next(), heading)];
        if len > 0 {
            let write = Work {
                operation: Operation::Write {
                    to,
                    immediate: None,
                },
                signaled: false,
                ..*work
            };
            // SAFETY: by the caller's promise.
            unsafe { device.post(qp, &write)? };
        }
        let behind = Work {
            operation: Operation::Send { immediate: None },
            local: &heading,
            ..*work
        };
        // SAFETY: the heading stays unchanged until this request completes.
        unsafe { device.post(qp, &behind) }
    }

    /// Posts a send with a heading in front.
    ///
    /// # Safety
    /// As for [`Device::post`].
    pub(super) unsafe fn send(
        &mut self,
        device: &mut dyn Device,
        qp: Qp,
        work: &Work,
        immediate: Option<u32>,
    ) -> Result<()> {
        let heading = match immediate {
            Some(immediate) => IMMEDIATE | u64::from(immediate),
            None => PLAIN,
        };
        let heading = self.out.write(self.sends.next(), heading);
        let (local, count) = pieces(heading, work.local)?;
        let message = Work {
            operation: Operation::Send { immediate: None },
            local: &local[..count],
            ..*work
        };
        // SAFETY: by the caller's promise; the heading stays unchanged until this request
        // completes.
        unsafe { device.post(qp, &message) }
    }
}
