use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold::{
    Acquire, Guard, Lease, LockName, LockRuntime, Owner,
    time::{Clock, Instant},
};
use leasehold_testkit::{
    Event, History,
    sim::{Dice, Place},
};

use super::{
    held::Held,
    plan::millis,
    punctual::{Due, Late},
    scene::Scene,
};

/// An acquire, for how long at least it keeps the lock closed, and when it should end.
struct Request {
    acquire: Acquire,
    minimum: Option<Duration>,
    /// For how long it waits; `None` for without limit, or where it is not polled.
    wait: Option<Duration>,
    /// How late it is polled at most.
    latest_poll: Duration,
}

impl Request {
    fn of(self, owner: &Owner) -> Self {
        Self { acquire: self.acquire.owner(owner), ..self }
    }

    /// Without limit, and polled at once.
    fn patient(acquire: Acquire) -> Self {
        let acquire = acquire.wait_forever();
        Self { acquire, minimum: None, wait: None, latest_poll: Duration::ZERO }
    }
}

/// A task that takes locks, holds them, and behaves as its habits say.
pub(crate) struct Worker {
    pub(crate) number: u64,
    pub(crate) scene: Arc<Scene>,
    pub(crate) place: Place,
    pub(crate) locks: LockRuntime,
    pub(crate) owner: Owner,
    pub(crate) dice: Dice,
    /// Leases of the worker's owner, which more than one asker may hold.
    pub(crate) shared: Mutex<Vec<(LockName, Lease)>>,
}

impl Worker {
    /// How many askers a worker is at once at most; each has a number in the histories.
    const ASKERS: u64 = 4;

    /// The numbers of a worker in the histories.
    pub(crate) fn askers(number: u64) -> impl Iterator<Item = u64> {
        (0..Self::ASKERS).map(move |asker| number * Self::ASKERS + asker)
    }

    /// Works until it is told to come to an end, then takes every lock once more.
    pub(crate) async fn work(self) {
        while !self.scene.is_ending() {
            self.sleep(self.dice.spread(Duration::from_micros(1), self.habit().longest_think))
                .await;
            let names = &self.scene.plan.names;
            let index = usize::try_from(self.dice.below(names.len() as u64)).unwrap();
            self.round(&names[index]).await;
        }
        for name in &self.scene.plan.names {
            let acquire = self.locks.lock(name.as_str()).unwrap().acquire();
            match self.ask(0, name, Request::patient(acquire)).await {
                Some(held) => held.hold().await,
                None => self.scene.complain(format!("worker {} was not served", self.number)),
            }
        }
    }

    async fn round(&self, name: &LockName) {
        let habits = self.habit();
        if self.dice.chance(habits.tries) {
            self.try_once(name).await;
        } else if self.dice.chance(habits.joins) {
            self.join(name).await;
        } else if self.dice.chance(habits.forgets) {
            self.forget(name).await;
        } else if self.dice.chance(habits.cancels) {
            self.cancel(name).await;
        } else if let Some(held) = self.ask(0, name, self.request(name)).await {
            held.hold().await;
        }
    }

    async fn try_once(&self, name: &LockName) {
        let asked_at = self.now();
        let Request { acquire, minimum, .. } = self.request(name);
        let due = Due::one_command(self);
        let answer = acquire.try_acquire().await;
        due.check(self, name, "a try", None);
        if let Ok(Some(guard)) = answer {
            self.granted(0, name, asked_at, minimum, guard).hold().await;
        }
    }

    /// Two acquires of one owner: both get the same lease.
    async fn join(&self, name: &LockName) {
        let one = self.request(name).of(&self.owner);
        let two = self.request(name).of(&self.owner);
        let (one, two) = tokio::join!(
            biased;
            async {
                if let Some(held) = self.ask(0, name, one).await {
                    held.shared().hold().await;
                }
            },
            async {
                self.sleep(self.dice.spread(Duration::from_nanos(1), millis(5))).await;
                if let Some(held) = self.ask(1, name, two).await {
                    held.shared().linger().await;
                }
            },
        );
        let ((), ()) = (one, two);
        lock(&self.shared).clear();
    }

    /// Stops waiting at some time.
    async fn cancel(&self, name: &LockName) {
        let patience = self.dice.spread(Duration::from_micros(1), self.scene.plan.ttls[0]);
        let held = {
            let mut ask = pin!(self.ask(0, name, self.request(name)));
            tokio::select! {
                biased;
                held = ask.as_mut() => held,
                () = self.sleep(patience) => {
                    self.gave_up(0, name);
                    return;
                }
            }
        };
        if let Some(held) = held {
            held.hold().await;
        }
    }

    /// Polls once or a few times and then not for a while, as a future in a `select!` that hangs.
    async fn forget(&self, name: &LockName) {
        let window = self.scene.plan.claim_window;
        let request = Request { wait: None, latest_poll: Duration::ZERO, ..self.request(name) };
        let mut ask: Pin<Box<dyn Future<Output = Option<Held<'_>>> + Send + '_>> =
            Box::pin(self.ask(0, name, request));
        for _ in 0..self.dice.from_to(1, 3) {
            if let Poll::Ready(held) = poll_without_waker(ask.as_mut()) {
                if let Some(held) = held {
                    held.hold().await;
                }
                return;
            }
            self.gave_up(0, name);
            self.sleep(self.dice.spread(Duration::from_micros(10), window * 3)).await;
        }
        if self.dice.below(2) == 0 {
            return;
        }
        if let Some(held) = ask.await {
            held.hold().await;
        }
    }

