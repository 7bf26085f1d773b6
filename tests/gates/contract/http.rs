//! The layer before an HTTP service, over TCP: every name is spelled in two ways.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::{FromRequestParts, Path},
    routing::put,
};
use http_body_util::BodyExt;
use hyper::{Request, client::conn::http1::handshake};
use hyper_util::rt::TokioIo;
use leasehold::{
    Stamp,
    fencing::{
        MemoryGate,
        http::{FenceLayer, put_stamp},
    },
};
use leasehold_testkit::{
    contract::Task,
    gates::{BehindRelay, Faults, GateSubject, Outcome, Relay, Upstream},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::words::outcome;

/// What the handlers have stored, by what their extractors told.
type Things = Arc<Mutex<BTreeMap<String, String>>>;

/// A service behind the layer, and a relay between the two and their clients.
#[derive(Debug)]
pub(crate) struct HttpSubject {
    layer: FenceLayer,
    things: Things,
    relay: Relay,
    server: JoinHandle<()>,
}

impl HttpSubject {
    async fn begin() -> Self {
        let layer = FenceLayer::new(MemoryGate::new(), |request| {
            Box::pin(async {
                let Path(name) = Path::<String>::from_request_parts(request, &()).await?;
                Ok(Some(name))
            })
        });
        let things = Things::default();
        let store = {
            let things = Arc::clone(&things);
            async move |Path(name): Path<String>, text: String| {
                things.lock().unwrap().insert(name, text);
            }
        };
        let fenced = Router::new().route("/fenced/{thing}", put(store.clone()));
        let routes = fenced.route_layer(layer.clone()).route("/past/{thing}", put(store));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let relay = Relay::before(Upstream::Tcp(port)).await;
        Self { layer, things, relay, server }
    }

    async fn put(&self, path: String, text: &str, presented: Option<Stamp>) -> Outcome {
        let mut request =
            Request::put(path).header("host", "localhost").body(text.to_owned()).unwrap();
        if let Some(stamp) = presented {
            put_stamp(request.headers_mut(), stamp);
        }
        let relay = SocketAddr::from(([127, 0, 0, 1], self.relay.port()));
        match send(relay, request).await {
            Ok((200, _)) => Outcome::Accepted,
            // The layer tells the fence that it has seen, and no lease.
            Ok((412, _)) => Outcome::Stale(None),
            Ok((400, body)) if body.contains("ResourceMalformed") => Outcome::NoSuchName,
            // No route has an empty name.
            Ok((404, _)) => Outcome::NoSuchName,
            Ok((status, body)) => {
                println!("  failed: {status} {body}");
                Outcome::Failed
            }
            Err(_) => Outcome::Unknown,
        }
    }
}

/// Sends a request over a connection of its own.
async fn send(to: SocketAddr, request: Request<String>) -> hyper::Result<(u16, String)> {
    let stream = TcpStream::connect(to).await.unwrap();
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    let connection = Ends(tokio::spawn(async move { drop(connection.await) }));
    let (parts, body) = sender.send_request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    drop(connection);
    Ok((parts.status.as_u16(), String::from_utf8_lossy(&body).into_owned()))
}

/// A task that ends when this is dropped.
struct Ends(JoinHandle<()>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A name as a part of a path: by some writers every byte is encoded, by others what has to be.
fn spelled(name: &str, writer: Option<Stamp>) -> String {
    let encodes_all = writer.is_some_and(|stamp| stamp.fence.get() % 2 == 0);
    let spell = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' if !encodes_all => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(spell).collect()
}

impl Drop for HttpSubject {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl GateSubject for HttpSubject {
    fn start() -> Task<'static, Arc<dyn GateSubject>> {
        Box::pin(async { Arc::new(Self::begin().await) as _ })
    }

    fn accepts(&self, name: &str) -> bool {
        !name.is_empty()
    }

    fn write<'a>(&'a self, name: &'a str, value: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        let path = format!("/fenced/{}", spelled(name, Some(presented)));
        Box::pin(self.put(path, value, Some(presented)))
    }

    fn advance<'a>(&'a self, name: &'a str, presented: Stamp) -> Task<'a, Outcome> {
        Box::pin(async move { outcome(self.layer.advance(name, presented).await) })
    }

    fn read<'a>(&'a self, name: &'a str) -> Task<'a, Option<String>> {
        Box::pin(async move { self.things.lock().unwrap().get(name).cloned() })
    }

    fn write_past<'a>(&'a self, name: &'a str, value: &'a str) -> Task<'a, Outcome> {
        Box::pin(self.put(format!("/past/{}", spelled(name, None)), value, None))
    }

    fn faults(&self) -> Option<&dyn Faults> {
        Some(self)
    }
}

impl BehindRelay for HttpSubject {
    fn relay(&self) -> &Relay {
        &self.relay
    }
}
