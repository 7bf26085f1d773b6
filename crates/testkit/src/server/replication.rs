use redis::{Connection, RedisResult};

use super::{
    admin::{LIMIT, query},
    redis_server::RedisServer,
};

/// What a server tells of its replication.
#[derive(Debug, Default)]
pub(crate) struct Replication(String);

impl Replication {
    /// Asks a server; one that does not answer is neither a master nor in sync.
    pub(crate) fn of(server: &RedisServer) -> Self {
        let told = server.connect(LIMIT).and_then(|mut connection| Self::read(&mut connection));
        told.unwrap_or_default()
    }

    /// Asks on a connection.
    pub(crate) fn read(connection: &mut Connection) -> RedisResult<Self> {
        query(connection, &["INFO", "replication"]).map(Self)
    }

    /// Whether the server is a master by its own account.
    pub(crate) fn is_master(&self) -> bool {
        self.0.contains("role:master")
    }

    /// Whether the server is a replica that has all that its master had when it began.
    pub(crate) fn is_in_sync(&self) -> bool {
        self.0.contains("master_link_status:up")
    }

    /// How many replicas have acknowledged something. Before its first acknowledgement, up to a second
    /// after its copy is complete, the server sends a replica nothing of what is written.
    pub(crate) fn replicas(&self) -> usize {
        let acknowledges =
            |line: &&str| line.contains("state=online") && !line.contains(",offset=0,");
        self.0.lines().filter(acknowledges).count()
    }
}
