use std::{sync::Arc, time::Duration};

use leasehold_core::{FenceToken, Instant, Ttl, lease::Grant, metric::WakeSource};
use leasehold_watchdog::Watch;

use super::{block::Block, moment::Moment, queue::Ticket, unanswered::Unanswered};

/// What a runtime has under one grant: tokens, handed from task to task.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(super) grant: Arc<Grant>,
    pub(super) block: Block,
    /// Until when the turn may be believed in, as the last holder left it.
    pub(super) until: Instant,
    /// Whether other runtimes waited when it began.
    contended: bool,
    /// How many tasks are still to be served while other runtimes wait; blocks have fewer tokens
    /// than this can count.
    to_serve: u16,
    /// When the first lease was taken.
    began_at: Option<Instant>,
    pub(super) leases: u32,
    pub(super) hands: Hands,
    pub(super) watch: Option<Watch>,
    /// Commands that asked for the grant, and may still be executed.
    pub(super) unanswered: Unanswered,
}

/// Who has the present token of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hands {
    /// A task that may take it.
    Offered(Offer),
    /// A task that has taken it.
    Held(FenceToken),
}

/// A token on offer to one task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) ticket: Ticket,
    pub(crate) token: FenceToken,
    pub(crate) at: Instant,
    /// What wakes the task; nothing where it asked by itself.
    pub(crate) source: Option<WakeSource>,
}

impl Turn {
    /// For how long a turn goes on while other runtimes wait.
    const LIMIT: Duration = Duration::from_millis(50);
    /// For how long a turn goes on alone, so that those who come later do not wait for long.
    const LIMIT_ALONE: Duration = Duration::from_millis(10);

    /// A turn that begins with an offer.
    pub(super) fn new(
        grant: Grant,
        contended: bool,
        to_serve: usize,
        block: Block,
        offer: Offer,
    ) -> Self {
        Self {
            block,
            until: grant.believed_until(),
            grant: Arc::new(grant),
            contended,
            to_serve: u16::try_from(to_serve).unwrap_or(u16::MAX),
            began_at: None,
            leases: 0,
            hands: Hands::Offered(offer),
            watch: None,
            unanswered: Unanswered::default(),
        }
    }

    /// Whether the next task, who wants a lease of `ttl`, has to wait for another turn.
    pub(super) fn ends_before(&self, m: &Moment<'_>, ttl: Ttl) -> bool {
        let limit = if self.contended { Self::LIMIT } else { Self::LIMIT_ALONE };
        let time_is_up =
            self.began_at.is_some_and(|began_at| m.now.saturating_since(began_at) >= limit);
        let served = self.contended && self.to_serve == 0;
        served || time_is_up || self.block.is_spent(&self.grant) || ttl != self.grant.ttl()
    }

    /// The next task is offered the next token; `false` when there is none.
    pub(super) fn offer(&mut self, m: &Moment<'_>, ticket: Ticket) -> bool {
        let Some(token) = self.block.spend(&self.grant) else { return false };
        self.to_serve = self.to_serve.saturating_sub(1);
        let (at, source) = (m.now, Some(WakeSource::Local));
        self.hands = Hands::Offered(Offer { ticket, token, at, source });
        true
    }

    /// The offer was taken.
    pub(super) fn taken(&mut self, m: &Moment<'_>, token: FenceToken) {
        self.began_at.get_or_insert(m.now);
        self.leases += 1;
        self.hands = Hands::Held(token);
    }

    /// Whether a task has taken `token`, and holds it.
    pub(super) fn has_lease(&self, token: FenceToken) -> bool {
        matches!(self.hands, Hands::Held(held) if held == token)
    }

    /// The open offer, if there is one.
    pub(super) fn open_offer(&self) -> Option<Offer> {
        match self.hands {
            Hands::Offered(offer) => Some(offer),
            Hands::Held(_) => None,
        }
    }

    /// When the open offer is stale: half the claim window after it was made.
    pub(super) fn stale_at(&self, m: &Moment<'_>) -> Option<Instant> {
        let patience = m.claim_window(self.grant.ttl()) / 2;
        self.open_offer().map(|offer| offer.at + patience)
    }
}
