use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::message::words;
use crate::faulty::CommandKind;

/// The requests of a connection that are yet to be answered, in order.
#[derive(Debug, Default)]
pub(super) struct Line {
    state: Mutex<State>,
    /// Told when an answer of the proxy's own came into the line.
    pub(super) answered: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Asked>,
    resp3: bool,
    subscribed: bool,
}

/// A request that waits for its reply.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    pub(super) kinds: Vec<CommandKind>,
    /// Its words, up to a limit.
    pub(super) text: Vec<u8>,
    /// Whether the client does not know of it.
    pub(super) is_copy: bool,
    /// What the proxy answers in place of the server.
    pub(super) answer: Option<Vec<u8>>,
    /// How many confirmations of subscriptions come in place of a reply.
    confirmations: usize,
}

/// What came from the server.
#[derive(Debug)]
pub(super) enum Heard {
    /// Unasked.
    Push,
    /// The answer to this.
    Reply(Asked),
}

impl Asked {
    /// As much of a request as is remembered.
    const MOST: usize = 64 << 10;

    pub(super) fn new(kinds: Vec<CommandKind>, request: &[u8], words: &[&[u8]]) -> Self {
        let text = request[..request.len().min(Self::MOST)].to_vec();
        let subscribes = words.first().is_some_and(|verb| is_subscription(verb));
        // Who names no channel gets one confirmation at least.
        let confirmations = if subscribes { (words.len() - 1).max(1) } else { 0 };
        Self { kinds, text, confirmations, ..Self::default() }
    }

    /// The same once more, of which the client does not know.
    pub(super) fn copy(self) -> Self {
        Self { is_copy: true, ..self }
    }

    /// The same, answered by the proxy.
    pub(super) fn answered_with(self, answer: Vec<u8>) -> Self {
        Self { answer: Some(answer), ..self }
    }

    /// Whether it subscribes to something, or ends that.
    pub(super) fn subscribes(&self) -> bool {
        self.confirmations > 0
    }
}

impl Line {
    /// Puts a request into the line; it is about to be sent, or answered by the proxy.
    pub(super) fn ask(&self, asked: Asked) {
        let mut state = self.state();
        state.subscribed |= asked.subscribes();
        let own = asked.answer.is_some();
        state.queue.push_back(asked);
        drop(state);
        if own {
            self.answered.notify_one();
        }
    }

    /// The client wants to be spoken to in RESP3.
    pub(super) fn speak_resp3(&self) {
        self.state().resp3 = true;
    }

    /// The answer of the proxy's own whose turn it is.
    pub(super) fn own_answer(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        state.queue.front()?.answer.as_ref()?;
        state.queue.pop_front()?.answer
    }

    /// Tells what a message of the server is.
    pub(super) fn hear(&self, message: &[u8]) -> Heard {
        let mut state = self.state();
        let word = state.unasked(message);
        if word.is_empty() {
            return Heard::Reply(state.queue.pop_front().unwrap_or_default());
        }
        let front = state.queue.front_mut().filter(|front| front.confirmations > 0);
        let Some(front) = front.filter(|_| is_subscription(&word)) else { return Heard::Push };
        front.confirmations -= 1;
        let asked = front.clone();
        if asked.confirmations == 0 {
            state.queue.pop_front();
        }
        Heard::Reply(asked)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The first word of a message that is no plain reply; empty for one that is.
    fn unasked(&self, message: &[u8]) -> Vec<u8> {
        let kind = message.first();
        if kind == Some(&b'>') {
            return words(message).first().map_or_else(|| b"?".to_vec(), |word| word.to_vec());
        }
        if self.resp3 || !self.subscribed || kind != Some(&b'*') {
            return Vec::new();
        }
        let first = words(message).first().map(|word| word.to_vec()).unwrap_or_default();
        let messages = [&b"message"[..], b"pmessage", b"smessage"];
        let unasked = messages.contains(&&*first) || is_subscription(&first);
        if unasked { first } else { Vec::new() }
    }
}

fn is_subscription(verb: &[u8]) -> bool {
    const VERBS: [&str; 6] =
        ["subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"];
    VERBS.iter().any(|known| verb.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &Line, words: &[&str]) {
        let bytes: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        line.ask(Asked::new(Vec::new(), words.join(" ").as_bytes(), &bytes));
    }

    fn hear(line: &Line, message: &str) -> String {
        match line.hear(message.as_bytes()) {
            Heard::Push => "push".into(),
            Heard::Reply(asked) => String::from_utf8(asked.text).unwrap(),
        }
    }

    #[test]
    fn replies_belong_to_their_requests_and_pushes_to_none() {
        let line = Line::default();
        line.speak_resp3();
        ask(&line, &["HELLO", "3"]);
        ask(&line, &["SUBSCRIBE", "a", "b"]);
        ask(&line, &["PING"]);
        assert_eq!(hear(&line, "%1\r\n+a\r\n:1\r\n"), "HELLO 3");
        assert_eq!(hear(&line, ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"), "SUBSCRIBE a b");
        assert_eq!(hear(&line, ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"), "push");
        assert_eq!(hear(&line, ">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"), "SUBSCRIBE a b");
        assert_eq!(hear(&line, ">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"), "push");
        assert_eq!(hear(&line, "+PONG\r\n"), "PING");
    }

    #[test]
    fn messages_look_like_replies_in_resp2() {
        let line = Line::default();
        ask(&line, &["GET", "a"]);
        assert_eq!(hear(&line, "*1\r\n$7\r\nmessage\r\n"), "GET a");
        ask(&line, &["subscribe", "a"]);
        ask(&line, &["PING"]);
        assert_eq!(hear(&line, "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"), "subscribe a");
        assert_eq!(hear(&line, "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"), "push");
        assert_eq!(hear(&line, "*2\r\n$4\r\npong\r\n$0\r\n\r\n"), "PING");
    }

    #[test]
    fn a_refused_subscription_is_answered_like_any_request() {
        let line = Line::default();
        ask(&line, &["SUBSCRIBE", "a", "b"]);
        assert_eq!(hear(&line, "-NOPERM no\r\n"), "SUBSCRIBE a b");
    }

    #[test]
    fn own_answers_wait_for_their_turn() {
        let line = Line::default();
        ask(&line, &["GET"]);
        line.ask(Asked { answer: Some(b"+OK\r\n".to_vec()), ..Asked::default() });
        assert_eq!(line.own_answer(), None);
        assert_eq!(hear(&line, ":1\r\n"), "GET");
        assert_eq!(line.own_answer(), Some(b"+OK\r\n".to_vec()));
        assert_eq!(line.own_answer(), None);
    }
}
