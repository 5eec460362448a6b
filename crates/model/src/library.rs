//! The MPI library that a machine predicts: this project's own, or the one that the machine names.
//! A named library's protocols become settings of this one and values of the machine, so that the
//! library itself knows nothing of them.

use fabric::{Bytes, Software, System, ZeroCopy};

use crate::config::MachineConfig;

/// Bytes that this library adds to an eager message.
const HEADER: u64 = 40;
/// The longest packet of this library unless a setting says otherwise, in bytes.
const PACKET: u64 = 16 << 10;
/// A ring holds this many of the longest packets.
const PACKETS: u64 = 16;

impl MachineConfig {
    /// This machine under the MPI library `software`, if it is a particular one. The ranks need its
    /// [`settings`], too.
    pub fn with_library(mut self, software: &Software) -> MachineConfig {
        if software.is_library() {
            self.system = under(&self.system, software);
        }
        self
    }
}

fn under(system: &System, software: &Software) -> System {
    let mut system = system.with_hcas(|hca| {
        if let Some(inline) = software.inline {
            hca.inline = hca.inline.min(inline);
        }
        // A header is posted with the request: it decides how many lines the processor writes.
        if let Some(header) = software.header {
            let bytes = (hca.work_request.0 + header.0).saturating_sub(HEADER);
            hca.work_request = Bytes(bytes.max(1));
        }
    });
    system.software = *software;
    system
}

/// The settings, as variables and values, with which this library follows the protocols of
/// `software`. None for software that is no library in particular.
pub fn settings(software: &Software) -> Vec<(&'static str, String)> {
    let Some(eager) = software.eager else {
        return Vec::new();
    };
    let mut set = vec![
        ("FISHPLATE_EAGER_LIMIT", eager.0.to_string()),
        ("FISHPLATE_RTR", "off".to_owned()),
    ];
    if eager.0 > PACKET {
        set.push(("FISHPLATE_RDMA_CHUNK", eager.0.to_string()));
        let ring = eager.0 * PACKETS;
        set.push(("FISHPLATE_RDMA_RING_BYTES", ring.to_string()));
    }
    set.push(match software.zero_copy {
        ZeroCopy::Read => ("FISHPLATE_RENDEZVOUS", "read".to_owned()),
        ZeroCopy::Write => ("FISHPLATE_RENDEZVOUS", "write".to_owned()),
        ZeroCopy::None => ("FISHPLATE_RDMA_DESIGN", "pipeline".to_owned()),
    });
    if !software.coalesces {
        set.push(("FISHPLATE_RDMA_GATHER", "off".to_owned()));
    }
    if software.shared_queue {
        set.push(("FISHPLATE_RAIL_QPS", "shared".to_owned()));
    }
    if let Some(uncut) = software.uncut {
        set.push(("FISHPLATE_RAIL_POLICY", "stripe".to_owned()));
        set.push(("FISHPLATE_STRIPE_THRESHOLD", uncut.0.to_string()));
        set.push(("FISHPLATE_STRIPE_ABOVE_EAGER", "on".to_owned()));
    }
    set
}
