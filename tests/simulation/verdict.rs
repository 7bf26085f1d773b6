use std::{fmt, time::Duration};

use leasehold::{Footprint, LockName, store::Inspection};
use leasehold_testkit::history::Summary;

use super::{panics, run::Run};

/// The outcome of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) violations: Vec<String>,
    pub(crate) tally: Tally,
}

/// What a run amounts to: a checker that saw nothing shows it here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) runs: usize,
    pub(crate) leases: usize,
    pub(crate) lost: usize,
    pub(crate) turns: usize,
    pub(crate) kept: usize,
    /// How often another server became the master of a lock, and lacked something of it.
    pub(crate) takeovers: usize,
    pub(crate) behind: usize,
    /// How many grants were of servers that were masters no more.
    pub(crate) aside: usize,
    pub(crate) accepted: usize,
    pub(crate) refused: usize,
    /// For how long a task waited in vain in calm times, in thousandths of what P8 allows.
    pub(crate) tightest: u32,
    /// By how much a call ended later than it was due, through no fault of its process.
    pub(crate) latest: Duration,
}

/// Lets a run that has ended come to rest, and judges it.
pub(crate) fn of(run: &mut Run) -> Verdict {
    let mut verdict =
        Verdict { tally: Tally { runs: 1, ..Tally::default() }, ..Verdict::default() };
    let names = run.scene.plan.names.clone();
    let free_by = run.world.now() + run.bounds.rest + run.scene.plan.longest_idle();
    run.world.run_until(free_by);
    for name in &names {
        verdict.expects_free(run, name);
    }
    // Names are forgotten, late withdrawals are confirmed.
    let rest = run.world.now() + run.bounds.recovery;
    run.world.run_until(rest);
    for name in &names {
        verdict.expects_free(run, name);
    }
    for (process, locks) in &run.locks {
        let footprint = locks.footprint();
        if !is_at_rest(&footprint) {
            verdict.violations.push(format!("process {process} is not at rest: {footprint:?}"));
        }
    }
    run.scene.storages.close();
    for name in &names {
        let judged = run.scene.spy.history(name).check_strictly();
        verdict.judge(name, judged, run.scene.plan.may_split());
    }
    verdict.tally.latest = run.scene.latest();
    verdict.violations.extend(run.scene.complaints());
    verdict.violations.extend(run.world.wrong_looks());
    verdict.violations.extend(panics::take());
    verdict
}

impl Verdict {
    fn expects_free(&mut self, run: &Run, name: &LockName) {
        if let Inspection::Held(record) = run.world.inspect(name) {
            let (id, holds) = (record.id, record.holds);
            self.violations.push(format!(
                "at {:?} {name} is held by {id} ({holds} holds, {:?} left, {} wait), and nobody is there",
                run.world.now(),
                record.remaining,
                record.waiters.len(),
            ));
        }
    }

    fn judge(
        &mut self,
        name: &LockName,
        judged: Result<Summary, Vec<leasehold_testkit::Violation>>,
        may_split: bool,
    ) {
        let summary = match judged {
            Ok(summary) => summary,
            Err(violations) => {
                let named = violations.iter().map(|violation| format!("{name}: {violation}"));
                self.violations.extend(named);
                return;
            }
        };
        if summary.refused_in_belief > 0 && !may_split {
            let times = summary.refused_in_belief;
            self.violations.push(format!("{name}: a believed holder was refused {times} times"));
        }
        self.tally.add(&Tally {
            runs: 0,
            leases: summary.leases,
            lost: summary.lost,
            turns: summary.turns,
            kept: summary.kept,
            takeovers: summary.takeovers,
            behind: summary.behind,
            aside: summary.aside,
            accepted: summary.accepted,
            refused: summary.refused,
            tightest: summary.tightest,
            latest: Duration::ZERO,
        });
    }
}

/// Whether a runtime keeps nothing but watermarks, which it forgets in its own time.
fn is_at_rest(footprint: &Footprint) -> bool {
    let Footprint { watched, names, waiting, pending, .. } = *footprint;
    [watched, names, waiting, pending] == [0; 4]
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.leases += other.leases;
        self.lost += other.lost;
        self.turns += other.turns;
        self.kept += other.kept;
        self.takeovers += other.takeovers;
        self.behind += other.behind;
        self.aside += other.aside;
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.tightest = self.tightest.max(other.tightest);
        self.latest = self.latest.max(other.latest);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, leases, lost, turns, kept, takeovers, behind, aside, .. } = self;
        let Self { accepted, refused, tightest, latest, .. } = self;
        write!(
            f,
            "{runs} runs, {turns} turns ({kept} kept closed), {leases} leases, {lost} times found lost, {takeovers} failovers of \
             a lock ({behind} lost something; {aside} grants of old masters), {accepted} writes accepted, {refused} refused, in vain for at most {}.{} % of what P8 allows, ended at most {latest:?} late",
            tightest / 10,
            tightest % 10,
        )
    }
}
