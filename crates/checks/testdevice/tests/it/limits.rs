//! Limits of growth for all crates: long files, cycles of modules, types with many functions. Each
//! list has today's exceptions and only gets shorter.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use testdevice::layers::Modules;

use crate::tidy::{crates, root, sources};

/// The most lines of a file, including the tests at its end.
const MOST_LINES: usize = 500;
/// The most modules that import each other, directly or through others.
const MOST_IN_CIRCLE: usize = 4;
/// The most functions that have access to all of a type: its own methods, and functions that take
/// it by `&mut`.
const MOST_METHODS: usize = 60;

/// Files that exceed [`MOST_LINES`].
const LONG_FILES: &[&str] = &[];

/// Crates with larger cycles, and the number of modules in the largest cycle.
const CIRCLES: &[(&str, usize)] = &[];

/// Types that exceed [`MOST_METHODS`], by crate.
const BROAD_TYPES: &[(&str, &str)] = &[
    ("mpi", "Messages"),
    ("mpi", "Rank"),
    ("mpi", "Window"),
    ("model", "QueuePairs"),
];

#[test]
fn files_are_short() {
    let mut long: Vec<String> = Vec::new();
    for (name, text) in sources() {
        let of_tests = name.contains("tests") || name.contains("/fuzzing");
        if !of_tests && text.lines().count() > MOST_LINES {
            long.push(name);
        }
    }
    same(&long, LONG_FILES, "files over 500 lines");
}

#[test]
fn circles_of_modules_are_small() {
    let mut found = Vec::new();
    for folder in crates().iter().filter(|folder| is_library(folder)) {
        let circles = Modules::of(&folder.join("src")).circles();
        let largest = circles.iter().map(|circle| circle.len()).max();
        let name = folder.file_name().unwrap().to_str().unwrap();
        if let Some(size) = largest.filter(|size| *size > MOST_IN_CIRCLE) {
            found.push((name.to_string(), size));
        }
    }
    for (name, size) in &found {
        let allowed = CIRCLES.iter().find(|(known, _)| known == name);
        let most = allowed.map_or(MOST_IN_CIRCLE, |(_, size)| *size);
        assert!(*size <= most, "{size} modules of {name} import each other");
    }
    let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
    let known: Vec<&str> = CIRCLES.iter().map(|(name, _)| *name).collect();
    same(&names, &known, "crates with circles of more than 4 modules");
}

#[test]
fn few_functions_have_all_of_a_type() {
    let mut found = Vec::new();
    let all = sources();
    for folder in crates() {
        let crate_name = folder.file_name().unwrap().to_str().unwrap().to_string();
        let prefix = folder.strip_prefix(root()).unwrap().display().to_string();
        let is_own = |name: &str| name.starts_with(&format!("{prefix}/src/"));
        let own = all.iter().filter(|(name, _)| is_own(name));
        let own: Vec<&String> = own.map(|(_, text)| text).collect();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for text in &own {
            count_functions(text, &mut counts);
        }
        // Types of other crates do not count here.
        let is_here = |of: &str| {
            let definitions = [format!("struct {of}"), format!("enum {of}")];
            let mut texts = own.iter();
            texts.any(|text| definitions.iter().any(|one| text.contains(one.as_str())))
        };
        let broad = counts
            .into_iter()
            .filter(|(_, count)| *count > MOST_METHODS);
        let broad = broad.filter(|(name, _)| is_here(name));
        found.extend(broad.map(|(name, _)| format!("{crate_name}::{name}")));
    }
    let known: Vec<String> = BROAD_TYPES
        .iter()
        .map(|(name, of)| format!("{name}::{of}"))
        .collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    same(&found, &known, "types with more than 60 functions");
}

/// Counts the functions of a text by the type that they can change: own methods with `self`, and
/// functions elsewhere with an argument `&mut Type`.
fn count_functions(text: &str, counts: &mut BTreeMap<String, usize>) {
    let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    let mut own: Option<String> = None;
    let mut lines = text[..end].lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("impl") && !line.contains(" for ") {
            own = Some(type_of(line));
        } else if line.starts_with("impl") || line == "}" {
            own = None;
        }
        if line.trim_start().starts_with("//") || !line.contains("fn ") {
            continue;
        }
        let mut head = line.to_string();
        while !head.contains('{') && !head.contains(';') {
            match lines.next() {
                Some(next) => head += next,
                None => break,
            }
        }
        let head = head.split('{').next().unwrap_or_default();
        if let Some(own) = own.as_ref().filter(|_| head.contains("self")) {
            *counts.entry(own.clone()).or_default() += 1;
        }
        for part in head.split("&mut ").skip(1) {
            let name: String = part.chars().take_while(|c| c.is_alphanumeric()).collect();
            if name.chars().next().is_some_and(char::is_uppercase) && Some(&name) != own.as_ref() {
                *counts.entry(name).or_default() += 1;
            }
        }
    }
}

/// The type of a line `impl<...> Type<...> {`.
fn type_of(line: &str) -> String {
    let rest = line.trim_start_matches("impl");
    let rest = match rest.strip_prefix('<') {
        Some(generic) => generic.split_once("> ").map_or("", |(_, rest)| rest),
        None => rest,
    };
    let rest = rest.trim_start();
    rest.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

fn is_library(folder: &Path) -> bool {
    folder.join("src/lib.rs").exists()
}

/// Checks that the findings are exactly those of the list.
fn same(found: &[String], known: &[&str], what: &str) {
    let new: Vec<&String> = found
        .iter()
        .filter(|one| !known.contains(&one.as_str()))
        .collect();
    assert!(new.is_empty(), "new {what}: {new:#?}");
    let gone: Vec<&&str> = known
        .iter()
        .filter(|one| !found.iter().any(|is| is == *one))
        .collect();
    assert!(
        gone.is_empty(),
        "these need not be allowed any more ({what}): {gone:#?}"
    );
}

#[test]
fn functions_of_a_type_are_counted() {
    let text = "impl A {\n    fn new() -> A {\n    }\n    pub fn one(&mut self) {\n    }\n}\n\
                impl<T> B<T> {\n    fn two(\n        &self,\n        other: &mut A,\n    ) {\n    }\n}\n\
                fn three(a: &mut A, b: &B) {}\nimpl C for A {\n    fn four(a: &mut A) {\n    }\n}\n";
    let mut counts = BTreeMap::new();
    count_functions(text, &mut counts);
    let counts: Vec<(&str, usize)> = counts.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(counts, [("A", 4), ("B", 1)]);
    assert!(fs::metadata(root().join("Cargo.toml")).is_ok());
}
