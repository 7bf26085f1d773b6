//! Calls that declare no keys, on locks of every kind, also in a slot that is on its way: a command is
//! done as by a call that declares its keys, or nothing is written for it.

use leasehold_testkit::{
    cluster::{RedisCluster, slot_of},
    proxy::{script_of_commands, script_of_gathered_commands},
};
use redis::{Cmd, Connection, Value};

const ALICE: &str = "00000000-0000-0000-0000-00000000000a:7";
const ALICE_LATER: &str = "00000000-0000-0000-0000-00000000000a:8";
const BOB: &str = "00000000-0000-0000-0000-00000000000b:7";

const HOUR: u64 = 3_600_000;

/// The keys of the lock.
const LEASE: &str = "leasehold:{a}:lease";
const OTHERS: [&str; 3] =
    ["leasehold:{a}:queue", "leasehold:{a}:waiters", "leasehold:{a}:withdrawn"];

/// A lock that nobody uses: its commands stand around the one that is tested.
const BESIDE: &str = "leasehold:{b}:lease";

/// Commands of others that are not served.
const NOT_SERVED: [&str; 3] = ["release", BOB, "5"];

/// A node of a Cluster with the lock, and the one that its slot is on the way to.
struct Node {
    connection: Connection,
    cluster: RedisCluster,
    slot: String,
}

/// What stands in the key of a lease: a text, or a key of another type.
#[derive(Debug, Clone)]
enum Lease {
    Missing,
    Text(String),
    Hash,
    List,
}

/// A lock: its lease, and which of its other keys are there.
#[derive(Debug, Clone)]
struct Lock {
    lease: Lease,
    others: [bool; 3],
}

impl Node {
    fn start() -> Self {
        let cluster = RedisCluster::of_masters(2);
        let slot = slot_of(LEASE);
        let owner = cluster.master_of(LEASE);
        let client = redis::Client::open(cluster.masters()[owner].url()).expect("an address");
        let connection = client.get_connection().expect("a connection");
        if cluster.master_of(BESIDE) != owner {
            cluster.migrate(slot_of(BESIDE), owner);
        }
        Self { connection, cluster, slot: slot.to_string() }
    }

    fn run(&mut self, words: &[&str]) -> Value {
        let mut command = Cmd::new();
        for word in words {
            command.arg(*word);
        }
        command.query(&mut self.connection).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// The server's time in microseconds.
    fn micros(&mut self) -> u64 {
        let time: (u64, u64) = redis::cmd("TIME").query(&mut self.connection).expect("the time");
        time.0 * 1_000_000 + time.1
    }

    /// Puts a lock in the slot; if it is `torn`, it is on its way, and what is missing has moved.
    fn put(&mut self, lock: &Lock, is_torn: bool) {
        let slot = self.slot.clone();
        self.run(&["CLUSTER", "SETSLOT", &slot, "STABLE"]);
        self.run(&["DEL", LEASE, OTHERS[0], OTHERS[1], OTHERS[2]]);
        match &lock.lease {
            Lease::Missing => {}
            Lease::Text(text) => drop(self.run(&["SET", LEASE, text, "PX", &HOUR.to_string()])),
            Lease::Hash => drop(self.run(&["HSET", LEASE, "v", "2"])),
            Lease::List => drop(self.run(&["RPUSH", LEASE, "x"])),
        }
        let runtime = &BOB[..36];
        let later = (self.micros() / 1000 + HOUR).to_string();
        let place = format!("7 1 {} 600000 0 bob", self.micros());
        let words: [&[&str]; 3] = [
            &["ZADD", OTHERS[0], "1", runtime],
            &["HSET", OTHERS[1], runtime, &place],
            &["ZADD", OTHERS[2], &later, ALICE_LATER],
        ];
        for ((words, key), is_there) in words.iter().zip(OTHERS).zip(lock.others) {
            if is_there {
                self.run(words);
                self.run(&["PEXPIRE", key, &HOUR.to_string()]);
            }
        }
        if is_torn {
            let owner = self.cluster.master_of(LEASE);
            let id: String = self.cluster.masters()[1 - owner].query(&["CLUSTER", "MYID"]);
            self.run(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id]);
        }
    }

