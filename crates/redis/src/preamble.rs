use std::sync::Arc;

use leasehold_core::{FenceSettings, LockName, store::KeyScheme};
use redis::Cmd;

use super::channel::ChannelTag;

/// What every script on locks takes before its own arguments.
#[derive(Debug, Clone)]
pub(super) struct Preamble {
    pub(super) keys: KeyScheme,
    retention: String,
    channels: String,
    /// Of a node of a Cluster.
    pub(super) tag: Option<Arc<ChannelTag>>,
}

impl Preamble {
    pub(super) fn new(keys: KeyScheme, fencing: FenceSettings) -> Self {
        let (retention, channels) = (fencing.retention_millis().to_string(), keys.channels());
        Self { keys, retention, channels, tag: None }
    }

    /// The same for a node of a Cluster, with what stands behind the channels there.
    pub(super) fn at(self, tag: Option<Arc<ChannelTag>>) -> Self {
        Self { tag, ..self }
    }

    /// Writes the arguments with which every script begins.
    pub(super) fn write_settings(&self, to: &mut Cmd) {
        to.arg(&self.retention);
        match &self.tag {
            None => to.arg(&self.channels),
            Some(tag) => to.arg(self.channels.clone() + &tag.now()),
        };
    }

    pub(super) fn write_keys(&self, to: &mut Cmd, name: &LockName) {
        to.arg(&self.keys.all(name));
    }
}
