//! A service with one article, whose writes the test slows down.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{FromRequestParts, Path, State},
    http::Extensions,
    routing::put,
};
use leasehold::fencing::{FenceGate, MemoryGate, http::FenceLayer, http::Fenced};
use leasehold_testkit::Patience;
use tokio::{net::TcpListener, sync::Semaphore, task::JoinHandle};

/// What the service stores, and what the test sees and steers of it.
#[derive(Debug, Clone)]
pub(crate) struct Article(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    text: Mutex<String>,
    begun: AtomicUsize,
    may_end: Semaphore,
    gone: AtomicUsize,
    looks_itself: Option<MemoryGate>,
}

impl Article {
    /// A storage that trusts the layer before it.
    pub(crate) fn trusting() -> Self {
        Self::with(None)
    }

    /// A storage that compares the fence as well.
    pub(crate) fn looking() -> Self {
        Self::with(Some(MemoryGate::new()))
    }

    fn with(looks_itself: Option<MemoryGate>) -> Self {
        let (text, begun, gone) = (Mutex::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        Self(Arc::new(Inner { text, begun, may_end: Semaphore::new(0), gone, looks_itself }))
    }

    pub(crate) fn text(&self) -> String {
        self.0.text.lock().unwrap().clone()
    }

    /// Lets one slow write end.
    pub(crate) fn end_one(&self) {
        self.0.may_end.add_permits(1);
    }

    /// Waits until so many writes have begun.
    pub(crate) async fn begun(&self, writes: usize) {
        soon("writes begin", || self.0.begun.load(Ordering::SeqCst) >= writes).await;
    }

    /// Waits until so many handlers were dropped before they ended.
    pub(crate) async fn gone(&self, handlers: usize) {
        soon("handlers are dropped", || self.0.gone.load(Ordering::SeqCst) >= handlers).await;
    }

    async fn write(&self, extensions: &Extensions, body: String) -> &'static str {
        let dropped = CountsDrop(Some(&self.0.gone));
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        if body.starts_with("slow") {
            self.0.may_end.acquire().await.unwrap().forget();
        }
        dropped.ended();
        assert!(!body.starts_with("panic"), "in the handler");
        let write = || *self.0.text.lock().unwrap() = body;
        let Some(gate) = &self.0.looks_itself else {
            write();
            return "written";
        };
        let fenced = extensions.get::<Fenced>().expect("the layer lets nobody else in");
        match gate.write(&fenced.resource, fenced.stamp, write) {
            Ok(()) => "written",
            Err(_) => "refused by the storage",
        }
    }
}

struct CountsDrop<'a>(Option<&'a AtomicUsize>);

impl CountsDrop<'_> {
    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for CountsDrop<'_> {
    fn drop(&mut self) {
        if let Some(gone) = self.0 {
            gone.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A server that ends with the test.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves an article behind a layer.
    pub(crate) async fn start(article: &Article, layer: FenceLayer) -> Self {
        Self::serve(routes(article).layer(layer)).await
    }

    /// Serves an article behind the trap: it compares, and then lets the handler run.
    pub(crate) async fn that_only_compares(article: &Article, gate: impl FenceGate) -> Self {
        let gate = Arc::new(gate);
        let compare = axum::middleware::from_fn(
            move |request: axum::extract::Request, next: axum::middleware::Next| {
                let gate = Arc::clone(&gate);
                async move {
                    let stamp = leasehold::fencing::http::read_stamp(request.headers()).unwrap();
                    match gate.admit(request.uri().path(), stamp).await {
                        Ok(_) => next.run(request).await,
                        Err(_) => axum::response::IntoResponse::into_response(
                            axum::http::StatusCode::PRECONDITION_FAILED,
                        ),
                    }
                }
            },
        );
        Self::serve(routes(article).layer(compare)).await
    }

    /// Serves other routes.
    pub(crate) async fn of(routes: Router) -> Self {
        Self::serve(routes).await
    }

    async fn serve(routes: Router) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, task }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn routes(article: &Article) -> Router {
    let write = async |State(article): State<Article>, extensions: Extensions, body: String| {
        article.write(&extensions, body).await
    };
    let read = async |State(article): State<Article>| article.text();
    Router::new().route("/articles/{id}", put(write).get(read)).with_state(article.clone())
}

/// A layer whose resources are the articles that requests write, by the number that the handler's
/// extractor tells.
pub(crate) fn layer(gate: impl FenceGate) -> FenceLayer {
    FenceLayer::new(gate, |request| {
        Box::pin(async {
            if request.method.is_safe() {
                return Ok(None);
            }
            let Path(id) = Path::<u32>::from_request_parts(request, &()).await?;
            Ok(Some(format!("articles/{id}")))
        })
    })
}

/// Waits until something is so.
pub(crate) async fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let patience = Patience::of(Duration::from_secs(60));
    let seen = patience.until_async(|| std::future::ready(is_so().then_some(()))).await;
    assert!(seen.is_some(), "{what}");
}
