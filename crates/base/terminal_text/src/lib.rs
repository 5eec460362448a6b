//! Text from others, made safe to show on a terminal: names of hosts, paths of programs, and all
//! text that a peer, a remote command or another launcher has written.
//!
//! Control characters could change what a terminal shows, and a newline could begin a forged
//! message. Both are shown as C escapes: `\x1b`, `\n`.
//!
//! Never here: the output itself.

/// Escapes text for one line: a name, a path, a value. Newlines and tabs are escaped too.
///
/// ```
/// assert_eq!(terminal_text::line("a\nb\x1b[31m"), r"a\nb\x1b[31m");
/// ```
pub fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|letter| add(&mut shown, letter));
    shown
}

/// Escapes text of several lines. Newlines and tabs stay.
pub fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            '\r' if letters.peek() == Some(&'\n') => {}
            _ => add(&mut shown, letter),
        }
    }
    shown
}

fn add(shown: &mut String, letter: char) {
    match letter {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        '\0'..='\x1f' | '\x7f' => shown.push_str(&format!("\\x{:02x}", u32::from(letter))),
        _ if letter.is_control() || reorders(letter) => shown.extend(letter.escape_unicode()),
        _ => shown.push(letter),
    }
}

/// True if a terminal may break the line at this character, or change the order of others.
fn reorders(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{line, lines};

    #[test]
    fn control_characters_become_visible() {
        for (text, in_lines, in_a_line) in [
            ("a\tb\nc", "a\tb\nc", "a\\tb\\nc"),
            ("end\r\n", "end\n", "end\\r\\n"),
            ("over\rwritten", "over\\rwritten", "over\\rwritten"),
            (
                "\x1b]0;title\x07",
                "\\x1b]0;title\\x07",
                "\\x1b]0;title\\x07",
            ),
            (
                "\0\x7f\u{9b}1m",
                "\\x00\\x7f\\u{9b}1m",
                "\\x00\\x7f\\u{9b}1m",
            ),
            (
                "a\u{202e}b\u{2028}c",
                "a\\u{202e}b\\u{2028}c",
                "a\\u{202e}b\\u{2028}c",
            ),
            ("größe \\n", "größe \\n", "größe \\n"),
        ] {
            assert_eq!(lines(text), in_lines);
            assert_eq!(line(text), in_a_line);
        }
    }
}
