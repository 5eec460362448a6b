//! Words that comments avoid: a poetic or private word in a position for which the field has a word
//! of its own.

use std::collections::BTreeMap;

use crate::tidy::{is_comment, sources};

/// Words and phrases, each with what to write instead. `*` at the end: with any ending.
const REFUSED: &[(&str, &str)] = &[
    ("look", "poll, check, search"),
    ("looks", "polls, checks, searches"),
    ("looked", "polled, checked, searched"),
    ("looking", "polling, checking, searching"),
    ("news", "a change, an event"),
    ("dear", "costly"),
    ("dearer", "costlier"),
    ("crowd*", "oversubscribed, contended"),
    ("wish*", "a request, a setting"),
    ("told", "reported, informed"),
    ("hear", "receive, learn"),
    ("hears", "receives, learns"),
    ("heard", "received, learned"),
    ("tends", "serves, drives"),
    ("takes itself for", "assumes that it is"),
    ("hold against", "compare"),
    ("gives way", "yields"),
    ("give way", "yield"),
    ("nobody asked for", "unexpected"),
    ("life", "a lifetime, an epoch"),
    ("way", "a path, a method, a protocol"),
    ("ways", "paths, methods, protocols"),
];

/// Phrases of plain English that contain a refused word.
const PLAIN: &[&str] = &[
    "look up",
    "looks up",
    "looked up",
    "looking up",
    "look-up",
    "in the way",
    "on the way",
    "on its way",
    "on their way",
    "either way",
    "the other way",
    "half way",
    "this way",
    "that way",
    "by the way",
    "all the way",
    "out of the way",
    "one-way",
    // Two kinds of replay, in the glossary.
    "exact way",
    "fast way",
];

/// The number of refused words that crates still have. The list only gets shorter.
const HITS: &[(&str, usize)] = &[("knobs", 3)];

#[test]
fn comments_have_the_words_of_the_field() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, text) in sources() {
        let of = name.split('/').nth(2).unwrap_or_default().to_string();
        for (number, line) in text.lines().enumerate() {
            for (word, instead) in refused(line) {
                let at = format!("{name}:{}: {word:?} (write: {instead})", number + 1);
                found.entry(of.clone()).or_default().push(at);
            }
        }
    }
    for (of, lines) in &found {
        let allowed = HITS.iter().find(|(name, _)| name == of);
        let most = allowed.map_or(0, |(_, most)| *most);
        let count = lines.len();
        assert!(
            count <= most,
            "{count} words in {of}, {most} allowed:\n{}",
            lines.join("\n")
        );
    }
    for (of, most) in HITS {
        let count = found.get(*of).map_or(0, Vec::len);
        assert!(
            count == *most,
            "{of} has {count} such words, and the list says {most}: shorten it"
        );
    }
}

/// The refused words of a comment, with what to write instead.
fn refused(line: &str) -> Vec<(&'static str, &'static str)> {
    if !is_comment(line) {
        return Vec::new();
    }
    let text = line.to_lowercase();
    // Targets of links and text in backquotes are no prose.
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_string();
    let text = parts.fold(first, |text, part| {
        text + part.split_once(')').map_or("", |(_, rest)| rest)
    });
    let text: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let plain = PLAIN
        .iter()
        .fold(text, |text, phrase| text.replace(phrase, ""));
    let words: Vec<&str> = plain
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let joined = format!(" {} ", words.join(" "));
    let is_in = |refused: &str| match refused.strip_suffix('*') {
        Some(begin) => words.iter().any(|word| word.starts_with(begin)),
        None => joined.contains(&format!(" {refused} ")),
    };
    let hits = REFUSED.iter().filter(|(word, _)| is_in(word));
    hits.copied().collect()
}

#[test]
fn a_refused_word_is_found_but_not_in_code() {
    let found = |line| refused(line).len();
    assert_eq!(found("    /// Takes the news of a peer."), 1);
    assert_eq!(found("    let news = 3;"), 0);
    assert_eq!(found("    /// As [`news`](Peer::news)."), 0);
    assert_eq!(found("    /// The value of `look`."), 0);
    assert_eq!(found("    /// It is in the way of others."), 0);
    assert_eq!(found("    /// A way of crowded cores."), 2);
}
