//! The order of the library's modules: no top-level module imports one that imports it, directly or
//! through others. Imports are read from the sources, so this test needs no compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_module_imports_one_above_it() {
    let graph = imports(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    if let Some(cycle) = cycle(&graph) {
        panic!("modules import each other: {}", cycle.join(" -> "));
    }
}

#[test]
fn a_cycle_is_found_and_a_diamond_is_none() {
    let graph = |edges: &[(&str, &str)]| {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(to.to_string()).or_default();
            let imports = graph.entry(from.to_string()).or_default();
            imports.insert(to.to_string());
        }
        graph
    };
    let diamond = graph(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]);
    assert_eq!(cycle(&diamond), None);
    let ring = graph(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")]);
    assert_eq!(cycle(&ring).unwrap(), ["b", "c", "d", "b"]);
}

/// The imports of each top-level module.
fn imports(src: &Path) -> Graph {
    let root = fs::read_to_string(src.join("lib.rs")).unwrap();
    let exported = exports(&root);
    let mut graph = Graph::new();
    for name in words_after(&root, "mod ") {
        let imports = graph.entry(name.to_string()).or_default();
        for file in files_of(src, name) {
            let text = fs::read_to_string(&file).unwrap();
            for path in paths_from_the_root(&code(&text)) {
                let module = exported.get(path).map_or(path, String::as_str);
                imports.insert(module.to_string());
            }
        }
        imports.remove(name);
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for imports in graph.values_mut() {
        imports.retain(|module| modules.contains(module));
    }
    graph
}

/// The files of a top-level module, without those that are tests.
fn files_of(src: &Path, module: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut left = vec![src.join(format!("{module}.rs")), src.join(module)];
    while let Some(path) = left.pop() {
        if path.is_file() && !path.to_string_lossy().ends_with("tests.rs") {
            files.push(path);
        } else if path.is_dir() {
            left.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    assert!(!files.is_empty(), "{module} has no file");
    files
}

/// Names that the root re-exports, and the modules that they are from.
fn exports(root: &str) -> BTreeMap<&str, String> {
    let mut exports = BTreeMap::new();
    for rest in root.split("pub use ").skip(1) {
        let path = &rest[..rest.find(';').unwrap()];
        let (module, names) = path.split_once("::").unwrap();
        for name in names.split(|c: char| !is_of_a_name(c)) {
            exports.insert(name, module.to_string());
        }
    }
    exports
}

/// The first name of each path that begins with `crate::`, alone or in braces.
fn paths_from_the_root(text: &str) -> impl Iterator<Item = &str> {
    text.split("crate::").skip(1).flat_map(|rest| {
        let names = match rest.strip_prefix('{') {
            Some(list) => &list[..list.find('}').unwrap()],
            None => &rest[..rest.find(|c| !is_of_a_name(c)).unwrap_or(rest.len())],
        };
        names.split(',').map(|name| {
            let name = name.trim();
            &name[..name.find(|c| !is_of_a_name(c)).unwrap_or(name.len())]
        })
    })
}

fn words_after<'a>(text: &'a str, keyword: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = text.lines().map(|line| line.trim_start_matches("pub "));
    lines.filter_map(move |line| line.strip_prefix(keyword)?.strip_suffix(';'))
}

/// A file without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {");
    let lines = text[..end.unwrap_or(text.len())].lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Modules each of which imports the next, the last of which is the first.
fn cycle(graph: &Graph) -> Option<Vec<&str>> {
    let mut done = BTreeSet::new();
    graph
        .keys()
        .find_map(|module| cycle_from(graph, module, &mut Vec::new(), &mut done))
}

fn cycle_from<'a>(
    graph: &'a Graph,
    module: &'a str,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(at) = path.iter().position(|&above| above == module) {
        let mut cycle = path[at..].to_vec();
        cycle.push(module);
        return Some(cycle);
    }
    if done.contains(module) {
        return None;
    }
    path.push(module);
    let imports = graph.get(module).into_iter().flatten();
    let found = imports
        .map(String::as_str)
        .find_map(|next| cycle_from(graph, next, path, done));
    path.pop();
    done.insert(module);
    found
}
