//! Collective operations whose messages another engine carries.
//!
//! A carrier runs the algorithms of this crate for ranks that do not exist here: their messages
//! have a length and no contents, and their work on memory is counted and not done.

use std::sync::Arc;

use datatype::Buffer;

use super::call::Call;
use super::carrier::By;
pub use super::carrier::{Carrier, Key};
use super::pending::Pending;
use super::{Work, network};
use crate::algorithms::Algorithm;
use crate::comm::Core;
use crate::{Class, Error, Result};

impl<'a> Call<'a> {
    pub(super) fn carry_send(
        &self,
        carrier: &'a dyn Carrier,
        to: usize,
        buffer: &Buffer,
    ) -> Result<Pending<'a>> {
        let peer = self.world(self.member(to))?;
        let message = carrier.send(peer, self.key(self.core.rank), buffer.len());
        Ok(Pending::of_carrier(carrier, message))
    }

    pub(super) fn carry_receive(
        &self,
        carrier: &'a dyn Carrier,
        from: usize,
        buffer: &Buffer,
    ) -> Result<Pending<'a>> {
        let from = self.member(from);
        let message = carrier.receive(self.key(from), buffer.len());
        Ok(Pending::of_carrier(carrier, message))
    }
}

/// A rank's part in a communicator whose messages a carrier carries.
#[derive(Debug)]
pub struct Member {
    core: Arc<Core>,
    /// The tag of the last operation on the communicator.
    tag: i32,
}

impl Member {
    /// The state of the member that `core` describes, before its first operation.
    pub fn new(core: Core) -> Member {
        Member {
            core: Arc::new(core),
            tag: 0,
        }
    }

    /// The communicator's data for this member.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The part of this rank in a communicator that the members of this one make together.
    pub fn making(&self, core: Core) -> Member {
        Member::new(core.made_from(&self.core))
    }

    /// The rank's part in the next collective operation.
    pub fn operation(&mut self) -> Operation {
        self.tag = self.tag.wrapping_add(1) & i32::MAX;
        Operation {
            core: self.core.clone(),
            tag: self.tag,
            begins: self.core.network.begin(),
        }
    }
}

/// One rank's part in a collective operation.
pub struct Operation {
    core: Arc<Core>,
    tag: i32,
    /// True if the members agree on their network's properties in this operation.
    begins: bool,
}

impl Operation {
    /// Runs the operation by messages.
    ///
    /// # Errors
    /// The arguments do not fit the communicator, or the algorithm needs the contents of
    /// messages.
    pub async fn run(self, carrier: &dyn Carrier, work: &Work) -> Result<()> {
        work.check(&self.core)?;
        let call = Call::carried(By::Carrier(carrier), &self.core, self.tag);
        network::settle(&call, self.begins).await?;
        let Some(algorithm) = work.algorithm(&call) else {
            return Ok(());
        };
        if algorithm == Algorithm::TwoLevel
            && matches!(work, Work::Gatherv { .. } | Work::Scatterv { .. })
        {
            let what = "blocks of private sizes travel in bundles, whose contents matter";
            return Err(Error::new(Class::UNSUPPORTED_OPERATION, what.to_string()));
        }
        work.run(&call, algorithm).await
    }
}
