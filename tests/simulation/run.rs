use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold::{LockName, LockRuntime, time::Instant};
use leasehold_core::LockStore;
use leasehold_testkit::{
    Event, ManualClock, WrongStore,
    sim::{Dice, Fate, Layout, Trace, Weather, World},
};
use tokio::task::JoinHandle;

use super::{
    bounds::Bounds,
    kind::Kind,
    mutants::Mutation,
    panics,
    plan::{Act, Plan, ProcessPlan, millis},
    scene::Scene,
    verdict::{self, Verdict},
    worker::Worker,
};

/// A run of one seed, from its plan to its verdict.
pub(crate) struct Run {
    pub(crate) world: World,
    pub(crate) scene: Arc<Scene>,
    pub(crate) locks: BTreeMap<usize, LockRuntime>,
    pub(crate) bounds: Bounds,
    tasks: Vec<(u64, usize, JoinHandle<()>)>,
    mutation: Mutation,
}

/// How long it takes until everything is there that is on its way when the weather clears up.
const CLEARING: Duration = millis(20);
/// How long the tasks may take to come to an end.
const MOST_TIME: Duration = millis(60_000);
/// How often it is looked whether they have.
const A_LOOK: Duration = millis(20);

/// Runs a seed.
pub(crate) fn run(seed: u64, mutation: Mutation, traced: bool) -> (Verdict, Trace) {
    let mut plan = Plan::of(seed);
    (mutation.plan)(&mut plan);
    panics::forget();
    let layout = plan.layout.clone();
    let world = World::new(seed, layout, mutation.store, mutation.routes, traced);
    world.set_weather(plan.weather);
    let scene = Scene::new(plan, world.spy().clone(), world.post(), world.peek());
    let bounds = Bounds::of(&scene.plan);
    let (locks, tasks) = (BTreeMap::new(), Vec::new());
    let mut run = Run { world, scene, locks, bounds, tasks, mutation };
    run.begin();
    run.act();
    run.end();
    let verdict = verdict::of(&mut run);
    let Run { world, locks, tasks, .. } = run;
    // Guards and locks are dropped before the processes that they live in.
    drop(tasks);
    drop(locks);
    (verdict, world.into_trace())
}

impl Run {
    fn begin(&mut self) {
        let plan = Arc::clone(&self.scene);
        for process in &plan.plan.processes {
            self.start(*process);
        }
    }

    fn start(&mut self, process: ProcessPlan) {
        let (plan, world) = (&self.scene.plan, &mut self.world);
        let place = world.start(process.drift);
        let number = place.process;
        let builder = LockRuntime::builder()
            .clock(Arc::new(place.local.clone()))
            .entropy(world.entropy(&place))
            .ttl(plan.ttls[0])
            .claim_window(plan.claim_window)
            .command_timeout(plan.command_timeout)
            .keep_idle(plan.keep_idle())
            .replication(plan.replication())
            .seam(self.mutation.driver);
        let line: Arc<dyn LockStore> = Arc::new(world.line(&place));
        let line: Arc<dyn LockStore> = match self.mutation.wrong {
            Some(wrong) => Arc::new(WrongStore::new(line, Arc::new(place.local.clone()), wrong)),
            None => line,
        };
        let locks = world.within(number, || builder.on_store(line).expect("the plan is in range"));
        for index in 0..process.workers {
            let worker = Worker {
                number: u64::try_from(number).unwrap() * 100 + index,
                scene: Arc::clone(&self.scene),
                place: place.clone(),
                locks: locks.clone(),
                owner: locks.owner(),
                dice: Dice::new(plan.seed ^ (place.process as u64 + 1) << 40 ^ (index + 1) << 56),
                shared: Mutex::default(),
            };
            let id = worker.number;
            let task = self.world.spawn(number, worker.work()).expect("the process is alive");
            self.tasks.push((id, number, task));
        }
        self.locks.insert(number, locks);
        if plan.layout != Layout::One {
            self.world.watch(number);
        }
    }

    /// Lets the tasks work while things happen.
    fn act(&mut self) {
        let scene = Arc::clone(&self.scene);
        for (after, time, mishap) in &scene.plan.mishaps {
            let from = ManualClock::START + *after;
            self.world.mishap(mishap.between(from, from + *time));
        }
        for (after, act) in &scene.plan.acts {
            self.world.run_until(ManualClock::START + *after);
            self.perform(*act);
        }
        self.world.run_until(ManualClock::START + scene.plan.span);
    }

