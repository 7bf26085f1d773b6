//! The gate on object stores: the one in memory, and the S3 client over HTTP/1.1.

use std::sync::{Arc, Mutex};

use leasehold::{
    Stamp,
    fencing::{FenceGate, GateError, ObjectGate},
};
use leasehold_testkit::{
    contract::Task,
    gates::{BehindRelay, Faults, GateSubject, Outcome, Relay, Upstream},
};
use object_store::{Error, ObjectStore, ObjectStoreExt, path::Path};

use super::words::outcome;
use crate::{
    object::steered::{Pause, Steered},
    s3::{Manner, S3Server, client, client_that_never_repeats},
};

/// A store, and a gate before it. A name is written at `Path::from(name)`, as the guide does.
#[derive(Debug)]
struct Objects {
    store: Arc<dyn ObjectStore>,
    gate: ObjectGate,
    etags_of_bytes: bool,
}

impl Objects {
    fn on(store: Arc<dyn ObjectStore>, etags_of_bytes: bool) -> Self {
        let gate = ObjectGate::new(Arc::clone(&store)).bytes_differ(true);
        Self { store, gate, etags_of_bytes }
    }

    /// Those that are the text of the path that they mean, however they are read.
    fn accepts(name: &str) -> bool {
        let path = Path::from(name);
        let is_one = Path::parse(name).is_ok_and(|parsed| parsed == path);
        is_one
            && path.as_ref() == name
            && !path.is_root()
            && path.as_ref().len() <= ObjectGate::MAX_PATH_BYTES
    }

    async fn write(&self, name: &str, value: &str, presented: Stamp) -> Outcome {
        outcome(self.gate.put(&Path::from(name), value.to_owned(), presented).await)
    }

    /// By the name itself, as behind a `dyn FenceGate`.
    async fn advance(&self, name: &str, presented: Stamp) -> Outcome {
        match FenceGate::advance(&self.gate, name, presented).await {
            // Only who had looked already is not shut out; `stores.rs` of the gate's tests shows
            // that.
            Err(GateError::NotShutOut(_)) if self.etags_of_bytes => Outcome::Accepted,
            advanced => outcome(advanced),
        }
    }

    async fn read(&self, name: &str) -> Option<String> {
        let found = match self.store.get(&Path::from(name)).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return None,
            Err(error) => panic!("{error}"),
        };
        if ObjectGate::is_placeholder(&found.attributes) {
            return None;
        }
        Some(String::from_utf8(found.bytes().await.unwrap().to_vec()).unwrap())
    }

    async fn write_past(&self, name: &str, value: &str) -> Outcome {
        match self.store.put(&Path::from(name), value.to_owned().into()).await {
            Ok(_) => Outcome::Accepted,
            Err(_) => Outcome::Unknown,
        }
    }
}

/// The crate's store in memory.
#[derive(Debug)]
pub(crate) struct InMemorySubject {
    objects: Objects,
    steering: Steering,
}

/// What goes wrong within the process.
#[derive(Debug)]
struct Steering {
    steered: Arc<Steered>,
    paused: Mutex<Option<Arc<Pause>>>,
}

impl Steering {
    fn paused(&self) -> Arc<Pause> {
        Arc::clone(self.paused.lock().unwrap().as_ref().expect("a write is held"))
    }
}

/// The next write is meant: one at a time is under way.
impl Faults for Steering {
    fn lose_answer(&self, _of: Stamp, _gated: bool) {
        self.steered.lose_next_answer();
    }

    fn hold(&self, _of: Stamp) {
        *self.paused.lock().unwrap() = Some(self.steered.pause_next());
    }

    fn held(&self) -> Task<'_> {
        Box::pin(async move { self.paused().reached().await })
    }

    /// A writer that has gone has taken its write with it.
    fn deliver(&self) -> Task<'_> {
        self.paused().end();
        Box::pin(tokio::task::yield_now())
    }

    fn has_struck(&self) -> bool {
        self.steered.has_lost_answer()
    }

    /// A write is one step of the process itself.
    fn crash_points(&self) -> u64 {
        0
    }

    fn crash_at(&self, _point: u64) {}

    fn calm(&self) {}
}

/// The S3 client before a small server, with a relay between them.
#[derive(Debug)]
struct S3 {
    objects: Objects,
    repeats: bool,
    relay: Relay,
    _server: S3Server,
}

impl S3 {
    async fn start(manner: Manner, repeats: bool) -> Self {
        let server = S3Server::start(manner).await;
        let relay = Relay::before(Upstream::Tcp(server.port())).await;
        let client =
            if repeats { client(relay.port()) } else { client_that_never_repeats(relay.port()) };
        let objects = Objects::on(client, manner.etags_of_bytes);
        Self { objects, repeats, relay, _server: server }
    }
}

/// The stamp stands in the metadata, or in the body.
impl BehindRelay for S3 {
    fn relay(&self) -> &Relay {
        &self.relay
    }

    fn client_repeats(&self) -> bool {
        self.repeats
    }
}

/// A server whose ETags change with every write, and a client that repeats by itself, as it does
/// unless told otherwise.
#[derive(Debug)]
pub(crate) struct S3Subject(S3);

/// One whose ETags come from the bytes, which differ with every lease, and a client that never
/// repeats.
#[derive(Debug)]
pub(crate) struct S3OfBytesSubject(S3);

/// What the suite asks of a gate on objects; the parts of a subject are named after it.
macro_rules! on_objects {
    ($subject:ident, $start:expr, [$($objects:tt)*], [$($faults:tt)*]) => {
        impl GateSubject for $subject {
            fn start() -> Task<'static, Arc<dyn GateSubject>> {
                Box::pin(async { Arc::new($start.await) as _ })
            }

            fn accepts(&self, name: &str) -> bool {
                Objects::accepts(name)
            }

            fn write<'a>(
                &'a self,
                name: &'a str,
                value: &'a str,
                presented: Stamp,
            ) -> Task<'a, Outcome> {
                Box::pin(self$($objects)*.write(name, value, presented))
            }

            fn advance<'a>(&'a self, name: &'a str, presented: Stamp) -> Task<'a, Outcome> {
                Box::pin(self$($objects)*.advance(name, presented))
            }

            fn read<'a>(&'a self, name: &'a str) -> Task<'a, Option<String>> {
                Box::pin(self$($objects)*.read(name))
            }

            fn write_past<'a>(&'a self, name: &'a str, value: &'a str) -> Task<'a, Outcome> {
                Box::pin(self$($objects)*.write_past(name, value))
            }

            fn faults(&self) -> Option<&dyn Faults> {
                Some(&self$($faults)*)
            }
        }
    };
}

fn in_memory() -> InMemorySubject {
    let steered = Steered::sound();
    let objects = Objects::on(Arc::clone(&steered) as Arc<dyn ObjectStore>, false);
    InMemorySubject { objects, steering: Steering { steered, paused: Mutex::default() } }
}

async fn s3() -> S3Subject {
    S3Subject(S3::start(Manner::default(), true).await)
}

async fn s3_of_bytes() -> S3OfBytesSubject {
    let of_bytes = Manner { etags_of_bytes: true, ..Manner::default() };
    S3OfBytesSubject(S3::start(of_bytes, false).await)
}

on_objects!(InMemorySubject, std::future::ready(in_memory()), [.objects], [.steering]);
on_objects!(S3Subject, s3(), [.0.objects], [.0]);
on_objects!(S3OfBytesSubject, s3_of_bytes(), [.0.objects], [.0]);
