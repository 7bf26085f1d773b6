use std::{str::FromStr, time::Duration};

use crate::{
    store::{Granted, Push},
    types::LockName,
};

/// Reads a message on the channel of a runtime; `None` for one that is not understood.
///
/// The scripts write it. The name comes last, because it may contain spaces.
pub(super) fn parse(payload: &[u8]) -> Option<Push> {
    let (word, rest) = str::from_utf8(payload).ok()?.split_once(' ')?;
    let mut words = Words(rest);
    match word {
        "granted" => {
            let (id, first, last) = (words.next()?, words.next()?, words.next()?);
            let heartbeat = words.next()?;
            let remaining = Duration::from_millis(words.next()?);
            let (contended, regressed) = (words.flag()?, words.flag()?);
            let granted = Granted { first, last, remaining, contended, regressed };
            Some(Push::Granted { name: words.name()?, id, granted, heartbeat })
        }
        "force-released" => {
            let (id, fence) = (words.next()?, words.next()?);
            Some(Push::ForceReleased { name: words.name()?, id, fence })
        }
        "wanted" => {
            let (id, fence) = (words.next()?, words.next()?);
            Some(Push::Wanted { name: words.name()?, id, fence })
        }
        _ => None,
    }
}

/// The rest of a message.
struct Words<'a>(&'a str);

impl Words<'_> {
    fn next<T: FromStr>(&mut self) -> Option<T> {
        let (word, rest) = self.0.split_once(' ')?;
        self.0 = rest;
        word.parse().ok()
    }

    fn flag(&mut self) -> Option<bool> {
        self.next::<u8>().and_then(|digit| (digit <= 1).then_some(digit == 1))
    }

    fn name(&self) -> Option<LockName> {
        LockName::new(self.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::types::{AcquisitionId, FenceToken, RuntimeId};

    const ID: &str = "00000000-0000-0000-0000-000000000000:7";

    fn id() -> AcquisitionId {
        AcquisitionId::new(RuntimeId::new(Uuid::nil()), 7)
    }

    fn token(number: u64) -> FenceToken {
        FenceToken::try_from(number).unwrap()
    }

    #[test]
    fn a_grant_is_told_with_all_that_belongs_to_it() {
        let text = format!("granted {ID} 1700000000000001 1700000000000016 41 3000 1 0 a b");
        let granted = Granted {
            first: token(1_700_000_000_000_001),
            last: token(1_700_000_000_000_016),
            remaining: Duration::from_secs(3),
            contended: true,
            regressed: false,
        };
        let name = LockName::new("a b").unwrap();
        let push = Push::Granted { name, id: id(), granted, heartbeat: 41 };
        assert_eq!(parse(text.as_bytes()), Some(push));
    }

    #[test]
    fn a_force_release_is_told_with_its_fence() {
        for name in ["orders/42", " two  spaces ", "ü\n"] {
            let text = format!("force-released {ID} 5 {name}");
            let name = LockName::new(name).unwrap();
            let push = Push::ForceReleased { name, id: id(), fence: token(5) };
            assert_eq!(parse(text.as_bytes()), Some(push));
        }
    }

    #[test]
    fn a_runtime_that_waits_is_told_with_the_lease_that_it_waits_for() {
        for name in ["orders/42", " two  spaces ", "ü\n"] {
            let text = format!("wanted {ID} 5 {name}");
            let name = LockName::new(name).unwrap();
            let push = Push::Wanted { name, id: id(), fence: token(5) };
            assert_eq!(parse(text.as_bytes()), Some(push));
        }
    }

    #[test]
    fn what_is_not_understood_is_nothing() {
        let of_id = [
            "granted ID",
            "granted ID 1 2 3 4 0 0",
            "granted ID 1 2 3 4 0 0 ",
            "granted ID 1 2 3 4 2 0 a",
            "granted ID 0 2 3 4 0 0 a",
            "granted ID 1 2 -3 4 0 0 a",
            "granted ID  1 2 3 4 0 0 a",
            "granted x 1 2 3 4 0 0 a",
            "force-released ID 5 ",
            "force-released ID 0 a",
            "wanted ID 5 ",
            "wanted ID a",
            "wanted ID 0 a",
            "wanted x 5 a",
            "Granted ID 1 2 3 4 0 0 a",
            "preflight",
            "",
        ];
        for text in of_id.map(|text| text.replace("ID", ID)) {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse(b"force-released \xff 5 a"), None);
    }
}
