//! HTML and SVG under construction.
//!
//! Invariant: all markup is part of the program; texts of users are always escaped.

use std::fmt::{self, Display, Write};

/// HTML or SVG under construction.
#[derive(Default)]
pub(crate) struct Markup(String);

impl Markup {
    /// Appends markup that is not escaped.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Markup {
        self.0 += markup;
        self
    }

    /// Appends text, escaped so that no character begins markup or ends an attribute.
    pub(crate) fn text(&mut self, text: impl Display) -> &mut Markup {
        write!(Escaped(&mut self.0), "{text}").expect("a string grows");
        self
    }

    /// Appends a length in percent, with at most two decimals.
    pub(crate) fn percent(&mut self, share: f64) -> &mut Markup {
        self.share(share).raw("%")
    }

    /// Appends coordinates in a box of 100 by 100, with at most two decimals.
    pub(crate) fn place(&mut self, (x, y): (f64, f64)) -> &mut Markup {
        self.share(x).raw(" ").share(y)
    }

    /// Appends other markup.
    pub(crate) fn append(&mut self, other: Markup) -> &mut Markup {
        self.0 += &other.0;
        self
    }

    /// Appends a number with at most two decimals.
    pub(crate) fn share(&mut self, share: f64) -> &mut Markup {
        let text = format!("{share:.2}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        self.0 += if text == "-0" { "0" } else { text };
        self
    }

    /// The finished markup.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// A writer that escapes the characters that have a meaning in markup.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            match letter {
                '&' => *self.0 += "&amp;",
                '<' => *self.0 += "&lt;",
                '>' => *self.0 += "&gt;",
                '"' => *self.0 += "&quot;",
                '\'' => *self.0 += "&#39;",
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_neither_begins_markup_nor_ends_an_attribute() {
        let mut out = Markup::default();
        out.raw("<p title=\"")
            .text("\"'>")
            .raw("\">")
            .text("<b>&")
            .raw("</p>");
        assert_eq!(
            out.finish(),
            "<p title=\"&quot;&#39;&gt;\">&lt;b&gt;&amp;</p>"
        );
    }

    #[test]
    fn shares_have_no_needless_digits() {
        let mut out = Markup::default();
        for share in [0.0, -0.001, 12.0, 12.5, 100.0 / 3.0] {
            out.percent(share).raw(" ");
        }
        assert_eq!(out.finish(), "0% 0% 12% 12.5% 33.33% ");
    }
}
