//! Loops that are named by hand: by the program, which calls `MPI_Pcontrol`, or by the user, who
//! names a collective call after which the region of interest begins.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::calls::{Call, Calls};
use super::cuts::Cut;
use super::found::{By, Loop};
use super::regularity::{LEAST, Quality, Regularity};
use super::search::find_within;
use super::text::Text;

/// The reason why the user's or the program's choice of a region cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// No rank makes the call.
    NeverComes {
        /// The name of the call as the user wrote it.
        call: String,
        /// Calls of the program with similar names, the nearest first.
        near: Vec<String>,
    },
    /// Some ranks never make the call.
    OnSomeRanks {
        /// The name of the call.
        call: String,
        /// A rank that makes the call.
        with: usize,
        /// A rank that does not make the call.
        without: usize,
    },
    /// A rank makes the call fewer times than the number that the user has given.
    ComesLess {
        /// The name of the call.
        call: String,
        /// The number of the call that the user has given.
        wanted: usize,
        /// The rank that makes the fewest of these calls.
        rank: usize,
        /// The number of calls of that rank.
        number: usize,
    },
    /// On some rank, no call follows the named one.
    NothingAfter {
        /// The name of the call.
        call: String,
        /// The number of the named call among the calls of that procedure on the rank.
        number: usize,
        /// The rank on which no call follows.
        rank: usize,
    },
    /// Ranks have different numbers of regions.
    RegionsDiffer {
        /// The name of the region; `None`: the program gave it no name.
        region: Option<String>,
        /// Two ranks with their numbers of regions.
        ranks: [(usize, usize); 2],
    },
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Unusable::NeverComes { call, near } => {
                write!(f, "the program never calls {call}")?;
                match near.split_last() {
                    None => Ok(()),
                    Some((one, [])) => write!(f, "; did you mean {one}?"),
                    Some((last, others)) => {
                        write!(f, "; did you mean {} or {last}?", others.join(", "))
                    }
                }
            }
            Unusable::OnSomeRanks {
                call,
                with,
                without,
            } => write!(
                f,
                "rank {with} calls {call}, but rank {without} never does; name a call of all ranks"
            ),
            Unusable::ComesLess {
                call,
                wanted,
                rank,
                number,
            } => write!(
                f,
                "call {wanted} of {call} never comes: rank {rank} makes {number}; name at most that number"
            ),
            Unusable::NothingAfter { call, number, rank } => write!(
                f,
                "rank {rank} makes no call after call {number} of {call}; name an earlier one"
            ),
            Unusable::RegionsDiffer {
                region,
                ranks: [one, other],
            } => {
                let name = region.iter().map(|name| format!(" `{name}`"));
                write!(
                    f,
                    "MPI_Pcontrol begins the region{} {} times on rank {} and {} times on rank {}; all ranks must call it equally often",
                    name.collect::<String>(),
                    one.1,
                    one.0,
                    other.1,
                    other.0
                )
            }
        }
    }
}

impl std::error::Error for Unusable {}

/// The loop after a call: searched among the calls after the one named `call` with this number on
/// each rank, counted from 1. If nothing is repeated there, all calls after it are one iteration.
/// `call` may lack its `MPI_` and ignores case.
pub fn after(calls: &Calls, call: &str, number: usize) -> Result<Loop, Unusable> {
    let name = known_name(calls, call)?;
    let number = number.max(1);
    let positions = calls.ranks.iter().map(|own| {
        let found = own.iter().enumerate();
        let found = found.filter(|(_, call)| calls.symbol(call).name == name);
        found.map(|(at, _)| at).collect::<Vec<usize>>()
    });
    let positions: Vec<Vec<usize>> = positions.collect();
    let with = positions.iter().position(|of_rank| !of_rank.is_empty());
    let without = positions.iter().position(Vec::is_empty);
    if let (Some(with), Some(without)) = (with, without) {
        let call = name.to_owned();
        return Err(Unusable::OnSomeRanks {
            call,
            with,
            without,
        });
    }
    let fewest = positions
        .iter()
        .enumerate()
        .min_by_key(|(_, of_rank)| of_rank.len());
    if let Some((rank, few)) = fewest.filter(|(_, few)| few.len() < number) {
        return Err(Unusable::ComesLess {
            call: name.to_owned(),
            wanted: number,
            rank,
            number: few.len(),
        });
    }
    let begin = |of_rank: &Vec<usize>| of_rank[number - 1] + 1;
    let parts = positions.iter().zip(&calls.ranks);
    let parts: Vec<_> = parts.map(|(own, calls)| begin(own)..calls.len()).collect();
    let call = name.to_owned();
    match parts.iter().position(Range::is_empty) {
        Some(rank) => Err(Unusable::NothingAfter { call, number, rank }),
        None => Ok(within(calls, &parts, By::After { call, number })),
    }
}