    fn digest(&mut self) -> Value {
        self.run(&["DEBUG", "DIGEST"])
    }

    /// The text of the lease, without what depends on the moment.
    fn text(&mut self, known: &str) -> String {
        let text: Option<String> =
            redis::cmd("GET").arg(LEASE).query(&mut self.connection).expect("a text");
        let text = text.unwrap_or_default();
        let masked = |word: &str| {
            let is_time = word.len() >= 13 && word.bytes().all(|byte| byte.is_ascii_digit());
            if is_time && !known.contains(word) { "T".to_owned() } else { word.to_owned() }
        };
        text.split(' ').map(masked).collect::<Vec<_>>().join(" ")
    }

    /// Calls a script with a command between two others; its answer.
    fn call(&mut self, script: &str, keys: &[&str], args: &[&str]) -> Value {
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(keys.len());
        for word in keys.iter().chain(args) {
            command.arg(*word);
        }
        let answer: Value = command.query(&mut self.connection).expect("no error of the call");
        let Value::Array(mut answers) = answer else { panic!("{answer:?}") };
        answers.swap_remove(answers.len() / 2)
    }

    /// The command between two others of a call that declares no keys.
    fn gathered(&mut self, script: &str, command: &[&str]) -> Value {
        let leases = [BESIDE, LEASE, BESIDE];
        let args = [&HEAD[..], &["3"], &leases, &AS, &NOT_SERVED, command, &NOT_SERVED].concat();
        self.call(script, &[], &args)
    }

    /// The command alone in a call that declares no keys. Behind a command about another slot, Redis
    /// 7.4 and 8.0 refuse all keys of a slot that is on its way.
    fn first_gathered(&mut self, script: &str, command: &[&str]) -> Value {
        let args = [&HEAD[..], &["1", LEASE], &AS, command].concat();
        self.call(script, &[], &args)
    }

    /// The command alone, in a call that declares its keys.
    fn declared(&mut self, command: &[&str]) -> Value {
        let keys = [&[LEASE][..], &OTHERS].concat();
        self.call(script_of_commands(), &keys, &[&HEAD[..], &AS, command].concat())
    }
}

/// The arguments of every call: retention of a minute, and the channels.
const HEAD: [&str; 2] = ["60000", "leasehold:runtime:"];
const AS: [&str; 4] = ["as", "30000", "30000", "me"];

/// What may stand in the key of a lease.
fn leases(micros: u64) -> Vec<Lease> {
    let millis = micros / 1000;
    let (counter, expires) = (micros - 5_000_000, millis + HOUR);
    let text = |notes: &str, behind: &str| format!("v4 x{notes}--- {counter} {expires}{behind}");
    let held = |end: u64| format!(" {} {counter} {end} {ALICE} alice", counter - 1023);
    let (stands, over) = (held(millis + HOUR), held(millis - 10));
    let (holds, marks) = ("0000000002/00000000000000000001", millis + HOUR);
    let texts = [
        text("----", ""),
        format!("v4 x------- {counter} {}", millis + 10),
        format!("v4 x------- {} {expires}", micros + 60_000_000),
        format!("v4 x------- {counter} 0000000000000"),
        text("---m", &format!(" {marks}")),
        text("---m", &format!(" {}", millis - 10)),
        text("----", &stands),
        text("----", &over),
        text("w---", &stands),
        text("w---", &over),
        text("w---", ""),
        text("-k--", &stands),
        text("--h-", &format!("{stands} {holds}")),
        text("---m", &format!("{stands} {marks}")),
        text("w--m", &format!("{stands} {marks}")),
        format!("v9 {counter} {expires}"),
        "x".into(),
        String::new(),
    ];
    let texts = texts.into_iter().map(Lease::Text);
    texts.chain([Lease::Missing, Lease::Hash, Lease::List]).collect()
}

/// Every lock, with any of its other keys.
fn locks(micros: u64) -> Vec<Lock> {
    let with = |lease: &Lease, bits: u8| Lock {
        lease: lease.clone(),
        others: [1, 2, 4].map(|bit| bits & bit > 0),
    };
    let leases = leases(micros);
    leases.iter().flat_map(|lease| (0..8).map(move |bits| with(lease, bits))).collect()
}

