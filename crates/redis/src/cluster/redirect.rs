use std::time::Duration;

use leasehold_core::{StoreError, backoff};

use crate::{durations::REDIRECTS, endpoint::Endpoint, role::REPLICA};

/// Why a node has not run a command, as far as the slot of its keys is the reason.
#[derive(Debug, PartialEq, Eq)]
pub enum Redirect {
    /// Another node owns the slot.
    Moved {
        /// The slot.
        slot: u16,
        /// Its owner.
        to: Endpoint,
    },
    /// The slot is moving to another node, which has the keys already. Only this command goes there,
    /// behind `ASKING`.
    Ask {
        /// The slot.
        slot: u16,
        /// Where it goes.
        to: Endpoint,
    },
    /// Nobody serves the slot right now: its keys are moving, its owner is down, or its owner has become
    /// a replica and the new owner is not known yet.
    Later,
}

impl Redirect {
    /// Reads the words of the node at `teller`; `None` for an error of another kind.
    pub fn of(error: &StoreError, teller: &Endpoint) -> Option<Self> {
        if !error.is_answer() {
            return None;
        }
        if error.what().starts_with(REPLICA) {
            return Some(Self::Later);
        }
        let mut words = error.what().split_ascii_whitespace();
        let kind = words.next()?;
        if let "TRYAGAIN" | "CLUSTERDOWN" | "READONLY" = kind {
            return Some(Self::Later);
        }
        let (slot, endpoint) = (words.next()?.parse().ok()?, words.next()?);
        let to = Endpoint::read(endpoint, teller)?;
        match kind {
            "MOVED" => Some(Self::Moved { slot, to }),
            "ASK" => Some(Self::Ask { slot, to }),
            _ => None,
        }
    }
}

/// Whether a node has refused a command because another one owns the slot, or is about to.
pub(crate) fn is_elsewhere(error: &StoreError) -> bool {
    let of_slot = ["MOVED ", "ASK ", "TRYAGAIN"];
    error.is_answer() && of_slot.iter().any(|word| error.what().starts_with(word))
}

/// Where the attempts of one command go, by what nodes say that have not run it.
#[derive(Debug)]
pub struct RedirectPolicy {
    slot: u16,
    /// Where the next attempt goes, if not to the owner.
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
    /// Nobody serves the slot: the known owners may be out of date.
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

    /// Where the next attempt goes, behind `ASKING`; `None` means to the owner.
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
                // From the second failure on, there are pauses.
                self.failures = self.failures.max(1);
                Learnt::Missed
            }
            _ => return Learnt::Stray,
        };
        self.failures += 1;
        learnt
    }

    /// The pause before the next attempt; `fraction` spreads the pauses of many callers.
    pub fn pause(&self, fraction: f64) -> Option<Duration> {
        let doublings = self.failures.checked_sub(2)?;
        Some(backoff(REDIRECTS, doublings, fraction))
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::StoreErrorKind;
    use redis::make_extension_error;

    use super::*;
    use crate::classify::classify;

    #[test]
    fn redirections_are_read_from_what_a_node_says() {
        let endpoint = |host: &str, port| Endpoint { host: host.into(), port };
        let read = |code: &str, detail: &str| {
            let error = make_extension_error(code.into(), Some(detail.into()));
            Redirect::of(&classify(&error), &endpoint("t", 1))
        };
        let to = endpoint("10.0.0.1", 7000);
        assert_eq!(read("MOVED", "12 10.0.0.1:7000"), Some(Redirect::Moved { slot: 12, to }));
        let to = endpoint("t", 7000);
        assert_eq!(read("ASK", "12 :7000"), Some(Redirect::Ask { slot: 12, to }));
        for later in ["TRYAGAIN", "CLUSTERDOWN", "READONLY"] {
            assert_eq!(read(later, "whatever follows"), Some(Redirect::Later));
        }
        for (code, detail) in [("MOVED", "x h:1"), ("MOVED", "1 ?"), ("ERR", "1 h:1")] {
            assert_eq!(read(code, detail), None, "{code} {detail}");
        }
    }

    #[test]
    fn an_owner_that_is_a_replica_now_is_none_for_the_present() {
        let what = format!("{REPLICA} 10.0.0.1:7000, and has no say about locks");
        let error = StoreError::new(StoreErrorKind::Definite, what, "wait").as_answer();
        let told = Redirect::of(&error, &Endpoint { host: "t".into(), port: 1 });
        assert_eq!(told, Some(Redirect::Later));
    }

    #[test]
    fn a_lost_connection_is_no_redirection() {
        let error = classify(&std::io::Error::other("MOVED 1 h:1").into());
        assert_eq!(Redirect::of(&error, &Endpoint { host: "t".into(), port: 1 }), None);
    }

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