/// The name of the program's call that the user means.
fn known_name<'a>(calls: &'a Calls, call: &str) -> Result<&'a str, Unusable> {
    const MOST: usize = 3;
    let plain = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.strip_prefix("mpi_").unwrap_or(&name).to_owned()
    };
    let wanted = plain(call);
    let names = calls.symbols.iter().map(|symbol| symbol.name.as_str());
    if let Some(name) = names.clone().find(|name| plain(name) == wanted) {
        return Ok(name);
    }
    let distance = |name: &&str| strsim::damerau_levenshtein(&plain(name), &wanted);
    let mut near: Vec<&str> = names
        .filter(|name| distance(name) <= 1 + name.len() / 4)
        .collect();
    near.sort_by_key(|name| (distance(name), *name));
    near.dedup();
    Err(Unusable::NeverComes {
        call: call.to_owned(),
        near: near.into_iter().take(MOST).map(str::to_owned).collect(),
    })
}

/// The loop that the program marks by `MPI_Pcontrol`. If there are at least [`LEAST`] regions, each
/// is an iteration; otherwise the loop is searched in the longest region. Of regions with several
/// names the longest ones count. `None` if the program marks no region.
pub fn controlled(calls: &Calls) -> Result<Option<Loop>, Unusable> {
    let mut by_name: BTreeMap<Option<&str>, Vec<Vec<Range<usize>>>> = BTreeMap::new();
    for rank in 0..calls.ranks.len() {
        for (name, regions) in regions(calls, rank) {
            let of_ranks = by_name.entry(name).or_default();
            of_ranks.resize(calls.ranks.len(), Vec::new());
            of_ranks[rank] = regions;
        }
    }
    let length = |(_, of_ranks): &(Option<&str>, Vec<Vec<Range<usize>>>)| {
        of_ranks.iter().flatten().map(Range::len).sum::<usize>()
    };
    let Some((name, of_ranks)) = by_name.into_iter().max_by_key(length) else {
        return Ok(None);
    };
    let name = name.map(str::to_owned);
    let number = of_ranks[0].len();
    if let Some(other) = of_ranks.iter().position(|own| own.len() != number) {
        return Err(Unusable::RegionsDiffer {
            region: name,
            ranks: [(0, number), (other, of_ranks[other].len())],
        });
    }
    let by = By::Control(name);
    if number >= LEAST {
        return Ok(Some(of_regions(calls, &of_ranks, by)));
    }
    let all_calls = |at: &usize| of_ranks.iter().map(|own| own[*at].len()).sum::<usize>();
    let longest = (0..number).max_by_key(all_calls).unwrap_or(0);
    let parts: Vec<_> = of_ranks.iter().map(|own| own[longest].clone()).collect();
    Ok(Some(within(calls, &parts, by)))
}

/// The regions of a rank, by name. A region that is never ended lasts until the last call; an end
/// without a beginning is ignored.
fn regions(calls: &Calls, rank: usize) -> BTreeMap<Option<&str>, Vec<Range<usize>>> {
    let mut regions: BTreeMap<Option<&str>, Vec<Range<usize>>> = BTreeMap::new();
    let mut open: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let own = &calls.ranks[rank];
    for (at, call) in own.iter().enumerate() {
        let Some(control) = &calls.symbol(call).control else {
            continue;
        };
        let name = control.region.as_deref();
        if control.level > 0 {
            open.entry(name).or_insert(at);
        } else if let Some(begin) = open.remove(&name) {
            regions.entry(name).or_default().push(begin..at);
        }
    }
    for (name, begin) in open {
        regions.entry(name).or_default().push(begin..own.len());
    }
    regions
}

/// The loop within a part of each rank's calls, or that part as one iteration.
fn within(calls: &Calls, parts: &[Range<usize>], by: By) -> Loop {
    match find_within(calls, parts) {
        Ok(found) => Loop { by, ..found },
        Err(_) => {
            let regions: Vec<_> = parts.iter().map(|part| vec![part.clone()]).collect();
            let mut one = of_regions(calls, &regions, by);
            one.counted = 0;
            one
        }
    }
}

