//! Parser of the output of `ibnetdiscover`: a section for each switch and adapter, with a line for
//! each of its ports in use. The sections of switches have all that a network needs.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::cabling::{Cabling, GraphLink, MOST_HOSTS, MOST_SWITCHES};
use super::routed::Names;

/// An error of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The number of the wrong line; 0: the whole file is wrong.
    pub line: usize,
    /// The reason.
    pub what: String,
}

impl Wrong {
    pub(super) fn at(line: usize, what: impl Into<String>) -> Wrong {
        let what = what.into();
        Wrong { line, what }
    }
}

/// The switches, cables and hosts of a file.
#[derive(Debug)]
pub(super) struct Discovered {
    pub cabling: Cabling,
    pub names: Names,
    /// The identifier of each switch (GUID).
    pub guids: Vec<u64>,
    /// The local address (LID) of each host; 0: unknown.
    pub lids: Vec<u32>,
}

/// A switch as its section describes it.
struct Section<'a> {
    /// The identifier of its kind and GUID, such as `S-0002c902004038c0`.
    id: &'a str,
    guid: u64,
    name: String,
    line: usize,
    ports: Vec<Port<'a>>,
}

/// A port in use, with its peer.
struct Port<'a> {
    number: u8,
    /// The identifier of the peer's node, and the peer's port.
    peer: (&'a str, u32),
    /// The description of the peer, if the line has one.
    about: &'a str,
    lid: u32,
    line: usize,
}

/// A host's port at a switch.
struct Attached<'a> {
    name: &'a str,
    /// True if the description names an adapter of the host, too.
    is_of_host: bool,
    peer: (&'a str, u32),
    home: (u32, u8),
    lid: u32,
}

/// Parses the text of a file.
pub(super) fn read(text: &str) -> Result<Discovered, Wrong> {
    let sections = sections(text)?;
    if sections.is_empty() {
        let what = "no line of this file begins a switch, as in the output of ibnetdiscover: Switch 36 \"S-0002c902004038c0\"";
        return Err(Wrong::at(0, what));
    }
    let numbers = (0u32..).zip(&sections).map(|(at, one)| (one.id, at));
    let numbers: HashMap<&str, u32> = numbers.collect();
    let (mut first, mut links, mut hosts) = (vec![0], Vec::new(), Vec::new());
    for (from, section) in (0u32..).zip(&sections) {
        for port in &section.ports {
            match port.peer.0.as_bytes().first() {
                Some(b'S') => {
                    let to = peer(&sections, &numbers, section, port)?;
                    // A loop back into the same switch carries nothing.
                    links.extend((to != from).then_some(GraphLink {
                        from,
                        to,
                        port: port.number,
                    }));
                }
                Some(b'H') => hosts.extend(attached(port, from)),
                // A router leads to other subnets.
                _ => {}
            }
        }
        first.push(links.len() as u32);
    }
    let hosts = in_order(hosts);
    match hosts.len() {
        0 => return Err(Wrong::at(0, "no switch of this file has a host at a port")),
        many if many > MOST_HOSTS => {
            let what = format!("{many} hosts are too many; at most {MOST_HOSTS} are possible");
            return Err(Wrong::at(0, what));
        }
        _ => {}
    }
    Ok(Discovered {
        guids: sections.iter().map(|section| section.guid).collect(),
        lids: hosts.iter().map(|host| host.lid).collect(),
        names: Names {
            hosts: hosts.iter().map(|host| host.name.to_owned()).collect(),
            switches: sections.into_iter().map(|section| section.name).collect(),
        },
        cabling: Cabling {
            homes: hosts.iter().map(|host| host.home).collect(),
            first,
            links,
        },
    })
}

