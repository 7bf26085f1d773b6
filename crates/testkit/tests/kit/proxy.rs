use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, LockName, Replication, SystemClock, SystemEntropy,
    store::{AcquireAnswer, RenewAnswer, Renewal},
};
use leasehold_redis::{RedisConfig, RedisStore};
use leasehold_testkit::{
    CommandKind, FaultProxy, Gate, Patience, RedisServer,
    contract::{Calls, alice, ttl},
    proxy::{Action, Direction, Links, Rule, Storm},
};
use tokio::runtime::Handle;

const CEILING: Duration = Duration::from_secs(25);

/// A server behind a proxy, and a connection that says what it reads.
struct Scene {
    server: RedisServer,
    proxy: FaultProxy,
}

struct Client(TcpStream);

impl Scene {
    fn new() -> Self {
        let server = RedisServer::start();
        let proxy = FaultProxy::before(&server);
        Self { server, proxy }
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", self.proxy.port())).unwrap();
        stream.set_read_timeout(Some(CEILING)).unwrap();
        Client(stream)
    }

    fn value(&self) -> Option<u64> {
        self.server.query(&["GET", "n"])
    }

    fn value_is_soon(&self, value: u64) {
        let seen = Patience::of(CEILING).until(|| (self.value() == Some(value)).then_some(()));
        assert!(seen.is_some(), "{:?}, not {value}", self.value());
    }
}

impl Client {
    fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    /// Reads exactly this.
    fn hear(&mut self, expected: &str) {
        let mut bytes = vec![0; expected.len()];
        self.0.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
    }

    /// Nothing comes for a moment.
    fn hear_nothing(&mut self) {
        self.0.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let read = self.0.read(&mut [0]);
        assert_eq!(read.unwrap_err().kind(), ErrorKind::WouldBlock);
        self.0.set_read_timeout(Some(CEILING)).unwrap();
    }

    fn hear_end(&mut self) {
        assert_eq!(self.0.read(&mut [0]).unwrap(), 0);
    }

