//! Slurm's notation for lists of names, which Flux shares: `node[01-04,7],x`.

use std::ops::RangeInclusive;

/// The most names in a list. Batch systems have fewer hosts; a damaged list may claim more.
pub(super) const MOST_NAMES: usize = 1 << 16;

/// The names in a list, in its order. An error is the text for the user.
pub(super) fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for word in words(list)? {
        let mut found = vec![String::new()];
        let mut rest = word;
        while let Some((before, bracket)) = rest.split_once('[') {
            let (ranges, after) = bracket.split_once(']').ok_or_else(|| wrong(word))?;
            let numbers = numbers(ranges).ok_or_else(|| wrong(word))?;
            if found.len().saturating_mul(numbers.len()) > MOST_NAMES {
                return Err(too_many());
            }
            let combined = found.iter().flat_map(|name| {
                let numbers = numbers.iter();
                numbers.map(move |number| format!("{name}{before}{number}"))
            });
            found = combined.collect();
            rest = after;
        }
        if rest.contains(']') || word.is_empty() {
            return Err(wrong(word));
        }
        names.extend(found.into_iter().map(|name| name + rest));
        if names.len() > MOST_NAMES {
            return Err(too_many());
        }
    }
    Ok(names)
}

/// Splits a list at commas, except commas in brackets.
fn words(list: &str) -> Result<Vec<&str>, String> {
    let mut is_inside = false;
    let mut words = Vec::new();
    let mut start = 0;
    for (at, byte) in list.bytes().enumerate() {
        match (byte, is_inside) {
            (b'[', false) => is_inside = true,
            (b']', true) => is_inside = false,
            (b'[', true) | (b']', false) => return Err(wrong(list)),
            (b',', false) => {
                words.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    match is_inside {
        true => Err(wrong(list)),
        false => {
            words.push(&list[start..]);
            Ok(words)
        }
    }
}

/// The numbers in ranges such as `01-04,7`, each as text. A range keeps the width of its first
/// number.
fn numbers(ranges: &str) -> Option<Vec<String>> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let width = first.len();
        let range = number(first)?..=number(last)?;
        if numbers.len().saturating_add(length(&range)?) > MOST_NAMES {
            return None;
        }
        numbers.extend(range.map(|number| format!("{number:0width$}")));
    }
    Some(numbers)
}

/// Parses a number that a name may contain.
fn number(text: &str) -> Option<u64> {
    let is_valid = (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_valid)
}

/// The count of numbers in a range. `None` if the range is descending.
fn length(range: &RangeInclusive<u64>) -> Option<usize> {
    let more = range.end().checked_sub(*range.start())?;
    usize::try_from(more).ok()?.checked_add(1)
}

fn wrong(word: &str) -> String {
    let shown: String = word.chars().take(100).collect();
    format!("`{shown}` is no list of hosts such as node[01-04,7],x")
}

fn too_many() -> String {
    format!("the list has more than {MOST_NAMES} hosts")
}

/// The numbers in Slurm's notation `2(x3),1`: 2, 2, 2, 1. An error is the text for the user.
pub(super) fn counts(list: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("`{list}` is no list of numbers such as 2(x3),1");
    let mut counts = Vec::new();
    for word in list.split(',') {
        let (count, times) = match word.split_once("(x") {
            None => (word, 1),
            Some((count, times)) => {
                let times = times.strip_suffix(')').and_then(number).ok_or_else(wrong)?;
                (count, times as usize)
            }
        };
        let count = number(count).ok_or_else(wrong)? as usize;
        if counts.len().saturating_add(times) > MOST_NAMES {
            return Err(too_many());
        }
        counts.extend(std::iter::repeat_n(count, times));
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_come_in_the_order_of_the_list() {
        for (list, expected) in [
            ("a", "a"),
            ("a,b", "a b"),
            ("node[01-04,7],x", "node01 node02 node03 node04 node7 x"),
            ("n[9-11]", "n9 n10 n11"),
            ("r[1-2]n[0-1].x", "r1n0.x r1n1.x r2n0.x r2n1.x"),
            ("[1-2]", "1 2"),
            ("n[099-101]", "n099 n100 n101"),
        ] {
            assert_eq!(expand(list).unwrap().join(" "), expected, "{list}");
        }
    }

    #[test]
    fn other_text_is_an_error() {
        for list in [
            "",
            "a,",
            ",a",
            "a[",
            "a]",
            "a[]",
            "a[1",
            "a[1-]",
            "a[2-1]",
            "a[1,]",
            "a[x]",
            "a[[1]]",
            "a[-1]",
            "a[+1]",
            "a[1-2-3]",
            "a[0-99999999]",
            "a[1-300]b[1-300]",
        ] {
            assert!(expand(list).is_err(), "{list}");
        }
    }

    #[test]
    fn counts_repeat() {
        assert_eq!(counts("2(x3),1"), Ok(vec![2, 2, 2, 1]));
        assert_eq!(counts("16"), Ok(vec![16]));
        for list in [
            "",
            "a",
            "2(x)",
            "2(x3",
            "2x3",
            "-1",
            "1(x99999999999)",
            "1,,2",
        ] {
            assert!(counts(list).is_err(), "{list}");
        }
    }

    proptest! {
        #[test]
        fn a_list_that_is_written_is_read(
            parts in proptest::collection::vec(("[a-z]{1,4}", 0u64..2000, 0u64..20, 1usize..6), 1..6)
        ) {
            let mut text = Vec::new();
            let mut names = Vec::new();
            for (prefix, first, more, width) in parts {
                let last = first + more;
                text.push(format!("{prefix}[{first:0width$}-{last}]"));
                let width = width.max(first.to_string().len());
                names.extend((first..=last).map(|number| format!("{prefix}{number:0width$}")));
            }
            prop_assert_eq!(expand(&text.join(",")), Ok(names));
        }

        #[test]
        fn any_text_gives_a_bounded_list_or_an_error(text in "[a-c0-9,()x\\[\\]-]{0,40}") {
            prop_assert!(expand(&text).map_or(0, |names| names.len()) <= MOST_NAMES);
            prop_assert!(counts(&text).map_or(0, |counts| counts.len()) <= MOST_NAMES);
        }
    }
}
