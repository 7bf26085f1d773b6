use std::{collections::BTreeMap, time::Duration};

use leasehold_core::LockName;
use leasehold_quorum::{NodeCommand, Word};
use leasehold_testkit::RedisServer;
use redis::{Cmd, Connection, FromRedisValue, Value, cmd};

/// The tolerance of the node.
pub(super) const TOLERANCE: Duration = Duration::from_secs(5);

/// How long counters are kept: the shortest retention.
const RETENTION: Duration = Duration::from_secs(3600);

/// For how long something is dead that was withdrawn.
const MARK: u64 = 30_000;

/// Which ways of the script are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ways {
    All,
    Long,
}

/// What a node keeps of a lock: lease, waiters, withdrawn.
pub(super) type Kept = (Option<String>, BTreeMap<String, String>, BTreeMap<String, String>);

/// The script on a server, under a prefix of its own, at a time of its own.
pub(super) struct Node {
    connection: Connection,
    prefix: &'static str,
    /// The digest of the script.
    script: String,
}

macro_rules! lua {
    ($file:literal) => {
        include_str!(concat!("../../../crates/quorum/src/lua/", $file))
    };
}

/// Replaces what has to be there.
fn patched(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the script has no {from:?}");
    text.replace(from, to)
}

fn body(ways: Ways) -> String {
    let head = patched(lua!("head.lua"), "call('TIME')", "{0, call('GET', 'clock')}");
    let rest = patched(
        lua!("rest.lua"),
        "call('PUBLISH', message[1], message[2])",
        "call('RPUSH', 'told', message[1] .. ' ' .. message[2])",
    );
    let mut usual = lua!("usual.lua").to_owned();
    if ways == Ways::Long {
        usual = patched(&usual, "kind == 32", "false");
    }
    // A key expires by the server's clock, which goes on while a busy machine stands still.
    let line = patched(
        lua!("line.lua"),
        "call('PEXPIRE', lock.waiters, life)",
        "call('PEXPIRE', lock.waiters, life + 60000)",
    );
    let parts = [lua!("row.lua"), &line, lua!("ask.lua"), &rest];
    [
        &head,
        "local function general(now, now_ms)\n",
        &parts.concat(),
        "return run_alone end\n",
        &usual,
    ]
    .concat()
}

impl Node {
    pub(super) fn on(server: &RedisServer, ways: Ways) -> Self {
        let client = redis::Client::open(server.url()).expect("an address");
        let connection = client.get_connection().expect("the server lets everybody in");
        let prefix = if ways == Ways::All { "all" } else { "long" };
        let mut node = Self { connection, prefix, script: String::new() };
        node.script = node.ask(cmd("SCRIPT").arg("LOAD").arg(body(ways)));
        let _: Value =
            node.ask(cmd("SET").arg(format!("{prefix}:boot")).arg("1000000000000 100 run"));
        node
    }

    fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> T {
        command.query(&mut self.connection).expect("an answer")
    }

    fn key(&self, name: &LockName, what: &str) -> String {
        format!("{}:{{{name}}}:{what}", self.prefix)
    }

