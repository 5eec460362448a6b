//! The carrier of one rank's messages.

use std::sync::{Arc, MutexGuard};

use datatype::local_work::LocalWork;
use datatype::{Elements, Type};
use mpi::algorithms::{AlgorithmTable, Network};
use mpi::coll::carried::{Carrier, Key};

use crate::engine::{Command, Engine, Sending};
use crate::world::World;

/// The carrier of one rank's messages.
#[derive(Clone)]
pub(crate) struct Own {
    pub world: Arc<World>,
    pub rank: u32,
}

impl Own {
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        self.world.engine()
    }
}

impl Carrier for Own {
    fn send(&self, to: usize, key: Key, bytes: usize) -> u64 {
        let mut engine = self.engine();
        engine
            .send(self.rank, to as u32, key, bytes as u64, Sending::Standard)
            .into()
    }

    fn receive(&self, key: Key, _bytes: usize) -> u64 {
        self.engine().receive(self.rank, key).into()
    }

    fn is_done(&self, message: u64) -> bool {
        self.engine().is_done(self.rank, message as u32)
    }

    fn elements(&self, count: usize, ty: &Type) -> mpi::Result<Elements> {
        let elements = self.world.addresses().elements(count, ty);
        elements.ok_or_else(|| too_long(count.saturating_mul(ty.size())))
    }

    fn worked(&self, work: LocalWork, amount: usize, of: usize) {
        let time = self.world.work(work, amount, of);
        self.engine().command(self.rank, Command::Spend(time));
    }

    fn network(&self) -> Network {
        self.engine().network()
    }

    fn host_of(&self, world: usize) -> u32 {
        self.engine().host_of(world)
    }

    fn algorithms(&self) -> &AlgorithmTable {
        &self.world.algorithms
    }
}

/// The error of a buffer that is too long.
pub(crate) fn too_long(bytes: usize) -> mpi::Error {
    let what = format!("{bytes} bytes are more than a buffer of the fast way can have");
    mpi::Error::new(mpi::Class::NO_MEM, what)
}