/// The sections of switches, each with its ports by their numbers.
fn sections(text: &str) -> Result<Vec<Section<'_>>, Wrong> {
    let mut sections: Vec<Section> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    let (mut is_switch, mut is_begun) = (false, false);
    for (line, text) in (1..).zip(text.lines()) {
        let word = text.split_whitespace().next().unwrap_or_default();
        match word {
            "" => is_begun = false,
            "Switch" | "Ca" | "Rt" => {
                (is_switch, is_begun) = (word == "Switch", true);
                if is_switch {
                    let section = section(text, line)?;
                    if let Some(before) = known.insert(section.id, line) {
                        let what = format!("switch {} stands in line {before}, too", section.id);
                        return Err(Wrong::at(line, what));
                    }
                    sections.push(section);
                }
                if sections.len() > MOST_SWITCHES {
                    let what = format!("more than {MOST_SWITCHES} switches are not possible");
                    return Err(Wrong::at(line, what));
                }
            }
            _ if text.starts_with('[') && is_begun => {
                if let Some(section) = sections.last_mut().filter(|_| is_switch) {
                    section.ports.push(port(text, line)?);
                }
            }
            _ if word.starts_with('#') || word.contains('=') || word == "Chassis" => {}
            _ => {
                let what = "this is no line of the output of ibnetdiscover: a switch, an adapter, or below it a port [1] \"S-…\"[2]";
                return Err(Wrong::at(line, what));
            }
        }
    }
    for section in &mut sections {
        section.ports.sort_by_key(|port| (port.number, port.line));
        let twice = section
            .ports
            .windows(2)
            .find(|two| two[0].number == two[1].number);
        if let Some([first, second]) = twice {
            let what = format!("port {} stands in line {}, too", first.number, first.line);
            return Err(Wrong::at(second.line, what));
        }
    }
    Ok(sections)
}

/// The text between the first two quotes, and the text behind them.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.split_once('"')?.1.split_once('"')
}

/// A section's first line: `Switch 36 "S-0002c902004038c0" # "core1" port 0 lid 3 lmc 0`.
fn section(text: &str, line: usize) -> Result<Section<'_>, Wrong> {
    let wrong = || {
        Wrong::at(
            line,
            "a switch needs its identifier: Switch 36 \"S-0002c902004038c0\"",
        )
    };
    let (id, rest) = quoted(text).ok_or_else(wrong)?;
    let digits = id.strip_prefix("S-").ok_or_else(wrong)?;
    let guid = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
    let about = quoted(rest).map_or("", |(about, _)| about.trim());
    // A managed switch is described as "MF0;name:type/unit".
    let name = about.split_once(';').map_or(about, |(_, name)| name);
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    let name = if name.is_empty() { id } else { name }.to_owned();
    let ports = Vec::new();
    Ok(Section {
        id,
        guid,
        name,
        line,
        ports,
    })
}

/// A port's line: `[1] "H-0002c90300001234"[1](2c90300001235) # "node1 HCA-1" lid 10 4xQDR`.
fn port(text: &str, line: usize) -> Result<Port<'_>, Wrong> {
    let read = || {
        let (number, _) = text.strip_prefix('[')?.split_once(']')?;
        let number: u8 = number.trim().parse().ok().filter(|number| *number > 0)?;
        let (peer, rest) = quoted(text)?;
        let (end, rest) = rest.trim_start().strip_prefix('[')?.split_once(']')?;
        let end: u32 = end.trim().parse().ok()?;
        let comment = rest.split_once('#').map_or("", |(_, comment)| comment);
        let (about, rest) = quoted(comment).unwrap_or(("", comment));
        let mut words = rest.split_whitespace();
        let lid = words.find(|word| *word == "lid").and_then(|_| words.next());
        let is_known = ["S-", "H-", "R-"].iter().any(|kind| peer.starts_with(kind));
        is_known.then_some(Port {
            number,
            peer: (peer, end),
            about: about.trim(),
            lid: lid.and_then(|lid| lid.parse().ok()).unwrap_or(0),
            line,
        })
    };
    let what = "a port needs its number from 1 to 255 and its peer: [1] \"S-0002c902004038c0\"[2]";
    read().ok_or_else(|| Wrong::at(line, what))
}

