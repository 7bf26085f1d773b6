use crate::redis::place::Place;

/// What follows from the answers of a group's Sentinels.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The master is there.
    Named(Place),
    /// Most Sentinels know no master of that name.
    Unknown,
    /// Too few answers agree.
    Open,
}

/// Decides where the master is. `answers` has one for each Sentinel that answered, `None` where it
/// knows no master of the name; `listed` is the number of Sentinels in the address.
///
/// A master is believed that most of the listed ones name, so that a few that are cut off, or lie,
/// mislead nobody. Where fewer answer, the last known master stands if all of these name it: a
/// minority cannot have agreed on another one.
// ADR 0032
pub fn decide(answers: &[Option<Place>], listed: usize, last: Option<&Place>) -> Verdict {
    let votes = |choice: &Option<Place>| answers.iter().filter(|answer| *answer == choice).count();
    let most = answers.iter().find(|answer| votes(answer) * 2 > listed);
    match most {
        Some(Some(place)) => return Verdict::Named(place.clone()),
        Some(None) => return Verdict::Unknown,
        None => {}
    }
    match last {
        Some(last) if !answers.is_empty() && votes(&Some(last.clone())) == answers.len() => {
            Verdict::Named(last.clone())
        }
        _ => Verdict::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "as a Sentinel answers")]
    fn at(port: u16) -> Option<Place> {
        Some(Place { host: "h".into(), port })
    }

    #[test]
    fn a_majority_decides() {
        assert_eq!(decide(&[at(1), at(2), at(2)], 3, None), Verdict::Named(at(2).unwrap()));
        assert_eq!(decide(&[at(2), at(2)], 3, at(1).as_ref()), Verdict::Named(at(2).unwrap()));
        assert_eq!(decide(&[at(7)], 1, at(1).as_ref()), Verdict::Named(at(7).unwrap()));
    }

    #[test]
    fn a_minority_confirms_the_last_master_and_names_no_other() {
        assert_eq!(decide(&[at(1)], 3, at(1).as_ref()), Verdict::Named(at(1).unwrap()));
        assert_eq!(decide(&[at(2)], 3, at(1).as_ref()), Verdict::Open);
        assert_eq!(decide(&[at(2)], 3, None), Verdict::Open);
        assert_eq!(decide(&[at(1), at(2)], 3, at(1).as_ref()), Verdict::Open);
        assert_eq!(decide(&[None], 3, at(1).as_ref()), Verdict::Open);
        assert_eq!(decide(&[], 3, at(1).as_ref()), Verdict::Open);
        assert_eq!(decide(&[at(1), at(1)], 4, None), Verdict::Open);
    }

    #[test]
    fn a_name_that_most_do_not_know_is_wrong() {
        assert_eq!(decide(&[None, None, at(1)], 3, None), Verdict::Unknown);
        assert_eq!(decide(&[None, at(1)], 3, None), Verdict::Open);
    }
}
