use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use leasehold_core::{
    LockStore, RuntimeId,
    store::{Listener, Push},
};

use super::{fault::PushFault, rule::PushRule};

/// What the listeners in front of the faults would hear, and what of it they do.
#[derive(Debug, Default)]
pub(super) struct Pushes {
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    rules: Vec<PushRule>,
    relays: BTreeMap<RuntimeId, Arc<Relay>>,
    pushed: usize,
    held: VecDeque<(RuntimeId, Push)>,
}

/// Listens to the store behind for one runtime.
#[derive(Debug)]
struct Relay {
    all: Weak<Pushes>,
    runtime: RuntimeId,
    listener: Weak<dyn Listener>,
}

impl Pushes {
    /// Listens to `store` in place of a listener.
    pub(super) fn listen(
        self: &Arc<Self>,
        store: &dyn LockStore,
        runtime: RuntimeId,
        listener: Weak<dyn Listener>,
    ) {
        let relay = Arc::new(Relay { all: Arc::downgrade(self), runtime, listener });
        let mut book = self.book();
        book.relays.retain(|_, other| other.listener.strong_count() > 0);
        book.relays.insert(runtime, Arc::clone(&relay));
        drop(book);
        let relay: Weak<Relay> = Arc::downgrade(&relay);
        store.listen(runtime, relay);
    }

    pub(super) fn inject(&self, rule: PushRule) {
        self.book().rules.push(rule);
    }

    pub(super) fn heal(&self) {
        self.book().rules.clear();
    }

    /// How many pushes came from the store behind, struck or not.
    pub(super) fn pushed(&self) -> usize {
        self.book().pushed
    }

    pub(super) fn held(&self) -> usize {
        self.book().held.len()
    }

    /// Lets the listeners hear what was held, in order.
    pub(super) fn deliver(&self) -> usize {
        let held = mem::take(&mut self.book().held);
        for (runtime, push) in &held {
            self.tell(*runtime, push.clone());
        }
        held.len()
    }

    /// Tells every listener that the store can be heard again.
    pub(super) fn reconnect(&self) {
        let runtimes: Vec<_> = self.book().relays.keys().copied().collect();
        for runtime in runtimes {
            self.tell(runtime, Push::Listening);
        }
    }

    /// Takes a push from the store behind.
    fn take(&self, runtime: RuntimeId, push: Push) {
        match self.strike(runtime, &push) {
            Some(PushFault::Lose) => {}
            Some(PushFault::Delay) => self.book().held.push_back((runtime, push)),
            Some(PushFault::Duplicate) => {
                self.book().held.push_back((runtime, push.clone()));
                self.tell(runtime, push);
            }
            None => self.tell(runtime, push),
        }
    }

    fn strike(&self, runtime: RuntimeId, push: &Push) -> Option<PushFault> {
        let mut book = self.book();
        book.pushed += usize::from(*push != Push::Listening);
        // Every rule counts, also those that come too late for this push.
        let met: Vec<_> =
            book.rules.iter_mut().filter_map(|rule| rule.meets_push(runtime, push)).collect();
        met.first().copied()
    }

    fn tell(&self, runtime: RuntimeId, push: Push) {
        let relay = self.book().relays.get(&runtime).cloned();
        if let Some(listener) = relay.and_then(|relay| relay.listener.upgrade()) {
            listener.on_push(push);
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Relay {
    fn on_push(&self, push: Push) {
        if let Some(all) = self.all.upgrade() {
            all.take(self.runtime, push);
        }
    }
}
