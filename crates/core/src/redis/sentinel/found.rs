use crate::redis::endpoint::Endpoint;

/// Where the master was found, and by which refresh.
///
/// Refreshes overlap, and may end in another order than they began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMaster {
    /// Where.
    pub endpoint: Endpoint,
    /// The number of the last refresh that found it there.
    pub refresh: u64,
}

impl FoundMaster {
    /// Takes note of where a refresh has found the master, and says whether that is another server. Of
    /// two refreshes, the one that began later is believed.
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

    #[test]
    fn a_refresh_that_began_earlier_does_not_bring_an_older_master_back() {
        let at = |port| Endpoint { host: "h".into(), port };
        let mut known = None;
        assert!(FoundMaster::note(&mut known, 1, &at(1)));
        assert!(FoundMaster::note(&mut known, 3, &at(2)));
        assert!(!FoundMaster::note(&mut known, 2, &at(1)));
        assert_eq!(known, Some(FoundMaster { endpoint: at(2), refresh: 3 }));
        assert!(!FoundMaster::note(&mut known, 4, &at(2)));
        assert!(FoundMaster::note(&mut known, 5, &at(1)));
    }
}
