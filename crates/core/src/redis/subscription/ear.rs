use std::sync::{
    Weak,
    atomic::{AtomicBool, Ordering},
};

use redis::{PushInfo, PushKind, Value};
use tokio::sync::Notify;

use crate::{
    redis::message,
    store::{Listener, Push},
};

/// Takes what one connection brings, on the task that reads it: nothing is queued in between.
#[derive(Debug)]
pub(super) struct Ear {
    listener: Weak<dyn Listener>,
    deaf: Notify,
    puzzled: AtomicBool,
}

impl Ear {
    /// An ear that passes on to a listener for as long as that one lives.
    pub(super) fn new(listener: Weak<dyn Listener>) -> Self {
        Self { listener, deaf: Notify::new(), puzzled: AtomicBool::new(false) }
    }

    /// Takes what the client library read, or what it says of the connection.
    pub(super) fn hear(&self, push: &PushInfo) {
        match push.kind {
            PushKind::Message => match push.data.as_slice() {
                [_channel, Value::BulkString(payload)] => self.read(payload),
                _ => self.wonder(0),
            },
            // Told from here, so that it comes before the first message.
            PushKind::Subscribe => self.tell(Push::Listening),
            PushKind::Unsubscribe | PushKind::Disconnection => self.deaf.notify_one(),
            _ => {}
        }
    }

    /// Waits until nothing more will be heard, or nobody is there who would hear it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next one resolves instead.
    pub(super) async fn deaf(&self) {
        self.deaf.notified().await;
    }

    fn read(&self, payload: &[u8]) {
        match message::parse(payload) {
            Some(push) => self.tell(push),
            None => self.wonder(payload.len()),
        }
    }

    fn tell(&self, push: Push) {
        match self.listener.upgrade() {
            Some(listener) => listener.heard(push),
            None => self.deaf.notify_one(),
        }
    }

    /// Logs a message that is not understood; the first of a connection so that it is seen.
    fn wonder(&self, bytes: usize) {
        const WHAT: &str = "a message that is not understood was ignored; \
            use one version of Leasehold per namespace, and let nobody else publish there";
        if self.puzzled.swap(true, Ordering::Relaxed) {
            tracing::debug!(bytes, "{WHAT}");
        } else {
            tracing::warn!(bytes, "{WHAT}");
        }
    }
}
