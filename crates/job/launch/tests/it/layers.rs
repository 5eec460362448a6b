//! Tests of the order of the crate's modules: no module imports one that imports it, directly or
//! through others. `job::course`, which decides how a job ends, imports nothing that makes system
//! calls.

use std::path::Path;

use testdevice::layers::{Allowed, Modules, PARENT, check};

/// Imports that are part of a cycle. The list only gets shorter.
const ALLOWED: &[Allowed] = &[
    ("", "library", "needs"),
    ("needs", "clocks", PARENT),
    ("output", "sink", PARENT),
];

/// Modules that define methods of a type from another module. The list only gets shorter.
const SCATTERED: &[(&str, &str)] = &[
    ("allocation", "Allocation"),
    ("job::events", "RunningJob"),
    ("job::remote", "RunningJob"),
];

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

/// The module that decides how a job ends imports neither processes nor agents nor output.
#[test]
fn the_course_of_a_job_drives_nothing() {
    let graph = modules().graph("job");
    assert!(graph["running"].contains("course"));
    assert!(graph["course"].is_empty(), "{:?}", graph["course"]);
    let all = modules().graph("");
    let below = |of: &str| all[of].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(below("rank_state"), ["process_exit", "verdict"]);
}
