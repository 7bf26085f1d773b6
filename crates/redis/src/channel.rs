use std::sync::Arc;

use tokio::sync::watch;

/// A channel of the servers: that of a runtime, on which it hears what any node of a Cluster publishes, or
/// its sharded channel at one master of a Cluster.
#[derive(Clone)]
// ADR 0030
pub(super) struct Channel {
    /// The plain channel of the runtime.
    pub(super) plain: String,
    /// What follows it if it is sharded.
    pub(super) tag: Option<Arc<ChannelTag>>,
}

impl Channel {
    /// The name to subscribe to now, as soon as it is known.
    pub(super) async fn name(&self) -> String {
        let Some(tag) = &self.tag else { return self.plain.clone() };
        let mut tags = tag.0.subscribe();
        let known = tags.wait_for(|tag| !tag.is_empty()).await;
        known.map(|tag| format!("{}{}", self.plain, *tag)).unwrap_or_default()
    }

    /// Returns when the channel has another name than it had.
    pub(super) async fn renamed(&self, from: &str) {
        let Some(tag) = &self.tag else { return std::future::pending().await };
        let is_other = |tag: &String| from.strip_prefix(self.plain.as_str()) != Some(tag);
        drop(tag.0.subscribe().wait_for(is_other).await);
    }

    /// The command that subscribes to it.
    pub(super) fn verb(&self) -> &'static str {
        if self.is_spare() { "SSUBSCRIBE" } else { "SUBSCRIBE" }
    }

    /// Whether messages come another way without it.
    pub(super) fn is_spare(&self) -> bool {
        self.tag.is_some()
    }
}

/// What stands behind the channels of all runtimes at one master of a Cluster: a hash tag of a slot that the master
/// owns, in braces. All processes that know the same slots make the same of them.
#[derive(Debug, Default)]
pub(super) struct ChannelTag(watch::Sender<String>);

impl ChannelTag {
    /// The present one; empty if none is known.
    pub(super) fn now(&self) -> String {
        self.0.borrow().clone()
    }

    /// The master has other slots now.
    pub(super) fn set(&self, tag: Option<String>) {
        let braced = tag.map(|tag| format!("{{{tag}}}")).unwrap_or_default();
        self.0.send_if_modified(|now| {
            let is_other = *now != braced;
            *now = braced;
            is_other
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_sharded_channel_has_the_name_that_its_tag_gives() {
        let tag = Arc::<ChannelTag>::default();
        let channel = Channel { plain: "ns:runtime:x".into(), tag: Some(Arc::clone(&tag)) };
        assert_eq!(channel.name().now_or_never(), None, "no slot is known");
        tag.set(Some("7".into()));
        let name = channel.name().now_or_never().unwrap();
        assert_eq!((name.as_str(), tag.now().as_str()), ("ns:runtime:x{7}", "{7}"));
        tag.set(Some("7".into()));
        assert_eq!(channel.renamed(&name).now_or_never(), None);
        tag.set(Some("8".into()));
        assert_eq!(channel.renamed(&name).now_or_never(), Some(()));
        let name = channel.name().now_or_never().unwrap();
        tag.set(None);
        assert_eq!(channel.renamed(&name).now_or_never(), Some(()), "the master has no slot");
    }
}
