use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
    task::JoinHandle,
};

use crate::{contract::Task, patience::Patience};

/// Where a storage listens.
#[derive(Debug, Clone)]
pub enum Upstream {
    /// A unix socket.
    Unix(PathBuf),
    /// A port of 127.0.0.1.
    Tcp(u16),
}

/// A TCP relay before a storage of whatever protocol, which strikes at one request.
///
/// A request is known by some text that it contains.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    upstream: Upstream,
    rule: Mutex<Option<Rule>>,
    is_held: AtomicBool,
    /// Whether the request that is held may go on.
    goes_on: watch::Sender<bool>,
    is_answered: AtomicBool,
    /// Whether the last fault that was asked for has happened.
    has_struck: AtomicBool,
    /// How many more pieces pass from clients before the connection of one is cut.
    cut_after: Mutex<Option<u64>>,
}

#[derive(Debug, Clone)]
struct Rule {
    text: Vec<u8>,
    strike: Strike,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strike {
    LoseAnswer,
    Hold,
}

impl Relay {
    /// How long something is waited for that has to come.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A relay on a port of its own.
    ///
    /// # Panics
    ///
    /// Panics if no port is free.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future frees the port.
    pub async fn before(upstream: Upstream) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("the relay listens").port();
        let shared = Arc::new(Shared {
            upstream,
            rule: Mutex::default(),
            is_held: AtomicBool::new(false),
            goes_on: watch::Sender::new(false),
            is_answered: AtomicBool::new(false),
            has_struck: AtomicBool::new(false),
            cut_after: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { port, shared, accepting }
    }

    /// The port of 127.0.0.1 at which it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Loses the answer to the next request with a text, and cuts its connection.
    pub fn lose_answer(&self, text: &str) {
        self.strike(text, Strike::LoseAnswer);
    }

    /// Holds the next request with a text.
    pub fn hold(&self, text: &str) {
        self.shared.is_held.store(false, Ordering::SeqCst);
        self.shared.is_answered.store(false, Ordering::SeqCst);
        self.shared.goes_on.send_replace(false);
        self.strike(text, Strike::Hold);
    }

    /// Cuts the connection of the client that sends the piece of a number from now on, before it
    /// passes.
    pub fn cut_at(&self, piece: u64) {
        self.shared.has_struck.store(false, Ordering::SeqCst);
        *lock(&self.shared.cut_after) = Some(piece);
    }

    /// Whether the fault that was asked for last has happened: an answer was lost, a request was
    /// held, or a connection was cut.
    pub fn has_struck(&self) -> bool {
        self.shared.has_struck.load(Ordering::SeqCst)
    }

    /// Lets everything pass from now on.
    pub fn calm(&self) {
        *lock(&self.shared.rule) = None;
        *lock(&self.shared.cut_after) = None;
    }

    /// Waits until a request is held.
    pub fn held(&self) -> Task<'_> {
        Box::pin(self.until("a request is held", &self.shared.is_held))
    }

    /// Lets the held request go on, also when its client has gone, and waits for the answer.
    pub fn deliver(&self) -> Task<'_> {
        self.shared.goes_on.send_replace(true);
        Box::pin(self.until("the held request is answered", &self.shared.is_answered))
    }

    fn strike(&self, text: &str, strike: Strike) {
        self.shared.has_struck.store(false, Ordering::SeqCst);
        *lock(&self.shared.rule) = Some(Rule { text: text.into(), strike });
    }

    async fn until(&self, what: &str, flag: &AtomicBool) {
        let probe = async || flag.load(Ordering::SeqCst).then_some(());
        let seen = Patience::of(Self::PATIENCE).until_async(probe).await;
        assert!(seen.is_some(), "{what}");
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A storage that refuses is a closed connection to the client.
            let _ = match &shared.upstream {
                Upstream::Unix(path) => match UnixStream::connect(path).await {
                    Ok(storage) => pass(client, storage, &shared).await,
                    Err(error) => Err(error),
                },
                Upstream::Tcp(port) => match TcpStream::connect(("127.0.0.1", *port)).await {
                    Ok(storage) => pass(client, storage, &shared).await,
                    Err(error) => Err(error),
                },
            };
        });
    }
}

/// Passes bytes in both directions until one side ends, or the answer is lost.
async fn pass(
    client: TcpStream,
    storage: impl AsyncRead + AsyncWrite,
    shared: &Shared,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_storage, mut to_storage) = tokio::io::split(storage);
    let (loses, answers) = (AtomicBool::new(false), watch::Sender::new(0_u64));
    let up = async {
        let mut seen = Vec::new();
        let mut chunk = vec![0; 1 << 16];
        loop {
            let read = from_client.read(&mut chunk).await?;
            if read == 0 || shared.cuts() {
                return Ok(());
            }
            match shared.strikes(&mut seen, &chunk[..read]) {
                None => to_storage.write_all(&chunk[..read]).await?,
                Some(Strike::LoseAnswer) => {
                    loses.store(true, Ordering::SeqCst);
                    to_storage.write_all(&chunk[..read]).await?;
                }
                Some(Strike::Hold) => {
                    let (mut goes_on, mut answered) =
                        (shared.goes_on.subscribe(), answers.subscribe());
                    shared.has_struck.store(true, Ordering::SeqCst);
                    shared.is_held.store(true, Ordering::SeqCst);
                    let _ = goes_on.wait_for(|goes_on| *goes_on).await;
                    answered.mark_unchanged();
                    to_storage.write_all(&chunk[..read]).await?;
                    // Before the end of a client that has gone: the storage answers first.
                    let _ = answered.changed().await;
                    shared.is_answered.store(true, Ordering::SeqCst);
                }
            }
        }
    };
    let down = async {
        let mut chunk = vec![0; 1 << 16];
        loop {
            let read = from_storage.read(&mut chunk).await?;
            if read > 0 && loses.load(Ordering::SeqCst) {
                shared.has_struck.store(true, Ordering::SeqCst);
                return Ok(());
            }
            if read == 0 {
                return Ok(());
            }
            // A client that has gone does not keep the storage from being heard.
            let _ = to_client.write_all(&chunk[..read]).await;
            answers.send_modify(|answers| *answers += 1);
        }
    };
    tokio::select! {
        biased;
        ended = up => ended,
        ended = down => {
            shared.is_answered.store(true, Ordering::SeqCst);
            ended
        }
    }
}

impl Shared {
    /// Whether this is the piece that does not pass.
    fn cuts(&self) -> bool {
        let mut cut_after = lock(&self.cut_after);
        match *cut_after {
            None => return false,
            Some(0) => *cut_after = None,
            Some(more) => {
                *cut_after = Some(more - 1);
                return false;
            }
        }
        self.has_struck.store(true, Ordering::SeqCst);
        true
    }

    /// What strikes at a request, once; its text may come in several pieces.
    fn strikes(&self, seen: &mut Vec<u8>, chunk: &[u8]) -> Option<Strike> {
        let mut rule = lock(&self.rule);
        let Rule { text, strike } = rule.as_ref()?.clone();
        seen.extend_from_slice(chunk);
        let is_there = seen.windows(text.len()).any(|window| window == text);
        let kept = seen.len().saturating_sub(text.len().saturating_sub(1));
        seen.drain(..kept);
        if !is_there {
            return None;
        }
        *rule = None;
        Some(strike)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
