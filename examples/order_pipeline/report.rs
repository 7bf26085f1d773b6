use std::{fmt, time::Duration};

use crate::{
    audit::Findings,
    crew::HandedIn,
    orders::OrderFile,
    tally::{ClassTally, Tally},
};

/// What a run came to, as a table for people.
#[derive(Debug)]
pub(crate) struct Report {
    /// The broken invariants, in words.
    pub(crate) broken: Vec<String>,
    title: String,
    facts: Vec<(&'static str, String)>,
    classes: Vec<[String; 7]>,
}

impl Report {
    pub(crate) fn new(
        file: &OrderFile,
        findings: Findings,
        handed_in: &HandedIn,
        place: &str,
        time: Duration,
    ) -> Self {
        let (orders, articles) = (file.line.len(), file.articles.len());
        let title = format!(
            "Order pipeline: {orders} orders on {articles} articles, locks and stock {place}, \
             {:.1} s",
            time.as_secs_f64()
        );
        let tally = &handed_in.tally;
        let facts = vec![
            ("orders done", done(file, &findings)),
            ("stock", stock(&findings)),
            ("fences issued", fences(handed_in, &findings)),
            ("re-entries", reentries(tally)),
            ("stale write", stale_write(tally)),
            ("lease renewals", tally.sum(|class| class.renewals).to_string()),
            ("copies", copies(handed_in)),
        ];
        let classes = ["hot", "cold", "run"];
        let classes = classes.iter().filter_map(|&name| Some(row(name, tally.classes.get(name)?)));
        Self { broken: findings.broken, title, facts, classes: classes.collect() }
    }
}

fn done(file: &OrderFile, findings: &Findings) -> String {
    let (orders, done) = (file.line.len(), findings.orders_done);
    format!("{done} of {orders}, each once, those of an article in sequence")
}

fn stock(findings: &Findings) -> String {
    let (lowest, short) = (findings.lowest_stock, findings.short);
    let words = if lowest < 0 { "NEGATIVE" } else { "never negative" };
    format!("{words} (lowest {lowest}); {short} sales found too little and took nothing")
}

fn fences(handed_in: &HandedIn, findings: &Findings) -> String {
    // What a copy that is gone had counted is not known.
    let about = if handed_in.gone == 0 { "" } else { "at least " };
    let issued = handed_in.tally.fences().max(findings.orders_done as u64);
    format!("{about}{issued}, growing with the orders of every article")
}

fn reentries(tally: &Tally) -> String {
    let (all, other) = (tally.sum(|class| class.reentries), tally.other_fence);
    format!("{all}, {} with the fence of their caller", all.saturating_sub(other))
}

fn stale_write(tally: &Tally) -> String {
    let Tally { stalls, late_refused, taken_over, .. } = *tally;
    let more = match taken_over {
        0 => String::new(),
        orders => format!("; {orders} more orders were left to a new holder"),
    };
    format!("refused: {late_refused} of {stalls} workers that stalled past their lease{more}")
}

fn copies(handed_in: &HandedIn) -> String {
    match handed_in.gone {
        0 => format!("{} of this program shared the work", handed_in.copies),
        gone => format!("{} shared the work, {gone} of them ended early", handed_in.copies),
    }
}

const HEAD: [&str; 7] =
    ["class", "leases", "contended", "wait p50", "wait p99", "wait max", "renewals"];

fn row(name: &str, class: &ClassTally) -> [String; 7] {
    // Shares of a thousand in whole numbers.
    let contended = class.contended * 1000 / class.leases.max(1);
    let wait = |percent| {
        let micros = class.wait_us(percent);
        format!("{}.{:03} ms", micros / 1000, micros % 1000)
    };
    [
        name.to_owned(),
        class.leases.to_string(),
        format!("{}.{} %", contended / 10, contended % 10),
        wait(50),
        wait(99),
        wait(100),
        class.renewals.to_string(),
    ]
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        for (what, found) in &self.facts {
            writeln!(f, "  {what:<16}{found}")?;
        }
        writeln!(f)?;
        for row in [&HEAD.map(str::to_owned)].into_iter().chain(&self.classes) {
            write!(f, "  {:<8}", row[0])?;
            for cell in &row[1..] {
                write!(f, "{cell:>12}")?;
            }
            writeln!(f)?;
        }
        match self.broken.len() {
            0 => write!(f, "\n  All invariants hold."),
            broken => write!(f, "\n  BROKEN INVARIANTS: {broken}"),
        }
    }
}
