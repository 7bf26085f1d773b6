use leasehold_core::{FenceToken, lease::Grant};

/// Which tokens of a grant are not spent yet; each goes to one task, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    next: u64,
}

impl Block {
    /// All tokens of a grant.
    pub(super) fn of(grant: &Grant) -> Self {
        Self { next: grant.first().get() }
    }

    /// Spends a token of the grant; `None` when the block is used up.
    pub(super) fn spend(&mut self, grant: &Grant) -> Option<FenceToken> {
        if self.is_spent(grant) {
            return None;
        }
        let token = self.next;
        self.next += 1;
        FenceToken::try_from(token).ok()
    }

    /// Whether the block of the grant is used up.
    pub(super) fn is_spent(self, grant: &Grant) -> bool {
        self.next > grant.last().get()
    }
}
