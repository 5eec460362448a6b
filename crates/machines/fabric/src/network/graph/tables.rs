//! Parser of tables of routes: the output of `dump_lfts` or `ibroute`, with a section for each
//! switch and in it a line for each address.

use std::collections::HashMap;

use super::cabling::NO_ROUTE;
use super::discover::{Discovered, Wrong};

/// Parses tables of a graph's switches: for each host and switch the link, as a number among those
/// of the switch.
pub(super) fn read(text: &str, graph: &Discovered) -> Result<Vec<u8>, Wrong> {
    let switches = graph.guids.len();
    let numbers = graph.guids.iter().copied().zip(0..switches);
    let numbers: HashMap<u64, usize> = numbers.collect();
    let hosts = (0..).zip(&graph.lids).filter(|(_, lid)| **lid > 0);
    let hosts: HashMap<u32, usize> = hosts.map(|(host, lid)| (*lid, host)).collect();
    if hosts.len() < graph.lids.len() {
        let what = "the file of the graph lacks the address (lid) of a host, or has one twice, so tables of addresses do not fit it";
        return Err(Wrong::at(0, what));
    }
    let mut table = vec![NO_ROUTE; graph.lids.len() * switches];
    let mut sections = vec![0; switches];
    let mut current = Section::None;
    for (line, text) in (1..).zip(text.lines()) {
        let words = text.split_whitespace().collect::<Vec<&str>>();
        match words[..] {
            ["Unicast", "lids", ..] => {
                let guid = guid(&words).ok_or_else(|| {
                    Wrong::at(line, "a table needs its switch: guid 0x0002c902004038c0")
                })?;
                let switch = numbers.get(&guid).copied().ok_or_else(|| {
                    let what = format!("the graph has no switch with the guid {guid:#018x}");
                    Wrong::at(line, what)
                })?;
                let before = std::mem::replace(&mut sections[switch], line);
                if before > 0 {
                    let what = format!("this switch has a table in line {before}, too");
                    return Err(Wrong::at(line, what));
                }
                current = Section::Switch(switch);
            }
            ["Multicast", ..] => current = Section::Skipped,
            [lid, port, ..] if lid.starts_with("0x") => {
                let switch = match current {
                    Section::Switch(switch) => switch,
                    Section::Skipped => continue,
                    Section::None => {
                        let what = "a route stands before the line that names its switch: Unicast lids … guid 0x…";
                        return Err(Wrong::at(line, what));
                    }
                };
                let lid = u32::from_str_radix(&lid[2..], 16);
                let (Ok(lid), Ok(port)) = (lid, port.parse::<u8>()) else {
                    let what = "a route needs an address and a port: 0x0004 013";
                    return Err(Wrong::at(line, what));
                };
                if let Some(host) = hosts.get(&lid) {
                    let first = graph.cabling.of(switch as u32);
                    let link = first.iter().position(|link| link.port == port);
                    let link = link.map_or(NO_ROUTE, |link| link as u8);
                    table[host * switches + switch] = link;
                }
            }
            [] | ["Lid", "Out", ..] | ["Port", ..] => {}
            [.., "dumped"] => {}
            [comment, ..] if comment.starts_with('#') => {}
            _ => {
                let what = "this is no line of the output of dump_lfts: a switch (Unicast lids …) or a route (0x0004 013 : …)";
                return Err(Wrong::at(line, what));
            }
        }
    }
    match sections.iter().any(|line| *line > 0) {
        true => Ok(table),
        false => Err(Wrong::at(
            0,
            "the file has no table of a switch: Unicast lids … guid 0x…",
        )),
    }
}

/// The table to which the lines of a file belong.
#[derive(Clone, Copy)]
enum Section {
    /// No table has begun.
    None,
    /// The routes of the switch with this number.
    Switch(usize),
    /// A table that routes of single messages do not use.
    Skipped,
}

/// The GUID behind the word `guid`.
fn guid(words: &[&str]) -> Option<u64> {
    let at = words.iter().position(|word| *word == "guid")?;
    let digits = words.get(at + 1)?.strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok()
}
