use redis::Value;

use crate::site::{Site, Topology};

/// How a message travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    /// Not at all: what the rest costs.
    None,
    /// By a channel that every node hears.
    Plain,
    /// By a channel that belongs to a slot; Redis has them since version 7.0.
    Sharded,
}

impl Channel {
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Plain, Self::Sharded];

    /// What rows call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "no message",
            Self::Plain => "plain",
            Self::Sharded => "sharded",
        }
    }

    /// Whether a site has such channels.
    pub(super) fn exists_at(self, site: &Site) -> bool {
        let knows = || {
            let server = &site.masters()[0];
            let command: Vec<Value> = server.query(&["COMMAND", "INFO", "SSUBSCRIBE"]);
            command.iter().any(|known| *known != Value::Nil)
        };
        match self {
            Self::None | Self::Plain => true,
            Self::Sharded => site.topology != Topology::One && knows(),
        }
    }

    /// A script that publishes its second argument, or nothing.
    pub(super) fn script(self) -> &'static str {
        match self {
            Self::None => "return redis.call('GET', KEYS[1])",
            Self::Plain => "redis.call('PUBLISH', ARGV[1], ARGV[2]) return false",
            Self::Sharded => "redis.call('SPUBLISH', ARGV[1], ARGV[2]) return false",
        }
    }

    /// The first word of a message, if there is any.
    pub(super) fn word(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Plain => Some("message"),
            Self::Sharded => Some("smessage"),
        }
    }

    /// The command that subscribes.
    pub(super) fn subscribe(self) -> &'static str {
        match self {
            Self::None | Self::Plain => "SUBSCRIBE",
            Self::Sharded => "SSUBSCRIBE",
        }
    }

    /// The command that ends a subscription.
    pub(super) fn unsubscribe(self) -> &'static str {
        match self {
            Self::None | Self::Plain => "UNSUBSCRIBE",
            Self::Sharded => "SUNSUBSCRIBE",
        }
    }
}
