use std::fmt;

use super::command::CommandKind;

/// How many commands failed, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts([u64; CommandKind::ALL.len()]);

impl Counts {
    /// One more of a kind.
    pub(super) fn add(&mut self, kind: CommandKind) {
        self.0[kind as usize] += 1;
    }
}

/// Kinds that did not fail are left out.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = CommandKind::ALL.iter().zip(self.0).filter(|(_, count)| *count > 0);
        for (number, (kind, count)) in failed.enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{count} {}", kind.as_label())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_fail_is_left_out() {
        let mut counts = Counts::default();
        assert_eq!(counts.to_string(), "");
        counts.add(CommandKind::Renew);
        counts.add(CommandKind::Renew);
        counts.add(CommandKind::Acquire);
        assert_eq!(counts.to_string(), "1 acquire, 2 renew");
    }
}