/// The loop whose iterations begin where the regions begin. The last iteration ends with its
/// region.
fn of_regions(calls: &Calls, of_ranks: &[Vec<Range<usize>>], by: By) -> Loop {
    let cut = |(own, regions): (&Vec<Call>, &Vec<Range<usize>>)| {
        let text = Text::new(own.iter().map(|call| call.symbol).collect());
        let mut boundaries: Vec<usize> = regions.iter().map(|region| region.start).collect();
        boundaries.extend(regions.last().map(|region| region.end));
        let pairs = boundaries.windows(2);
        Cut {
            classes: pairs.map(|pair| text.hash(pair[0]..pair[1])).collect(),
            quality: Quality {
                regularity: Regularity::AboutAsLong,
                kinds: std::cmp::Reverse(1),
                equal: 0,
                covered: boundaries[boundaries.len() - 1] - boundaries[0],
            },
            boundaries,
        }
    };
    Loop::of(
        by,
        calls.ranks.iter().zip(of_ranks).map(cut).collect(),
        calls,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::main_loop::shapes::program;

    #[test]
    fn a_region_begins_after_a_call() {
        let start = "init bcast barrier";
        let step = "send recv allreduce ";
        let calls = program(&[format!("{start} {}finalize", step.repeat(10)).as_str(); 2]);
        let found = after(&calls, "MPI_Barrier", 1).unwrap();
        assert_eq!((found.boundaries[0][0], found.iterations()), (3, 10));
        let found = after(&calls, "allreduce", 4).unwrap();
        assert_eq!((found.boundaries[1][0], found.iterations()), (15, 6));
        let by = By::After {
            call: "MPI_Allreduce".into(),
            number: 4,
        };
        assert_eq!(found.by, by);
        // Nothing is repeated after this call.
        let found = after(&calls, "allreduce", 9).unwrap();
        assert_eq!(found.boundaries, vec![vec![30, 34]; 2]);
        assert_eq!((found.iterations(), found.counted), (1, 0));
    }

    #[test]
    fn a_call_that_cannot_be_used_is_named() {
        let one = "init barrier allreduce allreduce bcast finalize";
        let calls = program(&[one, "init barrier allreduce finalize"]);
        let why = |call: &str, number| after(&calls, call, number).unwrap_err().to_string();
        assert_eq!(
            why("MPI_Alreduce", 1),
            "the program never calls MPI_Alreduce; did you mean MPI_Allreduce?"
        );
        assert_eq!(
            why("MPI_Win_lock_all", 1),
            "the program never calls MPI_Win_lock_all"
        );
        assert_eq!(
            why("bcast", 1),
            "rank 0 calls MPI_Bcast, but rank 1 never does; name a call of all ranks"
        );
        assert_eq!(
            why("allreduce", 2),
            "call 2 of MPI_Allreduce never comes: rank 1 makes 1; name at most that number"
        );
        assert_eq!(
            why("finalize", 1),
            "rank 0 makes no call after call 1 of MPI_Finalize; name an earlier one"
        );
    }

    #[test]
    fn a_program_names_its_iterations_or_a_region_around_them() {
        let each =
            "init off on send recv off on send recv off on send off on send recv off finalize";
        let found = controlled(&program(&[each; 2])).unwrap().unwrap();
        assert_eq!(found.by, By::Control(None));
        assert_eq!(found.boundaries[0], [2, 6, 10, 13, 16]);
        assert_eq!(found.classes.len(), 3);
        let steps = "send recv ".repeat(20);
        let around = format!("init on:setup bcast off:setup on:solve {steps}off:solve finalize");
        let found = controlled(&program(&[around.as_str(); 2]))
            .unwrap()
            .unwrap();
        assert_eq!(found.by, By::Control(Some("solve".into())));
        assert_eq!((found.boundaries[0][0], found.iterations()), (5, 20));
        assert_eq!(controlled(&program(&["init send finalize"])), Ok(None));
    }

    #[test]
    fn all_ranks_begin_regions_equally_often() {
        let calls = program(&["on send off on send off", "on send off"]);
        assert_eq!(
            controlled(&calls).unwrap_err().to_string(),
            "MPI_Pcontrol begins the region 2 times on rank 0 and 1 times on rank 1; all ranks must call it equally often"
        );
    }
}
