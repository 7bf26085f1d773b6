use std::{fmt, time::Duration};

/// How far a server's clock is from that of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockOffset {
    /// The server's clock is ahead.
    Ahead(Duration),
    /// The server's clock is behind.
    Behind(Duration),
}

impl ClockOffset {
    /// The offset of a clock that shows `server` when another shows `here`.
    pub(crate) fn between(server: Duration, here: Duration) -> Self {
        match server.checked_sub(here) {
            Some(ahead) => Self::Ahead(ahead),
            None => Self::Behind(here.saturating_sub(server)),
        }
    }

    /// The offset without its direction.
    pub fn by(self) -> Duration {
        match self {
            Self::Ahead(by) | Self::Behind(by) => by,
        }
    }
}

/// As `2.5s ahead`.
impl fmt::Display for ClockOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if matches!(self, Self::Ahead(_)) { "ahead" } else { "behind" };
        match u64::try_from(self.by().as_millis()).unwrap_or(u64::MAX) {
            0 => f.write_str("less than 1ms off"),
            millis => write!(f, "{:?} {way}", Duration::from_millis(millis)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_has_a_direction() {
        let at = Duration::from_millis;
        assert_eq!(ClockOffset::between(at(5), at(3)), ClockOffset::Ahead(at(2)));
        let behind = ClockOffset::between(at(3), at(5));
        assert_eq!((behind, behind.by()), (ClockOffset::Behind(at(2)), at(2)));
        let precise = ClockOffset::Ahead(Duration::from_nanos(2_500_000_017));
        assert_eq!(precise.to_string(), "2.5s ahead");
        assert_eq!(ClockOffset::Behind(Duration::ZERO).to_string(), "less than 1ms off");
    }
}
