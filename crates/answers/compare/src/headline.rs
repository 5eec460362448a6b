//! The answer of a comparison in a few words, for a heading.

use fabric::accuracy::Certainty;

use crate::advice::Advice;

impl Advice {
    /// The answer as a headline: which machine to take, with how many ranks.
    pub fn headline(&self) -> String {
        let ranks = self.ranks;
        match (self.equals.as_slice(), self.rival) {
            ([], _) => "No run has a time that can be compared".into(),
            ([_, _, ..], None) => format!("With {ranks} ranks the choice hardly matters"),
            _ => format!("Take {} with {ranks} ranks", self.equal_names("or")),
        }
    }

    /// The certainty in a word or two; empty if there is no other machine to compare with.
    pub fn certainty_word(&self) -> &'static str {
        if self.challenger().is_none() {
            return "";
        }
        self.certainty()
            .map_or("certainty unknown", Certainty::name)
    }
}
