use std::collections::BTreeMap;

use leasehold_core::Ttl;

use crate::batch::Batch;

/// How full the commands are that are sent in any case: company fills them up, and begins none.
#[derive(Debug, Default)]
pub(crate) struct Company {
    turns: BTreeMap<Ttl, usize>,
    /// Of how many ttls a command has room.
    unfilled: usize,
}

impl Company {
    /// A turn of this ttl is renewed.
    pub(crate) fn add(&mut self, ttl: Ttl) {
        let turns = self.turns.entry(ttl).or_insert(0);
        if turns.is_multiple_of(Batch::MAX) {
            self.unfilled += 1;
        }
        *turns += 1;
        if turns.is_multiple_of(Batch::MAX) {
            self.unfilled -= 1;
        }
    }

    /// Whether a turn of this ttl costs no command more.
    pub(crate) fn has_room(&self, ttl: Ttl) -> bool {
        self.turns.get(&ttl).is_some_and(|turns| !turns.is_multiple_of(Batch::MAX))
    }

    /// Whether no turn travels without a command more.
    pub(crate) fn is_complete(&self) -> bool {
        self.unfilled == 0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_command_has_room_once_it_has_begun_and_until_it_is_full() {
        let ttl = |seconds| Ttl::new(Duration::from_secs(seconds)).unwrap();
        let mut company = Company::default();
        assert!(company.is_complete() && !company.has_room(ttl(1)));
        for _ in 1..Batch::MAX {
            company.add(ttl(1));
            assert!(
                !company.is_complete() && company.has_room(ttl(1)) && !company.has_room(ttl(2))
            );
        }
        company.add(ttl(1));
        assert!(company.is_complete() && !company.has_room(ttl(1)));
    }
}
