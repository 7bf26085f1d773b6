use std::{io, net::Ipv4Addr, path::PathBuf};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

/// Where the server is.
#[derive(Debug, Clone)]
pub(super) enum Upstream {
    Unix(PathBuf),
    Tcp(u16),
}

/// A connection to the server.
pub(super) type Stream = Box<dyn Duplex>;

/// A stream of either kind.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> Duplex for S {}

impl Upstream {
    pub(super) async fn connect(&self) -> io::Result<Stream> {
        match self {
            Self::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
            Self::Tcp(port) => {
                let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Box::new(stream))
            }
        }
    }
}
