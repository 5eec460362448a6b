//! The list of numeric constants of the library, `constants.txt`: each says what its number is, and
//! a number that a choice uses says what it rests on.

mod reader;

use std::collections::BTreeMap;
use std::fs;

use crate::tidy::{root, sources};
use reader::Constant;

const TABLE: &str = "crates/checks/testdevice/tests/it/constants.txt";

/// The folders and files whose constants have rows.
const LISTED: [&str; 6] = [
    "crates/library/mpi/src/",
    "crates/library/channel/src/",
    "crates/devices/tcp/src/",
    "crates/devices/device/src/costs.rs",
    "crates/base/datatype/src/copy_kind.rs",
    "crates/base/datatype/src/memcpy.rs",
];

/// The kinds of constants. A `choice` has a basis behind its kind.
const KINDS: [&str; 4] = ["format", "standard", "bound", "choice"];

/// Rows by file and name. Functions and types of one file may have constants of one name.
type Rows<'a> = BTreeMap<(&'a str, &'a str), Vec<Row<'a>>>;

#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    value: &'a str,
    kind: &'a str,
    basis: &'a str,
}

struct Table<'a> {
    rows: Rows<'a>,
    /// The most choices whose basis is `open`.
    most_open: usize,
}

#[test]
fn every_constant_has_a_row() {
    let listed = |name: &str| LISTED.iter().any(|start| name.starts_with(start));
    let files = sources()
        .into_iter()
        .filter(|(name, _)| listed(name) && !is_test(name));
    let files: Vec<(String, Vec<Constant>)> = files
        .map(|(name, text)| (name, reader::constants(&text)))
        .collect();
    let text = fs::read_to_string(root().join(TABLE)).unwrap();
    let table = parse(&text);
    let mut wrong = differences(&table.rows, &files);
    wrong.extend(unfounded(&table));
    assert!(
        wrong.is_empty(),
        "{} findings in {TABLE}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// True for files that only tests and fuzzing compile.
fn is_test(name: &str) -> bool {
    let stem = name.rsplit('/').next().unwrap().trim_end_matches(".rs");
    let is_test = ["tests", "suite", "fake"].contains(&stem) || stem.ends_with("_tests");
    is_test || name.contains("/tests/") || name.contains("/fuzzing")
}

/// Lines of the file of a row, indented lines of columns that two spaces or more separate.
fn parse(text: &str) -> Table<'_> {
    let mut table = Table {
        rows: Rows::new(),
        most_open: 0,
    };
    let mut file = "";
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(number) = line.strip_prefix("open: ") {
            table.most_open = number.parse().expect("open: NUMBER");
        } else if !line.starts_with(' ') {
            file = line;
        } else {
            let columns = line.split("  ").filter(|column| !column.is_empty());
            let columns: Vec<&str> = columns.map(str::trim).collect();
            let (name, value, kind, basis) = match columns[..] {
                [name, value, kind] => (name, value, kind, ""),
                [name, value, kind, basis] => (name, value, kind, basis),
                _ => panic!("{file}: a row is `NAME  VALUE  KIND  BASIS`, not `{line}`"),
            };
            let rows = table.rows.entry((file, name)).or_default();
            rows.push(Row { value, kind, basis });
        }
    }
    table
}

/// The constants that have no row, the rows that stand for nothing, and those with another value.
fn differences(rows: &Rows, files: &[(String, Vec<Constant>)]) -> Vec<String> {
    let mut found: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for key in rows.keys() {
        found.entry(*key).or_default();
    }
    for (file, constants) in files {
        for Constant { name, value } in constants {
            found.entry((file, name)).or_default().push(value);
        }
    }
    let mut wrong = Vec::new();
    for ((file, name), mut values) in found {
        let mut left: Vec<&str> = Vec::new();
        for row in rows.get(&(file, name)).into_iter().flatten() {
            match values.iter().position(|value| *value == row.value) {
                Some(at) => drop(values.remove(at)),
                None => left.push(row.value),
            }
        }
        for (value, row) in values.iter().zip(&left) {
            wrong.push(format!(
                "{file}: {name} is `{value}`, and `{row}` in its row: does the basis still hold?"
            ));
        }
        for value in values.iter().skip(left.len()) {
            wrong.push(format!("{file} needs a row:  {name}  {value}  KIND  BASIS"));
        }
        for row in left.iter().skip(values.len()) {
            wrong.push(format!("{file}: no constant for the row:  {name}  {row}"));
        }
    }
    wrong
}

