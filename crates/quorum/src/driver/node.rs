use std::{
    fmt,
    sync::{Arc, Weak, atomic::AtomicBool},
};

use leasehold_core::{
    Clock, Instant, LockName, NamePattern, RuntimeId, StoreError,
    store::{KeyScheme, Listener},
};
use leasehold_redis::{
    Answered, Batcher, Connection, Dialer, Greeting, MAX_COMMANDS, RedisConfig, RedisPool,
    ScriptCall, Subscriptions, connection_number, in_order, not_run, parts, scan_step,
};
use redis::Cmd;
use tokio::runtime::Handle;

use super::{
    boot::{Boot, Longest, Runs},
    dialect::{NodeDialect, answer},
    scripts,
};
use crate::{NodeCommand, NodeReply, QuorumNode};

/// One master of a quorum, version 6.2 or newer, with connections of its own.
pub struct RedisNode {
    dialer: Arc<Dialer>,
    commands: Vec<Arc<Batcher<NodeDialect>>>,
    renewals: Arc<Batcher<NodeDialect>>,
    subscriptions: Subscriptions,
    keys: KeyScheme,
    /// For what is seldom asked.
    pool: RedisPool,
}

impl RedisNode {
    /// A node that connects on first use.
    pub(super) fn new(
        config: &RedisConfig,
        clock: &Arc<dyn Clock>,
        runtime: &Handle,
        (longest, runs): (&Longest, &Arc<Runs>),
    ) -> Result<Self, StoreError> {
        let dialer = Arc::new(Dialer::new(config, Arc::clone(clock), Some(runtime))?);
        let greeting: Arc<dyn Greeting> = Arc::new(Boot {
            key: config.keys.boot(),
            place: dialer.endpoint.to_string(),
            settings: config.quorum,
            longest: Arc::clone(longest),
            runs: Arc::clone(runs),
            has_worked: AtomicBool::new(false),
        });
        let dialect =
            Arc::new(NodeDialect::new(&config.keys, config.fencing.clone(), &config.quorum));
        let batcher = || {
            let (dialer, greeting) = (Arc::clone(&dialer), Arc::clone(&greeting));
            let connection = Connection::new(dialer, runtime.clone(), Some(greeting));
            Batcher::new(connection, Arc::clone(&dialect), None, false)
        };
        let commands = (0..config.connections).map(|_| batcher()).collect();
        let subscriptions = Subscriptions::of_one(Arc::clone(&dialer), runtime.clone());
        let (renewals, keys) = (batcher(), config.keys.clone());
        let pool = RedisPool::on(config, Arc::clone(&dialer), Some(runtime.clone()))?;
        Ok(Self { dialer, commands, renewals, subscriptions, keys, pool })
    }

    /// Runs every kind of command once, on the keys of a lock that nobody uses.
    pub(super) async fn check(
        &self,
        probe: &LockName,
        runtime: RuntimeId,
        deadline: Instant,
    ) -> Result<(), StoreError> {
        let write = |to: &mut Cmd| {
            to.arg(&self.keys.all_on_node(probe)).arg(self.keys.channel(runtime));
        };
        let call = ScriptCall::new(&scripts::PREFLIGHT, 3, &write);
        let Some(batcher) = self.commands.first() else { return Ok(()) };
        // Both EVAL and EVALSHA: the user may lack the right to one of them.
        for (verb, call) in [("EVAL", call.with_body()), ("EVALSHA", call)] {
            let called = batcher.connection().call(call, deadline).await;
            called.map_err(|error| not_run(verb, error).not_sent())?;
        }
        Ok(())
    }

    fn decode(&self, command: &NodeCommand, answered: Result<Answered, StoreError>) -> NodeReply {
        let decoded = answered.and_then(|answered| answer(&command.word, &answered.answer));
        decoded.map_err(|error| error.from_endpoint(&*self.dialer.endpoint))
    }
}

impl QuorumNode for RedisNode {
    async fn send(&self, command: NodeCommand, deadline: Instant) -> NodeReply {
        let number = connection_number(&command.name, self.commands.len());
        let answered = self.commands[number].send(command.clone(), deadline).await;
        self.decode(&command, answered)
    }

    async fn send_apart(&self, commands: Vec<NodeCommand>, deadline: Instant) -> Vec<NodeReply> {
        let own = self.renewals.connection();
        let batcher = match self.commands.first() {
            // Its own connection cannot be made, or is only being made.
            Some(other) if !own.is_made() => {
                own.prepare();
                other
            }
            _ => &self.renewals,
        };
        let parts = parts(commands, MAX_COMMANDS, |command| batcher.retention(command));
        let deliver = async |part: &[NodeCommand]| {
            let answers = batcher.deliver(part, deadline).await;
            let each = part.iter().zip(answers);
            each.map(|(command, answered)| self.decode(command, answered)).collect::<Vec<_>>()
        };
        in_order(&parts, deliver).await
    }

    async fn scan(
        &self,
        pattern: &NamePattern,
        at: u64,
        deadline: Instant,
    ) -> Result<(Vec<LockName>, Option<u64>), StoreError> {
        scan_step(&self.pool, &self.keys, (pattern, at), deadline).await
    }

    fn is_ready(&self) -> bool {
        let connections = self.commands.iter().map(|batcher| batcher.connection());
        let away = connections.filter(|connection| !connection.is_ready());
        // All of them are prepared.
        away.inspect(|connection| connection.prepare()).count() == 0
    }

    /// The next connections set the mark.
    fn has_no_mark(&self) {
        self.commands.iter().for_each(|batcher| batcher.connection().part());
        self.renewals.connection().part();
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.subscriptions.listen(runtime, self.keys.channel(runtime), listener);
    }

    fn place(&self) -> String {
        self.dialer.endpoint.to_string()
    }
}

impl fmt::Debug for RedisNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisNode").field("place", &self.place()).finish_non_exhaustive()
    }
}
