//! Buffers for buffered sends (MPI 5.0 §3.6): attach, detach, flush.

use std::sync::Arc;

use crate::Result;
use crate::p2p::buffered::Owner;
use crate::rank::Rank;
use crate::rank::drive::Completion;
use crate::request::{RequestId, Waiting};

impl Rank {
    /// `MPI_Buffer_attach` and `MPI_Comm_attach_buffer`.
    pub fn attach_buffer(&self, owner: Owner, address: usize, size: usize) -> Result<()> {
        let mut state = self.lock();
        if let Some(comm) = owner {
            state.objects.comms.get(comm)?;
        }
        state.engine.attached.attach(owner, address, size)
    }

    /// `MPI_Buffer_detach` and `MPI_Comm_detach_buffer`: waits until every copy has been sent. The
    /// result is the address and the size of the buffer.
    pub fn detach_buffer(&self, operation: &'static str, owner: Owner) -> Result<(usize, usize)> {
        self.flush_buffer(operation, owner)?;
        let attached = self.lock().engine.attached.detach(owner)?;
        Ok((attached.address, attached.size))
    }

    /// `MPI_Buffer_flush` and `MPI_Comm_flush_buffer`: waits until every copy has been sent.
    pub fn flush_buffer(&self, operation: &'static str, owner: Owner) -> Result<()> {
        self.lock().engine.attached.get_mut(owner)?;
        let waiting = Waiting::in_call(operation);
        self.wait_until(&waiting, |state| {
            Ok(state.engine.drop_sent_copies(owner)?.then_some(()))
        })
    }

    /// `MPI_Buffer_iflush` and `MPI_Comm_iflush_buffer`: the request completes when every copy that
    /// is in flight now has been sent.
    pub fn start_flush_buffer(self: &Arc<Rank>, owner: Owner) -> Result<RequestId> {
        let in_flight = std::mem::take(&mut self.lock().engine.attached.get_mut(owner)?.in_flight);
        let rank = self.clone();
        self.spawn(None, async move {
            for (request, _) in in_flight {
                Completion {
                    rank: rank.clone(),
                    request,
                }
                .await?;
            }
            Ok(())
        })
    }
}
