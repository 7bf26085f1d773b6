use std::fmt::Write;

/// Writes a JSON object, member by member.
#[derive(Debug)]
pub(super) struct Object(String);

impl Object {
    /// An object without members.
    pub(super) fn new() -> Self {
        Self("{".into())
    }

    /// The same object with a text.
    pub(super) fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        self.quote(value);
        self
    }

    /// The same object with a number.
    pub(super) fn number(mut self, name: &str, value: u64) -> Self {
        self.name(name);
        self.0.push_str(&value.to_string());
        self
    }

    /// The object as text.
    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.quote(name);
        self.0.push(':');
    }

    fn quote(&mut self, text: &str) {
        self.0.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                // Writing to a text cannot fail.
                c if c < ' ' => drop(write!(self.0, "\\u{:04x}", u32::from(c))),
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_numbers_are_not() {
        let object = Object::new().text("a", "say \"1\\2\"\n\0ä").number("b", 41).finish();
        assert_eq!(object, r#"{"a":"say \"1\\2\"\u000a\u0000ä","b":41}"#);
        assert_eq!(Object::new().finish(), "{}");
    }
}
