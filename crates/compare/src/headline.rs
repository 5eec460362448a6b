//! The answer of a comparison in a few words, for a heading.

use crate::advice::Advice;

impl Advice {
    /// The answer: which machine to take, with how many ranks.
    pub fn headline(&self) -> String {
        let ranks = self.ranks;
        match (self.equals.as_slice(), self.rival) {
            ([], _) => "The program ran on none of the machines".into(),
            ([_, _, ..], None) => format!("With {ranks} ranks the choice hardly matters"),
            _ => format!("Take {} with {ranks} ranks", self.equal_names("or")),
        }
    }

    /// The certainty in a word or two; empty where there is nothing to be sure of.
    pub fn certainty_word(&self) -> &'static str {
        const WORDS: [(&str, &str); 5] = [
            ("this is sure", "sure"),
            ("this is fairly sure", "fairly sure"),
            ("this is unsure", "unsure"),
            ("it would matter", "unsure"),
            ("nothing is known", "certainty unknown"),
        ];
        if self.challenger().is_none() {
            return "";
        }
        let sentence = self.certainty();
        let word = WORDS.iter().find(|(start, _)| sentence.starts_with(start));
        word.map_or("", |(_, word)| word)
    }
}
