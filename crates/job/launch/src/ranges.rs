//! Sets of numbers, of ranks or cores, as text.

/// Writes sorted numbers as ranges: `0-2,5`.
pub fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|left, right| left + 1 == *right);
    let runs = runs.map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn neighbours_become_a_range() {
        let cases: [(&[usize], &str); 4] = [
            (&[], ""),
            (&[7], "7"),
            (&[0, 1, 2, 5], "0-2,5"),
            (&[0, 2, 3, 8, 9, 10], "0,2-3,8-10"),
        ];
        for (numbers, text) in cases {
            assert_eq!(ranges(numbers), text);
        }
    }
}
