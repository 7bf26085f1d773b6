use std::collections::BTreeMap;

use super::{
    action::Action,
    message::Message,
    rule::{Rule, RuleId},
};

/// The rules that stand, and how often each has struck.
#[derive(Debug, Default)]
pub(super) struct Rules {
    standing: BTreeMap<RuleId, Rule>,
    /// Of all rules that there ever were, by their ids.
    struck: Vec<u64>,
}

impl Rules {
    pub(super) fn add(&mut self, rule: Rule) -> RuleId {
        let id = RuleId(self.struck.len());
        self.struck.push(0);
        self.standing.insert(id, rule);
        id
    }

    pub(super) fn remove(&mut self, id: RuleId) {
        self.standing.remove(&id);
    }

    pub(super) fn clear(&mut self) {
        self.standing.clear();
    }

    pub(super) fn struck(&self, RuleId(id): RuleId) -> u64 {
        self.struck.get(id).copied().unwrap_or_default()
    }

    /// What strikes a message: the first rule that meets it. Every rule sees it, for its `skip` and `times`.
    pub(super) fn strike(&mut self, message: &Message<'_>) -> Option<Action> {
        let mut action = None;
        for (RuleId(id), rule) in &mut self.standing {
            if rule.meets(message) && action.is_none() {
                action = Some(rule.action());
                self.struck[*id] += 1;
            }
        }
        action
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{faulty::CommandKind, proxy::message::Side};

    const RENEWAL: Message<'_> =
        Message { side: Side::Request, kinds: &[CommandKind::Renew], text: b"EVALSHA x" };

    #[test]
    fn a_rule_strikes_what_it_means_and_counts() {
        let mut rules = Rules::default();
        let id = rules.add(Rule::new(Action::Drop).on(CommandKind::Renew).skip(1).times(2));
        let other = Message { kinds: &[], ..RENEWAL };
        let reply = Message { side: Side::Reply, ..RENEWAL };
        let mut struck = |message| rules.strike(message).is_some();
        assert!(!struck(&RENEWAL) && !struck(&other) && !struck(&reply));
        assert!(struck(&RENEWAL) && struck(&RENEWAL) && !struck(&RENEWAL));
        assert_eq!(rules.struck(id), 2);
        rules.clear();
        assert_eq!(rules.struck(id), 2);
    }

    #[test]
    fn the_first_rule_strikes_and_the_second_counts_all_the_same() {
        let mut rules = Rules::default();
        let first = rules.add(Rule::new(Action::Drop).containing("SHA"));
        let second = rules.add(Rule::new(Action::Reset).skip(1));
        assert!(matches!(rules.strike(&RENEWAL), Some(Action::Drop)));
        assert!(matches!(rules.strike(&RENEWAL), Some(Action::Reset)));
        assert_eq!((rules.struck(first), rules.struck(second)), (1, 1));
    }

    #[test]
    fn replies_do_not_come_twice() {
        assert!(!Rule::new(Action::Duplicate).replies().is_sound());
        assert!(!Rule::new(Action::CopyLater).pushes().is_sound());
        assert!(Rule::new(Action::Duplicate).pushes().is_sound());
    }
}
