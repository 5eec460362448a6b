//! The order of the crate's modules: no module imports one that imports it, directly or through
//! others. Each part of a modelled machine knows only the parts below it.

use std::path::Path;

use testdevice::layers::{Allowed, Modules, check};

/// Imports that close a cycle. The list only gets shorter.
const ALLOWED: &[Allowed] = &[];

/// Types that have methods in a module which does not define them: the module and the type. The
/// list only gets shorter.
const SCATTERED: &[(&str, &str)] = &[("library", "MachineConfig"), ("run_log", "Record")];

fn modules() -> Modules {
    Modules::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn no_module_imports_one_above_it() {
    check(&modules(), ALLOWED).unwrap();
}

#[test]
fn no_circle_of_files_is_large() {
    let circles = modules().circles();
    assert!(
        circles.iter().all(|circle| circle.len() <= 4),
        "{circles:?}"
    );
}

#[test]
fn the_own_methods_of_a_type_lie_in_its_file() {
    let found = modules().scattered();
    let found: Vec<_> = found.iter().map(|(of, name)| (&**of, &**name)).collect();
    assert_eq!(found, SCATTERED);
}

/// Each part imports the part before it, so none of the checks above is empty.
#[test]
fn machines_stand_on_each_other() {
    let graph = modules().graph("");
    let order = [
        "run",
        "ports",
        "queue_pairs",
        "senders",
        "responders",
        "machine",
        "processor",
        "device",
        "node",
    ];
    for pair in order.windows(2) {
        assert!(graph[pair[1]].contains(pair[0]), "{pair:?}");
    }
}
