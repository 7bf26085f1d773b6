use super::{
    action::Action,
    message::{Message, Side, contains},
};
use crate::faulty::CommandKind;

/// Which messages an action strikes: by default the next request of any kind, once.
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing by itself; give it to `FaultProxy::inject`"]
pub struct Rule {
    action: Action,
    side: Side,
    kind: Option<CommandKind>,
    text: Vec<u8>,
    skip: u64,
    times: u64,
    seen: u64,
}

/// Names a rule that was injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId(pub(super) usize);

impl Rule {
    /// A rule that strikes the next request.
    pub fn new(action: Action) -> Self {
        let (side, kind, text) = (Side::Request, None, Vec::new());
        Self { action, side, kind, text, skip: 0, times: 1, seen: 0 }
    }

    /// Strikes requests. This is the default.
    pub fn requests(self) -> Self {
        Self { side: Side::Request, ..self }
    }

    /// Strikes replies, which are meant by the kind and the words of their request. The
    /// confirmation of a subscription is a reply.
    pub fn replies(self) -> Self {
        Self { side: Side::Reply, ..self }
    }

    /// Strikes what the server says unasked.
    pub fn pushes(self) -> Self {
        Self { side: Side::Push, ..self }
    }

    /// Strikes this kind of the library's commands only. Defaults to any message.
    pub fn on(self, kind: CommandKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// Strikes messages in which these bytes occur only. Defaults to any message.
    pub fn containing(self, text: impl AsRef<[u8]>) -> Self {
        Self { text: text.as_ref().to_vec(), ..self }
    }

    /// Lets so many matching messages pass first. Defaults to none.
    pub fn skip(self, n: u64) -> Self {
        Self { skip: n, ..self }
    }

    /// Strikes this many matching messages in a row. Defaults to one.
    pub fn times(self, n: u64) -> Self {
        Self { times: n, ..self }
    }

    /// Strikes every matching message from the first on. Defaults to one.
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    /// Whether the rule makes sense: a reply cannot come twice, and there is no later copy of it.
    pub(super) fn is_sound(&self) -> bool {
        match self.action {
            Action::Duplicate => self.side != Side::Reply,
            Action::CopyLater => self.side == Side::Request,
            _ => true,
        }
    }

    /// Counts a message if it matches; whether it is struck.
    pub(super) fn meets(&mut self, message: &Message<'_>) -> bool {
        let kind = self.kind.is_none_or(|kind| message.kinds.contains(&kind));
        if !(kind && self.side == message.side && contains(message.text, &self.text)) {
            return false;
        }
        self.seen += 1;
        self.seen > self.skip && self.seen - self.skip <= self.times
    }

    /// What strikes.
    pub(super) fn action(&self) -> Action {
        self.action.clone()
    }
}
