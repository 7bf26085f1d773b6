//! One article has one name, however its path is written; two articles have two.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::{FromRequestParts, OriginalUri, Path},
    http::request::Parts,
    routing::put,
};
use leasehold::{
    fencing::{
        MemoryGate, RedisGate,
        http::{FenceLayer, Unnamed},
    },
    redis::{RedisConfig, RedisPool},
};
use leasehold_testkit::Log;

use super::{
    client::{of, write, write_to},
    server::{Server, layer},
};

/// What the handlers have stored, by what they were told to write to.
type Texts = Arc<Mutex<BTreeMap<String, String>>>;

fn text(texts: &Texts, of: &str) -> String {
    texts.lock().unwrap().get(of).cloned().unwrap_or_default()
}

/// `/articles/{id}`, a number to the handler.
fn articles(texts: &Texts, layer: FenceLayer) -> Router {
    let texts = Arc::clone(texts);
    let write = async move |Path(id): Path<u32>, text: String| {
        texts.lock().unwrap().insert(id.to_string(), text);
    };
    Router::new().route("/articles/{id}", put(write)).route_layer(layer)
}

/// The trap: the name is the path as it was sent.
fn by_path() -> FenceLayer {
    FenceLayer::new(MemoryGate::new(), |request| {
        let path = request.uri.path().to_owned();
        Box::pin(async { Ok(Some(path)) })
    })
}

/// What each late write was answered that spells `/articles/7` in another way, and what it left.
async fn late_writes(layer: FenceLayer) -> Vec<(u16, String)> {
    let texts = Texts::default();
    let server = Server::of(articles(&texts, layer)).await;
    let mut seen = Vec::new();
    for path in ["/articles/%37", "/articles/07", "/articles/+7", "/articles/%30%37"] {
        let newer = write_to(server.address, "/articles/7", of(42), "newer").await;
        assert_eq!(newer.status(), 200, "{}", newer.body);
        let late = write_to(server.address, path, of(41), "late").await;
        seen.push((late.status(), text(&texts, "7")));
    }
    seen
}

#[tokio::test]
async fn an_article_is_one_resource_however_its_path_is_written() {
    assert_eq!(late_writes(layer(MemoryGate::new())).await, vec![(412, "newer".to_owned()); 4]);
}

#[tokio::test]
async fn by_the_path_every_spelling_lets_a_late_write_in() {
    assert_eq!(late_writes(by_path()).await, vec![(200, "late".to_owned()); 4]);
}

/// `/shops/{shop}/articles/{id}`, of which the layer inside sees `/articles/{id}`.
fn shops(texts: &Texts, layer: FenceLayer) -> Router {
    let texts = Arc::clone(texts);
    let write = async move |Path((shop, id)): Path<(u32, u32)>, text: String| {
        texts.lock().unwrap().insert(format!("{shop}/{id}"), text);
    };
    let articles = Router::new().route("/articles/{id}", put(write)).route_layer(layer);
    Router::new().nest("/shops/{shop}", articles)
}

/// What the older lease of another shop's article is answered.
async fn write_of_another_shop(layer: FenceLayer) -> (u16, String) {
    let texts = Texts::default();
    let server = Server::of(shops(&texts, layer)).await;
    let one = write_to(server.address, "/shops/1/articles/7", of(42), "one").await;
    assert_eq!(one.status(), 200, "{}", one.body);
    let two = write_to(server.address, "/shops/2/articles/7", of(3), "two").await;
    (two.status(), text(&texts, "2/7"))
}

async fn shop_and_article(request: &mut Parts) -> Result<Option<String>, Unnamed> {
    let Path((shop, id)) = Path::<(u32, u32)>::from_request_parts(request, &()).await?;
    Ok(Some(format!("shops/{shop}/articles/{id}")))
}

