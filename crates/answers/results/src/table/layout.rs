//! The arrangement of a table's columns on a page of limited width.
//!
//! Numbers never break, but their headings do. First the columns of text and of wide headings
//! become narrower, and their cells take several lines; the widest column is narrowed first. If
//! that is not enough, the table is folded: the columns that do not fit are placed below, with a
//! copy of the column that names the rows. Nothing is omitted.

/// The columns of the page between the cells of two columns of the table: a space on each side, and
/// a separator.
const GAP: usize = 3;
/// The least width of a column of text; words that are longer keep their width.
const NARROW: usize = 12;

/// The columns of a table that are next to each other, each with its number and its width.
pub(super) type Block = Vec<(usize, usize)>;

/// A column of a table, before the arrangement of the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Column {
    /// The width of the column's longest line, in characters.
    pub(super) natural: usize,
    /// The width of the column's longest word; a number with its unit is one word.
    pub(super) longest_word: usize,
    /// True if the column's cells are text, which may break between words.
    pub(super) is_text: bool,
}

impl Column {
    /// The least width at which the column is readable, in characters.
    fn least(&self) -> usize {
        match self.is_text {
            true => self.longest_word.max(NARROW).min(self.natural),
            false => self.longest_word,
        }
    }
}

/// The blocks of a table, from top to bottom, for a page of `width` columns. Column `key`, which
/// names the rows, is in all blocks.
pub(super) fn blocks(columns: &[Column], key: usize, width: Option<usize>) -> Vec<Block> {
    let natural = |columns: &[Column]| columns.iter().map(|column| column.natural).collect();
    let Some(width) = width else {
        return vec![numbered(0.., natural(columns))];
    };
    if columns.is_empty() {
        return Vec::new();
    }
    let mut blocks: Vec<Block> = Vec::new();
    let mut from = 0;
    loop {
        // In the first block all columns keep their order.
        let mut chosen = match blocks.is_empty() {
            true => Vec::new(),
            false => vec![key],
        };
        let mut used = columns[key].least() + GAP - 1;
        let mut has_more = false;
        while let Some(next) = columns.get(from) {
            let more = match from == key {
                true => 0,
                false => next.least() + GAP,
            };
            if used + more > width && has_more {
                break;
            }
            used += more;
            if from != key || blocks.is_empty() {
                chosen.push(from);
            }
            has_more |= from != key;
            from += 1;
        }
        if !chosen.contains(&key) {
            chosen.insert(0, key);
        }
        let part: Vec<Column> = chosen.iter().map(|at| columns[*at].clone()).collect();
        blocks.push(numbered(chosen.into_iter(), narrowed(&part, width)));
        if from >= columns.len() {
            return blocks;
        }
    }
}

fn numbered(numbers: impl Iterator<Item = usize>, widths: Vec<usize>) -> Block {
    numbers.zip(widths).collect()
}

/// The widths of columns that are next to each other: the widest column is narrowed until all fit,
/// or until none can become narrower.
fn narrowed(columns: &[Column], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.natural).collect();
    let padding = GAP * columns.len() - 1;
    while widths.iter().sum::<usize>() + padding > width {
        let givers = (0..columns.len()).filter(|at| widths[*at] > columns[*at].least());
        let Some(widest) = givers.max_by_key(|at| widths[*at]) else {
            break;
        };
        widths[widest] -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(natural: usize) -> Column {
        let (longest_word, is_text) = (natural, false);
        Column {
            natural,
            longest_word,
            is_text,
        }
    }

    fn text(natural: usize) -> Column {
        let (longest_word, is_text) = (natural.min(6), true);
        Column {
            natural,
            longest_word,
            is_text,
        }
    }

    #[test]
    fn without_a_limit_all_stand_beside_each_other() {
        let all = blocks(&[text(90), number(8)], 0, None);
        assert_eq!(all, [vec![(0, 90), (1, 8)]]);
    }

    #[test]
    fn a_heading_breaks_before_the_table_is_folded() {
        let ratio = Column {
            natural: 19,
            longest_word: 8,
            is_text: false,
        };
        let columns = [text(6), number(5), ratio];
        assert_eq!(
            blocks(&columns, 0, Some(30)),
            [vec![(0, 6), (1, 5), (2, 11)]]
        );
        let folded = blocks(&columns, 0, Some(25));
        assert_eq!(folded, [vec![(0, 6), (1, 5)], vec![(0, 6), (2, 14)]]);
    }

    #[test]
    fn text_gives_before_the_table_is_folded() {
        let columns = [text(10), text(70), number(8)];
        assert_eq!(
            blocks(&columns, 0, Some(60)),
            [vec![(0, 10), (1, 34), (2, 8)]]
        );
        let folded = blocks(&columns, 0, Some(30));
        assert_eq!(folded, [vec![(0, 10), (1, 15)], vec![(0, 10), (2, 8)]]);
        let folded = blocks(&columns, 1, Some(30));
        assert_eq!(folded, [vec![(0, 10), (1, 15)], vec![(1, 17), (2, 8)]]);
    }

    fn any_column() -> impl Strategy<Value = Column> {
        (1usize..60, any::<bool>()).prop_map(|(wide, is_text)| match is_text {
            true => text(wide),
            false => number(wide.min(14)),
        })
    }

    proptest! {
        #[test]
        fn every_column_stands_once_and_fits(
            columns in proptest::collection::vec(any_column(), 1..12), key in 0usize..12,
            width in 43usize..140,
        ) {
            let key = key % columns.len();
            let all = blocks(&columns, key, Some(width));
            let seen = all.iter().flatten().map(|column| column.0).filter(|at| *at != key);
            let others = (0..columns.len()).filter(|at| *at != key);
            prop_assert_eq!(seen.collect::<Vec<_>>(), others.collect::<Vec<_>>());
            prop_assert!(all.iter().all(|block| block.iter().any(|column| column.0 == key)));
            for block in &all {
                let total: usize = block.iter().map(|(_, wide)| wide + GAP).sum();
                prop_assert!(total - 1 <= width, "{total} of {width}");
                for (at, wide) in block {
                    prop_assert!(*wide >= columns[*at].least());
                }
            }
        }
    }
}