    fn hear_reset(&mut self) {
        let error = self.0.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn nothing_changes_without_a_fault() {
    let scene = Scene::new();
    let (mut one, mut two) = (scene.connect(), scene.connect());
    one.say("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\nPING\r\nHELLO 3\r\n");
    one.hear(":1\r\n+PONG\r\n%7\r\n");
    two.say("SUBSCRIBE c\r\n");
    two.hear("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    scene.server.command(&["PUBLISH", "c", "x"]);
    two.hear("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n");
    let counts = scene.proxy.counts();
    assert_eq!((counts.accepted, counts.open, counts.refused), (2, 2, 0));
    assert_eq!((counts.requests, counts.replies, counts.pushes), (4, 4, 1));
    drop((one, two));
    let none = || (scene.proxy.counts().open == 0).then_some(());
    assert!(Patience::of(CEILING).until(none).is_some());
    drop(scene.proxy);
}

#[test]
fn a_lost_message_takes_what_follows_with_it() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let rule = scene.proxy.inject(Rule::new(Action::Drop).containing("INCR").skip(1));
    client.say("INCR n\r\nINCR n\r\nINCR n\r\n");
    client.hear(":1\r\n");
    client.hear_nothing();
    assert_eq!((scene.value(), scene.proxy.struck(rule)), (Some(1), 1));
    let rule = scene.proxy.inject(Rule::new(Action::Drop).replies().containing("INCR"));
    let mut client = scene.connect();
    client.say("PING\r\nINCR n\r\nINCR n\r\n");
    client.hear("+PONG\r\n");
    scene.value_is_soon(3);
    client.hear_nothing();
    assert_eq!(scene.proxy.struck(rule), 1);
    assert_eq!(scene.proxy.counts().lost_behind, 2);
}

#[test]
fn a_push_is_lost_or_doubled_alone_and_confirmations_are_not() {
    for hello in ["PING\r\n", "HELLO 3\r\n"] {
        let scene = Scene::new();
        scene.proxy.inject(Rule::new(Action::Drop).pushes());
        scene.proxy.inject(Rule::new(Action::Duplicate).pushes().containing("second"));
        let mut client = scene.connect();
        client.say(hello);
        client.say("SUBSCRIBE c\r\n");
        let listening = || scene.server.query::<u64>(&["PUBLISH", "c", "first"]) == 1;
        assert!(Patience::of(CEILING).until(|| listening().then_some(())).is_some());
        scene.server.command(&["PUBLISH", "c", "second"]);
        let mut heard = String::new();
        while heard.matches("second").count() < 2 {
            let mut byte = [0];
            client.0.read_exact(&mut byte).unwrap();
            heard.push(char::from(byte[0]));
        }
        assert!(heard.contains("subscribe") && !heard.contains("first"), "{heard:?}");
    }
}

#[test]
fn requests_come_twice_late_or_not_at_all() {
    let scene = Scene::new();
    let mut client = scene.connect();
    scene.proxy.inject(Rule::new(Action::Duplicate).containing("INCR"));
    client.say("INCR n\r\nGET n\r\n");
    client.hear(":1\r\n$1\r\n2\r\n");
    client.say("SELECT 1\r\n");
    client.hear("+OK\r\n");
    scene.proxy.inject(Rule::new(Action::CopyLater).containing("INCR"));
    client.say("INCR n\r\n");
    client.hear(":1\r\n");
    assert_eq!(scene.proxy.copies(), 1);
    assert_eq!(scene.proxy.replay(), [":2\r\n"]);
    assert_eq!(scene.proxy.replay(), [""; 0]);
    scene.proxy.inject(Rule::new(Action::Answer(b"-ERR no\r\n".into())).containing("INCR"));
    client.say("GET n\r\nINCR n\r\nGET n\r\n");
    client.hear("$1\r\n2\r\n-ERR no\r\n$1\r\n2\r\n");
    client.say("PING\r\n");
    client.hear("+PONG\r\n");
}

#[test]
fn messages_are_held_and_delayed_in_order() {
    let scene = Scene::new();
    let (mut client, gate) = (scene.connect(), Gate::new());
    scene.proxy.inject(Rule::new(Action::Hold(gate.clone())).containing("INCR"));
    scene.proxy.inject(Rule::new(Action::Delay(Duration::from_millis(30))).replies());
    client.say("PING\r\nINCR n\r\nGET n\r\n");
    client.hear("+PONG\r\n");
    client.hear_nothing();
    assert_eq!((gate.arrived(), scene.value()), (1, None));
    gate.open();
    client.hear(":1\r\n$1\r\n1\r\n");
    scene.proxy.delay_all(Duration::from_millis(5));
    scene.proxy.chop(true);
    client.say("INCR n\r\nGET n\r\n");
    client.hear(":2\r\n$1\r\n2\r\n");
}

#[test]
fn connections_are_cut_reset_and_refused() {
    let scene = Scene::new();
    let mut client = scene.connect();
    scene.proxy.inject(Rule::new(Action::Cut).containing("INCR"));
    client.say("INCR n\r\n");
    client.hear_end();
    assert_eq!(scene.value(), None);
    let mut client = scene.connect();
    scene.proxy.inject(Rule::new(Action::Cut).replies());
    client.say("PING\r\n");
    client.hear("+PO");
    client.hear_end();
    let mut client = scene.connect();
    scene.proxy.inject(Rule::new(Action::Reset).replies().containing("INCR"));
    client.say("INCR n\r\n");
    client.hear_reset();
    assert_eq!(scene.value(), Some(1));
    let (mut one, mut two) = (scene.connect(), scene.connect());
    for client in [&mut one, &mut two] {
        client.say("PING\r\n");
        client.hear("+PONG\r\n");
    }
    assert_eq!(scene.proxy.reset_links(Links::Nth(1)), 1);
    two.hear_reset();
    assert_eq!(scene.proxy.reset_all(), 1);
    one.hear_reset();
    scene.proxy.refuse();
    scene.connect().hear_reset();
    assert_eq!(scene.proxy.counts().refused, 1);
    scene.proxy.accept();
    let mut client = scene.connect();
    client.say("PING\r\n");
    client.hear("+PONG\r\n");
    scene.server.kill();
    client.hear_end();
    scene.connect().hear_reset();
}

#[test]
fn holes_hold_what_flows_again_when_they_are_healed() {
    let scene = Scene::new();
    let (mut one, mut two) = (scene.connect(), scene.connect());
    two.say("SUBSCRIBE c\r\n");
    two.hear("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    assert_eq!(scene.proxy.black_hole_links(Links::Subscribed, Direction::ToClient), 1);
    assert_eq!(scene.server.query::<u64>(&["PUBLISH", "c", "x"]), 1);
    two.hear_nothing();
    scene.proxy.black_hole(Direction::ToServer);
    one.say("INCR n\r\n");
    one.hear_nothing();
    assert_eq!(scene.value(), None);
    scene.proxy.heal();
    one.hear(":1\r\n");
    two.hear("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n");
    scene.proxy.black_hole(Direction::ToClient);
    let mut three = scene.connect();
    three.say("INCR n\r\n");
    scene.value_is_soon(2);
    // An end does not pass a hole either.
    scene.server.kill();
    three.hear_nothing();
    scene.proxy.heal();
    three.hear(":2\r\n");
    three.hear_end();
}

#[tokio::test]
async fn the_library_s_commands_are_told_apart() {
    let scene = Scene::new();
    let config = RedisConfig::new(&scene.proxy.url()).unwrap().connect_timeout(CEILING);
    let (clock, id) = (Arc::new(SystemClock), SystemEntropy.runtime_id());
    let store = RedisStore::connect(&config, clock, Handle::current(), id).await.unwrap();
    let name = LockName::new("a").unwrap();
    let calls = Calls::new(Arc::new(store), &name, SystemClock.now() + CEILING);

    let late = Action::Delay(Duration::from_millis(1));
    let acquires = Rule::new(Action::Duplicate).on(CommandKind::Acquire).always();
    let acquires = scene.proxy.inject(acquires);
    let renewals = Rule::new(late).replies().on(CommandKind::Renew).always();
    let renewals = scene.proxy.inject(renewals);
    let answer = calls.acquire(alice(1), ttl(60), None).await.unwrap();
    let AcquireAnswer::Granted(granted) = answer else { panic!("{answer:?}") };
    let renewal =
        Renewal { name, id: alice(1), fence: granted.first, ttl: ttl(60), acks: Replication::NONE };
    let answer = calls.renew(&[renewal]).await.unwrap();
    assert!(matches!(answer[..], [RenewAnswer::Renewed { .. }]), "{answer:?}");
    // Each by its digest, which the server does not know yet, and then with its text.
    assert_eq!((scene.proxy.struck(acquires), scene.proxy.struck(renewals)), (2, 2));
    assert_eq!(scene.proxy.reset_links(Links::Carrying(CommandKind::Renew)), 1);
}

#[test]
fn a_storm_strikes_until_it_is_calm() {
    let scene = Scene::new();
    let max_delay = Duration::from_millis(1);
    let (reset, delay) = (100_000, 100_000);
    scene.proxy.storm(Storm { seed: 1, reset, delay, max_delay, ..Storm::default() });
    let reset = (0..200).filter(|_| {
        let mut client = scene.connect();
        client.say("PING\r\n");
        client.0.read(&mut [0; 7]).is_err()
    });
    // A tenth of requests, and of the replies to the others.
    assert!((10..80).contains(&reset.count()));
    assert!(scene.proxy.counts().struck >= 20);
    scene.proxy.calm();
    let before = scene.proxy.counts().struck;
    for _ in 0..20 {
        let mut client = scene.connect();
        client.say("PING\r\n");
        client.hear("+PONG\r\n");
    }
    assert_eq!(scene.proxy.counts().struck, before);
}

#[test]
fn thousands_of_messages_pass() {
    let scene = Scene::new();
    let mut client = scene.connect();
    let mut writing = client.0.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        for _ in 0..20_000 {
            writing.write_all(b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n").unwrap();
        }
    });
    for value in 1..=20_000 {
        client.hear(&format!(":{value}\r\n"));
    }
    writer.join().unwrap();
}
