//! The algorithms that the user has forced.

use std::cmp::Reverse;

use knobs::{AUTO_ALGORITHM, AlgorithmChoice, AlgorithmChoices};

use super::case::Case;
use super::names::{Algorithm, Collective};
use crate::{Class, Error, Result};

/// An algorithm that the user has chosen for calls with `from` bytes or more of `ranks` ranks or
/// more. `None`: the library's own choice.
pub(super) struct Override {
    collective: Collective,
    from: usize,
    ranks: usize,
    algorithm: Option<Algorithm>,
}

/// The overrides of a setting, in the order in which they are tried. `algorithms`: those of a
/// collective. An error names an unknown collective or algorithm.
pub(super) fn read(
    choices: &AlgorithmChoices,
    algorithms: impl Fn(Collective) -> Vec<Algorithm>,
) -> Result<Vec<Override>> {
    let of = |choice| one(choice, &algorithms);
    let wanted: Result<Vec<Override>> = choices.0.iter().map(of).collect();
    let mut wanted = wanted?;
    // Of settings for one size and number, the last one in the user's text has precedence.
    wanted.reverse();
    wanted.sort_by_key(|one| Reverse((one.ranks, one.from)));
    Ok(wanted)
}

fn one(
    choice: &AlgorithmChoice,
    algorithms: impl Fn(Collective) -> Vec<Algorithm>,
) -> Result<Override> {
    let bad = |detail| {
        let what = format!("FISHPLATE_COLLECTIVES: {detail}");
        Err(Error::new(Class::ARG, what))
    };
    let mut known = Collective::ALL.iter();
    let Some(&collective) = known.find(|of| of.name() == choice.collective) else {
        let all: Vec<_> = Collective::ALL.iter().map(|of| of.name()).collect();
        return bad(format!(
            "there is no collective '{}'; there are {}",
            choice.collective,
            all.join(", ")
        ));
    };
    let all = algorithms(collective).into_iter();
    let algorithm = all.clone().find(|one| one.name() == choice.algorithm);
    if algorithm.is_none() && choice.algorithm != AUTO_ALGORITHM {
        let mut names: Vec<_> = all.map(Algorithm::name).collect();
        names.sort_unstable();
        names.dedup();
        let all = names.join(", ");
        return bad(format!(
            "{} has no algorithm '{}'; it has {all}, and {AUTO_ALGORITHM}",
            choice.collective, choice.algorithm
        ));
    }
    Ok(Override {
        collective,
        from: choice.from.get(),
        ranks: choice.ranks,
        algorithm,
    })
}

/// The algorithm that the user has forced for a call: of those that apply, the first that `serves`
/// it.
#[cold]
pub(super) fn forced(
    all: &[Override],
    of: Collective,
    case: &Case,
    serves: impl Fn(Algorithm) -> bool,
) -> Option<Algorithm> {
    let applying = all
        .iter()
        .filter(|one| one.collective == of && one.ranks <= case.ranks && one.from <= case.bytes);
    let mut wanted = applying.map(|one| one.algorithm);
    wanted.find(|algorithm| algorithm.is_none_or(&serves))?
}
