//! Collective calls on a communicator: the calls of all members with one number are compared.

use crate::event::USER_OP;
use crate::finding::{Rule, Side};
use crate::signature::{Difference, Signature};

/// A collective call of one rank.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// The call, its world rank and its time.
    pub(crate) side: Side,
    /// The number of the rank in its group.
    pub(crate) me: u32,
    pub(crate) root: Option<u32>,
    pub(crate) op: u32,
    pub(crate) counts: u32,
    pub(crate) gives: Option<Signature>,
    pub(crate) gets: Option<Signature>,
    /// The blocks that the rank gives, and those that it gets, by member.
    pub(crate) blocks: [Vec<Option<Signature>>; 2],
}

/// A difference between two calls.
pub(crate) struct Differing {
    pub(crate) rule: Rule,
    /// The difference, as the end of a sentence.
    pub(crate) what: &'static str,
    /// The calls, with the arguments that differ.
    pub(crate) sides: Vec<Side>,
}

/// The form of a procedure: `Bcast` for `MPI_Ibcast_c`, and whether it is blocking.
fn form(call: &str) -> (String, &'static str) {
    let name = call.strip_prefix("MPI_").unwrap_or(call);
    let name = name.strip_suffix("_c").unwrap_or(name);
    let name = name.to_lowercase();
    if let Some(name) = name.strip_suffix("_init") {
        return (name.into(), "persistent");
    }
    match name.strip_prefix('i') {
        Some(rest) if !name.starts_with("intercomm") => (rest.into(), "nonblocking"),
        _ => (name, "blocking"),
    }
}

/// The first difference between the calls of the members. `is_inter`: of an intercommunicator, in
/// which blocks of all-to-all operations are not compared.
pub(crate) fn difference(calls: &[Called], is_inter: bool) -> Option<Differing> {
    let first = calls.first()?;
    let others = &calls[1..];
    let (name, _) = form(&first.side.call);
    let found = others.iter().find_map(|other| {
        if form(&first.side.call) != form(&other.side.call) {
            return Some(pair(
                Rule::Calls,
                "meet different calls",
                [first, other],
                ["", ""],
            ));
        }
        None
    });
    found
        .or_else(|| roots(calls))
        .or_else(|| others.iter().find_map(|other| operations(first, other)))
        .or_else(|| match name.as_str() {
            "bcast" => equal(calls, |call| call.gives.as_ref().or(call.gets.as_ref())),
            // Each group of an intercommunicator has counts of its own for its blocks.
            "reduce_scatter" | "reduce_scatter_block" if is_inter => None,
            "reduce"
            | "allreduce"
            | "scan"
            | "exscan"
            | "reduce_scatter"
            | "reduce_scatter_block" => equal(calls, |call| call.gives.as_ref())
                .or_else(|| others.iter().find_map(|other| vectors(first, other))),
            "gather" | "scatter" => rooted(calls),
            "gatherv" | "scatterv" => rooted_blocks(calls),
            "allgather" | "alltoall" if !is_inter => all_alike(calls),
            "allgatherv" if !is_inter => gathered_blocks(calls),
            "alltoallv" | "alltoallw" if !is_inter => exchanged_blocks(calls),
            _ => None,
        })
}

/// Two calls with their details.
fn pair(
    rule: Rule,
    what: &'static str,
    calls: [&Called; 2],
    details: [impl Into<String>; 2],
) -> Differing {
    let sides = calls.into_iter().zip(details).map(|(call, detail)| Side {
        detail: detail.into(),
        ..call.side.clone()
    });
    let sides = sides.collect();
    Differing { rule, what, sides }
}

fn roots(calls: &[Called]) -> Option<Differing> {
    let mut rooted = calls.iter().filter_map(|call| Some((call, call.root?)));
    let (first, root) = rooted.next()?;
    let (other, another) = rooted.find(|(_, another)| *another != root)?;
    let details = [root, another].map(|root| format!("root {root}"));
    Some(pair(
        Rule::Roots,
        "has different roots",
        [first, other],
        details,
    ))
}

fn operations(first: &Called, other: &Called) -> Option<Differing> {
    let name = |op: u32| match datatype::Op::from_handle(op as usize) {
        Some(op) => op.name().to_string(),
        None if op == USER_OP => "an operation of MPI_Op_create".into(),
        None => "no operation".into(),
    };
    let details = || [first.op, other.op].map(name);
    let what = "has different operations";
    let are_known = first.op != 0 && other.op != 0;
    (are_known && first.op != other.op)
        .then(|| pair(Rule::Operations, what, [first, other], details()))
}

/// The difference between vectors of counts that all ranks pass alike.
fn vectors(first: &Called, other: &Called) -> Option<Differing> {
    let what = "has different vectors of counts";
    let details = ["recvcounts differ", "from these"];
    (first.counts != other.counts).then(|| pair(Rule::Counts, what, [first, other], details))
}

