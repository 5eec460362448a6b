//! Reads the dependencies among a crate's modules from its sources, for tests of the architecture:
//! which module imports which, and which import each other. No compiler is needed. Tests within a
//! module are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// For each module of a folder, the modules that it imports.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// The name of a folder's own module in the graph of the folder.
pub const PARENT: &str = "mod";

/// An import that closes a cycle and is allowed for now: the folder, the importing module, and the
/// imported one.
pub type Allowed = (&'static str, &'static str, &'static str);

/// The modules of a crate, by their paths: `rdma::schedule`. The path of the crate's root is empty.
pub struct Modules {
    all: BTreeMap<String, Module>,
}

/// A module in a file of its own.
struct Module {
    text: String,
    /// Names that the module imports, with their paths as written.
    names: BTreeMap<String, Vec<String>>,
    /// Paths of the modules whose names the module imports by `*`.
    globs: Vec<Vec<String>>,
    children: BTreeSet<String>,
}

impl Modules {
    /// The modules of the crate whose sources lie in `src`.
    pub fn of(src: &Path) -> Modules {
        let mut modules = Modules {
            all: BTreeMap::new(),
        };
        modules.add("", &src.join("lib.rs"), src);
        modules
    }

    /// Adds the module `path`, whose file is `file` and whose children lie in `folder`.
    fn add(&mut self, path: &str, file: &Path, folder: &Path) {
        let text = fs::read_to_string(file);
        let text = code(&text.unwrap_or_else(|why| panic!("{}: {why}", file.display())));
        let children: BTreeSet<String> = children(&text).map(str::to_string).collect();
        let names = paths(&text, true).filter_map(|mut path| {
            let name = path.pop()?;
            Some((name, path))
        });
        let (globs, names): (Vec<_>, Vec<_>) = names.partition(|(name, _)| name == "*");
        let module = Module {
            names: names.into_iter().collect(),
            globs: globs.into_iter().map(|(_, path)| path).collect(),
            children: children.clone(),
            text,
        };
        self.all.insert(path.to_string(), module);
        for child in children {
            let inside = folder.join(&child);
            let files = [folder.join(format!("{child}.rs")), inside.join("mod.rs")];
            let file = files.iter().find(|file| file.is_file());
            let file: &PathBuf = file.unwrap_or_else(|| panic!("{path}::{child} has no file"));
            self.add(&join(path, &child), file, &inside);
        }
    }

    /// The folders that hold modules, by the paths of their own modules.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        let folders = self.all.iter();
        let folders = folders.filter(|(_, module)| !module.children.is_empty());
        folders.map(|(path, _)| path.as_str())
    }

    /// The imports among the modules of `folder`. A module stands for all modules below it;
    /// [`PARENT`] is the folder's own file. The root of a crate has no such file.
    pub fn graph(&self, folder: &str) -> Graph {
        let mut graph = Graph::new();
        for from in self.all.keys() {
            let Some(importer) = self.part(folder, from) else {
                continue;
            };
            let imports = self.imports(from);
            let imports = imports.iter().filter_map(|to| self.part(folder, to));
            let imports: BTreeSet<String> = imports.filter(|to| *to != importer).collect();
            graph.entry(importer).or_default().extend(imports);
        }
        graph
    }

    /// The sets of modules that import each other, directly or through others. Each set has at
    /// least two modules; the own file of a folder is a module too.
    pub fn circles(&self) -> Vec<BTreeSet<String>> {
        let mut graph = Graph::new();
        for from in self.all.keys().filter(|from| !from.is_empty()) {
            let mut imports = self.imports(from);
            imports.retain(|to| to != from && !to.is_empty());
            graph.insert(from.clone(), imports);
        }
        let below = |from: &str| {
            let mut found = BTreeSet::new();
            let mut left = vec![from];
            while let Some(module) = left.pop() {
                let imports = graph[module].iter();
                left.extend(
                    imports
                        .filter(|to| found.insert(to.to_string()))
                        .map(|to| &**to),
                );
            }
            found
        };
        let below: BTreeMap<&String, BTreeSet<String>> =
            graph.keys().map(|from| (from, below(from))).collect();
        let circles = graph.keys().filter(|from| below[from].contains(*from));
        let circles = circles.map(|from| {
            let others = below[from].iter().filter(|to| below[to].contains(from));
            others.cloned().collect()
        });
        circles.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The types that have methods in modules other than that of the type, as (type, module). A
    /// call of such a method is no import, so it could hide a cycle.
    pub fn scattered(&self) -> BTreeSet<(String, String)> {
        let mut found = BTreeSet::new();
        for (path, module) in &self.all {
            let lines = module.text.lines();
            for name in lines.filter_map(own_methods_of) {
                let is_here = defines(&module.text, name);
                if !is_here {
                    found.insert((path.clone(), name.to_string()));
                }
            }
        }
        found
    }

    /// The name of the part of `folder` to which `module` belongs; `None` if it lies outside.
    fn part(&self, folder: &str, module: &str) -> Option<String> {
        if module == folder {
            return (!folder.is_empty()).then(|| PARENT.to_string());
        }
        let below = match folder {
            "" => module,
            _ => module.strip_prefix(folder)?.strip_prefix("::")?,
        };
        below.split("::").next().map(str::to_string)
    }

    /// The paths of the modules that module `of` imports.
    fn imports(&self, of: &str) -> BTreeSet<String> {
        let module = &self.all[of];
        let found = paths(&module.text, false).filter_map(|path| self.resolve(of, &path, 0));
        found.collect()
    }

    /// The module to which a path, written in module `from`, leads; `None` if it leads out of the
    /// crate.
    fn resolve(&self, from: &str, path: &[String], depth: usize) -> Option<String> {
        let mut at = match path.first()?.as_str() {
            "crate" => String::new(),
            "self" => from.to_string(),
            "super" => above(from)?,
            first if self.all[from].children.contains(first) => join(from, first),
            _ => return None,
        };
        for name in &path[1..] {
            let module = &self.all[&at];
            if name == "super" {
                at = above(&at)?;
            } else if module.children.contains(name) {
                at = join(&at, name);
            } else if let Some(to) = module.names.get(name).filter(|_| depth < 8) {
                return self.resolve(&at, to, depth + 1).or(Some(at));
            } else if let Some(to) = self.by_glob(&at, name, depth) {
                at = to;
            } else {
                break;
            }
        }
        Some(at)
    }
}

/// The parts of a *room*, which is a module of the crate's root: data and machines, and calls. A
/// *unit* is one part of a room, or a module of the root that is no room.
pub const PARTS: [&str; 2] = ["machine", "calls"];

impl Modules {
    /// The modules of the root that are rooms.
    pub fn rooms(&self) -> BTreeSet<&str> {
        let root = self.all[""].children.iter().map(String::as_str);
        let has_parts = |room: &&str| {
            let children = &self.all[*room].children;
            PARTS.iter().all(|part| children.contains(*part))
        };
        root.filter(has_parts).collect()
    }

    /// The imports among units, which are parts of rooms and modules of the root that are no rooms.
    /// An item that a room exports for a part counts as one of the part.
    pub fn units(&self) -> Graph {
        let rooms = self.rooms();
        let mut graph = Graph::new();
        for from in self.all.keys() {
            let Some(unit) = unit_of(&rooms, from) else {
                continue;
            };
            let imports = self.imports(from);
            let imports = imports.iter().filter_map(|to| unit_of(&rooms, to));
            let imports: BTreeSet<String> = imports.filter(|to| *to != unit).collect();
            graph.entry(unit).or_default().extend(imports);
        }
        graph
    }

    /// The module that defines `name`, as seen through the `*` imports of module `at`; or the
    /// module `name` itself. `None`: none defines it.
    fn by_glob(&self, at: &str, name: &str, depth: usize) -> Option<String> {
        let globs = self.all[at].globs.iter().filter(|_| depth < 8);
        let mut from = globs.filter_map(|path| self.resolve(at, &path[..], depth + 1));
        from.find_map(|module| {
            let known = &self.all[&module];
            if known.children.contains(name) {
                return Some(join(&module, name));
            }
            if let Some(path) = known.names.get(name) {
                return self.resolve(&module, path, depth + 1).or(Some(module));
            }
            let kinds = ["fn", "const", "static", "trait", "type"];
            let is_here = defines(&known.text, name) || has_item(&known.text, &kinds, name);
            is_here.then_some(module)
        })
    }
}

/// The unit of a module. The root, and the rooms' own modules, which only export names, have none.
fn unit_of(rooms: &BTreeSet<&str>, module: &str) -> Option<String> {
    let mut names = module.split("::");
    let first = names.next().filter(|first| !first.is_empty())?;
    match rooms.contains(first) {
        true => Some(format!("{first}/{}", names.next()?)),
        false => Some(first.to_string()),
    }
}

/// Checks that no modules of a folder import each other, in any folder of the crate, except for the
/// allowed imports; and that each of these is still needed.
pub fn check(modules: &Modules, allowed: &[Allowed]) -> Result<(), String> {
    check_folders(modules, allowed, |_| true)
}

/// Checks modules like [`check`], but only in the folders for which `counts` is true.
pub fn check_folders(
    modules: &Modules,
    allowed: &[Allowed],
    counts: impl Fn(&str) -> bool,
) -> Result<(), String> {
    for folder in modules.folders().filter(|folder| counts(folder)) {
        let whole = modules.graph(folder);
        let here: Vec<_> = allowed.iter().filter(|(of, ..)| *of == folder).collect();
        let without = |but: Option<&Allowed>| {
            let mut graph = whole.clone();
            for &&(_, from, to) in here.iter().filter(|one| Some(**one) != but) {
                let imports = graph.get_mut(from);
                imports.map(|imports| imports.remove(to));
            }
            graph
        };
        if let Some(cycle) = cycle(&without(None)) {
            let cycle = cycle.join(" -> ");
            return Err(format!("modules of `{folder}` import each other: {cycle}"));
        }
        if let Some(one) = here.iter().find(|one| cycle(&without(Some(one))).is_none()) {
            return Err(format!("{one:?} need not be allowed any more"));
        }
    }
    let folders: BTreeSet<&str> = modules.folders().collect();
    match allowed
        .iter()
        .find(|(folder, ..)| !folders.contains(folder))
    {
        Some(one) => Err(format!("{one:?} names no folder")),
        None => Ok(()),
    }
}

/// The modules of a cycle: each imports the next, and the last is the first again. `None`: there is
/// no cycle.
pub fn cycle(graph: &Graph) -> Option<Vec<&str>> {
    let mut done = BTreeSet::new();
    let mut modules = graph.keys();
    modules.find_map(|module| cycle_from(graph, module, &mut Vec::new(), &mut done))
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

fn join(path: &str, child: &str) -> String {
    match path {
        "" => child.to_string(),
        _ => format!("{path}::{child}"),
    }
}

fn above(path: &str) -> Option<String> {
    match path.rsplit_once("::") {
        Some((above, _)) => Some(above.to_string()),
        None => (!path.is_empty()).then(String::new),
    }
}

/// The text of a file without comments and without the tests at its end.
fn code(text: &str) -> String {
    let heads = [
        "\nmod tests {",
        "\npub(super) mod tests {",
        "\npub(crate) mod tests {",
    ];
    let is_test = |at: &usize| {
        let above = text[..*at].lines().next_back();
        above.is_some_and(|line| line.starts_with("#[cfg(") && line.contains("test"))
    };
    let found = heads.iter().flat_map(|head| text.match_indices(head));
    let end = found.map(|(at, _)| at).filter(is_test).min();
    let lines = text[..end.unwrap_or(text.len())].lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

/// The child modules that have files of their own, as declared in a file; tests are left out.
fn children(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        if line.starts_with("#[") {
            is_test |= line.starts_with("#[cfg(") && line.contains("test");
            return None;
        }
        let counts = !std::mem::take(&mut is_test);
        let line = line.strip_prefix("pub").unwrap_or(line);
        let line = match line.strip_prefix('(') {
            Some(rest) => rest.split_once(')')?.1,
            None => line,
        };
        let name = line.trim_start().strip_prefix("mod ")?.strip_suffix(';')?;
        counts.then_some(name)
    })
}

/// True if the text defines the type `name`.
fn defines(text: &str, name: &str) -> bool {
    has_item(text, &["struct", "enum", "union"], name)
}

/// True if the text defines an item `name` of one of these kinds.
fn has_item(text: &str, kinds: &[&str], name: &str) -> bool {
    kinds.iter().any(|kind| {
        let definition = format!("{kind} {name}");
        let mut all = text.match_indices(&definition);
        all.any(|(at, _)| {
            let next = text[at + definition.len()..].bytes().next();
            !next.is_some_and(is_of_a_name)
        })
    })
}

/// The type whose own methods begin on this line: `None` for implementations of traits.
fn own_methods_of(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '<') - i32::from(*c == '>');
            depth == 0
        })?;
        rest = &rest[end.0 + 1..];
    }
    let rest = rest.strip_prefix(' ')?;
    if rest.contains(" for ") {
        return None;
    }
    let end = rest.bytes().take_while(|c| is_of_a_name(*c)).count();
    Some(&rest[..end])
}

