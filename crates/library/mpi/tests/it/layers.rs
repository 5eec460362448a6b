//! The order of the library's modules: no module imports one that imports it, directly or through
//! others. That holds for units, which are the machine and the calls of each room and the other
//! modules of the root, and for the modules of each folder with their parent.

use std::path::Path;

use testdevice::layers::{Allowed, Modules, PARENT, check_folders, cycle};

/// Imports that close a circle. The list only gets shorter.
///
/// The time of an algorithm of two levels is that of the best flat ones inside and across hosts,
/// which the table chooses by their times; the table is the folder's own module.
const ALLOWED: &[Allowed] = &[
    ("algorithms", "cost", PARENT),
    ("algorithms", "rooted", PARENT),
];

fn modules() -> Modules {
    Modules::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn no_module_imports_one_above_it() {
    let modules = modules();
    assert!(modules.folders().count() >= 20);
    check_folders(&modules, ALLOWED, |folder| !folder.is_empty()).unwrap();
}

/// The layer of a unit.
fn layer(unit: &str) -> u32 {
    match unit {
        "state" => 2,
        "rank" => 3,
        // Calls without a machine of their own.
        "explain" | "program" => 4,
        _ if unit.ends_with("/calls") => 4,
        _ => 1,
    }
}

/// Data and machines lie below the state, which owns them; the rank owns the state; calls are on
/// top. A machine knows no rank, and a rank no call.
#[test]
fn units_stand_in_layers() {
    let modules = modules();
    let rooms = modules.rooms();
    let expected = [
        "attributes",
        "coll",
        "comm",
        "file",
        "p2p",
        "request",
        "topology",
        "types",
        "window",
    ];
    assert_eq!(rooms.into_iter().collect::<Vec<_>>(), expected);
    let units = modules.units();
    for (unit, imports) in &units {
        let above = imports.iter().find(|import| layer(import) > layer(unit));
        assert_eq!(above, None, "{unit} imports one above it");
    }
    assert_eq!(cycle(&units), None);
    assert!(units["window/calls"].contains("comm/calls"));
    assert!(units["window/machine"].contains("p2p/machine"));
    assert!(units["rank"].contains("state") && units["state"].contains("file/machine"));
}

/// A flat algorithm is a part of those of two levels, and knows none of them: their choice stands
/// in the folder's own module.
#[test]
fn flat_algorithms_know_no_levels() {
    let has_levels = |module: &str| module.starts_with("two_level");
    let graph = modules().graph("coll::calls");
    assert!(graph["reduce"].contains("halves") && graph[PARENT].contains("two_level_data"));
    for (module, imports) in graph {
        if module != PARENT && !has_levels(&module) {
            let levels = imports.iter().find(|module| has_levels(module));
            assert_eq!(levels, None, "{module} is flat");
        }
    }
}