/// The difference between two signatures that must be equal.
fn unequal(
    calls: [&Called; 2],
    signatures: [&Signature; 2],
    verbs: [String; 2],
    rule: Option<Rule>,
) -> Option<Differing> {
    let [one, other] = signatures;
    let (usual, what, suffix) = match one.compare(other) {
        Difference::None => return None,
        Difference::Shorter | Difference::Longer => {
            (Rule::Counts, "has different counts", String::new())
        }
        Difference::Types { at, types } => {
            let [mine, theirs] = types.map(datatype::Predefined::name);
            let suffix = format!(": element {at} is {mine} at one, {theirs} at the other");
            (Rule::Signatures, "has different type signatures", suffix)
        }
    };
    let [first, second] = verbs;
    let details = [format!("{first}{one}"), format!("{second}{other}{suffix}")];
    let what = match rule {
        Some(_) => "has blocks that do not fit",
        None => what,
    };
    Some(pair(rule.unwrap_or(usual), what, calls, details))
}

/// The first call whose signature is not that of the first one.
fn equal(calls: &[Called], of: impl Fn(&Called) -> Option<&Signature>) -> Option<Differing> {
    let mut all = calls.iter().filter_map(|call| Some((call, of(call)?)));
    let (first, one) = all.next()?;
    all.find_map(|(call, other)| {
        unequal(
            [first, call],
            [one, other],
            [String::new(), String::new()],
            None,
        )
    })
}

const GIVES: &str = "gives ";
const EXPECTS: &str = "expects ";

fn gives_to(member: u32) -> String {
    format!("gives member {member} ")
}

fn expects_of(member: u32) -> String {
    format!("expects of member {member} ")
}

/// Gather and scatter: the root's blocks are those of the others.
fn rooted<'a>(calls: &'a [Called]) -> Option<Differing> {
    let is_gather = form(&calls[0].side.call).0 == "gather";
    let gives = |call: &'a Called| call.gives.as_ref();
    let gets = |call: &'a Called| call.gets.as_ref();
    let of_root = |call| if is_gather { gets(call) } else { gives(call) };
    let of_others = |call| if is_gather { gives(call) } else { gets(call) };
    let root = calls.iter().find(|call| of_root(call).is_some())?;
    calls.iter().find_map(|call| {
        let signatures = [of_root(root)?, of_others(call)?];
        let verbs = match is_gather {
            true => [expects_of(call.me), GIVES.into()],
            false => [gives_to(call.me), EXPECTS.into()],
        };
        unequal([root, call], signatures, verbs, None)
    })
}

fn rooted_blocks(calls: &[Called]) -> Option<Differing> {
    let side = usize::from(form(&calls[0].side.call).0 == "gatherv");
    let root = calls.iter().find(|call| !call.blocks[side].is_empty())?;
    calls.iter().find_map(|call| {
        let own = [&call.gets, &call.gives][side].as_ref()?;
        let block = root.blocks[side].get(call.me as usize)?.as_ref()?;
        let verbs = match side {
            1 => [expects_of(call.me), GIVES.into()],
            _ => [gives_to(call.me), EXPECTS.into()],
        };
        unequal([root, call], [block, own], verbs, Some(Rule::Blocks))
    })
}

/// Allgather and alltoall: all give and get equal blocks.
fn all_alike(calls: &[Called]) -> Option<Differing> {
    let parts = calls.iter().flat_map(|call| {
        let gives = call.gives.as_ref().map(|one| (call, one, GIVES));
        let gets = call.gets.as_ref().map(|one| (call, one, EXPECTS));
        [gives, gets].into_iter().flatten()
    });
    let mut parts = parts.collect::<Vec<_>>().into_iter();
    let (first, one, verb) = parts.next()?;
    parts.find_map(|(call, other, its)| {
        unequal(
            [first, call],
            [one, other],
            [verb, its].map(String::from),
            None,
        )
    })
}

fn gathered_blocks(calls: &[Called]) -> Option<Differing> {
    calls.iter().find_map(|at| {
        calls.iter().find_map(|of| {
            let block = at.blocks[1].get(of.me as usize)?.as_ref()?;
            let own = match &of.gives {
                Some(own) => own,
                None => of.blocks[1].get(of.me as usize)?.as_ref()?,
            };
            let verbs = [expects_of(of.me), GIVES.into()];
            unequal([at, of], [block, own], verbs, Some(Rule::Blocks))
        })
    })
}

fn exchanged_blocks(calls: &[Called]) -> Option<Differing> {
    calls.iter().find_map(|from| {
        calls.iter().find_map(|to| {
            // Without blocks to give (MPI_IN_PLACE), a rank gives those that it gets.
            let given = match from.blocks[0].is_empty() {
                true => &from.blocks[1],
                false => &from.blocks[0],
            };
            let given = given.get(to.me as usize)?.as_ref()?;
            let expected = to.blocks[1].get(from.me as usize)?.as_ref()?;
            let verbs = [gives_to(to.me), expects_of(from.me)];
            unequal([from, to], [given, expected], verbs, Some(Rule::Blocks))
        })
    })
}
