//! Choices that time decides: which requests a call has found complete.

use trace::{Call, Signature};

use crate::arguments::Arguments;

/// The positions of the complete requests among all requests of a call.
pub(crate) type Done = Vec<usize>;

/// True if time decides which requests a call of this procedure finds complete.
pub(crate) fn are_made(signature: &Signature) -> bool {
    const NAMES: [&str; 6] = [
        "Test", "Testall", "Waitany", "Testany", "Waitsome", "Testsome",
    ];
    let name = signature.name.strip_prefix("MPI_");
    name.is_some_and(|name| NAMES.contains(&name))
}

/// The requests that a call has found complete, in the recorded run and now. `None`: the call makes
/// no choice.
pub(crate) fn done(
    signature: &Signature,
    call: &Call,
    arguments: &Arguments,
) -> Option<(Done, Done)> {
    let position = |name: &str| signature.position(name);
    let recorded = |name: &str| call.values[position(name)?].number();
    let now = |name: &str, index: usize| arguments.element(position(name)?, index);
    let flag = position("flag");
    let is_found = |found: Option<i64>| flag.is_none() || found == Some(1);
    let (before, after) = (is_found(recorded("flag")), is_found(now("flag", 0)));
    let one = |found: bool, index: Option<i64>| -> Done {
        let index = index.filter(|_| found);
        index
            .and_then(|index| usize::try_from(index).ok())
            .into_iter()
            .collect()
    };
    match signature.name.strip_prefix("MPI_")? {
        "Test" => {
            let all = |found: bool| if found { vec![0] } else { Done::new() };
            Some((all(before), all(after)))
        }
        "Testall" => {
            let count = call.values[position("array_of_requests")?].numbers().len();
            let all = |found: bool| {
                if found {
                    (0..count).collect()
                } else {
                    Done::new()
                }
            };
            Some((all(before), all(after)))
        }
        "Waitany" | "Testany" => Some((one(before, recorded("indx")), one(after, now("indx", 0)))),
        "Waitsome" | "Testsome" => {
            let indices = position("array_of_indices")?;
            let place = |index: i64| usize::try_from(index).ok();
            let before = call.values[indices].numbers().iter();
            let before: Done = before.filter_map(|index| place(*index)).collect();
            let count = now("outcount", 0)?.max(0) as usize;
            let after = (0..count).filter_map(|at| place(arguments.element(indices, at)?));
            let (mut before, mut after) = (before, after.collect::<Done>());
            before.sort_unstable();
            after.sort_unstable();
            Some((before, after))
        }
        _ => None,
    }
}
