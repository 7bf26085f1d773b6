//! A client with a connection of its own for each request.

use std::net::SocketAddr;

use http_body_util::BodyExt;
use hyper::{Request, Response, client::conn::http1::handshake};
use hyper_util::rt::TokioIo;
use leasehold::{AcquisitionId, Fence, RuntimeId, Stamp, fencing::http::put_stamp};
use tokio::{net::TcpStream, task::JoinHandle};
use uuid::Uuid;

/// The stamp of the lease with the same number as its fence.
pub(crate) fn of(fence: u64) -> Stamp {
    let lease = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), fence);
    Stamp::new(Fence::try_from(fence).unwrap(), lease)
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response<()>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }
}

/// Writes an article with a stamp, or without.
pub(crate) async fn write(server: SocketAddr, id: u32, stamp: Option<Stamp>, text: &str) -> Answer {
    try_write(server, id, stamp, text).await.expect("an answer")
}

/// The same, where no answer may come.
pub(crate) async fn try_write(
    server: SocketAddr,
    id: u32,
    stamp: Option<Stamp>,
    text: &str,
) -> hyper::Result<Answer> {
    let mut request = Request::put(format!("/articles/{id}")).body(text.to_owned()).unwrap();
    if let Some(stamp) = stamp {
        put_stamp(request.headers_mut(), stamp);
    }
    send(server, request).await
}

/// Writes to some path with a stamp.
pub(crate) async fn write_to(server: SocketAddr, path: &str, stamp: Stamp, text: &str) -> Answer {
    let mut request = Request::put(path).body(text.to_owned()).unwrap();
    put_stamp(request.headers_mut(), stamp);
    send(server, request).await.expect("an answer")
}

/// Sends a request over a connection that is closed when the future is dropped.
pub(crate) async fn send(
    server: SocketAddr,
    mut request: Request<String>,
) -> hyper::Result<Answer> {
    let stream = TcpStream::connect(server).await.expect("the server listens");
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    let _connection = Aborts(tokio::spawn(async move { drop(connection.await) }));
    request.headers_mut().insert("host", "localhost".parse().unwrap());
    let (parts, body) = sender.send_request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes().to_vec();
    Ok(Answer { response: Response::from_parts(parts, ()), body: String::from_utf8(body).unwrap() })
}

struct Aborts(JoinHandle<()>);

impl Drop for Aborts {
    fn drop(&mut self) {
        self.0.abort();
    }
}
