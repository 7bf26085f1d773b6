use crate::{
    goal::Goal::{self, AtLeast, AtMost},
    scenario::Scenario,
    subjects::Subject,
    table::{Spread, Table},
};

/// What a scenario has to reach in one run: what, a column of its first subject, by whose it is divided
/// if it is, and the bound.
type Target = (&'static str, &'static str, Option<Subject>, Goal);

/// Prints which targets of some scenarios were reached.
pub(crate) fn print(table: &Table, scenarios: &[Scenario]) {
    println!("\ntargets\n");
    for scenario in scenarios {
        for (what, column, by, goal) in of(*scenario) {
            let own = scenario.row(scenario.subjects()[0]);
            let spread = match by {
                Some(subject) => table.ratio(&own, &scenario.row(subject), column),
                None => Spread::of(table.values(&own, column).into_iter()),
            };
            let (row, verdict) = (format!("{scenario}: {what}"), goal.verdict(spread.median));
            println!("{row:<45}{:>28}   {verdict}", spread.shown(4));
        }
    }
}

/// The targets of a scenario.
fn of(scenario: Scenario) -> Vec<Target> {
    let (acquired, handed, handed_p99) =
        ("acquired_per_second", "handed_per_second", "handed_p99_us");
    match scenario {
        Scenario::OneName(_) => vec![
            ("pairs/s / floor", acquired, Some(Subject::Floor), AtLeast(60.0)),
            ("commands per pair", "cmd", None, AtMost(0.002)),
        ],
        Scenario::OwnNames(_) => {
            vec![("pairs/s / floor", acquired, Some(Subject::Floor), AtLeast(10.0))]
        }
        Scenario::UsedOnce(_) => {
            vec![("pairs/s, on / off", acquired, Some(Subject::Off), AtLeast(0.97))]
        }
        Scenario::Overlapping | Scenario::Alternating => vec![
            ("hand-overs/s, on / off", handed, Some(Subject::Off), AtLeast(0.8)),
            ("p99 of a hand-over, on / off", handed_p99, Some(Subject::Off), AtMost(1.5)),
        ],
        Scenario::Crowd(_) => {
            vec![("acquired/s, on / off", acquired, Some(Subject::Off), AtLeast(0.95))]
        }
        Scenario::Recall => vec![
            ("p50 / free", "p50_us", Some(Subject::Free), AtMost(3.0)),
            ("p99 / free", "p99_us", Some(Subject::Free), AtMost(5.0)),
        ],
    }
}
