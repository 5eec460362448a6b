//! The rules that no compiler checks, for all crates of the workspace: the floors of the
//! architecture, the length of functions, the width of comments. Sources are read as text, so these
//! tests compile none of the crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The most lines of a function, from its name to its last brace, unless [`REASON`] stands above
/// it.
const MOST_LINES: usize = 80;
/// The most bytes of `ARCHITECTURE.md`, which a newcomer reads in one sitting.
const MOST_OF_MAP: usize = 12_000;
/// The beginning of the comment that says why a function is longer.
const REASON: &str = "// Over 80 lines: ";
/// The most columns of a comment.
const MOST_COLUMNS: usize = 100;

/// The most public functions of `channel::Router` outside its traits. A function that every
/// transport must serve belongs to a trait; functions for one subject belong to a view (`report`,
/// `machine`).
const MOST_OF_ROUTER: usize = 12;

/// For each crate: its floor, and its position in the order of `crates/FLOORS`.
type Floors = BTreeMap<String, (String, usize)>;
/// For each crate, the other crates of the workspace that it depends on, except for its tests.
type Dependencies = BTreeMap<String, BTreeSet<String>>;

/// The most floors: a newcomer learns them by heart.
const MOST_FLOORS: usize = 10;

#[test]
fn every_crate_stands_above_its_dependencies() {
    let floors = floors(&fs::read_to_string(root().join("crates/FLOORS")).unwrap());
    let wrong = wrong_floors(&floors, &dependencies());
    assert!(wrong.is_empty(), "crates/FLOORS: {}", wrong.join("; "));
    let names: BTreeSet<&String> = floors.values().map(|(floor, _)| floor).collect();
    assert!(names.len() <= MOST_FLOORS, "{} floors", names.len());
}

#[test]
fn every_crate_lies_in_the_folder_of_its_floor() {
    let floors = floors(&fs::read_to_string(root().join("crates/FLOORS")).unwrap());
    for folder in crates() {
        let mut names = folder.iter().rev().map(|name| name.to_str().unwrap());
        let (name, folder) = (names.next().unwrap(), names.next().unwrap());
        let floor = floors.get(name).map(|(floor, _)| floor.as_str());
        assert_eq!(floor, Some(folder), "crates/{folder}/{name}");
    }
}

/// The map has a line for each crate, with its floor.
#[test]
fn the_map_names_every_crate() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let floors = floors(&fs::read_to_string(root().join("crates/FLOORS")).unwrap());
    for (name, (floor, _)) in floors {
        let row = format!("\n| {floor} | `{name}` | ");
        assert!(
            map.contains(&row),
            "ARCHITECTURE.md has no row of `{name}` on floor {floor}"
        );
    }
}

/// Details belong to `docs/internals/` and to the heads of modules.
#[test]
fn the_map_stays_short() {
    let bytes = fs::read(root().join("ARCHITECTURE.md")).unwrap().len();
    assert!(bytes <= MOST_OF_MAP, "ARCHITECTURE.md has {bytes} bytes");
}

#[test]
fn long_functions_give_a_reason() {
    let long = |text: &str| -> Vec<String> {
        let functions = long_functions(text).into_iter();
        let line = |(at, lines): (usize, usize)| format!("line {at}: a function of {lines} lines");
        functions.map(line).collect()
    };
    none(
        &findings(long),
        "split it, or say why not in a comment `// Over 80 lines: `",
    );
}

#[test]
fn comments_are_at_most_100_columns_wide() {
    let wide = |text: &str| -> Vec<String> {
        let comments = text
            .lines()
            .enumerate()
            .filter(|(_, line)| is_comment(line));
        let wide = comments.filter(|(_, line)| line.chars().count() > MOST_COLUMNS);
        wide.map(|(at, line)| format!("line {}: {} columns", at + 1, line.chars().count()))
            .collect()
    };
    none(&findings(wide), "wrap the comment");
}

#[test]
fn the_router_keeps_few_functions_of_its_own() {
    let own = |text: &str| -> Vec<String> {
        let mut is_within = false;
        let mut found = Vec::new();
        for line in text.lines() {
            match line {
                "impl Router {" => is_within = true,
                "}" => is_within = false,
                _ if is_within && line.starts_with("    pub fn ") => found.push(line.into()),
                _ => (),
            }
        }
        found
    };
    let found = findings(own);
    assert!(
        (2..=MOST_OF_ROUTER).contains(&found.len()),
        "{} public functions of Router:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn a_wrong_floor_is_found() {
    let floors = floors("# a comment\nlow  a c\nhigh b\n");
    let graph = |edges: &[(&str, &[&str])]| -> Dependencies {
        let names = |on: &[&str]| on.iter().map(|name| name.to_string()).collect();
        edges
            .iter()
            .map(|(name, on)| (name.to_string(), names(on)))
            .collect()
    };
    let all = |edges: &[(&str, &[&str])]| wrong_floors(&floors, &graph(edges));
    assert!(all(&[("a", &[]), ("b", &["a", "c"]), ("c", &["a"])]).is_empty());
    for (edges, found) in [
        (
            &[("a", &["b"][..]), ("b", &[]), ("c", &[])][..],
            "`a` of floor low depends on `b` of floor high",
        ),
        (
            &[("a", &["c"]), ("b", &[]), ("c", &[])],
            "`a` of floor low depends on `c` of floor low",
        ),
        (
            &[("a", &["a"]), ("b", &[]), ("c", &[])],
            "`a` of floor low depends on `a` of floor low",
        ),
        (
            &[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])],
            "crate `d` has no floor",
        ),
        (&[("a", &[]), ("c", &[])], "`b` is no crate"),
    ] {
        assert_eq!(all(edges), [found]);
    }
}

