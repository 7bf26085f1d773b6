use std::{
    collections::VecDeque,
    fmt,
    net::{Ipv4Addr, TcpListener},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

use super::{
    book::Shared,
    counts::Counts,
    hole::{Direction, Links},
    listener::listen,
    replay::replay,
    rule::{Rule, RuleId},
    storm::Storm,
    upstream::Upstream,
};
use crate::{
    server::{Address, RedisServer},
    sim::Dice,
};

/// A network of one test between a server and its clients, on a port of 127.0.0.1.
///
/// It passes messages on unchanged until it is told otherwise. It runs on a thread of its own and
/// ends, with all connections, when it is dropped; its methods may be called from anywhere, and
/// hold for all messages that come after.
pub struct FaultProxy {
    address: Address,
    upstream: Upstream,
    shared: Arc<Shared>,
    runtime: Handle,
    // Dropped first: that ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl FaultProxy {
    /// A proxy before a server, whatever address that has itself.
    ///
    /// # Panics
    ///
    /// Panics if the system refuses a port or a thread.
    pub fn before(server: &RedisServer) -> Self {
        Self::start(Upstream::Unix(server.socket().into()), false)
    }

    /// A proxy before several servers, which take turns with new connections.
    ///
    /// # Panics
    ///
    /// Panics as [`before`](Self::before) does.
    pub fn between(servers: &[&RedisServer]) -> Self {
        let proxy = Self::before(servers[0]);
        proxy.lead_to(servers);
        proxy
    }

    /// Lets new connections lead to other servers, which take turns.
    pub fn lead_to(&self, servers: &[&RedisServer]) {
        let upstreams = servers.iter().map(|server| Upstream::Unix(server.socket().into()));
        self.shared.change(|book| book.upstreams = upstreams.collect());
    }

    /// A proxy before a server with TLS, which it does not decipher: what one read brings is a
    /// message of no kind.
    ///
    /// # Panics
    ///
    /// Panics if the server has no port, and as [`before`](Self::before) does.
    pub fn before_tls(server: &RedisServer) -> Self {
        let port = server.port().expect("a server with TLS has a port");
        Self::start(Upstream::Tcp(port), true)
    }

    fn start(upstream: Upstream, raw: bool) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let port = listener.local_addr().expect("a port").port();
        let address = if raw { Address::Tls(port) } else { Address::Tcp(port) };
        let shared = Arc::<Shared>::default();
        shared.book().upstreams = VecDeque::from([upstream.clone()]);
        let (stop, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let handle = runtime.handle().clone();
        let book = Arc::clone(&shared);
        let run = async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            tokio::select! {
                biased;
                _ = stopped => {}
                () = listen(listener, raw, book) => {}
            }
        };
        // The connections are tasks of the runtime, and go with it.
        let thread = thread::Builder::new().name("fault-proxy".into());
        let thread = thread.spawn(move || runtime.block_on(run)).expect("a thread");
        let (stop, thread) = (Some(stop), Some(thread));
        Self { address, upstream, shared, runtime: handle, stop, thread }
    }

    /// The address of the proxy, as Leasehold takes it.
    pub fn url(&self) -> String {
        self.url_with("", "", 0)
    }

    /// The address with a login and a database; an empty user or password is left out.
    pub fn url_with(&self, user: &str, password: &str, db: u32) -> String {
        self.address.url("".as_ref(), user, password, db)
    }

    /// The port of 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port().unwrap_or_default()
    }

    /// Adds a rule; where several meet a message, the first one strikes.
    ///
    /// # Panics
    ///
    /// Panics if the rule would have a reply come twice, or keep a copy of anything but a request.
    pub fn inject(&self, rule: Rule) -> RuleId {
        assert!(rule.is_sound(), "no such fault of a reply or push: {rule:?}");
        self.shared.book().rules.add(rule)
    }

    /// Takes a rule back.
    pub fn remove(&self, rule: RuleId) {
        self.shared.book().rules.remove(rule);
    }

    /// How many messages a rule has struck, also one that was taken back.
    pub fn struck(&self, rule: RuleId) -> u64 {
        self.shared.book().rules.struck(rule)
    }

    /// Lets nothing pass in a direction, on connections that are open and that will be, and closes
    /// none. What is under way is held.
    pub fn black_hole(&self, direction: Direction) {
        self.shared.change(|book| book.hole.swallow(direction));
    }

    /// The same for some of the connections that are open; for how many.
    pub fn black_hole_links(&self, links: Links, direction: Direction) -> usize {
        self.shared.change(|book| book.each(links, |link| link.hole.swallow(direction)))
    }

    /// Resets some of the connections that are open; how many.
    pub fn reset_links(&self, links: Links) -> usize {
        self.shared.change(|book| book.each(links, |link| link.is_reset = true))
    }

    /// Resets all connections that are open; how many.
    pub fn reset_all(&self) -> usize {
        self.reset_links(Links::All)
    }

    /// Resets new connections as soon as they come.
    pub fn refuse(&self) {
        self.shared.change(|book| book.refuses = true);
    }

    /// Takes new connections again.
    pub fn accept(&self) {
        self.shared.change(|book| book.refuses = false);
    }

    /// Whether every byte is to travel alone.
    pub fn chop(&self, chops: bool) {
        self.shared.change(|book| book.chops = chops);
    }

    /// Delays what every read brings, in both directions.
    pub fn delay_all(&self, delay: Duration) {
        self.shared.change(|book| book.delay = delay);
    }

    /// Begins with random faults, which strike messages that no rule strikes.
    pub fn storm(&self, storm: Storm) {
        self.shared.change(|book| book.storm = Some((storm, Dice::new(storm.seed))));
    }

    /// Ends the random faults.
    pub fn calm(&self) {
        self.shared.change(|book| book.storm = None);
    }

    /// Makes the network as good as new: no rules, no storm, no holes; new connections are taken,
    /// and what was held flows again. What was lost stays lost, on connections that are dead for
    /// it, and gates stay as they are.
    pub fn heal(&self) {
        self.shared.change(super::book::Book::heal);
    }

    /// How many copies wait for [`replay`](Self::replay).
    pub fn copies(&self) -> usize {
        self.shared.book().copies.len()
    }

    /// Sends the kept copies, each on a connection of its own past all faults, and waits for the
    /// server's answers, which it returns as they came.
    ///
    /// It blocks its thread for as long as the server takes, at most five seconds for each.
    pub fn replay(&self) -> Vec<String> {
        let copies: Vec<_> = self.shared.book().copies.drain(..).collect();
        let (done, answers) = mpsc::channel();
        let upstream = self.upstream.clone();
        self.runtime.spawn(async move {
            // Nobody waits any more when the proxy was dropped.
            let _ = done.send(replay(upstream, copies).await);
        });
        answers.recv().unwrap_or_default()
    }

    /// What the proxy has seen so far.
    pub fn counts(&self) -> Counts {
        self.shared.book().counts
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of it was printed where it happened.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for FaultProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        f.debug_struct("FaultProxy").field("url", &self.url()).field("counts", &counts).finish()
    }
}
