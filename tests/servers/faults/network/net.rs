use std::{collections::BTreeMap, time::Duration};

use leasehold_testkit::{
    Event, FaultProxy, History, Patience, RedisServer,
    proxy::{Rule, RuleId},
};

use crate::support::{
    crew::{Crew, Finished, Plan},
    lease, wait,
};

/// One task in each of three processes: every hold is asked for by a command of its own.
pub(super) const ALONE: Plan = Plan { tasks: 1, ..Plan::PROTECTED };

/// A server, and the network before it.
#[derive(Debug)]
pub(super) struct Net {
    // Before the server: connections end first.
    pub(super) proxy: FaultProxy,
    pub(super) server: RedisServer,
}

impl Net {
    pub(super) fn start() -> Self {
        Self::before(RedisServer::start())
    }

    pub(super) fn before(server: RedisServer) -> Self {
        Self { proxy: FaultProxy::before(&server), server }
    }

    pub(super) fn url(&self) -> String {
        self.proxy.url()
    }

    /// The processes of a plan, whose locks are behind the network.
    pub(super) fn crew(&self, plan: &Plan) -> Crew {
        Crew::start(plan, &self.url())
    }

    /// Injects rules one after the other, each until it has struck so often; how often that was.
    pub(super) fn strike(&self, rules: impl IntoIterator<Item = Rule>, times: u64) -> u64 {
        rules.into_iter().map(|rule| self.strike_once(rule.times(times), times)).sum()
    }

    fn strike_once(&self, rule: Rule, times: u64) -> u64 {
        let id = self.proxy.inject(rule);
        self.until_struck(id, times);
        self.proxy.struck(id)
    }

    /// Waits until a rule has struck so often.
    pub(super) fn until_struck(&self, id: RuleId, times: u64) {
        until("the fault strikes", || self.proxy.struck(id) >= times);
    }

    /// Nobody holds a lock and nobody waits, soon; and no key lives for ever.
    pub(super) fn is_clean_soon(&self) {
        until("nobody holds, nobody waits", || lease::in_use(&self.server).is_empty());
        assert_eq!(self.server.keys_without_ttl(), [""; 0]);
    }

    /// How many clients have subscribed.
    pub(super) fn subscribers(&self) -> usize {
        let list: String = self.server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        list.lines().count()
    }
}

/// Checks a history in which nobody was paused and nothing of the server's lost, and says in a few
/// words what happened.
///
/// A task gives its lease back right after its write, and believes in it no longer, also when the
/// release is never confirmed.
pub(super) fn strictly_right(finished: &Finished) -> String {
    let events = finished.history.events();
    let mut wrote = BTreeMap::new();
    for event in &events {
        if let Event::Wrote { lease, at, .. } = *event {
            wrote.insert(lease, at);
        }
    }
    let end = |event| match event {
        Event::Lost { lease, at } => {
            Event::Lost { lease, at: wrote.get(&lease).map_or(at, |wrote| at.min(*wrote)) }
        }
        event => event,
    };
    let history: History = events.into_iter().map(end).collect();
    let summary = history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    finished.right();
    format!("{} increments, none lost; {} losses reported", summary.increments, summary.lost)
}

/// Blocks this thread until something holds.
pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let seen = Patience::of(wait::CEILING).until(|| holds().then_some(()));
    assert!(seen.is_some(), "not within {:?}: {what}", wait::CEILING);
}

/// Runs on one thread, as a small service would.
pub(super) fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a tokio runtime").block_on(future)
}

/// The server's time in microseconds.
pub(super) fn time(server: &RedisServer) -> u64 {
    let [seconds, micros]: [u64; 2] = server.query(&["TIME"]);
    seconds * 1_000_000 + micros
}

/// Whole milliseconds, as the server takes them.
pub(super) fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}
