use std::num::NonZeroU32;

/// The number of nested uses of a lease.
///
/// Holds are counted here first; Redis mirrors the *absolute* count. Every change carries a
/// number that grows within the runtime. If two changes arrive in the wrong order, the later one
/// stays. A repeated change has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holds {
    count: u32,
}

/// A change of holds, as it is sent to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldUpdate {
    /// The absolute number of holds.
    pub count: NonZeroU32,
    /// The number of this change; a store ignores one that is not above the last it saw.
    pub number: u64,
}

impl Holds {
    /// The greatest number of nested holds of one lease.
    pub const MAX: u32 = u32::MAX >> 1;

    /// One hold, as every grant begins.
    pub fn first() -> Self {
        Self { count: 1 }
    }

    /// The number of holds.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Adds a hold for a re-entry; `number` is above that of every change before.
    ///
    /// # Errors
    ///
    /// - [`HoldsError::Ended`] when the last hold was released already.
    /// - [`HoldsError::TooMany`] at [`Holds::MAX`].
    pub fn enter(&mut self, number: u64) -> Result<HoldUpdate, HoldsError> {
        match self.count {
            0 => Err(HoldsError::Ended),
            Self::MAX => Err(HoldsError::TooMany),
            _ => {
                self.count += 1;
                self.update(number).ok_or(HoldsError::Ended)
            }
        }
    }

    /// Takes a hold off; `None` means that it was the last one and the lease ends. `number` is
    /// above that of every change before.
    pub fn leave(&mut self, number: u64) -> Option<HoldUpdate> {
        self.count = self.count.saturating_sub(1);
        self.update(number)
    }

    fn update(&self, number: u64) -> Option<HoldUpdate> {
        let count = NonZeroU32::new(self.count)?;
        Some(HoldUpdate { count, number })
    }
}

/// Why a lease takes no further hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HoldsError {
    /// The last hold was released.
    #[error("the last hold of this lease was released; acquire the lock again")]
    Ended,
    /// The lease has [`Holds::MAX`] holds.
    #[error(
        "the lease has {} nested holds: probably some re-entries are never released",
        Holds::MAX
    )]
    TooMany,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_absolute_and_numbered() {
        let mut holds = Holds::first();
        let two = holds.enter(1).unwrap();
        assert_eq!((two.count.get(), two.number), (2, 1));
        let one = holds.leave(2).unwrap();
        assert_eq!((one.count.get(), one.number), (1, 2));
        assert_eq!(holds.leave(3), None);
        assert_eq!(holds.enter(4), Err(HoldsError::Ended));
        assert_eq!(holds.leave(5), None);
        assert_eq!(holds.count(), 0);
    }

    #[test]
    fn holds_do_not_overflow() {
        let mut holds = Holds { count: Holds::MAX };
        assert_eq!(holds.enter(1), Err(HoldsError::TooMany));
        assert_eq!(holds.count(), Holds::MAX);
    }
}
