use super::postgres_server::PostgresServer;

/// What a private PostgreSQL server is to be like; a unix socket unless said otherwise.
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing by itself; call `start()`"]
pub struct PostgresServerBuilder {
    pub(super) tcp: bool,
    pub(super) settings: Vec<(String, String)>,
}

impl PostgresServerBuilder {
    /// Listens on a free port of 127.0.0.1 too, and has it in its address. Defaults to the unix
    /// socket alone.
    pub fn tcp(mut self) -> Self {
        self.tcp = true;
        self
    }

    /// Sets a parameter, as in `postgresql.conf`; later ones win over earlier ones.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Starts the server and waits until it takes connections.
    ///
    /// # Panics
    ///
    /// Panics if PostgreSQL is not installed, with the command that installs it, and if the server
    /// does not start, with its log.
    pub fn start(self) -> PostgresServer {
        PostgresServer::start_as(&self)
    }
}
