use std::borrow::Cow;

/// A text from elsewhere as it may be shown: in one line, and without what moves a cursor or turns the
/// direction of a text. Each such character becomes U+FFFD.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return text.into();
    }
    text.chars().map(|c| if is_printable(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// Whether a character is neither a control character nor a mark of Unicode that ends a line or changes the
/// direction of a text (Unicode TR 36, section 2.10.3).
pub fn is_printable(c: char) -> bool {
    let is_layout = matches!(
        c,
        '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    );
    !c.is_control() && !is_layout
}

/// The beginning of a text that is not understood: an error does not repeat a long one.
pub(super) fn beginning(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_cursor_or_turns_a_text_is_replaced() {
        for c in
            "\u{1b}\u{7}\r\n\t\0\u{7f}\u{85}\u{9b}\u{2028}\u{202e}\u{2066}\u{200f}\u{61c}".chars()
        {
            assert_eq!(printable(&format!("a{c}é")), "a\u{fffd}é", "{c:?}");
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in ["", "orders/42", "häuser 家 🏠", "a\u{301}"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        }
    }
}
