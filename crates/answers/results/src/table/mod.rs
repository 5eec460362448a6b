//! Text tables in the one style of this project, and the formatting of numbers in them.

mod layout;

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width,
};

use crate::terminal;
use crate::unit::Unit;
use layout::{Block, Column};

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

/// A table as lines of text without trailing blanks, as wide as the terminal allows. The first
/// `left` columns are aligned to the left, all others to the right.
pub fn lines(header: Vec<String>, rows: Vec<Vec<String>>, left: usize) -> String {
    aligned(header, rows, |column| column < left)
}

/// A table as lines of text without trailing blanks, as wide as the terminal allows. `is_left` is
/// true for the columns, counted from 0, that are aligned to the left.
pub fn aligned(
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    is_left: impl Fn(usize) -> bool,
) -> String {
    arranged(&header, &rows, is_left, terminal::width())
}

/// A table as text for a page of `width` columns. The parts of a folded table are separated by
/// empty lines.
fn arranged(
    header: &[String],
    rows: &[Vec<String>],
    is_left: impl Fn(usize) -> bool,
    width: Option<usize>,
) -> String {
    let column = |(at, title): (usize, &String)| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let whole = cells.clone().flat_map(|cell| cell.lines());
        let words = cells.flat_map(|cell| cell.split_whitespace());
        let longest = |all: &mut dyn Iterator<Item = &str>| {
            all.map(|part| part.chars().count()).max().unwrap_or(0)
        };
        let natural = longest(&mut whole.clone().chain(title.lines()));
        let longest_word = match is_left(at) {
            true => longest(&mut words.chain(title.split_whitespace())),
            false => longest(&mut whole.chain(title.split_whitespace())),
        };
        Column {
            natural,
            longest_word,
            is_text: is_left(at),
        }
    };
    let columns: Vec<Column> = header.iter().enumerate().map(column).collect();
    // The first column in which all rows differ names the rows.
    let names = |at: &usize| {
        let cells: Vec<_> = rows.iter().map(|row| row.get(*at)).collect();
        distinct(cells.iter()).len() == cells.len()
    };
    let key = (0..header.len()).find(names).unwrap_or(0);
    let blocks = layout::blocks(&columns, key, width);
    let parts = blocks
        .iter()
        .map(|block| part(header, rows, block, &is_left));
    parts.collect::<Vec<_>>().join("\n")
}

/// The table with the columns of one block of a folded table.
fn part(
    header: &[String],
    rows: &[Vec<String>],
    block: &Block,
    is_left: impl Fn(usize) -> bool,
) -> String {
    let chosen = |cells: &[String]| -> Vec<String> {
        let cell = |(at, _): &(usize, usize)| cells.get(*at).cloned().unwrap_or_default();
        block.iter().map(cell).collect()
    };
    let mut table = comfy_table::Table::new();
    table.set_header(chosen(header));
    table.add_rows(rows.iter().map(|row| chosen(row)));
    let line = LineStyle::none().fill('─').junction('─');
    table.load_style(TableStyle::new().header_separator(line));
    table.set_content_arrangement(ContentArrangement::Dynamic);
    // The constraints alone determine the widths.
    table.set_width(u16::MAX);
    for (column, (at, wide)) in table.column_iter_mut().zip(block) {
        column.set_cell_alignment(match is_left(*at) {
            true => CellAlignment::Left,
            false => CellAlignment::Right,
        });
        let whole = *wide as u16 + column.padding_width();
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(whole)));
    }
    let lines = table.lines().map(|row| row.trim_end().to_owned() + "\n");
    lines.collect()
}

/// `value` as text with three significant digits, in the unit of [`Unit::shown`].
pub fn number(value: f64, unit: Unit) -> String {
    significant(unit.scaled(value))
}

/// A quotient as text with two decimals, fewer from 10 on; a dash if it is not finite.
pub fn ratio(value: f64) -> String {
    match value.is_finite() && value < 9.995 {
        true => format!("{value:.2}"),
        false => significant(value),
    }
}

/// The line below a table that explains its ratios, and in which case the first column is better.
pub fn ratio_legend(first: &str, unit: Unit) -> String {
    let side = match unit.more_is_better() {
        true => "above",
        false => "below",
    };
    let text = format!("Ratios divide {first} by the other: {side} 1, {first} is better.");
    terminal::fitted(&text) + "\n"
}

/// `value` as text with three significant digits, as a whole number from 100 on; a dash if it is
/// not finite.
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

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn narrow_pages_break_text_and_fold_numbers() {
        let header = words(&["name", "what it is", "Gb/s", "MB/s"]);
        let rows = [
            words(&["qdr", "two hosts with one adapter each", "32", "3400"]),
            words(&["fdr", "the next generation", "56", "6000"]),
        ];
        let at = |width| arranged(&header, &rows, |column| column < 2, width);
        let full = at(None);
        assert_eq!(full.lines().count(), 4, "{full}");
        assert_eq!(at(Some(132)), full);
        for width in [60, 40, 24] {
            let text = at(Some(width));
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            for word in rows.iter().flatten().flat_map(|cell| cell.split(' ')) {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
        let folded = at(Some(24));
        assert_eq!(folded.matches("name").count(), 2, "{folded}");
    }

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
