//! Which known name somebody may have meant.

/// The candidate with the smallest edit distance, if it is near enough to be meant: a third of its letters.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let ranked = candidates.map(|candidate| (distance(word, candidate), candidate));
    let (distance, best) = ranked.min()?;
    (distance <= best.len().div_ceil(3)).then_some(best)
}

/// How many letters have to be changed, added or taken away (Levenshtein), ignoring case.
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