#[test]
fn a_long_function_is_found_unless_it_gives_a_reason() {
    let body = "    work();\n".repeat(MOST_LINES);
    let long = format!("pub fn long(\n    at: usize,\n) {{\n{body}}}\nfn short() {{\n}}\n");
    assert_eq!(long_functions(&long), [(1, MOST_LINES + 4)]);
    let reason = format!("{REASON}a table.\n#[cold]\n{long}");
    assert_eq!(long_functions(&reason), []);
    assert_eq!(
        long_functions("trait T {\n    fn one(&self);\n    fn two(&self) {}\n}\n"),
        []
    );
}

pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors()
        .nth(3)
        .expect("crates/checks/testdevice")
        .to_owned()
}

/// The floors of lines of the form `floor crate crate...`.
fn floors(text: &str) -> Floors {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words = lines.map(|line| line.split_whitespace());
    let names = words.flat_map(|mut words| {
        let floor = words.next().unwrap_or_default();
        words.map(move |name| (name.to_owned(), floor.to_owned()))
    });
    let numbered = names.enumerate();
    let places = numbered.map(|(at, (name, floor))| (name, (floor, at)));
    places.collect()
}

fn wrong_floors(floors: &Floors, dependencies: &Dependencies) -> Vec<String> {
    let absent = floors
        .keys()
        .filter(|name| !dependencies.contains_key(*name));
    let mut wrong: Vec<String> = absent.map(|name| format!("`{name}` is no crate")).collect();
    for (name, on) in dependencies {
        let Some((floor, at)) = floors.get(name) else {
            wrong.push(format!("crate `{name}` has no floor"));
            continue;
        };
        for other in on {
            if let Some((of_other, _)) = floors.get(other).filter(|(_, place)| place >= at) {
                wrong.push(format!(
                    "`{name}` of floor {floor} depends on `{other}` of floor {of_other}"
                ));
            }
        }
    }
    wrong
}

fn dependencies() -> Dependencies {
    let manifests: BTreeMap<String, String> = crates()
        .into_iter()
        .map(|folder| {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(folder.join("Cargo.toml")).unwrap())
        })
        .collect();
    let of = |text: &String| {
        let on = dependencies_of(text).filter(|name| manifests.contains_key(*name));
        on.map(str::to_owned).collect()
    };
    let graph = manifests
        .iter()
        .map(|(name, text)| (name.clone(), of(text)));
    graph.collect()
}

/// The names in the sections of a manifest that list dependencies, except those of tests.
fn dependencies_of(manifest: &str) -> impl Iterator<Item = &str> {
    let mut is_list = false;
    manifest.lines().filter_map(move |line| {
        if let Some(section) = line.trim().strip_prefix('[') {
            let section = section.trim_end_matches(']');
            let of_tests = section.contains("dev-dependencies");
            is_list = section.ends_with("dependencies") && !of_tests;
            let (_, name) = section.rsplit_once("dependencies.").filter(|_| !of_tests)?;
            return Some(name);
        }
        let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)))?;
        (is_list && end > 0).then_some(&line[..end])
    })
}

pub(crate) fn crates() -> Vec<PathBuf> {
    let entries = |folder: PathBuf| {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
    };
    let floors = entries(root().join("crates")).filter(|path| path.is_dir());
    let mut folders: Vec<PathBuf> = floors.flat_map(entries).collect();
    folders.retain(|folder| folder.join("Cargo.toml").exists());
    folders.sort();
    folders
}

/// The source files of all crates, as (name, text), except generated ones.
pub(crate) fn sources() -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = crates().iter().map(|folder| folder.join("src")).collect();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(path).unwrap();
            left.extend(entries.map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            let text = fs::read_to_string(&path).unwrap();
            let first = text.lines().next();
            if !first.is_some_and(|line| line.contains(": generated by ")) {
                found.push((name, text));
            }
        }
    }
    found.sort();
    found
}

/// The results of `find` for each source file of a crate, each with the file's name.
fn findings(find: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in sources() {
        let lines = find(&text).into_iter();
        found.extend(lines.map(|line| format!("{name}, {line}")));
    }
    found
}

