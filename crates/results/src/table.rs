//! Text tables in the one style of this project, and the formatting of numbers in them.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

use crate::unit::Unit;

/// A table of text, for a terminal or a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The heading of each column.
    pub header: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
    /// The columns that are aligned to the right, counted from 0.
    pub right_aligned: Vec<usize>,
}

impl Table {
    /// A table whose columns after the first `left` are aligned to the right.
    pub fn new(header: Vec<String>, rows: Vec<Vec<String>>, left: usize) -> Table {
        Table {
            right_aligned: (left..header.len()).collect(),
            header,
            rows,
        }
    }

    /// A table of columns that are aligned to the left.
    pub fn of_text(header: Vec<String>, rows: Vec<Vec<String>>) -> Table {
        Table::new(header, rows, usize::MAX)
    }

    /// The table as lines of text without trailing blanks.
    pub fn text(self) -> String {
        let Table {
            header,
            rows,
            right_aligned,
        } = self;
        aligned(header, rows, |column| !right_aligned.contains(&column))
    }
}

/// A table as lines of text without trailing blanks. The first `left` columns are aligned to the
/// left, all others to the right.
pub fn lines(header: Vec<String>, rows: Vec<Vec<String>>, left: usize) -> String {
    aligned(header, rows, |column| column < left)
}

/// A table as lines of text without trailing blanks. `is_left` says which columns, counted from 0,
/// are aligned to the left.
pub fn aligned(
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    is_left: impl Fn(usize) -> bool,
) -> String {
    let mut table = comfy_table::Table::new();
    table.set_header(header);
    table.add_rows(rows);
    let line = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(line));
    table.set_content_arrangement(ContentArrangement::Disabled);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(match is_left(at) {
            true => CellAlignment::Left,
            false => CellAlignment::Right,
        });
    }
    let lines = table.lines().map(|row| row.trim_end().to_owned() + "\n");
    lines.collect()
}

/// `value` with three significant digits, in the unit of [`Unit::shown`].
pub fn number(value: f64, unit: Unit) -> String {
    significant(unit.scaled(value))
}

/// A quotient with two decimals; a dash where there is none.
pub fn ratio(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.2}")
    } else {
        "–".into()
    }
}

/// `value` with three significant digits, as a whole number from 100 on; a dash for NaN.
pub fn significant(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "–".into(),
        0.0 => "0".into(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.0995 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// The items without repetitions, in the order of first appearance.
pub fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_as_many_as_they_are_worth() {
        let shown = [
            0.0, 0.012_345, 0.123_45, 0.999_9, 9.999, 12.345, 99.99, 1234.5,
        ];
        let shown: Vec<String> = shown.into_iter().map(significant).collect();
        assert_eq!(
            shown,
            [
                "0", "0.0123", "0.123", "1.00", "10.0", "12.3", "100", "1234"
            ]
        );
        assert_eq!(
            (significant(f64::NAN), ratio(f64::INFINITY)),
            ("–".into(), "–".into())
        );
    }
}