/// Commands that are sent in such calls.
fn commands(micros: u64) -> Vec<Vec<String>> {
    let fence = (micros - 5_000_000 - 1023).to_string();
    let (ahead, behind) = ((micros + HOUR).to_string(), (micros - 9_000_000).to_string());
    let texts = [
        format!("try {BOB} 0"),
        format!("try {BOB} {ahead}"),
        format!("try {BOB} {behind}"),
        format!("try {ALICE_LATER} 0"),
        format!("acquire {BOB} 0 1"),
        format!("acquire {ALICE} 0 1"),
        format!("release {ALICE} {fence}"),
        format!("release {ALICE} {behind}"),
        format!("release {BOB} {fence}"),
    ];
    texts.iter().map(|text| text.split(' ').map(str::to_owned).collect()).collect()
}

fn is_served(answer: &Value) -> bool {
    matches!(answer, Value::BulkString(_) | Value::Int(1))
}

#[test]
fn what_is_served_is_as_with_declared_keys() {
    let mut node = Node::start();
    let micros = node.micros();
    let (mut served, mut others) = (0, 0);
    for lock in locks(micros) {
        for command in commands(micros) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            node.put(&lock, false);
            let before = node.digest();
            let answer = node.gathered(script_of_gathered_commands(), &words);
            if !is_served(&answer) {
                assert_eq!(answer, Value::Int(0), "{lock:?} {words:?}");
                assert_eq!(node.digest(), before, "{lock:?} {words:?}");
                others += 1;
                continue;
            }
            let Lease::Text(known) = &lock.lease else { panic!("{lock:?} {words:?}") };
            let text = node.text(known);
            node.put(&lock, false);
            let expected = node.declared(&words);
            assert!(is_served(&expected), "{lock:?} {words:?}: {expected:?}");
            assert_eq!(text, node.text(known), "{lock:?} {words:?}");
            served += 1;
        }
    }
    println!("{served} were served, {others} were not");
    assert!(served > 50 && others > 500, "{served} {others}");
}

#[test]
fn in_a_torn_slot_what_is_not_served_has_changed_nothing() {
    let mut node = Node::start();
    let micros = node.micros();
    let mut served = 0;
    for lock in locks(micros) {
        for command in commands(micros) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            for way in [Node::gathered, Node::first_gathered] {
                node.put(&lock, true);
                let before = node.digest();
                let answer = way(&mut node, script_of_gathered_commands(), &words);
                if is_served(&answer) {
                    assert!(matches!(lock.lease, Lease::Text(_)), "{lock:?} {words:?}");
                    served += 1;
                } else {
                    assert_eq!(answer, Value::Int(0), "{lock:?} {words:?}");
                    assert_eq!(node.digest(), before, "{lock:?} {words:?}");
                }
            }
        }
    }
    println!("{served} were served in a torn slot");
    assert!(served > 50, "{served}");
}

/// The control: all ways in a call that declares no keys. Some end a lease, and are then refused a key
/// that has moved.
#[test]
fn control_other_ways_are_refused_half_way_in_a_torn_slot() {
    const UNDECLARED: &str = "
        local all, KEYS, from = ARGV, {}, 3 + tonumber(ARGV[3])
        for at = 4, from do
          local tag = string.sub(all[at], 1, -6)
          for _, key in ipairs({'lease', 'queue', 'waiters', 'withdrawn'}) do KEYS[#KEYS + 1] = tag .. key end
        end
        local ARGV = {all[1], all[2], unpack(all, from + 1)}
        ";
    let script = UNDECLARED.to_owned() + script_of_commands();
    let mut node = Node::start();
    let micros = node.micros();
    let mut harmed = 0;
    for lock in locks(micros) {
        node.put(&lock, true);
        let before = node.digest();
        let answer = node.first_gathered(&script, &["withdraw", ALICE, "60000"]);
        let is_refused = matches!(&answer, Value::Array(parts)
            if parts.first() == Some(&Value::BulkString("refused".into())));
        harmed += usize::from(is_refused && node.digest() != before);
    }
    println!("{harmed} were refused after they had written");
    assert!(harmed > 0, "the control came to no harm");
}