/// The rows without a kind or a basis, and the number of open choices if it is not that of the
/// table's head.
fn unfounded(table: &Table) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut open = 0;
    for ((file, name), rows) in &table.rows {
        for Row { kind, basis, .. } in rows {
            let is_choice = *kind == "choice";
            open += usize::from(is_choice && is_open(basis));
            if !KINDS.contains(kind) {
                wrong.push(format!(
                    "{file}: {name}: the kinds are {}",
                    KINDS.join(", ")
                ));
            } else if is_choice == basis.is_empty() || is_choice && !is_founded(basis) {
                wrong.push(format!(
                    "{file}: {name}: a choice, and no other row, has the basis `measured: WHERE` \
                     (a page in docs/, a file in measurements/, or `doc comment`), `derived: HOW` \
                     or `open`, not `{basis}`"
                ));
            }
        }
    }
    if open > table.most_open {
        wrong.push(format!(
            "{open} choices are open, {} may be: measure or derive the new number",
            table.most_open
        ));
    } else if open < table.most_open {
        wrong.push(format!(
            "only {open} choices are open: write `open: {open}`"
        ));
    }
    wrong
}

fn is_open(basis: &str) -> bool {
    basis == "open" || basis.starts_with("open: ")
}

/// True if a basis is open, a derivation, or a measurement at a place that exists.
fn is_founded(basis: &str) -> bool {
    let Some(places) = basis.strip_prefix("measured: ") else {
        return is_open(basis) || basis.starts_with("derived: ");
    };
    let words = places.split_whitespace().map(|word| word.trim_matches(','));
    let mut files = words.filter(|word| {
        ["docs/", "measurements/"]
            .iter()
            .any(|folder| word.starts_with(folder))
    });
    match places.starts_with("doc comment") {
        true => files.all(|file| root().join(file).exists()),
        false => {
            let files: Vec<&str> = files.collect();
            !files.is_empty() && files.iter().all(|file| root().join(file).exists())
        }
    }
}

#[test]
fn a_difference_between_table_and_sources_is_found() {
    let table = "# A comment.\nopen: 1\n\na.rs\n    A  64 << 10  choice  open\n    B  2  bound\n\
                 \x20   C  (1, 2)  choice  measured: docs/internals/files.md\n    N  1  format\n    N  2  format\n";
    let table = parse(table);
    let files = |constants: &[(&str, &str)]| {
        let constants = constants.iter().map(|(name, value)| Constant {
            name: name.to_string(),
            value: value.to_string(),
        });
        [("a.rs".to_string(), constants.collect())]
    };
    let all = [
        ("A", "64 << 10"),
        ("N", "1"),
        ("B", "2"),
        ("C", "(1, 2)"),
        ("N", "2"),
    ];
    let of = |all: &[(&str, &str)]| differences(&table.rows, &files(all));
    assert!(of(&all).is_empty());
    assert!(unfounded(&table).is_empty());
    let extended = [&all[..], &[("D", "7")]].concat();
    assert_eq!(of(&extended), ["a.rs needs a row:  D  7  KIND  BASIS"]);
    assert_eq!(of(&all[..4]), ["a.rs: no constant for the row:  N  2"]);
    assert!(differences(&table.rows, &[]).len() == all.len());
    let changed = [&[("A", "32 << 10")], &all[1..]].concat();
    let wrong = of(&changed);
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].starts_with("a.rs: A is `32 << 10`, and `64 << 10` in its row"));
}

#[test]
fn a_choice_without_a_basis_is_found() {
    let of = |text: &str| unfounded(&parse(text)).len();
    for (text, wrong) in [
        ("open: 1\na.rs\n    A  1  choice  open: a guess\n", 0),
        ("open: 0\na.rs\n    A  1  choice  open\n", 1),
        ("open: 2\na.rs\n    A  1  choice  open\n", 1),
        ("open: 0\na.rs\n    A  1  choice\n", 1),
        ("open: 0\na.rs\n    A  1  choice  because\n", 1),
        ("open: 0\na.rs\n    A  1  bound  derived: B\n", 1),
        ("open: 0\na.rs\n    A  1  number\n", 1),
        ("open: 0\na.rs\n    A  1  choice  derived: twice B\n", 0),
        (
            "open: 0\na.rs\n    A  1  choice  measured: doc comment\n",
            0,
        ),
        ("open: 0\na.rs\n    A  1  choice  measured: once\n", 1),
        ("open: 0\na.rs\n    A  1  choice  measured: docs/no.md\n", 1),
    ] {
        assert_eq!(of(text), wrong, "{text}");
    }
}