#[tokio::test]
async fn the_articles_of_two_shops_are_two_resources() {
    let layer = FenceLayer::new(MemoryGate::new(), |request| Box::pin(shop_and_article(request)));
    assert_eq!(write_of_another_shop(layer).await, (200, "two".to_owned()));
}

#[tokio::test]
async fn by_the_path_within_a_nested_router_they_are_one() {
    assert_eq!(write_of_another_shop(by_path()).await, (412, String::new()));
}

/// A handler that writes to the address itself has the address for a name, as it came.
#[tokio::test]
async fn a_handler_that_uses_the_original_address_has_it_for_a_name() {
    let texts = Texts::default();
    let stored = Arc::clone(&texts);
    let store = async move |OriginalUri(uri): OriginalUri, text: String| {
        stored.lock().unwrap().insert(uri.path().to_owned(), text);
    };
    let layer = FenceLayer::new(MemoryGate::new(), |request| {
        Box::pin(async {
            let OriginalUri(uri) = OriginalUri::from_request_parts(request, &()).await?;
            Ok(Some(uri.path().to_owned()))
        })
    });
    let files = Router::new().route("/{file}", put(store)).route_layer(layer);
    let server = Server::of(Router::new().nest("/a", files.clone()).nest("/b", files)).await;
    for (path, fence, status) in
        [("/a/x", 42, 200), ("/b/x", 3, 200), ("/a/%78", 3, 200), ("/a/x", 41, 412)]
    {
        let answer = write_to(server.address, path, of(fence), &fence.to_string()).await;
        assert_eq!(answer.status(), status, "{path}: {}", answer.body);
    }
    assert_eq!(["/a/x", "/b/x", "/a/%78"].map(|path| text(&texts, path)), ["42", "3", "3"]);
}

#[tokio::test]
async fn a_path_that_the_handler_would_refuse_is_400_and_names_nothing() {
    let (texts, gate) = (Texts::default(), Arc::new(MemoryGate::new()));
    let server = Server::of(articles(&texts, layer(Arc::clone(&gate)))).await;
    for path in ["/articles/seven", "/articles/-1", "/articles/4294967296", "/articles/%FF"] {
        let answer = write_to(server.address, path, of(41), "x").await;
        assert_eq!(answer.status(), 400, "{path}: {}", answer.body);
        assert!(answer.body.contains("ResourceMalformed"), "{}", answer.body);
    }
    assert_eq!(gate.known_resources(), 0);
    assert_eq!(write(server.address, 7, Some(of(41)), "x").await.status(), 200);
}

/// A client makes names up: that is its own affair, and no operator is called.
#[tokio::test]
async fn a_name_that_the_gate_cannot_keep_is_400_and_no_error_in_the_log() {
    let (log, _collecting) = Log::of_this_thread();
    // Nobody listens there: such a name is refused before anything is sent.
    let config = RedisConfig::new("redis+unix:///nowhere/redis.sock").unwrap();
    let layer = FenceLayer::new(RedisGate::new(RedisPool::new(&config).unwrap()), |request| {
        Box::pin(async {
            let Path(name) = Path::<String>::from_request_parts(request, &()).await?;
            Ok(Some(name))
        })
    });
    let things = Router::new().route("/{thing}", put(async || "written")).route_layer(layer);
    let server = Server::of(things).await;
    for path in ["/a%7D", "/a%00b", "/watermark:%7Bb%7D", "/%7B7%7D:watermark"] {
        let answer = write_to(server.address, path, of(41), "x").await;
        assert_eq!(answer.status(), 400, "{path}: {}", answer.body);
        assert!(answer.body.contains("ResourceMalformed"), "{}", answer.body);
    }
    assert!(!log.tells("ERROR") && !log.tells("WARN"), "{:?}", log.lines());

    // A name that it can keep, and a storage that is not there: that is told.
    let answer = write_to(server.address, "/a", of(41), "x").await;
    assert_eq!(answer.status(), 503, "{}", answer.body);
    assert!(log.tells("WARN"), "{:?}", log.lines());
}
