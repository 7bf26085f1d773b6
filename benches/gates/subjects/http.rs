use std::{array, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{FromRequestParts, Path},
    routing::put,
};
use http_body_util::BodyExt;
use hyper::{
    Request,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use leasehold::fencing::{
    MemoryGate,
    http::{FenceLayer, put_stamp},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

use super::Subject;
use crate::{
    Failure,
    round::{TASKS, Write},
    stamps,
};

/// The connections of the tasks, one for each.
type Connections = [Mutex<Option<SendRequest<String>>>; TASKS];

/// A request over TCP to a handler that does nothing, on a connection that stays open.
pub(super) async fn subject() -> Result<Subject, Failure> {
    let fenced = Router::new().route("/fenced/{id}", put(async || "written")).route_layer(layer());
    let routes = fenced.route("/plain/{id}", put(async || "written"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let (plain, gated) = (requests(address, "plain"), requests(address, "fenced"));
    Ok(Subject { name: "http layer", plain, gated })
}

fn layer() -> FenceLayer {
    FenceLayer::new(MemoryGate::new(), |request| {
        Box::pin(async {
            let Path(id) = Path::<u64>::from_request_parts(request, &()).await?;
            Ok(Some(format!("articles/{id}")))
        })
    })
}

fn requests(address: SocketAddr, route: &'static str) -> Write {
    let connections: Arc<Connections> = Arc::new(array::from_fn(|_| Mutex::default()));
    Arc::new(move |task| {
        let connections = Arc::clone(&connections);
        Box::pin(async move {
            let mut kept = connections[task].lock().await;
            let connection = match &mut *kept {
                Some(connection) => connection,
                none => none.insert(connect(address).await?),
            };
            let mut request = Request::put(format!("/{route}/{task}"))
                .header("host", "localhost")
                .body("7 left".to_owned())?;
            put_stamp(request.headers_mut(), stamps::of(task));
            connection.ready().await?;
            let answer = connection.send_request(request).await?;
            if !answer.status().is_success() {
                return Err(format!("answered {}", answer.status()).into());
            }
            answer.into_body().collect().await?;
            Ok(1)
        })
    })
}

async fn connect(address: SocketAddr) -> Result<SendRequest<String>, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}
