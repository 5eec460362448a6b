//! Descriptions of the states of ranks, in one line or several. Ranks in the same state are listed
//! together.

use pmi::RankStatus;

use crate::ranges::ranges;
use crate::rank_state::{RankState, states};

/// The most states that are described; the ranks in further ones are only counted.
const MOST_GROUPS: usize = 8;

/// The states of ranks in one line: `0-2: MPI_Recv from 3 tag 7 on MPI_COMM_WORLD; 3: no answer
/// (outside MPI, or busy in a call)`. `None` if no rank has completed MPI_Init, or if there is no
/// rank but `except`.
pub(crate) fn in_a_line(ranks: &[impl AsRef<RankState>], except: Option<usize>) -> Option<String> {
    if states(ranks).all(|rank| rank.init.is_none()) {
        return None;
    }
    let groups = groups(ranks, except);
    let mut shown: Vec<String> = groups
        .iter()
        .take(MOST_GROUPS)
        .map(|(state, members)| format!("{}: {state}", ranges(members)))
        .collect();
    let rest: usize = groups
        .iter()
        .skip(MOST_GROUPS)
        .map(|(_, members)| members.len())
        .sum();
    if rest > 0 {
        shown.push(format!("and {rest} more"));
    }
    (!shown.is_empty()).then(|| shown.join("; "))
}

/// The states of ranks in lines: one for each state, and one for each unexpected message.
pub(crate) fn in_lines(ranks: &[impl AsRef<RankState>]) -> Vec<String> {
    let mut lines: Vec<String> = groups(ranks, None)
        .iter()
        .map(|(state, members)| format!("{}: {state}", ranges(members)))
        .collect();
    for rank in states(ranks) {
        let unexpected = rank.answer.iter().flat_map(|status| &status.unexpected);
        lines.extend(
            unexpected
                .map(|message| format!("{}: unexpected: {}", rank.number, message.sentence())),
        );
    }
    lines
}

/// The different states with their ranks, in the order of the first rank of each.
fn groups(ranks: &[impl AsRef<RankState>], except: Option<usize>) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for rank in states(ranks).filter(|rank| Some(rank.number) != except) {
        let state = state(rank);
        match groups.iter_mut().find(|(known, _)| *known == state) {
            Some((_, members)) => members.push(rank.number),
            None => groups.push((state, vec![rank.number])),
        }
    }
    groups
}

fn state(rank: &RankState) -> String {
    match &rank.answer {
        Some(status) if rank.deadlocked => status.sentence(),
        _ if !rank.is_running() => rank
            .last_words()
            .map_or("ended".into(), RankStatus::sentence),
        _ if rank.finalized => "past MPI_Finalize".into(),
        Some(status) => status.sentence(),
        None if rank.init.is_some() => "no answer (outside MPI, or busy in a call)".into(),
        None => "not through MPI_Init".into(),
    }
}
