//! The placement of a job in PMI's notation: `(vector,(FIRST,NODES,RANKS),...)`.
//!
//! A block `(FIRST,NODES,RANKS)` places RANKS ranks on each of NODES nodes, from node FIRST on. A
//! number alone places one rank on that node. Blocks take ranks in order, and start again with the
//! first block if ranks are left over.

use std::collections::HashMap;

use crate::Hosts;

/// Parses the placement of `ranks` ranks. `None`: the text is not a placement.
///
/// Nodes become hosts, which are numbered in the order of their first ranks.
pub(crate) fn parse(text: &str, ranks: usize) -> Option<Hosts> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut rest = text.strip_prefix("(vector")?.strip_suffix(')')?;
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        rest = rest.strip_prefix(',')?;
        let end = match rest.strip_prefix('(') {
            Some(inside) => inside.find(')')? + 2,
            None => rest.find(',').unwrap_or(rest.len()),
        };
        blocks.push(block(&rest[..end])?);
        rest = &rest[end..];
    }
    let mut nodes = Vec::with_capacity(ranks);
    while nodes.len() < ranks {
        let before = nodes.len();
        for &[first, count, each] in &blocks {
            // Never longer than the job, however large the numbers are.
            let places = (first..).take(usize::try_from(count).ok()?);
            let places = places.flat_map(|node| (0..each).map(move |_| node));
            nodes.extend(places.take(ranks - nodes.len()));
        }
        if nodes.len() == before {
            return None;
        }
    }
    Some(numbered(&nodes))
}

/// Parses a block `(FIRST,NODES,RANKS)`, or `NODE`.
fn block(text: &str) -> Option<[u64; 3]> {
    let number = |text: &str| text.parse::<u32>().ok().map(u64::from);
    let Some(inside) = text.strip_prefix('(') else {
        return Some([number(text)?, 1, 1]);
    };
    let mut numbers = inside.strip_suffix(')')?.split(',').map(number);
    let block = [(); 3].map(|()| numbers.next().flatten());
    match (block, numbers.next()) {
        ([Some(first), Some(nodes), Some(ranks)], None) if nodes > 0 && ranks > 0 => {
            Some([first, nodes, ranks])
        }
        _ => None,
    }
}

/// The placement of ranks on these nodes, one for each rank. Hosts are numbered in the order of
/// their first ranks.
pub(crate) fn numbered<T: Eq + std::hash::Hash>(nodes: &[T]) -> Hosts {
    let mut numbers = HashMap::new();
    let hosts = nodes.iter().map(|node| {
        let next = numbers.len() as u32;
        *numbers.entry(node).or_insert(next)
    });
    Hosts::new(hosts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str, ranks: usize) -> Option<String> {
        parse(text, ranks).map(|hosts| hosts.to_string())
    }

    #[test]
    fn blocks_place_ranks_in_order_and_begin_again() {
        assert_eq!(hosts("(vector,(0,1,4))", 4).unwrap(), "0*4");
        assert_eq!(hosts("(vector,(0,2,2))", 4).unwrap(), "0*2,1*2");
        assert_eq!(hosts("(vector, (0,2,1))", 4).unwrap(), "0,1,0,1");
        assert_eq!(hosts("(vector,(0,1,3),(1,1,1))", 4).unwrap(), "0*3,1");
        assert_eq!(hosts("(vector,(0,1,2),1)", 3).unwrap(), "0*2,1");
        assert_eq!(hosts("(vector,0,1)", 3).unwrap(), "0,1,0");
        // Node 5 has the first rank, so it is host 0.
        assert_eq!(hosts("(vector,(5,1,1),(2,1,2))", 3).unwrap(), "0,1*2");
    }

    #[test]
    fn other_texts_are_no_placement_and_big_numbers_take_no_memory() {
        for text in [
            "",
            "(vector)",
            "(vector,)",
            "(vector,())",
            "(vector,(0,1))",
            "(vector,(0,1,2,3))",
            "(vector,(0,0,1))",
            "(vector,(0,1,0))",
            "(vector,(0,1,-1))",
            "(matrix,(0,1,1))",
            "(vector,(0,1,1)",
            "(vector,(0,1,1),)",
            "(vector,x)",
            "(vector(0,1,1))",
            "(vector,(0,1,1)1)",
        ] {
            assert_eq!(hosts(text, 4), None, "{text}");
        }
        let most = "(vector,(4294967295,4294967295,4294967295))";
        assert_eq!(hosts(most, 3).unwrap(), "0*3");
        assert_eq!(
            hosts("(vector,(4294967295,4294967295,1))", 3).unwrap(),
            "0,1,2"
        );
    }
}
