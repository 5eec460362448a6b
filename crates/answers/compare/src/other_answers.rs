//! Other times of the machines, with which the answer may be another one.

use crate::row::Row;

/// The number of recordings without which a machine outside `equals` is better than all machines of
/// `equals`, and the number of all recordings.
pub(crate) fn recordings(
    rows: &[&Row],
    order: &[(f64, usize)],
    equals: &[usize],
) -> (usize, usize) {
    let all = rows.iter().map(|row| row.without.len()).min().unwrap_or(0);
    // Prices do not depend on recordings: price times time changes in proportion to the time.
    let value = |machine: usize, at: usize| {
        let row = rows.iter().find(|row| row.machine == machine)?;
        let usual = order.iter().find(|of| of.1 == machine)?.0;
        Some(usual * row.without.get(at)? / row.value?)
    };
    let changed = (0..all).filter(|at| is_other(order, equals, |machine| value(machine, *at)));
    (changed.count(), all)
}

/// True if these values of machines make one better that is not among `equals`.
pub(crate) fn is_other(
    order: &[(f64, usize)],
    equals: &[usize],
    value: impl Fn(usize) -> Option<f64>,
) -> bool {
    let (ours, theirs): (Vec<usize>, Vec<usize>) = order
        .iter()
        .map(|of| of.1)
        .partition(|machine| equals.contains(machine));
    let least = |machines: &[usize]| {
        let values = machines.iter().filter_map(|machine| value(*machine));
        values.fold(f64::INFINITY, f64::min)
    };
    least(&theirs) < least(&ours)
}