/// The number of the switch at the other end of a cable, which must have the cable, too.
fn peer(
    sections: &[Section],
    numbers: &HashMap<&str, u32>,
    own: &Section,
    port: &Port,
) -> Result<u32, Wrong> {
    let (id, end) = port.peer;
    let Some(number) = numbers.get(id).copied() else {
        let what = format!("the file has no section of the switch {id}");
        return Err(Wrong::at(port.line, what));
    };
    let other = &sections[number as usize];
    let back = other
        .ports
        .iter()
        .find(|back| u32::from(back.number) == end);
    match back {
        Some(back) if back.peer == (own.id, u32::from(port.number)) => Ok(number),
        Some(back) => {
            let what = format!(
                "port {end} of {id} has another peer in line {}: {:?}[{}]",
                back.line, back.peer.0, back.peer.1
            );
            Err(Wrong::at(port.line, what))
        }
        None => {
            let what = format!(
                "the section of {id} in line {} has no port {end}",
                other.line
            );
            Err(Wrong::at(port.line, what))
        }
    }
}

/// The host at a port of a switch. `None`: what is there is part of a switch.
fn attached<'a>(port: &Port<'a>, switch: u32) -> Option<Attached<'a>> {
    let about = port.about;
    if about.contains("Aggregation Node") {
        return None;
    }
    let is_adapter = |word: &str| {
        let kinds = ["HCA-", "mlx", "hfi", "qib", "ibp", "ib"];
        kinds.iter().any(|kind| word.starts_with(kind))
            && word.ends_with(|c: char| c.is_ascii_digit())
    };
    let named = about.split_once(char::is_whitespace);
    let named = named.filter(|(_, adapter)| is_adapter(adapter.trim()));
    let whole = if about.is_empty() { port.peer.0 } else { about };
    Some(Attached {
        name: named.map_or(whole, |(host, _)| host),
        is_of_host: named.is_some(),
        peer: port.peer,
        home: (switch, port.number),
        lid: port.lid,
    })
}

/// The hosts by the natural order of their names, each with its first port.
fn in_order(mut hosts: Vec<Attached>) -> Vec<Attached> {
    hosts.sort_by(|one, other| {
        let names = natural(one.name, other.name);
        names.then_with(|| (one.peer, one.home).cmp(&(other.peer, other.home)))
    });
    hosts.dedup_by(|next, kept| {
        let is_same = next.name == kept.name && next.is_of_host && kept.is_of_host;
        is_same || next.peer == kept.peer
    });
    hosts
}

/// The natural order of two names: numbers in them are compared as numbers.
fn natural(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one, other);
    loop {
        let [ours, theirs] = [&mut left, &mut right].map(piece);
        let [our_digits, their_digits] = [ours, theirs].map(|piece| {
            piece
                .starts_with(|c: char| c.is_ascii_digit())
                .then(|| piece.trim_start_matches('0'))
        });
        let order = match (our_digits, their_digits) {
            (Some(ours), Some(theirs)) => (ours.len(), ours).cmp(&(theirs.len(), theirs)),
            _ => ours.cmp(theirs),
        };
        if order != Ordering::Equal {
            return order;
        }
        if ours.is_empty() && theirs.is_empty() {
            return one.cmp(other);
        }
    }
}

/// Removes the digits, or the other characters, from the begin of a text, and returns them.
fn piece<'a>(rest: &mut &'a str) -> &'a str {
    let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
    let end = rest.find(|c: char| c.is_ascii_digit() != is_number);
    let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
    *rest = behind;
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_natural_order() {
        let mut names = ["n10", "n9", "n1-b2", "n1-b10", "m2", "n09", "n", ""];
        names.sort_by(|one, other| natural(one, other));
        assert_eq!(
            names,
            ["", "m2", "n", "n1-b2", "n1-b10", "n09", "n9", "n10"]
        );
    }

    #[test]
    fn a_line_of_a_port_has_a_peer_and_an_address() {
        let line =
            "[1][ext 3](b859)\t\"H-00000000000000a1\"[1](a2) \t\t# \"node001 mlx5_0\" lid 10 4xHDR";
        let port = port(line, 7).unwrap();
        assert_eq!(
            (port.number, port.peer, port.lid),
            (1, ("H-00000000000000a1", 1), 10)
        );
        let host = attached(&port, 3).unwrap();
        assert_eq!(
            (host.name, host.is_of_host, host.home),
            ("node001", true, (3, 1))
        );
    }
}
