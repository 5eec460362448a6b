//! The width of the terminal on standard output.
//!
//! The command sets it once, before it prints. If it is not set, as in tests and behind a pipe,
//! tables have their full width, unless the command limits it.

use std::sync::OnceLock;

static WIDTH: OnceLock<usize> = OnceLock::new();

/// The narrowest terminal for which tables are arranged, in columns.
const NARROWEST: usize = 20;

/// Makes tables fit the terminal on standard output from now on, if there is one.
pub fn fit_to_terminal() {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout());
    let Ok(size) = size else {
        // Standard output is not a terminal, so keep each line whole.
        return;
    };
    let of_shell = std::env::var("COLUMNS").ok();
    if let Some(columns) = columns(size.ws_col.into(), of_shell.as_deref()) {
        // The width is set only once, so an error of a second call is ignored.
        let _ = WIDTH.set(columns);
    }
}

/// Limits tables to `columns` columns from now on if standard output is not a terminal.
pub fn limit_elsewhere(columns: usize) {
    // If there is a terminal, its width has been set already, and this has no effect.
    let _ = WIDTH.set(columns);
}

/// The number of columns of a terminal: its own, or that of the shell if the terminal does not
/// report one.
fn columns(own: usize, of_shell: Option<&str>) -> Option<usize> {
    let of_shell = || of_shell?.trim().parse().ok();
    let known = Some(own).filter(|own| *own > 0).or_else(of_shell)?;
    Some(known.max(NARROWEST))
}

/// The greatest width of tables and text, in columns. `None`: unlimited.
pub fn width() -> Option<usize> {
    WIDTH.get().copied()
}

/// Breaks text between words into lines of at most `width` columns. A longer word gets a line of
/// its own. Line breaks of the text are kept.
pub fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else {
        return text.to_owned();
    };
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n') {
        let length = line.chars().count();
        match length <= width {
            true => lines.push(line.to_owned()),
            false => lines.extend(broken(line, width)),
        }
    }
    lines.join("\n")
}

/// The text, wrapped for the terminal on standard output.
pub fn fitted(text: &str) -> String {
    wrapped(text, width())
}

/// The indentation of a text that is below its label, in columns.
const BELOW: usize = 8;

/// A label, and next to it a text whose further lines are aligned with the first. If the terminal
/// has no room for the text next to the label, it follows below.
pub fn beside(label: &str, indent: usize, text: &str, width: Option<usize>) -> String {
    let has_room = width.is_none_or(|width| width >= indent + NARROWEST);
    let indent = if has_room { indent } else { BELOW };
    let room = width.map(|width| width.saturating_sub(indent).max(1));
    let text = wrapped(text, room).replace('\n', &format!("\n{:indent$}", ""));
    match has_room {
        true => format!("{label:indent$}{text}"),
        false => format!("{}\n{:indent$}{text}", label.trim_end(), ""),
    }
}

/// Breaks a line between words. Further lines are indented like the first.
pub(crate) fn broken(line: &str, width: usize) -> Vec<String> {
    let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
    let mut lines: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_terminal_wins_over_the_shell() {
        assert_eq!(columns(80, Some("132")), Some(80));
        assert_eq!(columns(0, Some("132")), Some(132));
        assert_eq!(columns(0, Some("wide")), None);
        assert_eq!(columns(5, None), Some(NARROWEST));
        assert_eq!(columns(0, None), None);
    }

    #[test]
    fn lines_keep_their_indentation() {
        let text = "  a few words\nnext";
        assert_eq!(wrapped(text, Some(8)), "  a few\n  words\nnext");
        assert_eq!(wrapped(text, None), text);
    }

    #[test]
    fn a_text_stands_beside_its_label() {
        let text = beside("kernel", 8, "a kernel with a long name", Some(30));
        assert_eq!(text, "kernel  a kernel with a long\n        name");
        assert_eq!(beside("a", 3, "b c", None), "a  b c");
        let below = beside("a long label", 16, "a text without room", Some(30));
        assert_eq!(below, "a long label\n        a text without room");
    }

    proptest! {
        #[test]
        fn no_word_is_lost_and_no_line_too_long(
            words in proptest::collection::vec("[a-z]{1,9}", 0..30), width in 20usize..60,
        ) {
            let text = wrapped(&words.join(" "), Some(width));
            prop_assert!(text.lines().all(|line| line.chars().count() <= width));
            let found: Vec<&str> = text.split_whitespace().collect();
            prop_assert_eq!(found, words.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
