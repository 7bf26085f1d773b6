use crate::{
    redis::{endpoint::Endpoint, role::REPLICA},
    store::StoreError,
};

/// What a node says of a command that it has not run, because of the slot of its keys.
#[derive(Debug, PartialEq, Eq)]
pub enum Redirect {
    /// Another node owns the slot.
    Moved {
        /// The slot.
        slot: u16,
        /// Its owner.
        to: Endpoint,
    },
    /// The slot is on its way to another node, which has the keys already. Only this command goes
    /// there, behind `ASKING`.
    Ask {
        /// The slot.
        slot: u16,
        /// Where it goes.
        to: Endpoint,
    },
    /// Nobody serves the slot right now: its keys are on their way, or its owner is down, or is a
    /// replica by now, and who took over is not known yet.
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
pub(in crate::redis) fn is_elsewhere(error: &StoreError) -> bool {
    let of_slot = ["MOVED ", "ASK ", "TRYAGAIN"];
    error.is_answer() && of_slot.iter().any(|word| error.what().starts_with(word))
}

#[cfg(test)]
mod tests {
    use redis::make_extension_error;

    use super::*;
    use crate::{redis::classify::classify, store::StoreErrorKind};

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
}
