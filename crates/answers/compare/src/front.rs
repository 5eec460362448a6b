//! The front of time and price: the rows of which none is both faster and cheaper.

use crate::row::{EQUAL, Row};

/// The time and the cost of an hour of a row, if both are known.
fn place(row: &Row) -> Option<(f64, f64)> {
    Some((row.value?, row.cost.as_ref().ok()?.an_hour))
}

/// True if no other row is as good in time and in price, and better in one. A cheaper row is as
/// good if its time counts as equal. `None`: the time or the price of the row is unknown.
pub(crate) fn is_on(rows: &[Row], row: &Row) -> Option<bool> {
    let (time, price) = place(row)?;
    let beats = |(other_time, other_price): (f64, f64)| {
        let is_faster = other_time < time && other_price <= price;
        let is_cheaper = other_price < price && other_time <= time * (1.0 + EQUAL);
        is_faster || is_cheaper
    };
    Some(!rows.iter().filter_map(place).any(beats))
}

/// The rows of the front, the fastest first.
pub(crate) fn of(rows: &[Row]) -> Vec<&Row> {
    let mut front: Vec<&Row> = rows
        .iter()
        .filter(|row| is_on(rows, row) == Some(true))
        .collect();
    let time = |row: &Row| row.value.unwrap_or(f64::INFINITY);
    front.sort_by(|one, other| time(one).total_cmp(&time(other)));
    front
}
