#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{contender::Contender, sleeper::Sleeper, tally::Tally, window::Window};
use crate::{Failure, options::Options};

/// What all tasks of a process share.
#[derive(Debug)]
pub(crate) struct Terms {
    window: Window,
    hold: Duration,
    pause: Duration,
    sleeper: Sleeper,
    /// Who had the lock last.
    last: AtomicUsize,
}

impl Terms {
    /// The terms that the command line names.
    pub(crate) fn new(options: &Options, window: Window) -> Self {
        let Options { hold, pause, .. } = *options;
        let (sleeper, last) = (Sleeper::start(), AtomicUsize::new(usize::MAX));
        Self { window, hold, pause, sleeper, last }
    }
}

/// Contends until the window is over, or until it is clear that the lock does not come any more.
pub(crate) async fn run<C: Contender>(
    mut contender: C,
    who: usize,
    terms: Arc<Terms>,
) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let contending = contend(&mut contender, who, &terms, &mut tally);
    match tokio::time::timeout_at(terms.window.drained().into(), contending).await {
        Ok(done) => done?,
        Err(_) => tally.stuck = true,
    }
    Ok(tally)
}

async fn contend<C: Contender>(
    contender: &mut C,
    who: usize,
    terms: &Terms,
    tally: &mut Tally,
) -> Result<(), Failure> {
    loop {
        let asked = Instant::now();
        let held = contender.acquire().await?;
        let got = Instant::now();
        let switched = terms.last.swap(who, Ordering::Relaxed) != who;
        // Who gets the lock after the end lets the others out at once.
        let over = terms.window.is_over(got);
        let mut kept = Duration::ZERO;
        if !over && !terms.hold.is_zero() {
            terms.sleeper.sleep(terms.hold).await?;
            kept = got.elapsed();
        }
        contender.release(held).await?;
        if terms.window.contains(got) {
            tally.count(got, got - asked, kept, switched);
        }
        if over {
            return Ok(());
        }
        if !terms.pause.is_zero() {
            tokio::time::sleep(terms.pause).await;
        }
    }
}
