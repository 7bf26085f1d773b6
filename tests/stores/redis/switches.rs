//! A pool of connections whose Sentinels name another master, or fall silent.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Waker},
    time::Duration,
};

use leasehold_core::{Clock, SystemClock};
use leasehold_redis::{RedisConfig, RedisPool, Script};
use leasehold_testkit::{
    FaultProxy, Gate, Patience, RedisServer, Reply, ScriptedPeer,
    proxy::{Action, Rule},
};
use redis::from_redis_value;
use tokio::runtime;

use super::support::{PATIENCE, calls, config, connect_with};

/// The only Sentinel of a group, which says what a test tells it to.
struct OneSentinel {
    peer: ScriptedPeer,
    word: Arc<Mutex<Word>>,
}

/// What a Sentinel says.
struct Word {
    /// The port of the master; `None` if it says nothing.
    port: Option<u16>,
    /// How often it was asked since then.
    asked: usize,
}

fn with<T>(word: &Mutex<Word>, look: impl FnOnce(&mut Word) -> T) -> T {
    look(&mut word.lock().unwrap_or_else(PoisonError::into_inner))
}

impl OneSentinel {
    async fn naming(port: u16) -> Self {
        let word = Arc::new(Mutex::new(Word { port: Some(port), asked: 0 }));
        let its = Arc::clone(&word);
        let peer = ScriptedPeer::start(move |command: &[String]| match command[0].as_str() {
            "HELLO" => Reply::hello("7.2.0", 3),
            "SENTINEL" => with(&its, |word| {
                word.asked += 1;
                let address = |port: u16| [Reply::bulk("127.0.0.1"), Reply::bulk(port.to_string())];
                word.port.map_or(Reply::Silence, |port| Reply::Array(address(port).into()))
            }),
            // It tells of no switch unasked.
            _ => Reply::error("NOPERM this user has no permissions"),
        });
        Self { peer: peer.await.expect("a peer"), word }
    }

    fn config(&self) -> RedisConfig {
        let config = config(&format!("redis+sentinel://127.0.0.1:{}/m", self.peer.port()));
        config.connect_timeout(PATIENCE).command_timeout(PATIENCE)
    }

    fn pool(&self) -> RedisPool {
        RedisPool::new(&self.config()).expect("settings that can work")
    }

    fn says(&self, port: Option<u16>) {
        with(&self.word, |word| *word = Word { port, asked: 0 });
    }

    fn asked(&self) -> usize {
        with(&self.word, |word| word.asked)
    }

    /// Names the master at another port, and returns when that was understood: it is asked again.
    async fn names(&self, port: Option<u16>) {
        self.says(port);
        let understood = async || (self.asked() >= 2).then_some(());
        Patience::of(PATIENCE).until_async(understood).await.expect("it is asked now and then");
    }
}

/// Two masters, and what lies before the first.
struct Masters {
    old: RedisServer,
    new: RedisServer,
    proxy: FaultProxy,
}

impl Masters {
    fn start() -> Self {
        let named = |name| {
            let server = RedisServer::builder().tcp().start();
            server.command(&["SET", "name", name]);
            server
        };
        let (old, new) = (named("old"), named("new"));
        Self { proxy: FaultProxy::before(&old), old, new }
    }
}

/// Lets requests before a server wait that have some text.
fn hold(proxy: &FaultProxy, text: &str) -> Gate {
    let gate = Gate::new();
    proxy.inject(Rule::new(Action::Hold(gate.clone())).containing(text).always());
    gate
}

async fn come(gate: &Gate, count: usize) {
    let have_come = async || (gate.arrived() >= count).then_some(());
    Patience::of(PATIENCE).until_async(have_come).await.expect("they are sent");
}

/// The name of the server to which a pool leads.
async fn name(pool: RedisPool) -> String {
    let answer = pool.call(&Script::new("return redis.call('GET', 'name')"), [], []).await;
    from_redis_value(answer.expect("an answer")).expect("a name")
}

#[tokio::test]
async fn a_dial_that_the_old_master_does_not_answer_goes_on_at_the_new_one() {
    let Masters { old: _old, new, proxy } = Masters::start();
    let sentinel = OneSentinel::naming(proxy.port()).await;
    let gate = hold(&proxy, "HELLO");
    let call = tokio::spawn(name(sentinel.pool()));
    come(&gate, 1).await;
    sentinel.says(new.port());
    assert_eq!(call.await.expect("no panic"), "new");
}

