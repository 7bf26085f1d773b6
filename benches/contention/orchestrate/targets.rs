use super::{mode::Mode, report::Report, round::Round};
use crate::goal::Goal::{self, AtLeast, AtMost};

/// What is to be reached within one run: what, how much, and whether more or less is better.
type Target = (&'static str, Option<f64>, Goal);

/// Prints which targets were reached.
pub(crate) fn print(report: &Report) {
    let groups = [crowded, sections, alone, single, crowd];
    println!("\ntargets\n");
    for (what, value, goal) in groups.into_iter().flat_map(|group| group(report)) {
        let Some(value) = value else { continue };
        println!("{what:<58}{value:>10.3}   {}", goal.verdict(value));
    }
}

fn acquired(round: &Round) -> f64 {
    round.acquired
}

fn handed(round: &Round) -> f64 {
    round.handed
}

fn crowded(report: &Report) -> Vec<Target> {
    let mode = Mode::bare(4, 8);
    let own = |value| report.median(mode, "leasehold", value);
    vec![
        (
            "4 × 8, hand-overs, times rslock tuned",
            report.ratio(mode, "rslock", handed),
            AtLeast(8.0),
        ),
        (
            "4 × 8, times the one-script floor",
            report.ratio(mode, "floor-one-script", acquired),
            AtLeast(3.5),
        ),
        ("4 × 8, commands per hand-over", own(Round::commands_each), AtMost(0.3)),
        ("4 × 8, least/most", own(|round| round.least_most), AtLeast(0.9)),
    ]
}

fn sections(report: &Report) -> Vec<Target> {
    let mode = Mode { hold_ms: 1, ..Mode::bare(4, 8) };
    let own = |value| report.median(mode, "leasehold", value);
    vec![
        ("4 × 8, 1 ms, share of the time held", own(Round::utilisation), AtLeast(0.93)),
        ("4 × 8, 1 ms, p99 in fair turns", own(Round::turns_at_p99), AtMost(1.4)),
    ]
}

fn alone(report: &Report) -> Vec<Target> {
    let mode = Mode::bare(1, 8);
    vec![
        (
            "1 × 8, times the one-script floor",
            report.ratio(mode, "floor-one-script", acquired),
            AtLeast(30.0),
        ),
        (
            "1 × 8, commands per hand-over",
            report.median(mode, "leasehold", Round::commands_each),
            AtMost(0.02),
        ),
    ]
}

fn single(report: &Report) -> Vec<Target> {
    let mode = Mode::bare(4, 1);
    vec![
        (
            "4 × 1, times the two-process push floor",
            report.ratio(mode, "floor-push", acquired),
            AtLeast(0.9),
        ),
        (
            "4 × 1, commands per hand-over",
            report.median(mode, "leasehold", Round::commands_each),
            AtMost(2.1),
        ),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "there are few places and channels")]
fn crowd(report: &Report) -> Vec<Target> {
    let Some(crowd) = &report.crowd else { return Vec::new() };
    vec![
        ("10,000 tasks, bytes each", Some(crowd.bytes_per_waiting_task), AtMost(1024.0)),
        ("10,000 tasks, places in Redis", Some(crowd.places as f64), AtMost(1.0)),
        ("10,000 tasks, served in order", Some(f64::from(u8::from(crowd.in_order))), AtLeast(1.0)),
        ("5,000 names, commands/s", Some(crowd.commands_per_second), AtMost(200.0)),
        ("5,000 names, channels", Some(crowd.channels as f64), AtMost(2.0)),
    ]
}
