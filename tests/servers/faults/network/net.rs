use std::{collections::BTreeMap, time::Duration};

use leasehold_testkit::{
    CommandKind, Event, FaultProxy, History, RedisServer,
    proxy::{Action, Rule, RuleId},
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
        wait::block_until("the fault strikes", || self.proxy.struck(id) >= times);
    }

    /// Nobody holds a lock and nobody waits, soon; and no key lives for ever.
    pub(super) fn is_clean_soon(&self) {
        wait::block_until("nobody holds, nobody waits", || lease::in_use(&self.server).is_empty());
        assert_eq!(self.server.keys_without_ttl(), [""; 0]);
    }

    /// Processes at work, while copies of all commands of a kind come late: what they saw, and how
    /// many copies there were.
    pub(super) fn with_late_copies(&self, kind: CommandKind) -> (Finished, usize) {
        let mut crew = self.crew(&ALONE);
        let rule = self.proxy.inject(Rule::new(Action::CopyLater).on(kind).always());
        let mut copies = 0;
        for round in 0..6 {
            crew.work(8);
            // In turns into the hands of a holder in the midst of its section, and at random.
            let holder = round % 3;
            crew.halt(holder);
            copies += self.proxy.replay().len();
            crew.resume(holder);
            copies += self.proxy.replay().len();
        }
        self.proxy.remove(rule);
        let finished = crew.finish();
        copies += self.proxy.replay().len();
        (finished, copies)
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

/// Whole milliseconds, as the server takes them.
pub(super) fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}
