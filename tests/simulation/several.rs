//! Callers that take several locks at once and overlap: each gets all of its locks or none, none
//! waits for another in a circle, and nothing is left behind.
//!
//! In every other seed nothing goes wrong, and then no caller may wait in vain. In the others messages
//! are lost, connections break, a process crashes, and calls are dropped on their way.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use leasehold::{
    AllGuard, Fence, Lease, LockName, LockRuntime, Owner, error::AcquireError, store::Inspection,
    time::Clock,
};
use leasehold_core::LockStore;
use leasehold_reentrant_lock::seam::Rules;
use leasehold_testkit::{
    ManualClock,
    sim::{Dice, Drift, Layout, Place, Rules as Routes, Weather, World},
};

use super::plan::millis;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const TTL: Duration = millis(500);
/// For how long a call waits where nothing goes wrong: far longer than all holds together.
const PATIENCE: Duration = millis(60_000);
/// How many times a task asks.
const ROUNDS: u64 = 6;
const PROCESSES: u64 = 3;
const TASKS: u64 = 2;

/// What all tasks tell.
#[derive(Debug, Default)]
struct Book {
    /// The leases that were handed out of each lock, and the greatest fence.
    handed_out: BTreeMap<LockName, (Vec<Lease>, Option<Fence>)>,
    complaints: Vec<String>,
    /// How many calls got all their locks.
    served: usize,
}

/// A task that asks for some locks again and again.
struct Caller {
    place: Place,
    locks: LockRuntime,
    owner: Option<Owner>,
    dice: Dice,
    is_calm: bool,
    book: Arc<Mutex<Book>>,
}

impl Caller {
    async fn work(self) {
        for _ in 0..ROUNDS {
            self.sleep(self.dice.spread(Duration::from_micros(1), millis(20))).await;
            self.round().await;
        }
    }

    async fn round(&self) {
        let names = self.some_names();
        let acquire = self.locks.all(&names).expect("names").acquire();
        let acquire = match &self.owner {
            Some(owner) => acquire.owner(owner),
            None => acquire,
        };
        let wait = if self.is_calm { PATIENCE } else { self.dice.spread(millis(1), TTL * 4) };
        let mut asking = acquire.wait(wait);
        let answer = if !self.is_calm && self.dice.below(3) == 0 {
            let patience = self.dice.spread(Duration::from_micros(1), TTL);
            tokio::select! {
                biased;
                answer = &mut asking => answer,
                () = self.sleep(patience) => return,
            }
        } else {
            asking.await
        };
        match answer {
            Ok(guard) => self.hold(guard).await,
            Err(AcquireError::Timeout(timeout)) if self.is_calm => {
                self.complain(format!("{names:?} were waited for in vain: {timeout}"));
            }
            Err(error) if self.is_calm => self.complain(format!("{names:?}: {error}")),
            Err(_) => {}
        }
    }

    /// At least two names, in any order.
    fn some_names(&self) -> Vec<&'static str> {
        let mut all = NAMES.to_vec();
        let mut some = Vec::new();
        for _ in 0..self.dice.from_to(2, 3) {
            let at = usize::try_from(self.dice.below(all.len() as u64)).unwrap_or(0);
            some.push(all.swap_remove(at));
        }
        some
    }

    async fn hold(&self, guard: AllGuard) {
        for lease in guard.leases().iter() {
            self.note(lease);
        }
        self.book().served += 1;
        let time = self.dice.spread(Duration::from_micros(1), millis(20));
        tokio::select! {
            biased;
            lost = guard.lost() => {
                if self.is_calm {
                    self.complain(format!("a lease was lost: {lost}"));
                }
            }
            () = self.sleep(time) => {}
        }
        if self.dice.below(2) == 0 {
            drop(guard);
        } else {
            let _ = guard.release().await;
        }
    }

    /// Nobody else holds the lock, and the fence is above all others.
    fn note(&self, lease: &Lease) {
        let mut book = self.book();
        let Book { handed_out, complaints, .. } = &mut *book;
        let (leases, last) = handed_out.entry(lease.name().clone()).or_default();
        leases.retain(Lease::is_held);
        if lease.is_held() && !leases.is_empty() {
            complaints.push(format!("{} is held twice", lease.name()));
        }
        if last.replace(lease.fence()).is_some_and(|last| last >= lease.fence()) {
            complaints.push(format!("the fence of {} does not grow", lease.name()));
        }
        leases.push(lease.clone());
    }

    async fn sleep(&self, time: Duration) {
        self.place.local.sleep_until(self.place.local.now() + time).await;
    }

    fn complain(&self, what: String) {
        self.book().complaints.push(what);
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a seed; what was wrong, and how many calls were served.
fn run(seed: u64, rules: Rules) -> (Vec<String>, usize) {
    let dice = Dice::new(seed ^ 0x7365_7665);
    let is_calm = seed.is_multiple_of(2);
    let names: Vec<LockName> = NAMES.iter().map(|name| LockName::new(name).unwrap()).collect();
    let layout = match dice.below(2) {
        0 => Layout::One,
        _ => Layout::Cluster { masters: 2, stranger: None, names: names.clone() },
    };
    let is_cluster = layout != Layout::One;
    let mut world = World::new(seed, layout, None, Routes::default(), false);
    if !is_calm {
        world.set_weather(Weather::drawn(&dice, TTL * 2));
    }
    let book = Arc::<Mutex<Book>>::default();
    let (mut runtimes, mut tasks) = (Vec::new(), Vec::new());
    for process in 0..PROCESSES {
        let place = world.start(Drift::none());
        let builder = LockRuntime::builder()
            .clock(Arc::new(place.local.clone()))
            .entropy(world.entropy(&place))
            .ttl(TTL)
            .claim_window(TTL)
            .command_timeout(millis(100))
            .seam(rules);
        let line: Arc<dyn LockStore> = Arc::new(world.line(&place));
        let locks = world.within(place.process, || builder.on_store(line).expect("in range"));
        if is_cluster {
            world.watch(place.process);
        }
        for task in 0..TASKS {
            let owner = (dice.below(2) == 0).then(|| locks.owner());
            let dice = Dice::new(seed ^ (process + 1) << 40 ^ (task + 1) << 56);
            let (book, place, locks) = (Arc::clone(&book), place.clone(), locks.clone());
            let process = place.process;
            let caller = Caller { place, locks, owner, dice, is_calm, book };
            tasks.push((process, world.spawn(process, caller.work()).expect("it is alive")));
        }
        runtimes.push((place.process, locks));
    }
    if !is_calm {
        world.run_until(ManualClock::START + dice.spread(millis(1), millis(200)));
        if dice.below(2) == 0 {
            world.crash(0);
            tasks.retain(|(process, _)| *process != 0);
            runtimes.retain(|(process, _)| *process != 0);
        }
        world.run_until(ManualClock::START + millis(600));
        world.clear_up(millis(20));
    }
    // One caller after the other may wait in vain.
    world.run_until(ManualClock::START + PATIENCE * 8);
    let unfinished = tasks.iter().filter(|(_, task)| !task.is_finished()).count();
    let (mut complaints, served) = {
        let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut book.complaints), book.served)
    };
    if unfinished > 0 {
        complaints.push(format!("{unfinished} tasks do not come to an end"));
    }
    for name in &names {
        if let Inspection::Held(lease) = world.inspect(name) {
            complaints.push(format!("{name} is held by {}, and nobody is there", lease.id));
        }
    }
    for (process, locks) in &runtimes {
        let left = locks.footprint();
        if (left.watched, left.names, left.waiting, left.pending) != (0, 0, 0, 0) {
            complaints.push(format!("process {process} is not at rest: {left:?}"));
        }
    }
    // Guards and locks are dropped before the processes that they live in.
    drop((tasks, runtimes, book));
    (complaints, served)
}