fn none(found: &[String], advice: &str) {
    assert!(
        found.is_empty(),
        "{} findings; {advice}:\n{}",
        found.len(),
        found.join("\n")
    );
}

pub(crate) fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// The first line and the length of each function that is too long and gives no reason. The text is
/// formatted: a function ends at the first brace with the indent of its first line.
fn long_functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_long = |&at: &usize| {
        let lines = length(&lines[at..]);
        lines > MOST_LINES
    };
    let starts = (0..lines.len()).filter(|&at| is_function(lines[at]));
    let long = starts
        .filter(is_long)
        .filter(|&at| !gives_reason(&lines[..at]));
    long.map(|at| (at + 1, length(&lines[at..]))).collect()
}

fn is_function(line: &str) -> bool {
    if is_comment(line) {
        return false;
    }
    let Some((before, _)) = line.split_once("fn ") else {
        return false;
    };
    let words = [
        "const",
        "async",
        "unsafe",
        "extern",
        "\"C\"",
        "\"C-unwind\"",
        "pub",
    ];
    before
        .split_whitespace()
        .all(|word| words.contains(&word) || word.starts_with("pub("))
}

/// The number of lines of the function that begins at the first of `lines`.
fn length(lines: &[&str]) -> usize {
    let indent = &lines[0][..lines[0].len() - lines[0].trim_start().len()];
    let mut in_body = false;
    for (at, line) in lines.iter().enumerate() {
        let is_outer = line
            .strip_prefix(indent)
            .is_some_and(|rest| !rest.starts_with(' '));
        in_body |= line.ends_with('{');
        let ends = match in_body {
            true => at > 0 && is_outer && line.trim_start().starts_with('}'),
            false => line.ends_with(';') || line.ends_with('}'),
        };
        if ends {
            return at + 1;
        }
    }
    0
}

/// True if one of the comments and attributes directly above the function gives the reason.
fn gives_reason(above: &[&str]) -> bool {
    let of_item = |line: &&&str| is_comment(line) || line.trim_start().starts_with("#[");
    let mut comments = above.iter().rev().take_while(of_item);
    comments.any(|line| line.trim_start().starts_with(REASON))
}

/// The folders of the repository whose files a crate may include: programs that people read and
/// run.
const SHARED_FOLDERS: [&str; 1] = ["examples"];

/// A crate uses another crate by a dependency, and its data by one of its functions.
#[test]
fn no_crate_contains_files_of_another() {
    let root = root();
    let mut found = Vec::new();
    for folder in crates() {
        let mut left = vec![folder.clone()];
        while let Some(path) = left.pop() {
            let name = path.strip_prefix(&root).unwrap().display();
            if path.is_symlink() {
                found.push(format!("{name} is a link"));
            } else if path.is_dir() {
                let entries = fs::read_dir(&path).unwrap();
                left.extend(entries.map(|entry| entry.unwrap().path()));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let included = included(&text, path.parent().unwrap(), &folder);
                let is_foreign = |file: &PathBuf| {
                    let mut shared = SHARED_FOLDERS.iter();
                    !file.starts_with(&folder)
                        && !shared.any(|own| file.starts_with(root.join(own)))
                };
                let foreign = included.into_iter().filter(is_foreign);
                found.extend(foreign.map(|file| format!("{name}, {}", file.display())));
            }
        }
    }
    none(&found, "depend on the crate that has the file");
}

#[test]
fn an_included_file_is_found() {
    let text = "#[path = \"../x.rs\"]\nmod x;\nconst A: &str = include_str!(\n    \"y\"\n);\n\
                include!(concat!(env!(\"OUT_DIR\"), \"/z\"));\n\
                include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../w\"));\n";
    let found = included(text, Path::new("/c/src"), Path::new("/c"));
    assert_eq!(found, ["/c/x.rs", "/c/src/y", "/w"].map(PathBuf::from));
}

/// The files that a source in a folder names as its modules or included contents, except generated
/// ones.
fn included(text: &str, folder: &Path, of_crate: &Path) -> Vec<PathBuf> {
    let lines = text.lines().filter(|line| !is_comment(line));
    let text = lines.collect::<Vec<_>>().join("\n");
    let words = ["[path = ", "include!(", "include_str!(", "include_bytes!("];
    let behind = words.iter().flat_map(|word| text.split(word).skip(1));
    let file = |behind: &str| {
        let mut literals = behind.split('"').skip(1).step_by(2);
        let path = match literals.next()? {
            "OUT_DIR" => return None,
            "CARGO_MANIFEST_DIR" => of_crate.join(literals.next()?.trim_start_matches('/')),
            path => folder.join(path),
        };
        let mut whole = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => drop(whole.pop()),
                part => whole.push(part),
            }
        }
        Some(whole)
    };
    behind.filter_map(file).collect()
}
