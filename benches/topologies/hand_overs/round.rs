use std::{sync::mpsc, thread};

use super::{
    Load, Subject,
    crew::{self, Place, Plan},
    tally::Tally,
    window::Window,
};
use crate::{
    Failure, cpu,
    lengths::Lengths,
    site::Site,
    usage::{self, micros},
};

/// Runs the lock runtimes of a round, each on a thread of its own.
pub(super) fn run(
    site: &Site,
    load: Load,
    subject: Subject,
    lengths: Lengths,
) -> Result<Vec<f64>, Failure> {
    let place = |(name, url): (String, String)| {
        let address = site.address_of(&name);
        Place { name, url, address }
    };
    let locks = site.name_on_each("hot").into_iter().zip(site.urls()).map(place).collect();
    let plan = Plan { subject, load, addresses: site.addresses(), locks };
    let servers = [site.masters(), site.replicas()];
    thread::scope(|scope| {
        let (ready, are_ready) = mpsc::channel();
        let mut threads = Vec::new();
        let mut starts = Vec::new();
        for number in 0..load.runtimes {
            let (start, started) = mpsc::channel();
            let (ready, plan) = (ready.clone(), &plan);
            starts.push(start);
            threads.push(scope.spawn(move || crew::run(plan, number, &ready, &started)));
        }
        drop(ready);
        // If one of them fails before that, none of the others begins.
        let window = (are_ready.iter().take(load.runtimes).count() == load.runtimes)
            .then(|| Window::soon(lengths));
        for start in starts {
            if let Some(window) = window {
                start.send(window)?;
            }
        }
        let used =
            window.map(|window| window.measure(|| (cpu::time_used(), servers.map(usage::cpu_of))));
        let mut turns = Vec::new();
        for thread in threads {
            turns.append(&mut thread.join().map_err(|_| "a thread panicked")??);
        }
        let [before, after] = used.ok_or("the runtimes did not begin")?;
        let Tally { handed, between, waits: [p50, p99] } = Tally::of(turns);
        let server = |i: usize| {
            let is_there = !servers[i].is_empty();
            let used = after.1[i].saturating_sub(before.1[i]);
            if is_there { micros(used) / handed } else { f64::NAN }
        };
        let seconds = lengths.measured.as_secs_f64();
        Ok(vec![
            handed / seconds,
            between / seconds,
            micros(after.0.saturating_sub(before.0)) / handed,
            server(0),
            server(1),
            p50,
            p99,
        ])
    })
}
