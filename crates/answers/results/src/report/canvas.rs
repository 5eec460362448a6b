//! Shapes and texts of a picture of a network, on a page or in a file of its own.

use crate::report::markup::Markup;

/// The width of a picture.
pub(super) const WIDTH: f64 = 760.0;
/// The size of a switch.
pub(super) const BOX: (f64, f64) = (48.0, 26.0);
/// The height of a line of text.
pub(super) const LINE: f64 = 17.0;

/// The appearance of a line, a shape or a text.
#[derive(Clone, Copy)]
pub(super) enum Look {
    /// A switch with all its links.
    Main,
    /// A further switch.
    Other,
    /// The place of switches that are not drawn.
    Gap,
    /// A link of a switch with all its links.
    Link,
    /// A further link.
    Faint,
    /// Text.
    Text,
    /// Text beside a picture.
    Note,
    /// Text in the middle of a switch.
    Inside,
}

impl Look {
    /// The class of the shape on a page, and its attributes in a file of its own.
    fn names(self) -> [&'static str; 2] {
        match self {
            Look::Main => [
                "main",
                " fill=\"#cfe3f2\" stroke=\"#005c99\" stroke-width=\"1.5\"",
            ],
            Look::Other => ["other", " fill=\"#f5f7f8\" stroke=\"#9aa4ae\""],
            Look::Gap => ["gap", " fill=\"#ffffff\""],
            Look::Link => [
                "link",
                " fill=\"none\" stroke=\"#005c99\" stroke-width=\"1.5\"",
            ],
            Look::Faint => ["faint", " fill=\"none\" stroke=\"#c3cad1\""],
            Look::Text => ["text", " fill=\"#1d2126\" font-size=\"13\""],
            Look::Note => ["note", " fill=\"#59626c\" font-size=\"12\""],
            Look::Inside => [
                "inside",
                " fill=\"#1d2126\" font-size=\"12\" text-anchor=\"middle\"",
            ],
        }
    }
}

/// Shapes of a picture under construction.
#[derive(Default)]
pub(super) struct Canvas {
    out: Markup,
    height: f64,
    /// The height of the text at the left.
    text: f64,
    /// True for a picture in a file of its own.
    is_alone: bool,
}

impl Canvas {
    /// A picture in a file of its own.
    pub(super) fn alone() -> Canvas {
        Canvas {
            is_alone: true,
            ..Canvas::default()
        }
    }

    pub(super) fn grow(&mut self, height: f64) {
        self.height = self.height.max(height);
    }

    /// Appends the attributes of a shape.
    fn look(&mut self, look: Look) {
        let [class, attributes] = look.names();
        match self.is_alone {
            true => self.out.raw(attributes),
            false => self.out.raw(" class=\"").raw(class).raw("\""),
        };
    }

    fn number(&mut self, name: &'static str, value: f64) {
        self.out.raw(" ").raw(name).raw("=\"");
        self.out.share(value).raw("\"");
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), look: Look) {
        self.out.raw("<line");
        self.look(look);
        for (name, value) in [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)] {
            self.number(name, value);
        }
        self.out.raw("/>\n");
    }

    /// Draws a curve that bends away from the line between its ends.
    pub(super) fn arc(&mut self, from: (f64, f64), to: (f64, f64), bend: (f64, f64)) {
        let middle = ((from.0 + to.0) / 2.0, (from.1 + to.1) / 2.0);
        self.out.raw("<path");
        self.look(Look::Faint);
        self.out.raw(" d=\"M").place(from).raw("Q");
        self.out
            .place((middle.0 + 2.0 * bend.0, middle.1 + 2.0 * bend.1));
        self.out.raw(" ").place(to).raw("\"/>\n");
    }

    pub(super) fn rectangle(
        &mut self,
        middle: (f64, f64),
        (width, height): (f64, f64),
        look: Look,
    ) {
        self.out.raw("<rect rx=\"3\"");
        self.look(look);
        self.number("x", middle.0 - width / 2.0);
        self.number("y", middle.1 - height / 2.0);
        self.number("width", width);
        self.number("height", height);
        self.out.raw("/>\n");
    }

    /// Draws a switch or group with a text; a gap without its number.
    pub(super) fn switch(
        &mut self,
        middle: (f64, f64),
        number: Option<u64>,
        is_main: bool,
        text: &str,
    ) {
        let text = match number {
            Some(_) => {
                let look = if is_main { Look::Main } else { Look::Other };
                self.rectangle(middle, BOX, look);
                text
            }
            None => {
                self.rectangle(middle, BOX, Look::Gap);
                "…"
            }
        };
        if !text.is_empty() {
            self.written((middle.0, middle.1 + 4.0), text, Look::Inside);
        }
    }

    pub(super) fn written(&mut self, place: (f64, f64), text: &str, look: Look) {
        self.out.raw("<text");
        self.look(look);
        self.number("x", place.0);
        self.number("y", place.1);
        self.out.raw(">").text(text).raw("</text>\n");
    }

    /// Writes lines of text at the left.
    pub(super) fn lines(&mut self, heads: &[String], notes: &[String]) {
        for head in heads {
            self.text += LINE;
            self.written((0.0, self.text), head, Look::Text);
        }
        self.text += LINE / 3.0;
        self.notes(notes);
    }

    pub(super) fn notes(&mut self, notes: &[String]) {
        // Below a picture with levels, whose text stands beside them.
        let start = if self.text > 0.0 {
            self.text
        } else {
            self.height
        };
        self.text = start;
        for note in notes {
            self.text += LINE;
            self.written((0.0, self.text), note, Look::Note);
        }
        self.grow(self.text + LINE / 2.0);
    }

    pub(super) fn finish(self, title: &str) -> Markup {
        let mut out = Markup::default();
        out.raw("<svg");
        if self.is_alone {
            out.raw(" xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" width=\"");
            out.text(WIDTH).raw("\" height=\"").text(self.height.ceil());
            out.raw("\"");
        } else {
            out.raw(" class=\"network\"");
        }
        out.raw(" role=\"img\" viewBox=\"0 0 ").text(WIDTH).raw(" ");
        out.text(self.height.ceil()).raw("\" aria-label=\"");
        out.text(title).raw("\">\n");
        out.append(self.out);
        out.raw("</svg>\n");
        out
    }
}
