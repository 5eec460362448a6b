//! The labels of axes. A plot has the width of its window, and its letters keep their size: the
//! style sheet hides labels and slants names, depending on the class of the window's width.

use crate::report::markup::Markup;

/// A class of browser windows with similar widths.
pub(crate) struct Window {
    /// The CSS class of elements that are hidden in windows of this class.
    pub(crate) hides: &'static str,
    /// The CSS class of plots whose names are slanted in windows of this class.
    pub(crate) slants: &'static str,
    /// The width and height of the axes in the narrowest window of this class, in pixels.
    pub(crate) axes: (f64, f64),
}

/// The classes of browser windows, as in the style sheet: up to 40 rem wide, up to 60 rem, wider.
pub(crate) const WINDOWS: [Window; 3] = [
    Window {
        hides: "n",
        slants: "slant-n",
        axes: (240.0, 272.0),
    },
    Window {
        hides: "m",
        slants: "slant-m",
        axes: (530.0, 350.0),
    },
    Window {
        hides: "w",
        slants: "slant-w",
        axes: (820.0, 350.0),
    },
];

/// The average width of a character of a label, in pixels.
pub(crate) const LETTER: f64 = 7.3;
/// The height of a line with its distance to the next, in pixels.
const LINE: f64 = 18.0;
/// The width that a line of slanted labels needs, in pixels.
const SLANTED: f64 = 14.0;
/// The distance between labels that are next to each other, in pixels.
const GAP: f64 = 12.0;

/// A label of an axis: its position in percent, and its text.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) place: f64,
    pub(crate) text: String,
}

impl Label {
    fn width(&self) -> f64 {
        self.text.chars().count() as f64 * LETTER + GAP
    }
}

/// Appends the CSS classes that hide an element in the classes of windows where it is not shown.
pub(crate) fn hide(out: &mut Markup, is_shown: [bool; 3]) {
    for (window, is_shown) in WINDOWS.iter().zip(is_shown) {
        if !is_shown {
            out.raw(" ").raw(window.hides);
        }
    }
}

/// For each label: true if a horizontal axis of this width in pixels shows it.
pub(crate) fn shown_across(labels: &[Label], pixels: f64) -> Vec<bool> {
    shown(labels, pixels, Label::width)
}

/// For each slanted label: true if a horizontal axis of this width in pixels shows it.
pub(crate) fn shown_slanted(labels: &[Label], pixels: f64) -> Vec<bool> {
    shown(labels, pixels, |_| SLANTED)
}

/// For each label: true if a vertical axis of this height in pixels shows it.
pub(crate) fn shown_upward(labels: &[Label], pixels: f64) -> Vec<bool> {
    shown(labels, pixels, |_| LINE)
}

/// The labels that fit on an axis of this length in pixels. Of equally distant labels every n-th is
/// shown; of others as many as fit, beginning with the last.
fn shown(labels: &[Label], pixels: f64, length: impl Fn(&Label) -> f64) -> Vec<bool> {
    let fit = |one: &Label, other: &Label| {
        let distance = (one.place - other.place).abs() / 100.0 * pixels;
        distance >= (length(one) + length(other)) / 2.0
    };
    let steps = 1..=if are_equally_distant(labels) {
        labels.len() / 2
    } else {
        1
    };
    for step in steps {
        let kept: Vec<&Label> = labels.iter().step_by(step).collect();
        if kept.windows(2).all(|pair| fit(pair[0], pair[1])) {
            return (0..labels.len()).map(|at| at % step == 0).collect();
        }
    }
    let mut shown = vec![false; labels.len()];
    let mut last: Option<&Label> = None;
    for (at, label) in labels.iter().enumerate().rev() {
        if last.is_none_or(|last| fit(last, label)) {
            shown[at] = true;
            last = Some(label);
        }
    }
    shown
}

fn are_equally_distant(labels: &[Label]) -> bool {
    let distances: Vec<f64> = labels
        .windows(2)
        .map(|pair| (pair[1].place - pair[0].place).abs())
        .collect();
    let first = distances.first().copied().unwrap_or(0.0);
    let mut all = distances.iter();
    all.all(|distance| (distance - first).abs() < 0.01 * first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(all: &[(f64, &str)]) -> Vec<Label> {
        let label = |&(place, text): &(f64, &str)| Label {
            place,
            text: text.into(),
        };
        all.iter().map(label).collect()
    }

    #[test]
    fn equally_distant_labels_stay_equally_distant() {
        let all = labels(&[
            (0.0, "1 KiB"),
            (25.0, "2 KiB"),
            (50.0, "4 KiB"),
            (75.0, "8 KiB"),
            (100.0, "16 KiB"),
        ]);
        assert_eq!(shown_across(&all, 800.0), [true; 5]);
        let each_second = [true, false, true, false, true];
        assert_eq!(shown_across(&all, 150.0), each_second);
        assert_eq!(shown_upward(&all, 150.0), [true; 5]);
    }

    /// On a linear axis, numbers of ranks are close together at the lower end.
    #[test]
    fn of_crowded_labels_the_last_stay() {
        let all = labels(&[
            (0.0, "1"),
            (1.0, "2"),
            (3.0, "4"),
            (46.0, "128"),
            (100.0, "256"),
        ]);
        assert_eq!(shown_across(&all, 300.0), [false, false, true, true, true]);
    }

    #[test]
    fn two_labels_at_the_ends_are_always_shown() {
        let all = labels(&[(0.0, "a long name"), (100.0, "another name")]);
        assert_eq!(shown_across(&all, 240.0), [true, true]);
        assert_eq!(shown_across(&[], 240.0), Vec::<bool>::new());
    }
}