#[test]
fn callers_that_overlap_get_all_or_nothing() {
    let mut served = 0;
    for seed in 0..200 {
        let (complaints, more) = run(seed, Rules::default());
        assert!(complaints.is_empty(), "seed {seed}: {complaints:#?}");
        served += more;
    }
    assert!(served > 4_000, "only {served} calls were served");
}

/// Runs seeds until a wrong rule shows.
fn is_caught(what: &str, change: fn(&mut Rules)) {
    let mut rules = Rules::default();
    change(&mut rules);
    for seed in 0..200 {
        let (complaints, _) = run(seed, rules);
        if let Some(first) = complaints.first() {
            println!("{what}: caught by seed {seed}: {first}");
            return;
        }
    }
    panic!("{what}: not caught");
}

#[test]
fn locks_taken_in_the_order_of_the_caller() {
    is_caught("taken in the caller's order", |rules| rules.orders = |_| {});
}

#[test]
fn locks_that_are_kept_by_a_call_that_fails() {
    is_caught("kept by a call that fails", |rules| rules.gives_back = |_| false);
}

/// A process lists the locks of one server, of a group, and of a Cluster, as they are there.
#[test]
fn what_a_process_lists_is_what_is_there() {
    let names: Vec<LockName> = NAMES.iter().map(|name| LockName::new(name).unwrap()).collect();
    let behind = vec![Duration::ZERO; 2];
    let group = Layout::Group { behind, lag: millis(1), has_acks: false, has_liar: false };
    let cluster = Layout::Cluster { masters: 3, stranger: None, names: names.clone() };
    for layout in [Layout::One, group, cluster] {
        let mut world = World::new(7, layout.clone(), None, Routes::default(), false);
        let place = world.start(Drift::none());
        let builder = LockRuntime::builder()
            .clock(Arc::new(place.local.clone()))
            .entropy(world.entropy(&place));
        let line: Arc<dyn LockStore> = Arc::new(world.line(&place));
        let locks = world.within(place.process, || builder.on_store(line).expect("in range"));
        if layout != Layout::One {
            world.watch(place.process);
        }
        let found = Arc::<Mutex<Vec<String>>>::default();
        let (listing, told) = (locks.clone(), Arc::clone(&found));
        let task = async move {
            let _guard = listing.all(["a", "b", "d"]).unwrap().acquire().await.unwrap();
            let mut list = listing.list("[a-c]").unwrap();
            while let Some(lock) = list.next().await {
                let name = lock.unwrap().name.to_string();
                told.lock().unwrap_or_else(PoisonError::into_inner).push(name);
            }
        };
        let task = world.spawn(place.process, task).expect("it is alive");
        world.run_until(ManualClock::START + millis(5_000));
        assert!(task.is_finished(), "{layout:?}");
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        found.sort();
        assert_eq!(found, ["a", "b"], "{layout:?}");
        drop((task, locks));
    }
}
