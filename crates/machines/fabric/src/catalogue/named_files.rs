//! The files that a file of the catalogue names, such as the graph of a network. They are read
//! once, when the file is added.

use std::sync::Arc;

use super::parts::Open;
use super::problem::Problem;
use super::read::{GivenValue, WrittenKey, WrittenPart};
use crate::network::graph::files::NetworkFile;
use crate::quantity::Raw;

/// The keys whose values are names of files.
const KEYS: [&str; 2] = ["graph", "routes"];

/// Reads the files that the parts name, and puts their paths in place of the names. Returns the
/// errors.
pub(super) fn open_all(parts: &mut [Arc<WrittenPart>], open: &Open) -> Vec<Problem> {
    let mut problems = Vec::new();
    for part in parts {
        open_in(Arc::make_mut(part), open, &mut problems);
    }
    problems
}

fn open_in(part: &mut WrittenPart, open: &Open, problems: &mut Vec<Problem>) {
    for WrittenKey {
        key,
        location,
        what,
    } in &mut part.entries
    {
        match what {
            GivenValue::Value {
                raw: Raw::Text(name),
                ..
            } if KEYS.contains(&key.name) && name != "none" => match open(name) {
                Ok((path, text)) => {
                    NetworkFile::add(&path, &text);
                    *name = path;
                }
                Err(why) => {
                    let what = format!("{}: {name}: {why}", key.name);
                    problems.push(Problem::at(location, what));
                }
            },
            GivenValue::Table(part) => open_in(part, open, problems),
            GivenValue::List(parts) => {
                parts
                    .iter_mut()
                    .for_each(|part| open_in(part, open, problems));
            }
            _ => {}
        }
    }
}
