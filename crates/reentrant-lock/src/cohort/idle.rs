use std::time::Duration;

use leasehold_core::{Terms, metric::KeptOutcome};

use super::{
    join::Taken,
    phase::{Hands, Phase, Turn},
    state::{Cohort, Env, TurnId},
};

/// How the turns of a name are kept when no task holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// ADR 0012
pub(crate) struct Keep {
    /// For how long at most, in milliseconds: very many names are held.
    idle: u32,
    /// Whether it is worth it; see `Watermarks::is_worth_keeping`.
    pub(super) is_worth_it: bool,
}

impl Keep {
    /// A setting of up to 49 days; longer ones count as that.
    pub(crate) fn new(idle: Duration, is_worth_it: bool) -> Self {
        Self { idle: u32::try_from(idle.as_millis()).unwrap_or(u32::MAX), is_worth_it }
    }
}

impl Cohort {
    pub(crate) fn idle_turn(&self) -> Option<TurnId> {
        self.turn().filter(|turn| turn.idle_ends_at().is_some()).map(Turn::id)
    }

    /// Makes the turn idle if it may be; returns whether it did.
    pub(super) fn keep_idle(&mut self, env: &Env<'_>, keep: Keep) -> bool {
        let Phase::Turn(turn) = &mut self.phase else { return false };
        let until = turn.idle_until(env, Duration::from_millis(keep.idle.into()));
        if let Some(until) = until {
            turn.hands = Hands::Idle { until };
        }
        until.is_some()
    }

    /// A task takes the next token of an idle turn, which ends if it does not serve the task.
    pub(super) fn reuse(&mut self, env: &mut Env<'_>, terms: Terms) -> Option<Taken> {
        let until = self.idle_ends_at()?;
        let Phase::Turn(turn) = &mut self.phase else { return None };
        // The timer may be late: the clock decides.
        let is_in_time = (env.rules.is_believed)(env.now, until);
        let serves = self.keep.is_some() && is_in_time && terms == turn.grant.terms();
        if serves && turn.offer(env, env.numbers.next(), None) {
            env.effects.kept = Some(KeptOutcome::Reused);
            return turn.hand_over(env);
        }
        self.end_idle(env, KeptOutcome::Lapsed);
        None
    }

    /// Another runtime wants the lock. If that is about another turn than the present one, it is
    /// remembered: the grant of that turn may be on its way.
    pub(crate) fn on_wanted(&mut self, env: &mut Env<'_>, wanted: TurnId) {
        let waiting = self.queue.len();
        match &mut self.phase {
            Phase::Turn(turn) if turn.id() == wanted => {
                turn.on_wanted(waiting - usize::from(turn.open_offer().is_some()));
                self.end_idle(env, KeptOutcome::Recalled);
            }
            _ => self.wanted = Some(Box::new(wanted)),
        }
    }

    pub(crate) fn on_too_many_kept(&mut self, env: &mut Env<'_>) {
        self.end_idle(env, KeptOutcome::Lapsed);
    }

    pub(super) fn end_idle(&mut self, env: &mut Env<'_>, outcome: KeptOutcome) {
        if self.is_idle() {
            env.effects.kept = Some(outcome);
            self.release(env, None, None);
        }
    }
}
