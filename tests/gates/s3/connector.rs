//! The HTTP/1.1 client beneath the S3 client, with a connection of its own for each request.

use std::{error::Error, io};

use async_trait::async_trait;
use http_body_util::BodyExt;
use hyper::{Request, Uri, client::conn::http1::handshake, header::HOST};
use hyper_util::rt::TokioIo;
use object_store::{
    ClientOptions, Result,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    },
};
use tokio::{net::TcpStream, task::JoinHandle};

#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        Ok(HttpClient::new(Connections))
    }
}

#[derive(Debug)]
struct Connections;

#[async_trait]
impl HttpService for Connections {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (mut parts, body) = request.into_parts();
        let authority = parts.uri.authority().ok_or_else(no_address)?.as_str().to_owned();
        let stream =
            TcpStream::connect(&authority).await.map_err(failed(HttpErrorKind::Connect))?;
        let connected = handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = connected.map_err(failed(HttpErrorKind::Connect))?;
        let _connection = Aborts(tokio::spawn(async move { drop(connection.await) }));
        parts.headers.insert(HOST, authority.parse().map_err(failed(HttpErrorKind::Unknown))?);
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = path.parse::<Uri>().map_err(failed(HttpErrorKind::Unknown))?;
        // The kinds are those that the client itself gives to errors of `reqwest`.
        let answer = sender.send_request(Request::from_parts(parts, body)).await;
        let (parts, body) = answer.map_err(failed(HttpErrorKind::Request))?.into_parts();
        let body = body.collect().await.map_err(failed(HttpErrorKind::Interrupted))?.to_bytes();
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

fn failed<E: Error + Send + Sync + 'static>(kind: HttpErrorKind) -> impl Fn(E) -> HttpError {
    move |error| HttpError::new(kind, error)
}

fn no_address() -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, io::Error::other("a request without an address"))
}

/// Ends the connection with the request.
struct Aborts(JoinHandle<()>);

impl Drop for Aborts {
    fn drop(&mut self) {
        self.0.abort();
    }
}