#[tokio::test]
async fn a_check_that_the_old_master_does_not_answer_ends_with_the_switch() {
    let Masters { old: _old, new, proxy } = Masters::start();
    let sentinel = OneSentinel::naming(proxy.port()).await;
    let pool = sentinel.pool();
    assert_eq!(name(pool.clone()).await, "old");
    let gate = hold(&proxy, "PING");
    let call = tokio::spawn(name(pool));
    come(&gate, 1).await;
    sentinel.says(new.port());
    assert_eq!(call.await.expect("no panic"), "new");
}

/// A call may be polled long after its connection was taken.
#[test]
fn a_connection_that_was_taken_before_the_switch_is_not_used_after_it() {
    let Masters { old, new, proxy } = Masters::start();
    let home = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let home = home.expect("a tokio runtime");
    let sentinel = home.block_on(OneSentinel::naming(proxy.port()));
    let pool = home.block_on(async { sentinel.pool() });
    assert_eq!(home.block_on(name(pool.clone())), "old");
    let gate = hold(&proxy, "PING");
    let mut call = pin!(name(pool));
    {
        // Elsewhere the call would be a task, which nobody has to poll.
        let _home = home.enter();
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    home.block_on(come(&gate, 1));
    let checks = old.calls("ping");
    gate.open();
    let checked = || (old.calls("ping") > checks).then_some(());
    Patience::of(PATIENCE).until(checked).expect("the connection is checked");
    home.block_on(sentinel.names(new.port()));
    assert_eq!(home.block_on(call), "new");
}

/// How many connections a crowd needs.
const CROWD: usize = 32;

/// Calls at once, each of which needs a connection of its own.
async fn crowd(pool: &RedisPool, proxy: &FaultProxy) {
    let gate = hold(proxy, "EVAL");
    let calls: Vec<_> = (0..CROWD).map(|_| tokio::spawn(name(pool.clone()))).collect();
    come(&gate, CROWD).await;
    gate.open();
    for call in calls {
        assert_eq!(call.await.expect("no panic"), "old");
    }
}

#[tokio::test]
async fn a_pool_that_grows_does_not_ask_for_each_connection() {
    let Masters { old: _old, proxy, .. } = Masters::start();
    let sentinel = OneSentinel::naming(proxy.port()).await;
    let pool = RedisPool::new(&sentinel.config().pool_size(CROWD)).expect("a pool");
    assert_eq!(name(pool.clone()).await, "old");
    let before = sentinel.asked();
    crowd(&pool, &proxy).await;
    // It is asked once a second, whatever comes.
    let asked = sentinel.asked() - before;
    assert!(asked < CROWD / 2, "asked {asked} times");
}

#[tokio::test]
async fn gates_and_inspections_go_on_while_no_sentinel_answers() {
    let Masters { old: _old, proxy, .. } = Masters::start();
    let sentinel = OneSentinel::naming(proxy.port()).await;
    let config = sentinel.config().pool_size(CROWD);
    let pool = RedisPool::new(&config).expect("a pool");
    assert_eq!(name(pool.clone()).await, "old");
    let store = connect_with(&config).await.expect("a master");
    sentinel.says(None);
    crowd(&pool, &proxy).await;
    calls(&store).inspect().await.expect("an inspection");
}

/// Longer than a pool trusts what it was told without another question.
const LONG_AGO: Duration = Duration::from_millis(3_200);

/// A pool that was made outside of any tokio runtime asks before a call, and goes on without an answer.
#[tokio::test]
async fn a_pool_without_a_tokio_runtime_goes_on_while_no_sentinel_answers() {
    let Masters { old: _old, proxy, .. } = Masters::start();
    let sentinel = OneSentinel::naming(proxy.port()).await;
    let config = sentinel.config().pool_size(CROWD);
    let made = std::thread::spawn(move || RedisPool::new(&config).expect("a pool"));
    let pool = made.join().expect("no panic");
    // It knows the master, and has no connection: one with a command that nobody waits for is closed.
    let gate = hold(&proxy, "EVAL");
    let call = tokio::spawn(name(pool.clone()));
    come(&gate, 1).await;
    call.abort();
    proxy.heal();
    sentinel.says(None);
    SystemClock.sleep_until(SystemClock.now() + LONG_AGO).await;
    crowd(&pool, &proxy).await;
    assert!(sentinel.asked() > 0, "it asks before it connects");
}
