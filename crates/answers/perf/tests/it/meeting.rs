//! Connects two sides in this process over the loopback interface.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use perf::control::{ControlLink, Listener, Terms};
use perf::plan::PerfPlan;
use secret::Secret;

const LONG: Duration = Duration::from_secs(60);

/// A listener, and its address.
pub(crate) fn listener() -> (Listener, SocketAddr) {
    let ip = Ipv4Addr::LOCALHOST;
    let listener = Listener::new(&[(ip, 0).into()]).unwrap();
    let port = listener.port().unwrap();
    (listener, (ip, port).into())
}

/// Accepts the other side on the listener.
pub(crate) fn accept(listener: &mut Listener, plan: &PerfPlan) -> Result<ControlLink> {
    with_terms(plan, LONG, |terms| listener.accept(terms, LONG))
}

/// Connects to the listener at `to`; the peer may be silent for the time `patience`.
pub(crate) fn connect(to: SocketAddr, plan: &PerfPlan, patience: Duration) -> ControlLink {
    let link = with_terms(plan, patience, |terms| {
        ControlLink::connect(("127.0.0.1", &[to]), terms, LONG)
    });
    link.unwrap()
}

fn with_terms<T>(plan: &PerfPlan, patience: Duration, meet: impl FnOnce(&Terms) -> T) -> T {
    let secret = Secret::from_bytes([4; Secret::LENGTH]);
    meet(&Terms {
        secret: &secret,
        plan,
        patience,
    })
}
