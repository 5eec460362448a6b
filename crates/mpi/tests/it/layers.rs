//! The order of the library's modules: no module imports one that imports it, directly or through
//! others. That holds for the top-level modules, and for those of each folder with their parent.
//! Imports are read from the sources, so this test needs no compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Imports in folders that close a circle: the folder, the module, and the module that it imports.
/// The list only gets shorter.
///
/// The time of an algorithm of two levels is that of the best flat ones inside and across hosts,
/// which the table chooses by their times; the table is the folder's own module.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("algorithms", "cost", PARENT),
    ("algorithms", "rooted", PARENT),
    ("algorithms", "trees", PARENT),
];

/// The name of a folder's own module in its graph.
const PARENT: &str = "mod";

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn no_module_imports_one_above_it() {
    if let Some(cycle) = cycle(&imports(&src())) {
        panic!("modules import each other: {}", cycle.join(" -> "));
    }
}

#[test]
fn no_module_of_a_folder_imports_one_above_it() {
    let folders = folders(&src());
    assert!(folders.len() >= 6, "{folders:?}");
    for folder in &folders {
        let whole = imports_inside(&src(), folder);
        let of_folder = ALLOWED.iter().filter(|(of, ..)| *of == folder);
        let allowed: Vec<_> = of_folder.map(|&(_, from, to)| (from, to)).collect();
        if let Some(cycle) = cycle(&without(&whole, &allowed)) {
            panic!(
                "modules of {folder} import each other: {}",
                cycle.join(" -> ")
            );
        }
        for &one in &allowed {
            let others: Vec<_> = allowed.iter().filter(|&&it| it != one).copied().collect();
            assert!(
                cycle(&without(&whole, &others)).is_some(),
                "{folder}: {one:?} need not be allowed any more"
            );
        }
    }
}

#[test]
fn imports_inside_a_folder_are_found() {
    let graph = imports_inside(&src(), "coll");
    let imports = |from: &str, to: &str| graph[from].contains(to);
    assert!(imports("reduce", "halves") && imports(PARENT, "two_level_data"));
    assert!(imports("start", PARENT) && !imports(PARENT, "start"));
}

/// A flat algorithm is a part of those of two levels, and knows none of them: their choice stands
/// in the folder's own module.
#[test]
fn flat_algorithms_know_no_levels() {
    let has_levels = |module: &str| module.starts_with("two_level");
    for (module, imports) in imports_inside(&src(), "coll") {
        if module != PARENT && !has_levels(&module) {
            let levels = imports.iter().find(|module| has_levels(module));
            assert_eq!(levels, None, "{module} is flat");
        }
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
    let root = code(&root);
    let exported = exports(&root);
    let mut graph = Graph::new();
    for name in words_after(&root, "mod ") {
        let imports = graph.entry(name.to_string()).or_default();
        for file in files_of(src, name) {
            let text = fs::read_to_string(&file).unwrap();
            for path in paths_from(&code(&text), "crate::") {
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

/// The folders of modules.
fn folders(src: &Path) -> Vec<String> {
    let entries = fs::read_dir(src).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.path().is_dir());
    let names = folders.map(|entry| entry.file_name().into_string().unwrap());
    names.collect()
}

/// The imports of each module of a folder, and those of the folder's own module among them.
fn imports_inside(src: &Path, folder: &str) -> Graph {
    let roots = [
        src.join(folder).join("mod.rs"),
        src.join(format!("{folder}.rs")),
    ];
    let root = roots.iter().find_map(|root| fs::read_to_string(root).ok());
    let root = code(&root.unwrap_or_else(|| panic!("{folder} has no file of its own")));
    let modules: BTreeSet<&str> = words_after(&root, "mod ")
        .filter(|module| !module.ends_with("tests"))
        .collect();
    let exported = exports(&root);
    let of_root = modules.iter().filter(|module| begins_a_path(&root, module));
    let mut graph = Graph::new();
    graph.insert(
        PARENT.into(),
        of_root.map(|&module| module.into()).collect(),
    );
    for &name in &modules {
        let text = fs::read_to_string(src.join(folder).join(format!("{name}.rs"))).unwrap();
        let text = code(&text);
        let from_the_folder = format!("crate::{folder}::");
        let paths = paths_from(&text, "super::").chain(paths_from(&text, &from_the_folder));
        let module_of = |path: &str| {
            let module = exported.get(path).map_or(path, String::as_str);
            match modules.contains(module) {
                true => module.to_string(),
                false => PARENT.to_string(),
            }
        };
        let imports = paths.map(module_of).filter(|module| module != name);
        graph.insert(name.into(), imports.collect());
    }
    graph
}

/// The module's name begins a path.
fn begins_a_path(text: &str, module: &str) -> bool {
    text.match_indices(&format!("{module}::")).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !is_of_a_name(c) && c != ':')
    })
}

fn without(graph: &Graph, imports: &[(&str, &str)]) -> Graph {
    let mut graph = graph.clone();
    for (from, to) in imports {
        let there = graph.get_mut(*from).is_some_and(|all| all.remove(*to));
        assert!(there, "{from} does not import {to} any more");
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

/// Names that a module has from others, and the modules that they are from.
fn exports(root: &str) -> BTreeMap<&str, String> {
    let mut exports = BTreeMap::new();
    for line in root.split("use ").skip(1) {
        let path = &line[..line.find(';').unwrap_or(line.len())];
        let Some((module, names)) = path.split_once("::") else {
            continue;
        };
        for name in names.split(|c: char| !is_of_a_name(c)) {
            exports.insert(name, module.to_string());
        }
    }
    exports
}

/// The first name of each path that begins with `prefix`, alone or in braces.
fn paths_from<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(prefix).skip(1).flat_map(|rest| {
        let mut names = Vec::new();
        match rest.strip_prefix('{') {
            Some(list) => {
                // Names in inner braces are not the first of their paths.
                let (mut depth, mut start) = (1, 0);
                for (at, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 || depth == 1 && c == ',' {
                        names.push(&list[start..at]);
                        start = at + 1;
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            None => names.push(rest),
        }
        names.into_iter().map(|name| {
            let name = name.trim();
            &name[..name.find(|c| !is_of_a_name(c)).unwrap_or(name.len())]
        })
    })
}

fn words_after<'a>(text: &'a str, keyword: &'a str) -> impl Iterator<Item = &'a str> {
    let visibility = ["pub ", "pub(crate) ", "pub(super) "];
    let lines = text.lines().map(move |line| {
        let private = visibility.iter().find_map(|word| line.strip_prefix(word));
        private.unwrap_or(line)
    });
    lines.filter_map(move |line| line.strip_prefix(keyword)?.strip_suffix(';'))
}

/// A file without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let tests = ["mod tests {", "pub(crate) mod tests {"];
    let end = tests
        .into_iter()
        .find_map(|tests| text.find(&format!("#[cfg(test)]\n{tests}")));
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
