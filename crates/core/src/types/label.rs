use std::sync::Arc;

use super::text::shown_as_text;

/// A readable label of a runtime, kept with every lease so that an operator can see who holds it.
///
/// Usually `host/pid/service`. Control characters and a `~` at the beginning are replaced, and the
/// text is cut at [`RuntimeLabel::MAX_BYTES`]: a label informs people and never decides anything.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RuntimeLabel(Arc<str>);

impl RuntimeLabel {
    /// The longest label, in bytes; longer ones are cut at a character boundary.
    pub const MAX_BYTES: usize = 200;

    /// The mark that Redis has before the label of a runtime that may keep its lock idle.
    pub(crate) const KEEPS: char = '~';

    /// Makes a label of any text.
    pub fn new(text: impl AsRef<str>) -> Self {
        let mut label = String::new();
        for c in text.as_ref().chars() {
            let is_mark = label.is_empty() && c == Self::KEEPS;
            let c = if c.is_control() || is_mark { '\u{fffd}' } else { c };
            if label.len() + c.len_utf8() > Self::MAX_BYTES {
                break;
            }
            label.push(c);
        }
        Self(label.into())
    }

    /// The label that this process gives itself: host, process id and service.
    pub fn of_process(service: &str) -> Self {
        Self::new(format!("{}/{}/{service}", host(), std::process::id()))
    }

    /// The label as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown-host".into())
}

shown_as_text!(RuntimeLabel);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_bounded_and_printable() {
        assert_eq!(RuntimeLabel::new("a\nb").as_str(), "a\u{fffd}b");
        assert_eq!(RuntimeLabel::new("ä".repeat(150)).as_str().len(), 200);
        assert_eq!(RuntimeLabel::new("~~a~b").as_str(), "\u{fffd}~a~b");
        let label = RuntimeLabel::of_process("billing");
        assert!(label.as_str().ends_with(&format!("/{}/billing", std::process::id())));
    }
}
