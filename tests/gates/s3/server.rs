//! The server: objects with metadata in headers, conditional writes, and what real servers lack of
//! it.

use std::{
    collections::{BTreeMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{
        HeaderMap, Method, StatusCode,
        header::{CONTENT_LENGTH, ETAG, IF_MATCH, IF_NONE_MATCH, LAST_MODIFIED},
    },
    response::Response,
};
use tokio::{net::TcpListener, task::JoinHandle};

/// The longest name of an object, as on S3.
const MAX_KEY_BYTES: usize = 1024;

/// What a server does other than a sound one, whose ETags change with every write.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner {
    /// Its ETags are made from the bytes alone.
    pub(crate) etags_of_bytes: bool,
    /// It replaces an object whatever `If-Match` says.
    pub(crate) ignores_if_match: bool,
}

/// A server that ends with the test.
#[derive(Debug)]
pub(crate) struct S3Server {
    address: SocketAddr,
    bucket: Arc<Bucket>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Bucket {
    manner: Manner,
    objects: Mutex<Objects>,
}

#[derive(Debug, Default)]
struct Objects {
    writes: u64,
    by_path: BTreeMap<String, Object>,
}

#[derive(Debug, Clone)]
struct Object {
    bytes: Bytes,
    metadata: HeaderMap,
    etag: String,
}

impl S3Server {
    pub(crate) async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let bucket = Arc::new(Bucket { manner, ..Bucket::default() });
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&bucket));
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, bucket, task }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many objects there are.
    pub(crate) fn objects(&self) -> usize {
        self.bucket.objects().by_path.len()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(bucket): State<Arc<Bucket>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    if path.len() > MAX_KEY_BYTES * 3 {
        return status(StatusCode::BAD_REQUEST);
    }
    match parts.method {
        Method::PUT => match to_bytes(body, 1 << 24).await {
            Ok(bytes) => bucket.put(path, &parts.headers, bytes),
            Err(_) => status(StatusCode::BAD_REQUEST),
        },
        Method::HEAD => bucket.get(path, false),
        Method::GET => bucket.get(path, true),
        Method::DELETE => {
            bucket.objects().by_path.remove(path);
            status(StatusCode::NO_CONTENT)
        }
        _ => status(StatusCode::METHOD_NOT_ALLOWED),
    }
}

impl Bucket {
    fn objects(&self) -> std::sync::MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, path: &str, headers: &HeaderMap, bytes: Bytes) -> Response {
        let mut objects = self.objects();
        let there = objects.by_path.get(path);
        if headers.contains_key(IF_NONE_MATCH) && there.is_some() {
            return status(StatusCode::PRECONDITION_FAILED);
        }
        if let Some(expected) = headers.get(IF_MATCH).filter(|_| !self.manner.ignores_if_match) {
            match there {
                None => return status(StatusCode::NOT_FOUND),
                Some(object) if object.etag.as_bytes() != expected.as_bytes() => {
                    return status(StatusCode::PRECONDITION_FAILED);
                }
                Some(_) => {}
            }
        }
        objects.writes += 1;
        let etag = if self.manner.etags_of_bytes {
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            format!("\"{:x}\"", hasher.finish())
        } else {
            format!("\"{}\"", objects.writes)
        };
        // Names of headers have no case. Of two with one name the last counts.
        let mut metadata = HeaderMap::new();
        for (name, value) in headers {
            if name.as_str().starts_with("x-amz-meta-") || name == "content-type" {
                metadata.insert(name.clone(), value.clone());
            }
        }
        objects.by_path.insert(path.to_owned(), Object { bytes, metadata, etag: etag.clone() });
        Response::builder().header(ETAG, etag).body(Body::empty()).unwrap()
    }

    fn get(&self, path: &str, with_body: bool) -> Response {
        let Some(object) = self.objects().by_path.get(path).cloned() else {
            return status(StatusCode::NOT_FOUND);
        };
        let length = object.bytes.len();
        let body = if with_body { Body::from(object.bytes) } else { Body::empty() };
        let mut response = Response::new(body);
        *response.headers_mut() = object.metadata;
        let headers = response.headers_mut();
        headers.insert(ETAG, object.etag.parse().unwrap());
        headers.insert(CONTENT_LENGTH, length.into());
        headers.insert(LAST_MODIFIED, "Sun, 22 Nov 2026 14:00:00 GMT".parse().unwrap());
        response
    }
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
