use crate::redis::place::Place;

/// Where the master was found, and by which look.
///
/// Looks overlap, and may end in another order than they began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where.
    pub place: Place,
    /// The number of the last look that found it there.
    pub look: u64,
}

impl Found {
    /// Takes note of where a look has found the master, and says whether that is another place. Of
    /// two looks, the one that began later is believed.
    pub fn note(known: &mut Option<Self>, look: u64, place: &Place) -> bool {
        if let Some(known) = known
            && (known.place == *place || known.look > look)
        {
            known.look = known.look.max(look);
            return false;
        }
        *known = Some(Self { place: place.clone(), look });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_began_earlier_does_not_bring_an_older_master_back() {
        let at = |port| Place { host: "h".into(), port };
        let mut known = None;
        assert!(Found::note(&mut known, 1, &at(1)));
        assert!(Found::note(&mut known, 3, &at(2)));
        assert!(!Found::note(&mut known, 2, &at(1)));
        assert_eq!(known, Some(Found { place: at(2), look: 3 }));
        assert!(!Found::note(&mut known, 4, &at(2)));
        assert!(Found::note(&mut known, 5, &at(1)));
    }
}
