//! Objects that a rank has made and not freed before its end.

use std::collections::BTreeMap;

use crate::event::Kind;
use crate::finding::{Findings, Rule, Side};
use crate::machine::Rank;

/// Adds a note for each procedure whose objects are left.
pub(crate) fn find(ranks: &BTreeMap<u32, Rank>, found: &mut Findings) {
    for (rank, state) in ranks {
        let Some(end) = &state.end else {
            continue;
        };
        for ((kind, _), (call, time)) in &state.objects {
            let kind: &Kind = kind;
            let side = Side {
                rank: *rank,
                call: call.clone(),
                time: *time,
                detail: format!("which has made {}", kind.word()),
            };
            let what = format!("{} is not freed", kind.word());
            found.add(Rule::Leak, what, vec![side, end.clone()]);
        }
    }
}
