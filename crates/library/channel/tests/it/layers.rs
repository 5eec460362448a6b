//! The layers of the crate's modules: no module imports one that imports it, directly or through
//! others, among the top-level modules and within each folder with its own file.
//!
//! Bottom up, of the whole crate: `transport`, `zero_copy` and `error` (the interfaces), with
//! `sync`, `ring` and `costs`; the transports `loopback`, `shm` and `rdma`; `transports` (all of
//! one rank); `router`; `wait`, `machine`, `report`, `mapped`, `short_path` and `build`.
//!
//! Bottom up, of `rdma`:
//! - values: `config`, `layout`, `notice`, `fence`, `handshake`, `outage`, `lifecycle`, …;
//! - queues and memory: `wr_id`, `pool`, `rail`, `qp_link`, `link`, `registrations`, `srq_path`;
//! - one connection: `connection`, `credit`, `ring_sender`, `ring_receiver`, `endpoint`;
//! - this rank's side of all connections, `local`, and what they carry: `transfers`,
//!   `message_buffers`, `messages`;
//! - all connections of a rank, and one of them with what its changes concern: `peer`;
//! - a link or peer fails, or works again: `last_path`, `failover`, `revival`;
//! - `completions`: completions, which report failures;
//! - what polls completions: `recovery`, `silence`, `probe`, `room`; `coalesce`; `connect`;
//!   `put`, `awaited`, `drain`;
//! - `Rdma`: the composition and its order of work in the folder's own file; `interface` and
//!   `waiting`, its implementations of traits.

use std::path::Path;

use testdevice::layers::{Modules, PARENT, check};

/// Modules with own methods of a type that another module defines. The list only gets shorter.
const SCATTERED: &[(&str, &str)] = &[
    ("build", "Router"),
    ("machine", "Router"),
    ("report", "Router"),
    ("shm::direct_copy", "Shm"),
    ("shm::group_buffers", "Shm"),
    ("wait::router", "Router"),
];

fn modules() -> Modules {
    Modules::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn no_module_imports_one_above_it() {
    check(&modules(), &[]).unwrap();
}

#[test]
fn no_files_import_each_other() {
    let circles = modules().circles();
    assert!(circles.is_empty(), "{circles:?}");
}

#[test]
fn the_own_methods_of_a_type_lie_in_its_file() {
    let found = modules().scattered();
    let found: Vec<_> = found.iter().map(|(of, name)| (&**of, &**name)).collect();
    assert_eq!(found, SCATTERED);
}

#[test]
fn imports_inside_folders_are_found() {
    let rdma = modules().graph("rdma");
    let imports = |from: &str, to: &str| rdma[from].contains(to);
    assert!(imports("recovery", "completions") && imports("put", "connect"));
    assert!(imports("interface", PARENT) && !imports(PARENT, "interface"));
    assert!(imports("endpoint", "schedule"), "through a folder");
}
