//! The protection domains of a node: memory is registered once in each.

use device::{Access, Node, Region};

use crate::rdma::rail_set::{KeyPair, MAX_RAILS, RailKeys, RailSet};
use crate::{Exposed, Result};

/// Exposed memory: its address, its length in bytes, and the access that it is exposed for.
pub(in crate::rdma) type ExposedRange = (u64, usize, Exposed);

/// The protection domains of the rails in use.
pub(super) struct Domains {
    rails: RailSet,
    /// For each rail: the first rail of its domain, which registers memory for all of them.
    registrar: [usize; MAX_RAILS],
}

impl Domains {
    /// The protection domains of the rails `rails` of a node.
    pub(super) fn of(node: &mut dyn Node, rails: RailSet) -> Domains {
        let domain = |node: &mut dyn Node, rail| node.rail(rail).attributes().domain;
        let mut registrar = [0; MAX_RAILS];
        for rail in rails.iter() {
            let own = domain(node, rail);
            let mut all = rails.iter();
            registrar[rail] = all
                .find(|&first| domain(node, first) == own)
                .expect("a rail is in its own domain");
        }
        Domains { rails, registrar }
    }

    /// Registers a range in every domain.
    pub(super) fn register(
        &self,
        node: &mut dyn Node,
        (address, len, exposed): ExposedRange,
        kept: bool,
    ) -> Result<RailKeys> {
        let access = access(exposed, kept);
        let base = std::ptr::with_exposed_provenance_mut(address as usize);
        let mut keys = RailKeys::default();
        for rail in self.rails.iter() {
            let registrar = self.registrar[rail];
            if registrar != rail {
                keys.insert(rail, keys.on(registrar));
                continue;
            }
            // SAFETY: by the contract of `Registrations::expose`, the memory stays until it is
            // retracted, and its owner expects it to change. A kept registration is used only by
            // later exposures whose memory is still the registered memory: the watch reports any
            // change.
            match unsafe { node.rail(rail).register(base, len, access) } {
                Ok(Region { lkey, rkey, .. }) => keys.insert(rail, KeyPair { lkey, rkey }),
                Err(error) => {
                    // The first error is the one to report.
                    let _ = self.deregister(node, (address, len), &keys);
                    return Err(error.into());
                }
            }
        }
        Ok(keys)
    }

    /// Deregisters a range in every domain of its keys.
    pub(super) fn deregister(
        &self,
        node: &mut dyn Node,
        (address, len): (u64, usize),
        keys: &RailKeys,
    ) -> Result<()> {
        let mut result = Ok(());
        for rail in keys.rails().iter() {
            if self.registrar[rail] != rail {
                continue;
            }
            let KeyPair { lkey, rkey } = keys.on(rail);
            let region = Region {
                address,
                len: len as u64,
                lkey,
                rkey,
            };
            result = result.and(node.rail(rail).deregister(region));
        }
        Ok(result?)
    }

    /// The number of bytes that a registration of `len` bytes locks: as many in each domain.
    pub(super) fn cost(&self, len: usize) -> u64 {
        let rails = self.rails.iter();
        let domains = rails.filter(|&rail| self.registrar[rail] == rail).count();
        len as u64 * domains as u64
    }
}

/// The access rights of a registration. One that is kept for writing serves later exposures for
/// reading.
pub(super) fn access(exposed: Exposed, kept: bool) -> Access {
    match exposed {
        Exposed::ToRead => Access {
            remote_read: true,
            ..Access::default()
        },
        Exposed::ToWrite | Exposed::ToBoth => Access {
            local_write: true,
            remote_write: true,
            remote_read: kept || exposed == Exposed::ToBoth,
            ..Access::default()
        },
    }
}