    /// Runs commands as one call, at a time in microseconds.
    pub(super) fn run(&mut self, now: u64, commands: &[NodeCommand]) -> Vec<Value> {
        let _: Value = self.ask(cmd("SET").arg("clock").arg(now));
        let mut call = cmd("EVALSHA");
        call.arg(&self.script).arg(1 + commands.len()).arg(format!("{}:boot", self.prefix));
        for command in commands {
            call.arg(self.key(&command.name, "lease"));
        }
        let (retention, tolerance) = (millis(RETENTION), millis(TOLERANCE) * 1_000);
        call.arg(format!("{retention:013} {tolerance:010} runtime:"));
        let mut common = None;
        for NodeCommand { id, word, .. } in commands {
            if let Some(of_word) = common_of(word)
                && common.as_ref() != Some(&of_word)
            {
                call.arg(&of_word);
                common = Some(of_word);
            }
            write(&mut call, &id.to_string(), word);
        }
        match self.ask(&call) {
            Value::Array(answers) => answers.into_iter().map(as_number).collect(),
            Value::BulkString(numbers) => {
                let numbers = numbers.split(|byte| *byte == b' ').map(<[u8]>::to_vec);
                numbers.map(Value::BulkString).map(as_number).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// What was told since the last time.
    pub(super) fn told(&mut self) -> Vec<String> {
        let told = self.ask(cmd("LRANGE").arg("told").arg(0).arg(-1));
        let _: Value = self.ask(cmd("DEL").arg("told"));
        told
    }

    pub(super) fn keeps(&mut self, name: &LockName) -> Kept {
        let [lease, waiters, withdrawn] =
            ["lease", "waiters", "withdrawn"].map(|what| self.key(name, what));
        (
            self.ask(cmd("GET").arg(lease)),
            self.ask(cmd("HGETALL").arg(waiters)),
            self.ask(cmd("ZRANGE").arg(withdrawn).arg(0).arg(-1).arg("WITHSCORES")),
        )
    }
}

/// A number that stands in a text.
fn as_number(value: Value) -> Value {
    let Value::BulkString(digits) = &value else { return value };
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    Value::Int(number.unwrap_or_else(|| panic!("no number: {value:?}")))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a short time")
}

fn common_of(word: &Word) -> Option<String> {
    let (ttl, heard, label, keeps) = match word {
        Word::Spread { ttl, label, keeps, .. } => (ttl, 0, label, keeps),
        Word::Ask { ttl, heard, label, keeps, .. } => (ttl, millis(*heard), label, keeps),
        _ => return None,
    };
    let mark = if *keeps { "~" } else { "" };
    Some(format!("{:08} {heard:08} {mark}{label}", millis(*ttl)))
}

fn write(to: &mut Cmd, id: &str, word: &Word) {
    match word {
        Word::Ask { attempt, ballot, waited, .. }
            if ballot.to_string().len() == 16 && waited.is_zero() =>
        {
            to.arg(format!(" {id} {attempt} {ballot}"));
        }
        Word::Ask { attempt, ballot, waited, .. } => {
            let waited = u64::try_from(waited.as_micros()).expect("a short time");
            to.arg("ask").arg(id).arg(attempt).arg(ballot).arg(waited);
        }
        Word::Settle { attempt, fence } => {
            to.arg("settle").arg(id).arg(attempt).arg(fence);
        }
        Word::Renew { attempt, fence, ttl } => {
            to.arg("renew").arg(id).arg(attempt).arg(fence).arg(millis(*ttl));
        }
        Word::Spread { attempt, fence, before, holds, .. } => {
            let (count, number) = holds.map_or((1, 0), |holds| (holds.count.get(), holds.number));
            to.arg("spread").arg(id).arg(attempt).arg(fence).arg(before).arg(count).arg(number);
        }
        Word::Hold { attempt, update, ttl } => {
            to.arg("hold").arg(id).arg(attempt).arg(update.count.get()).arg(update.number);
            to.arg(millis(ttl.get()));
        }
        Word::End { attempt, fence: 0, marks: false } => {
            to.arg(format!(" {id} {attempt} "));
        }
        Word::End { attempt, fence, marks } => {
            to.arg("end").arg(id).arg(attempt).arg(fence).arg(if *marks { MARK } else { 0 });
        }
        Word::Keep { attempt, fence, rest } => {
            to.arg("keep").arg(id).arg(attempt).arg(fence).arg(millis(*rest));
        }
        Word::Withdraw => {
            to.arg("withdraw").arg(id).arg(MARK);
        }
        Word::Force { fence } => {
            to.arg("force").arg(id).arg(fence);
        }
        Word::Pass { fence } => {
            to.arg("pass").arg(id).arg(fence);
        }
        Word::Inspect => {
            to.arg("inspect").arg(id);
        }
    }
}
