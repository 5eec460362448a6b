//! Text of other programs, safe to show on a terminal.

/// The text without control characters, which could change what a terminal shows: `^[` stands for
/// an escape. Ends of lines and tabs stay.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            '\r' if letters.peek() == Some(&'\n') => {}
            '\0'..='\x1f' => {
                shown.push('^');
                shown.push(char::from(letter as u8 + b'@'));
            }
            '\x7f' => shown.push_str("^?"),
            _ if letter.is_control() => shown.push('?'),
            _ => shown.push(letter),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn control_characters_become_visible() {
        for (text, shown) in [
            ("a\tb\nc", "a\tb\nc"),
            ("end\r\n", "end\n"),
            ("over\rwritten", "over^Mwritten"),
            ("\x1b]0;title\x07", "^[]0;title^G"),
            ("\x7f\u{9b}1m", "^??1m"),
            ("größe", "größe"),
        ] {
            assert_eq!(plain(text), shown);
        }
    }
}
