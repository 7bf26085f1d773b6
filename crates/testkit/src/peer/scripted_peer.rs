use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};

use super::{reply::Reply, request};

/// Answers a command, given as its words.
type Script = dyn Fn(&[String]) -> Reply + Send + Sync;

/// A server on 127.0.0.1 that speaks RESP and answers what its script says.
///
/// It runs on the tokio runtime of the test and ends, with all connections, when it is dropped.
pub struct ScriptedPeer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

struct Shared {
    script: Option<Box<Script>>,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    connections: usize,
    commands: Vec<Vec<String>>,
}

impl ScriptedPeer {
    /// The most connections that are served at the same time; further ones are closed.
    pub const MAX_CONNECTIONS: usize = 256;

    /// The most commands that are remembered.
    pub const MAX_COMMANDS: usize = 16_384;

    /// Starts a peer that answers with `script`.
    ///
    /// # Errors
    ///
    /// The error of the socket.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future starts nothing.
    pub async fn start(
        script: impl Fn(&[String]) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::serve(Some(Box::new(script))).await
    }

    /// Starts a peer that answers by the first word of a command, whatever its case, and with an
    /// error to words that are not in the table.
    ///
    /// # Errors
    ///
    /// The error of the socket.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future starts nothing.
    pub async fn of_table(
        table: impl IntoIterator<Item = (&'static str, Reply)>,
    ) -> io::Result<Self> {
        let table: Vec<_> = table.into_iter().collect();
        Self::start(move |command| {
            let word = command.first().map_or("", String::as_str);
            let known = table.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
            known.map_or_else(
                || Reply::error(format!("ERR unknown command '{word}'")),
                |(_, reply)| reply.clone(),
            )
        })
        .await
    }

    /// Starts a peer that accepts connections and never answers.
    ///
    /// # Errors
    ///
    /// The error of the socket.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future starts nothing.
    pub async fn silent() -> io::Result<Self> {
        Self::start(|_| Reply::Silence).await
    }

    /// Starts a peer that closes every connection as soon as it has accepted it.
    ///
    /// # Errors
    ///
    /// The error of the socket.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future starts nothing.
    pub async fn closing() -> io::Result<Self> {
        Self::serve(None).await
    }

    /// The address of the peer, as Leasehold takes it.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// The port of 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.book().connections
    }

    /// The commands that came so far, up to [`Self::MAX_COMMANDS`].
    pub fn commands(&self) -> Vec<Vec<String>> {
        self.shared.book().commands.clone()
    }

    async fn serve(script: Option<Box<Script>>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { script, book: Mutex::default() });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { address, shared, accepting })
    }
}

impl Drop for ScriptedPeer {
    fn drop(&mut self) {
        // The set of connections goes with the task that owns it.
        self.accepting.abort();
    }
}

impl fmt::Debug for ScriptedPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedPeer").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Shared {
    /// Remembers a command and answers it.
    fn answer(&self, script: &Script, command: Vec<String>) -> Reply {
        let reply = script(&command);
        let mut book = self.book();
        if book.commands.len() < ScriptedPeer::MAX_COMMANDS {
            book.commands.push(command);
        }
        reply
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        shared.book().connections += 1;
        if shared.script.is_some() && connections.len() < ScriptedPeer::MAX_CONNECTIONS {
            connections.spawn(converse(client, Arc::clone(&shared)));
        }
    }
}

/// Answers one client until it goes, says what is no RESP, or is to be closed.
async fn converse(client: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let Some(script) = &shared.script else { return Ok(()) };
    let mut client = BufReader::new(client);
    while let Some(command) = request::read(&mut client).await? {
        let reply = shared.answer(script, command);
        if reply == Reply::Close {
            return Ok(());
        }
        let mut out = Vec::new();
        reply.encode(&mut out);
        client.write_all(&out).await?;
    }
    Ok(())
}
