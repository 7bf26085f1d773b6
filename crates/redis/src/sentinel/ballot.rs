use crate::endpoint::Endpoint;

/// What follows from the answers of a group's Sentinels.
#[derive(Debug, PartialEq, Eq)]
pub enum MasterVerdict {
    /// The master is there.
    Named(Endpoint),
    /// Most Sentinels know no master of that name.
    Unknown,
    /// Too few answers agree.
    Open,
}

/// Decides where the master is. `answers` has one for each Sentinel that answered, `None` where it
/// knows no master of the name; `listed` is the number of Sentinels in the address.
///
/// A master is believed if most of the listed Sentinels name it, so that a few that are cut off or
/// wrong mislead nobody. If fewer answer, the last known master is still believed if all of them name
/// it: a minority cannot have agreed on another one.
// ADR 0032
pub fn decide(
    answers: &[Option<Endpoint>],
    listed: usize,
    last: Option<&Endpoint>,
) -> MasterVerdict {
    let votes =
        |choice: &Option<Endpoint>| answers.iter().filter(|answer| *answer == choice).count();
    let most = answers.iter().find(|answer| votes(answer) * 2 > listed);
    match most {
        Some(Some(endpoint)) => return MasterVerdict::Named(endpoint.clone()),
        Some(None) => return MasterVerdict::Unknown,
        None => {}
    }
    match last {
        Some(last) if !answers.is_empty() && votes(&Some(last.clone())) == answers.len() => {
            MasterVerdict::Named(last.clone())
        }
        _ => MasterVerdict::Open,
    }
}

/// Where the master is, and which refresh has found it there.
///
/// Refreshes overlap, and may end in another order than they began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMaster {
    /// Where it is.
    pub endpoint: Endpoint,
    /// The number of the last refresh that found it there.
    pub refresh: u64,
}

impl FoundMaster {
    /// Notes where a refresh has found the master. Returns whether that is another server. Of two
    /// refreshes, the one that began later is believed.
    pub fn note(known: &mut Option<Self>, refresh: u64, endpoint: &Endpoint) -> bool {
        if let Some(known) = known
            && (known.endpoint == *endpoint || known.refresh > refresh)
        {
            known.refresh = known.refresh.max(refresh);
            return false;
        }
        *known = Some(Self { endpoint: endpoint.clone(), refresh });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "as a Sentinel answers")]
    fn at(port: u16) -> Option<Endpoint> {
        Some(Endpoint { host: "h".into(), port })
    }

    #[test]
    fn a_majority_decides() {
        assert_eq!(decide(&[at(1), at(2), at(2)], 3, None), MasterVerdict::Named(at(2).unwrap()));
        assert_eq!(
            decide(&[at(2), at(2)], 3, at(1).as_ref()),
            MasterVerdict::Named(at(2).unwrap())
        );
        assert_eq!(decide(&[at(7)], 1, at(1).as_ref()), MasterVerdict::Named(at(7).unwrap()));
    }

    #[test]
    fn a_minority_confirms_the_last_master_and_names_no_other() {
        assert_eq!(decide(&[at(1)], 3, at(1).as_ref()), MasterVerdict::Named(at(1).unwrap()));
        assert_eq!(decide(&[at(2)], 3, at(1).as_ref()), MasterVerdict::Open);
        assert_eq!(decide(&[at(2)], 3, None), MasterVerdict::Open);
        assert_eq!(decide(&[at(1), at(2)], 3, at(1).as_ref()), MasterVerdict::Open);
        assert_eq!(decide(&[None], 3, at(1).as_ref()), MasterVerdict::Open);
        assert_eq!(decide(&[], 3, at(1).as_ref()), MasterVerdict::Open);
        assert_eq!(decide(&[at(1), at(1)], 4, None), MasterVerdict::Open);
    }

    #[test]
    fn a_name_that_most_do_not_know_is_wrong() {
        assert_eq!(decide(&[None, None, at(1)], 3, None), MasterVerdict::Unknown);
        assert_eq!(decide(&[None, at(1)], 3, None), MasterVerdict::Open);
    }

    #[test]
    fn a_refresh_that_began_earlier_does_not_bring_an_older_master_back() {
        let at = |port| at(port).unwrap();
        let mut known = None;
        assert!(FoundMaster::note(&mut known, 1, &at(1)));
        assert!(FoundMaster::note(&mut known, 3, &at(2)));
        assert!(!FoundMaster::note(&mut known, 2, &at(1)));
        assert_eq!(known, Some(FoundMaster { endpoint: at(2), refresh: 3 }));
        assert!(!FoundMaster::note(&mut known, 4, &at(2)));
        assert!(FoundMaster::note(&mut known, 5, &at(1)));
    }
}
