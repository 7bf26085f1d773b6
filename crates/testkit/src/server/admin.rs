use std::{path::Path, time::Duration};

use redis::{Client, Connection, FromRedisValue, RedisResult, Value, cmd};

use super::{address::Address, redis_server::RedisServer};

/// The user of the test itself, who stays in whatever a test does to the default user.
pub(super) const USER: &str = "testkit";

/// How long a command of the test may take; a stopped server answers none.
pub(crate) const LIMIT: Duration = Duration::from_secs(5);

impl RedisServer {
    /// Runs a command on a connection of its own, with all rights, and returns the answer.
    ///
    /// It blocks its thread for as long as the server takes.
    ///
    /// # Panics
    ///
    /// Panics if the server refuses the command or does not answer within five seconds.
    pub fn command(&self, command: &[&str]) -> Value {
        self.query(command)
    }

    /// Like [`command`](Self::command), with the answer as a type of redis-rs.
    ///
    /// # Panics
    ///
    /// Panics as [`command`](Self::command) does, and if the answer is of another type.
    pub fn query<T: FromRedisValue>(&self, command: &[&str]) -> T {
        self.try_query(command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// Like [`query`](Self::query), with the refusal as an error.
    ///
    /// # Errors
    ///
    /// The error of redis-rs, of the connection or of the command.
    pub fn try_query<T: FromRedisValue>(&self, command: &[&str]) -> RedisResult<T> {
        query(&mut self.connect(LIMIT)?, command)
    }

    /// A connection with all rights; neither it nor an answer may take longer than `limit`.
    pub(crate) fn connect(&self, limit: Duration) -> RedisResult<Connection> {
        connect(self.socket(), 0, limit)
    }

    /// The keys of all databases that would live for ever, as `<database>/<key>`, sorted.
    ///
    /// # Panics
    ///
    /// Panics as [`command`](Self::command) does.
    pub fn keys_without_ttl(&self) -> Vec<String> {
        let keyspace: String = self.query(&["INFO", "keyspace"]);
        let databases =
            keyspace.lines().filter_map(|line| line.strip_prefix("db")?.split(':').next());
        let mut immortal = Vec::new();
        for db in databases {
            immortal.extend(immortal_keys(self.socket(), db).expect("the test may see all keys"));
        }
        immortal.sort();
        immortal
    }

    /// A number that the server tells of itself in a section of `INFO`; 0 where it does not.
    ///
    /// # Panics
    ///
    /// Panics as [`command`](Self::command) does, and if it is no number.
    pub fn told(&self, section: &str, field: &str) -> u64 {
        number_in(&self.query::<String>(&["INFO", section]), field)
    }

    /// How often the server has run a command.
    ///
    /// # Panics
    ///
    /// Panics as [`command`](Self::command) does.
    pub fn calls(&self, command: &str) -> u64 {
        self.told("commandstats", &format!("cmdstat_{command}"))
    }

    /// The server's time, in microseconds.
    ///
    /// # Panics
    ///
    /// Panics as [`command`](Self::command) does.
    pub fn micros(&self) -> u64 {
        let [seconds, micros]: [u64; 2] = self.query(&["TIME"]);
        seconds * 1_000_000 + micros
    }

    /// Deletes everything, scripts aside.
    ///
    /// # Panics
    ///
    /// Panics as [`command`](Self::command) does.
    pub fn flush_all(&self) {
        self.command(&["FLUSHALL"]);
    }
}

/// The first number of a field of an `INFO`; 0 if it has no such field.
/// A number that a server tells in `INFO`; 0 where it does not.
pub(crate) fn number_in(info: &str, field: &str) -> u64 {
    let told = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let told = told.map_or("0", |told| told.trim_start_matches(|c: char| !c.is_ascii_digit()));
    let end = told.find(|c: char| !c.is_ascii_digit()).unwrap_or(told.len());
    told[..end].parse().expect("a number")
}

/// Whether a server behind `socket` is up and has loaded its data.
pub(super) fn answers(socket: &Path) -> bool {
    connect(socket, 0, LIMIT)
        .and_then(|mut connection| query::<String>(&mut connection, &["PING"]))
        .is_ok()
}

fn connect(socket: &Path, db: u32, limit: Duration) -> RedisResult<Connection> {
    // The password is any: the user has none.
    connect_to(&Address::Unix.url(socket, USER, "any", db), limit)
}

/// Connects to any address; neither that nor an answer may take longer than `limit`.
pub(crate) fn connect_to(url: &str, limit: Duration) -> RedisResult<Connection> {
    let connection = Client::open(url)?.get_connection_with_timeout(limit)?;
    connection.set_read_timeout(Some(limit))?;
    Ok(connection)
}

/// Runs a command on a connection.
pub(crate) fn query<T: FromRedisValue>(
    connection: &mut Connection,
    command: &[&str],
) -> RedisResult<T> {
    let mut words = command.iter();
    let mut built = cmd(words.next().copied().unwrap_or_default());
    for word in words {
        built.arg(*word);
    }
    built.query(connection)
}

fn immortal_keys(socket: &Path, db: &str) -> RedisResult<Vec<String>> {
    let mut connection = connect(socket, db.parse().unwrap_or_default(), LIMIT)?;
    let mut immortal = Vec::new();
    for key in query::<Vec<Vec<u8>>>(&mut connection, &["KEYS", "*"])? {
        if cmd("PTTL").arg(&key).query::<i64>(&mut connection)? == -1 {
            immortal.push(format!("{db}/{}", String::from_utf8_lossy(&key)));
        }
    }
    Ok(immortal)
}
