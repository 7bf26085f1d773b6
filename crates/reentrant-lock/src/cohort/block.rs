use leasehold_core::{FenceToken, lease::Grant};

/// The tokens of a grant that are not spent yet; each goes to one task, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    next: u64,
    last: u64,
}

impl Block {
    /// All tokens of a grant.
    pub(super) fn of(grant: &Grant) -> Self {
        Self { next: grant.first().get(), last: grant.last().get() }
    }

    /// Spends a token; `None` when the block is used up.
    pub(super) fn spend(&mut self) -> Option<FenceToken> {
        let token = self.next;
        if token > self.last {
            return None;
        }
        self.next += 1;
        FenceToken::try_from(token).ok()
    }

    /// Whether the block is used up.
    pub(super) fn is_spent(self) -> bool {
        self.next > self.last
    }
}