    fn perform(&mut self, act: Act) {
        let now = self.world.now();
        match act {
            Act::Crash { process } => self.crash(process),
            Act::Restart { like } => {
                self.crash(like);
                self.start(self.scene.plan.processes[like]);
            }
            Act::Pause { process, time } => self.world.pause(process, now + time),
            Act::Cut { process, time } => self.world.cut(process, now + time),
            Act::Unsubscribe { process } => self.world.unsubscribe(process),
            Act::Flush => self.world.flush(),
            Act::ForceRelease { name } => {
                self.world.force_release(&self.name(name));
            }
            Act::Lose { name, part } => {
                self.world.lose(&self.name(name), part);
            }
            Act::Mislead { process, time } => self.world.mislead(process, now + time),
            Act::Stall { time } => self.world.stall(now + time),
            Act::Fall { fall } => self.world.fall(fall),
            Act::Wake => self.world.wake(),
            Act::Promote { is_any, slowness, forsaken } => {
                self.world.promote(is_any, slowness, forsaken);
            }
            Act::Rejoin => self.world.rejoin(),
            Act::BeginMove { name, to } => self.world.begin_move(&self.name(name), to),
            Act::Tear { name } => self.world.tear(&self.name(name)),
            Act::MoveKeys { name } => self.world.move_keys(&self.name(name)),
            Act::EndMove { name, slowness } => self.world.end_move(&self.name(name), slowness),
            Act::Leave { node } => self.world.leave(node),
            Act::Doze => self.world.doze(),
        }
    }

    fn name(&self, number: usize) -> LockName {
        self.scene.plan.names[number].clone()
    }

    fn crash(&mut self, process: usize) {
        self.world.crash(process);
        let at = self.world.now();
        let (dead, alive) = self.tasks.drain(..).partition(|(_, of, _)| *of == process);
        self.tasks = alive;
        let dead: Vec<(u64, usize, JoinHandle<()>)> = dead;
        for name in &self.scene.plan.names {
            let history = self.scene.spy.history(name);
            for worker in dead.iter().flat_map(|(number, ..)| Worker::askers(*number)) {
                history.record(Event::GaveUp { worker, at });
            }
        }
        self.locks.remove(&process);
    }

    /// Lets everything come to rest.
    fn end(&mut self) {
        let (scene, bounds) = (Arc::clone(&self.scene), self.bounds);
        let began =
            if scene.plan.is_calm() { ManualClock::START } else { self.world.now() + CLEARING };
        self.world.set_weather(Weather::calm());
        self.world.clear_up(CLEARING);
        scene.end();
        let settled = began + bounds.recovery;
        self.world.run_until(settled.max(self.world.now()));
        scene.calm_down();
        let latest = self.world.now() + MOST_TIME;
        while self.tasks.iter().any(|(_, _, task)| !task.is_finished()) {
            if self.world.now() >= latest {
                self.complain_of_stuck();
                break;
            }
            let next = self.world.now() + A_LOOK;
            self.world.run_until(next);
        }
        self.tell_calm(began, settled);
    }

    fn complain_of_stuck(&self) {
        for (number, process, task) in &self.tasks {
            if !task.is_finished() {
                let what = format!("task {number} of process {process} does not come to an end");
                self.scene.complain(what);
            }
        }
    }

    fn tell_calm(&self, began: Instant, settled: Instant) {
        let (plan, until) = (&self.scene.plan, self.world.now());
        let mut patience = self.bounds.in_vain;
        if plan.is_calm() {
            patience += plan.endings();
        }
        for name in &plan.names {
            let history = self.scene.spy.history(name);
            let recovery = self.bounds.recovery.max(patience);
            history.record(Event::Calm { from: began, until, patience: recovery });
            history.record(Event::Calm { from: settled, until, patience });
            if plan.kind == (Kind::Cluster { is_calm: true }) {
                history.record(Event::Calm { from: ManualClock::START, until, patience });
                let (from, takes_all) = (ManualClock::START, true);
                history.record(Event::Steady { from, until, takes_all });
            }
            if let Kind::Steady(_, fate) = plan.kind {
                let takes_all = !matches!(fate, Fate::Late(_) | Fate::Mute);
                history.record(Event::Calm { from: ManualClock::START, until, patience });
                history.record(Event::Steady { from: ManualClock::START, until, takes_all });
                if plan.kept_quarters > 0 && plan.habits.other_ttls == 0 {
                    let (idle, ttl, to_enter) =
                        (plan.keep_idle(), plan.ttls[0], (plan.claim_window / 4).min(millis(500)));
                    history.record(Event::Keeps { idle, ttl, to_enter });
                }
            }
        }
    }
}
