//! The order of the library's modules: no module imports one that imports it, directly or through
//! others. That holds for the top-level modules, and for those of each folder with their parent.

use std::path::Path;

use testdevice::layers::{Allowed, Modules, PARENT, check};

/// Imports that close a circle. The list only gets shorter.
///
/// The time of an algorithm of two levels is that of the best flat ones inside and across hosts,
/// which the table chooses by their times; the table is the folder's own module.
const ALLOWED: &[Allowed] = &[
    ("algorithms", "cost", PARENT),
    ("algorithms", "rooted", PARENT),
    ("algorithms", "trees", PARENT),
];

fn modules() -> Modules {
    Modules::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn no_module_imports_one_above_it() {
    let modules = modules();
    assert!(modules.folders().count() >= 6);
    check(&modules, ALLOWED).unwrap();
}

/// A flat algorithm is a part of those of two levels, and knows none of them: their choice stands
/// in the folder's own module.
#[test]
fn flat_algorithms_know_no_levels() {
    let has_levels = |module: &str| module.starts_with("two_level");
    let graph = modules().graph("coll");
    assert!(graph["reduce"].contains("halves") && graph[PARENT].contains("two_level_data"));
    for (module, imports) in graph {
        if module != PARENT && !has_levels(&module) {
            let levels = imports.iter().find(|module| has_levels(module));
            assert_eq!(levels, None, "{module} is flat");
        }
    }
}