/// The paths in a text, each written in full: `a::{b, c::d}` is `a::b` and `a::c::d`. `used`: only
/// paths of `use`, each followed by the name that it has in the module.
fn paths(text: &str, used: bool) -> impl Iterator<Item = Vec<String>> {
    let mut found = Vec::new();
    if used {
        for at in text.match_indices("use ").map(|(at, _)| at) {
            if text[..at]
                .chars()
                .next_back()
                .is_none_or(|c| c.is_whitespace())
            {
                tree(&text[at + 4..], &[], &mut found);
            }
        }
        return found.into_iter();
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < text.len() {
        let is_name = is_of_a_name(bytes[at]);
        let begins = is_name && (at == 0 || !is_of_a_name(bytes[at - 1]) && bytes[at - 1] != b':');
        if !begins {
            at += 1;
            continue;
        }
        // The path in a visibility (`pub(in path)`) is no import.
        let is_import = !text[..at].ends_with("(in ");
        let end = at + text[at..].bytes().take_while(|c| is_of_a_name(*c)).count();
        at = match text[end..].starts_with("::") && is_import {
            true => text.len() - tree(&text[at..], &[], &mut found).len(),
            false => end,
        };
    }
    found.into_iter()
}

/// Reads a path with its branches in braces. Returns the text after it.
fn tree<'a>(text: &'a str, above: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let mut path = above.to_vec();
    let mut text = text.trim_start();
    loop {
        if let Some(mut list) = text.strip_prefix('{') {
            loop {
                list = list.trim_start();
                if let Some(rest) = list.strip_prefix('}') {
                    return rest;
                }
                let rest = tree(list, &path, found).trim_start();
                let rest = rest.strip_prefix(',').unwrap_or(rest);
                if rest.len() == list.len() {
                    return rest;
                }
                list = rest;
            }
        }
        let len = text.bytes().take_while(|c| is_of_a_name(*c)).count();
        if len > 0 {
            path.push(text[..len].to_string());
        }
        text = &text[len..];
        if let Some(rest) = text.strip_prefix('*') {
            path.push("*".to_string());
            text = rest;
        }
        match text.strip_prefix("::") {
            Some(rest) => text = rest,
            None => break,
        }
    }
    let text = match text.strip_prefix(" as ") {
        Some(rest) => &rest[rest.bytes().take_while(|c| is_of_a_name(*c)).count()..],
        None => text,
    };
    found.push(path);
    text
}

fn is_of_a_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

#[cfg(test)]
mod tests;
