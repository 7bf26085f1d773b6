use std::ops::Range;

use leasehold::RuntimeId;
use leasehold_testkit::RedisServer;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use redis::{Client, Connection};

use super::wait;

/// The greatest fence that there can be.
pub(crate) const GREATEST: u64 = (1 << 53) - 1;

/// Somebody who has no keys of a server, but may publish there, and knows the format of messages.
pub(crate) struct Forger {
    connection: Connection,
    /// How many messages it has published.
    pub(crate) said: u64,
}

impl Forger {
    /// Numbers of acquisitions, and of heartbeats, that it guesses.
    const GUESSES: u64 = 32;

    pub(crate) fn of(server: &RedisServer) -> Self {
        let rights = ["reset", "on", ">forged", "&*", "+publish", "+pubsub"];
        server.command(&[&["ACL", "SETUSER", "forger"], &rights[..]].concat());
        let client = Client::open(server.url_with("forger", "forged", 0)).expect("an address");
        let connection = client.get_connection().expect("the server answers");
        Self { connection, said: 0 }
    }

    /// The runtimes that listen.
    pub(crate) fn runtimes(&mut self) -> Vec<String> {
        let mut asked = redis::cmd("PUBSUB");
        let channels = asked.arg("CHANNELS").arg("leasehold:runtime:*");
        let channels: Vec<String> = channels.query(&mut self.connection).expect("the right");
        let runtime = |channel: &String| channel.rsplit(':').next().map(str::to_owned);
        channels.iter().filter_map(runtime).collect()
    }

    /// Sends messages to a runtime.
    pub(crate) fn say(&mut self, to: RuntimeId, messages: impl IntoIterator<Item = String>) {
        let mut call = redis::pipe();
        for message in messages {
            call.publish(format!("leasehold:runtime:{to}"), message).ignore();
            self.said += 1;
        }
        call.query::<()>(&mut self.connection).expect("the right to publish");
    }

    /// Tells a runtime that it has been granted a lock, under each acquisition and heartbeat that it
    /// may have by now.
    pub(crate) fn grant(&mut self, to: RuntimeId, lock: &str, fence: u64) {
        let guesses =
            (1..=Self::GUESSES).flat_map(|id| (1..=Self::GUESSES).map(move |beat| (id, beat)));
        let message =
            |(id, beat)| format!("granted {to}:{id} {fence} {fence} {beat} 60000 0 0 {lock}");
        self.say(to, guesses.map(message));
    }

    /// Tells a runtime something about a lease, under each acquisition that it may have.
    pub(crate) fn tell_holder(&mut self, word: &str, to: RuntimeId, lock: &str, fence: u64) {
        self.say(to, (1..=Self::GUESSES).map(|id| format!("{word} {to}:{id} {fence} {lock}")));
    }

    /// Tells a runtime that it has been granted locks which it has never heard of, with these numbers.
    pub(crate) fn grant_unknown(&mut self, to: RuntimeId, numbers: Range<usize>) {
        let message =
            |number| format!("granted {to}:7 {GREATEST} {GREATEST} 1 60000 0 0 unknown-{number}");
        self.say(to, numbers.map(message));
    }
}

/// Runs a future, with what its runtimes count, on one thread.
pub(crate) fn counting<F: Future<Output = ()>>(part: impl FnOnce(Dropped) -> F) {
    let recorder = DebuggingRecorder::new();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let dropped = Dropped { recorder: recorder.snapshotter(), seen: 0 };
    metrics::with_local_recorder(&recorder, || {
        tokio.expect("a tokio runtime").block_on(part(dropped));
    });
}

/// A waiter that believes what one server says to it: the damage that a message does there.
pub(crate) fn believes_its_channel(server: &RedisServer) {
    let client = Client::open(server.url()).expect("an address");
    let mut connection = client.get_connection().expect("the server answers");
    server.command(&["SET", "naive:a", "holder", "PX", "60000"]);
    let mut ear = connection.as_pubsub();
    ear.set_read_timeout(Some(wait::CEILING)).expect("a time");
    ear.subscribe("naive:free:a").expect("the right to listen");
    let mut forging = redis::cmd("PUBLISH");
    let forging = forging.arg("naive:free:a").arg("granted");
    forging.query::<()>(&mut Forger::of(server).connection).expect("the right to publish");
    let heard: String = ear.get_message().and_then(|heard| heard.get_payload()).expect("a message");
    let is_held: bool = server.query(&["EXISTS", "naive:a"]);
    assert!(heard == "granted" && is_held, "the control came to no harm");
}

/// Counts the messages that the runtimes of a test have dropped as forged.
pub(crate) struct Dropped {
    recorder: Snapshotter,
    seen: u64,
}

impl Dropped {
    /// How many until now.
    pub(crate) fn count(&mut self) -> u64 {
        for (key, _, _, value) in self.recorder.snapshot().into_vec() {
            let (key, DebugValue::Counter(count)) = (key.key(), value) else { continue };
            let is_drop = key
                .labels()
                .any(|label| label.value() == "unproven" || label.value() == "unexpected");
            // A snapshot begins the counters anew.
            self.seen +=
                if key.name() == "leasehold_messages_total" && is_drop { count } else { 0 };
        }
        self.seen
    }

    /// Waits until all that was said has been dropped.
    pub(crate) async fn all_of(&mut self, forger: &Forger) {
        wait::until("each forged message is dropped and counted", || self.count() >= forger.said)
            .await;
    }
}
