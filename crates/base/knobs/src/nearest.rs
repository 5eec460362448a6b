//! The known name that is most similar to an unknown one, for error messages.

/// The candidate with the smallest edit distance to `word`, if that is at most a third of the
/// candidate's letters.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let ranked = candidates.map(|candidate| (distance(word, candidate), candidate));
    let (distance, best) = ranked.min()?;
    (distance <= best.len().div_ceil(3)).then_some(best)
}

/// The Levenshtein distance of two words: the number of letters to change, add or remove. Ignores
/// case.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<u8> = right.to_ascii_uppercase().into_bytes();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.to_ascii_uppercase().bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &r) in right.iter().enumerate() {
            let change = diagonal + usize::from(l != r);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
