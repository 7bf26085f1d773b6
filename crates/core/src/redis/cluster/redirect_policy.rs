use std::time::Duration;

use super::redirect::Redirect;
use crate::{backoff::backoff, redis::endpoint::Endpoint};

/// The longest pause before the first repetition; it doubles with each.
const SHORTEST: Duration = Duration::from_millis(4);

/// The longest pause before any repetition.
const LONGEST: Duration = Duration::from_millis(200);

/// Where the attempts of one command go, by what nodes say that have not run it.
#[derive(Debug)]
pub struct RedirectPolicy {
    slot: u16,
    /// Where the next one goes, instead of to the owner.
    ask: Option<Endpoint>,
    failures: u32,
}

/// What a redirection means for those who send commands.
#[derive(Debug, PartialEq, Eq)]
pub enum Learnt {
    /// The slot has this owner: the next attempt goes there, and so do other commands.
    Owner(Endpoint),
    /// Only the next attempt goes elsewhere.
    Nothing,
    /// Nobody serves the slot: the owners may be others than those that are known.
    Missed,
    /// The redirection is about another slot: the command fails.
    Stray,
}

impl RedirectPolicy {
    /// The policy of a command about keys of a slot.
    pub fn new(slot: u16) -> Self {
        Self { slot, ask: None, failures: 0 }
    }

    /// The slot.
    pub fn slot(&self) -> u16 {
        self.slot
    }

    /// Where the next attempt goes, behind `ASKING`; `None` for to the owner.
    pub fn ask(&mut self) -> Option<Endpoint> {
        self.ask.take()
    }

    /// A node has not run the command.
    pub fn redirected(&mut self, redirect: Redirect) -> Learnt {
        let learnt = match redirect {
            Redirect::Moved { slot, to } if slot == self.slot => Learnt::Owner(to),
            Redirect::Ask { slot, to } if slot == self.slot => {
                self.ask = Some(to);
                Learnt::Nothing
            }
            Redirect::Later => {
                // The second failure on, there are pauses.
                self.failures = self.failures.max(1);
                Learnt::Missed
            }
            _ => return Learnt::Stray,
        };
        self.failures += 1;
        learnt
    }

    /// For how long to wait before the next attempt: a `fraction` of what is usual by now.
    pub fn pause(&self, fraction: f64) -> Option<Duration> {
        let doublings = self.failures.checked_sub(2)?;
        Some(backoff(SHORTEST, LONGEST, doublings, fraction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(port: u16) -> Endpoint {
        Endpoint { host: "h".into(), port }
    }

    #[test]
    fn an_owner_is_learnt_and_one_that_is_asked_is_not() {
        let mut policy = RedirectPolicy::new(7);
        let to = endpoint(1);
        assert_eq!(policy.redirected(Redirect::Ask { slot: 7, to }), Learnt::Nothing);
        assert_eq!((policy.ask(), policy.ask()), (Some(endpoint(1)), None));
        let to = endpoint(2);
        assert_eq!(policy.redirected(Redirect::Moved { slot: 7, to }), Learnt::Owner(endpoint(2)));
        assert_eq!(policy.ask(), None);
        let to = endpoint(3);
        assert_eq!(policy.redirected(Redirect::Moved { slot: 8, to }), Learnt::Stray);
    }

    #[test]
    fn the_first_redirection_is_followed_at_once_and_a_refusal_is_not() {
        let mut policy = RedirectPolicy::new(7);
        assert_eq!(policy.pause(1.0), None);
        let to = endpoint(2);
        policy.redirected(Redirect::Moved { slot: 7, to });
        assert_eq!(policy.pause(1.0), None);
        let mut policy = RedirectPolicy::new(7);
        assert_eq!(policy.redirected(Redirect::Later), Learnt::Missed);
        assert!(policy.pause(1.0).is_some());
    }
}
