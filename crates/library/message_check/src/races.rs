//! Receives from any source or with any tag that two messages could match.
//!
//! The first message of another rank that a later receive of the same rank takes could have matched
//! too, unless it was sent because the receive was complete: unless a chain of messages and
//! collective calls leads from the completion to that send. Each rank has a clock for that: for
//! each rank, the number of its completed receives that the first one can know of. A collective
//! call is taken as one that synchronises all its members, so a race may be missed behind it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::finding::{Findings, Rule, Side};
use crate::matches::{Entry, Match, Messages, Receive, Send};

/// The number of later receives with whose messages a receive is compared.
const LATER: usize = 64;

/// The clock of a rank: for each rank, the number of its completed receives.
type Clock = Arc<BTreeMap<u32, u64>>;

/// Adds a note for each receive that two messages could match, with different calls.
pub(crate) fn find(messages: &Messages, matches: &[Match], found: &mut Findings) {
    let pairs: HashMap<usize, usize> = matches
        .iter()
        .filter_map(Match::pair)
        .map(|(send, receive)| (receive, send))
        .collect();
    if !messages.receives.iter().any(Receive::is_wild) {
        return;
    }
    let (known, completed) = clocks(messages, &pairs);
    let mut by_place: BTreeMap<(u64, u32), Vec<usize>> = BTreeMap::new();
    for (at, receive) in messages.receives.iter().enumerate() {
        if pairs.contains_key(&at) {
            let place = (receive.comm, receive.side.rank);
            by_place.entry(place).or_default().push(at);
        }
    }
    for receives in by_place.values() {
        for (index, at) in receives.iter().enumerate() {
            let receive = &messages.receives[*at];
            let (true, Some(done)) = (receive.is_wild(), completed.get(at)) else {
                continue;
            };
            let own = &messages.sends[pairs[at]];
            let later = receives[index + 1..]
                .iter()
                .take(LATER)
                .map(|later| pairs[later]);
            let other = later.into_iter().find(|send| {
                let other = &messages.sends[*send];
                other.side.rank != own.side.rank
                    && receive.takes(&other.envelope())
                    && known.get(send).is_none_or(|known| known < done)
            });
            if let Some(other) = other {
                add([own, &messages.sends[other]], receive, found);
            }
        }
    }
}

/// For each send, what its sender knows of the completed receives of its receiver; and for each
/// completed receive its number on its rank.
fn clocks(
    messages: &Messages,
    pairs: &HashMap<usize, usize>,
) -> (HashMap<usize, u64>, HashMap<usize, u64>) {
    let mut clocks: HashMap<u32, Clock> = HashMap::new();
    let mut sent: HashMap<usize, Clock> = HashMap::new();
    let (mut known, mut completed) = (HashMap::new(), HashMap::new());
    for entry in &messages.order {
        match entry {
            Entry::Sent(at) => {
                let send = &messages.sends[*at];
                let clock = clocks.entry(send.side.rank).or_default().clone();
                known.insert(*at, clock.get(&send.to).copied().unwrap_or(0));
                sent.insert(*at, clock);
            }
            Entry::Completed(at) => {
                let rank = messages.receives[*at].side.rank;
                let clock = Arc::make_mut(clocks.entry(rank).or_default());
                let from = pairs.get(at).and_then(|send| sent.remove(send));
                join(clock, from.iter().flat_map(|from| from.iter()));
                let own = clock.entry(rank).or_default();
                *own += 1;
                completed.insert(*at, *own);
            }
            Entry::Together(at) => {
                let mut all = BTreeMap::new();
                for rank in &messages.together[*at] {
                    let clock = clocks.entry(*rank).or_default();
                    join(&mut all, clock.iter());
                }
                let all = Arc::new(all);
                for rank in &messages.together[*at] {
                    clocks.insert(*rank, all.clone());
                }
            }
        }
    }
    (known, completed)
}

fn join<'a>(clock: &mut BTreeMap<u32, u64>, other: impl Iterator<Item = (&'a u32, &'a u64)>) {
    for (rank, count) in other {
        let own = clock.entry(*rank).or_default();
        *own = (*own).max(*count);
    }
}

fn add(sends: [&Send; 2], receive: &Receive, found: &mut Findings) {
    let with = |side: &Side, detail: String| Side {
        detail,
        ..side.clone()
    };
    let [own, other] = sends;
    let sides = vec![
        with(&receive.side, receive.facts()),
        with(&own.side, format!("{}, which it has matched", own.facts())),
        with(
            &other.side,
            format!("{}, which it could match", other.facts()),
        ),
    ];
    found.add(
        Rule::Race,
        "a receive could match either of two messages".into(),
        sides,
    );
}