    /// An acquire as the habits have it.
    fn request(&self, name: &LockName) -> Request {
        let (habits, plan) = (self.habit(), &self.scene.plan);
        let mut acquire = self.locks.lock(name.as_str()).unwrap().acquire();
        if self.dice.chance(habits.other_ttls) {
            acquire = acquire.ttl(plan.ttls[1]);
        }
        if self.dice.chance(habits.unrenewed) {
            acquire = acquire.renew(false);
        }
        if self.dice.chance(habits.max_holds) {
            acquire = acquire.max_hold(self.dice.spread(millis(1), plan.ttls[0]));
        }
        let mut minimum = None;
        if habits.minimums > 0 && self.dice.chance(habits.minimums) {
            minimum = Some(self.dice.spread(millis(1), plan.ttls[0]));
            acquire = acquire.min_hold(minimum.unwrap_or_default());
        }
        let wait = match self.dice.below(4) {
            0 => None,
            _ if plan.is_steady() => None,
            1 => Some(self.dice.spread(millis(1), plan.ttls[1])),
            _ => Some(plan.ttls[1] * 2),
        };
        // What an acquire leaves behind that gave up would be in the way of the next.
        let wait = wait.map(|wait| wait.max(plan.alone().unwrap_or_default()));
        let acquire = match wait {
            Some(wait) => acquire.wait(wait),
            None => acquire.wait_forever(),
        };
        let is_late = habits.late_polls > 0 && self.dice.chance(habits.late_polls);
        let latest_poll = if is_late { habits.latest_poll } else { Duration::ZERO };
        Request { acquire, minimum, wait, latest_poll }
    }

    /// Waits for a lock; the history knows in the same poll that it is there.
    async fn ask<'a>(
        &'a self,
        asker: u64,
        name: &'a LockName,
        Request { acquire, minimum, wait, latest_poll }: Request,
    ) -> Option<Held<'a>> {
        let asked_at = self.now();
        let worker = self.number * Self::ASKERS + asker;
        self.tell(name, Event::Asked { worker, at: asked_at });
        let due = wait.map(|wait| Due::wait(self, wait));
        let mut acquire = Late::new(acquire, (self, asker), name, latest_poll);
        let answer = poll_fn(|cx| Pin::new(&mut acquire).poll(cx)).await;
        if let Some(due) = due {
            due.check(self, name, "a wait", Some(&acquire.stops()));
        }
        if let Ok(guard) = answer {
            return Some(self.granted(asker, name, asked_at, minimum, guard));
        }
        self.gave_up(asker, name);
        self.settle_shared();
        if self.scene.plan.alone().is_some() {
            let at = self.now();
            self.scene
                .complain(format!("at {at:?} {name} was free, and a wait of {wait:?} is over"));
        }
        None
    }

    fn granted<'a>(
        &'a self,
        asker: u64,
        name: &'a LockName,
        asked_at: Instant,
        minimum: Option<Duration>,
        guard: Guard,
    ) -> Held<'a> {
        let (worker, granted_at) = (self.number * Self::ASKERS + asker, self.now());
        let (fence, lease) = (guard.fence(), guard.id());
        self.tell(name, Event::Granted { worker, fence, lease, asked_at, granted_at });
        if let Some(minimum) = minimum {
            let until = self.place.drift.world(self.place.local.now() + minimum);
            self.tell(name, Event::ClosedUntil { lease, from: granted_at, until });
        }
        let held = Held::new(self, name, guard);
        if !held.look() {
            let what =
                format!("at {granted_at:?} {lease} of {name} was over when it was handed out");
            self.scene.complain(what);
        }
        held
    }

    fn gave_up(&self, asker: u64, name: &LockName) {
        let (worker, at) = (self.number * Self::ASKERS + asker, self.now());
        self.tell(name, Event::GaveUp { worker, at });
    }

    /// A task that waits was woken, and is polled so long after that.
    pub(crate) fn is_unpolled(&self, asker: u64, name: &LockName, late: Duration) {
        let (worker, runtime) = (self.number * Self::ASKERS + asker, self.locks.id());
        let (from, until) = (self.now(), self.in_local(late));
        let claim_window = self.scene.plan.claim_window;
        self.tell(name, Event::Unpolled { worker, runtime, from, until, claim_window });
    }

    /// Tells the history of shared leases that ended with an asker who got nothing.
    fn settle_shared(&self) {
        for (name, lease) in lock(&self.shared).iter() {
            if !lease.is_held() {
                self.tell(name, Event::Released { lease: lease.id(), at: self.now() });
            }
        }
    }

    /// A lease may have more holds than one asker knows of.
    pub(crate) fn share(&self, name: &LockName, lease: &Lease) {
        lock(&self.shared).push((name.clone(), lease.clone()));
    }

    pub(crate) fn tell(&self, name: &LockName, event: Event) {
        self.history(name).record(event);
    }

    fn history(&self, name: &LockName) -> History {
        self.scene.spy.history(name)
    }

    pub(crate) fn habit(&self) -> super::plan::Habits {
        self.scene.habits()
    }

    /// The present instant of the world.
    pub(crate) fn now(&self) -> Instant {
        self.place.world.now()
    }

    /// The instant of the world when the clock of the process has run for so long.
    pub(crate) fn in_local(&self, time: Duration) -> Instant {
        self.place.drift.world(self.place.local.now() + time)
    }

    /// Sleeps by the clock of the process.
    pub(crate) async fn sleep(&self, time: Duration) {
        self.place.local.sleep_until(self.place.local.now() + time).await;
    }
}

/// Polls a future once, with a waker that does nothing.
pub(crate) fn poll_without_waker<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
