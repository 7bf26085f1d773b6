use super::mode::{Mode, SUBJECTS};
use crate::{
    crowd::Crowd,
    goal::Goal::{self, AtLeast, AtMost},
    table::Table,
};

/// What is to be reached within one run: what, how much, and whether more or less is better.
type Target = (&'static str, Option<f64>, Goal);

/// Prints which targets were reached.
pub(crate) fn print(table: &Table, crowd: Option<&Crowd>) {
    println!("\ntargets\n");
    for (what, value, goal) in of_modes(table).into_iter().chain(of_crowd(crowd)) {
        let Some(value) = value else { continue };
        println!("{what:<58}{value:>10.3}   {}", goal.verdict(value));
    }
}

fn of_modes(table: &Table) -> Vec<Target> {
    let (acquired, handed) = ("acquired_per_second", "hand_overs_per_second");
    let own = |mode: Mode, column| table.median(&mode.row(SUBJECTS[0]), column);
    let times = |mode: Mode, subject, column| {
        let ratio = table.ratio(&mode.row(SUBJECTS[0]), &mode.row(subject), column).median;
        Some(ratio).filter(|ratio| ratio.is_finite())
    };
    let [crowded, alone, single] = [(4, 8), (1, 8), (4, 1)].map(|(p, w)| Mode::bare(p, w));
    let sections = Mode { hold_ms: 1, ..crowded };
    vec![
        ("4 × 8, hand-overs, times rslock tuned", times(crowded, "rslock", handed), AtLeast(8.0)),
        (
            "4 × 8, times the one-script floor",
            times(crowded, "floor-one-script", acquired),
            AtLeast(3.5),
        ),
        ("4 × 8, commands per hand-over", own(crowded, "cmd"), AtMost(0.3)),
        ("4 × 8, least/most", own(crowded, "least_of_most"), AtLeast(0.9)),
        ("4 × 8, 1 ms, share of the time held", own(sections, "held"), AtLeast(0.93)),
        ("4 × 8, 1 ms, p99 in fair turns", own(sections, "p99_of_turn"), AtMost(1.4)),
        (
            "1 × 8, times the one-script floor",
            times(alone, "floor-one-script", acquired),
            AtLeast(30.0),
        ),
        ("1 × 8, commands per hand-over", own(alone, "cmd"), AtMost(0.02)),
        (
            "4 × 1, times the two-process push floor",
            times(single, "floor-push", acquired),
            AtLeast(0.9),
        ),
        ("4 × 1, commands per hand-over", own(single, "cmd"), AtMost(2.1)),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "there are few places and channels")]
fn of_crowd(crowd: Option<&Crowd>) -> Vec<Target> {
    let Some(crowd) = crowd else { return Vec::new() };
    vec![
        ("10,000 tasks, bytes each", Some(crowd.bytes_per_waiting_task), AtMost(1024.0)),
        ("10,000 tasks, places in Redis", Some(crowd.places as f64), AtMost(1.0)),
        ("10,000 tasks, served in order", Some(f64::from(u8::from(crowd.in_order))), AtLeast(1.0)),
        ("5,000 names, commands/s", Some(crowd.commands_per_second), AtMost(200.0)),
        ("5,000 names, channels", Some(crowd.channels as f64), AtMost(2.0)),
    ]
}
