use crate::{
    goal::Goal::{self, AtLeast, AtMost},
    round::Value,
    scenario::Scenario,
    subjects::Subject,
};

/// What a scenario has to reach in one run: a value of its first subject.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) what: &'static str,
    pub(crate) value: Value,
    /// Divided by the same value of this subject, if there is one.
    pub(crate) by: Option<Subject>,
    pub(crate) goal: Goal,
}

/// The targets of a scenario.
pub(crate) fn of(scenario: Scenario) -> Vec<Target> {
    let target = |what, value: Value, by, goal| Target { what, value, by, goal };
    let acquired: Value = |round| round.acquired;
    let handed: Value = |round| round.handed;
    let handed_p99: Value = |round| round.handed_p99;
    let p50: Value = |round| round.p50;
    let p99: Value = |round| round.p99;
    match scenario {
        Scenario::OneName(_) => vec![
            target("pairs/s / floor", acquired, Some(Subject::Floor), AtLeast(60.0)),
            target("commands per pair", |round| round.commands, None, AtMost(0.002)),
        ],
        Scenario::OwnNames(_) => {
            vec![target("pairs/s / floor", acquired, Some(Subject::Floor), AtLeast(10.0))]
        }
        Scenario::UsedOnce(_) => {
            vec![target("pairs/s, on / off", acquired, Some(Subject::Off), AtLeast(0.97))]
        }
        Scenario::Overlapping | Scenario::Alternating => vec![
            target("hand-overs/s, on / off", handed, Some(Subject::Off), AtLeast(0.8)),
            target("p99 of a hand-over, on / off", handed_p99, Some(Subject::Off), AtMost(1.5)),
        ],
        Scenario::Crowd(_) => {
            vec![target("acquired/s, on / off", acquired, Some(Subject::Off), AtLeast(0.95))]
        }
        Scenario::Recall => vec![
            target("p50 / free", p50, Some(Subject::Free), AtMost(3.0)),
            target("p99 / free", p99, Some(Subject::Free), AtMost(5.0)),
        ],
    }
}
