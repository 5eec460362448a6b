//! The states of ranks, in one line or several. Ranks in the same state are named together.

use pmi::RankStatus;

use crate::rank::RankProcess;

/// The most states that are described; further ones are counted.
const MOST_GROUPS: usize = 8;

/// The states in one line: `0-2: MPI_Recv from 3 tag 7 on MPI_COMM_WORLD; 3: no answer (outside
/// MPI, or busy in a call)`. None if no rank has completed MPI_Init, or if there is no rank but
/// `except`.
pub(crate) fn in_a_line(ranks: &[RankProcess], except: Option<usize>) -> Option<String> {
    if ranks.iter().all(|rank| rank.init.is_none()) {
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

/// The states in lines: one for each state, and one for each unexpected message.
pub(crate) fn in_lines(ranks: &[RankProcess]) -> Vec<String> {
    let mut lines: Vec<String> = groups(ranks, None)
        .iter()
        .map(|(state, members)| format!("{}: {state}", ranges(members)))
        .collect();
    for rank in ranks {
        let unexpected = rank.answer.iter().flat_map(|status| &status.unexpected);
        lines.extend(
            unexpected
                .map(|message| format!("{}: unexpected: {}", rank.number, message.sentence())),
        );
    }
    lines
}

/// The states with their ranks, in the order of the first rank of each.
fn groups(ranks: &[RankProcess], except: Option<usize>) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for rank in ranks.iter().filter(|rank| Some(rank.number) != except) {
        let state = state(rank);
        match groups.iter_mut().find(|(known, _)| *known == state) {
            Some((_, members)) => members.push(rank.number),
            None => groups.push((state, vec![rank.number])),
        }
    }
    groups
}

fn state(rank: &RankProcess) -> String {
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

/// Sorted numbers as ranges: `0-2,5`.
pub fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|left, right| left + 1 == *right);
    let runs = runs.map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn neighbours_become_a_range() {
        let cases: [(&[usize], &str); 4] = [
            (&[], ""),
            (&[7], "7"),
            (&[0, 1, 2, 5], "0-2,5"),
            (&[0, 2, 3, 8, 9, 10], "0,2-3,8-10"),
        ];
        for (numbers, text) in cases {
            assert_eq!(ranges(numbers), text);
        }
    }
}
