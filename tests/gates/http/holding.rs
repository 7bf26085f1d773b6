//! 5 is admitted and slow, 6 comes, then 5 writes.

use leasehold::fencing::MemoryGate;
use serde_json::Value;

use super::{
    client::{of, send, try_write, write},
    server::{Article, Server, layer, soon},
};

#[tokio::test]
async fn a_newer_fence_waits_for_the_slow_one_and_writes_last() {
    let (article, layer) = (Article::trusting(), layer(MemoryGate::new()));
    let server = Server::start(&article, layer.clone()).await;
    let slow = tokio::spawn(write(server.address, 7, Some(of(5)), "slow 5"));
    article.begun(1).await;
    let mut newer = Box::pin(write(server.address, 7, Some(of(6)), "6"));
    // Another article does not wait, and its answer shows that the newer one had its time.
    for _ in 0..20 {
        tokio::select! {
            biased;
            answer = &mut newer => panic!("answered too early: {answer:?}"),
            other = write(server.address, 8, Some(of(1)), "other") => assert_eq!(other.status(), 200),
        }
    }
    article.end_one();
    assert_eq!(slow.await.unwrap().status(), 200);
    assert_eq!(newer.await.status(), 200);
    assert_eq!(article.text(), "6");
    assert_eq!(write(server.address, 7, Some(of(5)), "late").await.status(), 412);
    soon("all resources are free", || layer.resources_in_use() == 0).await;
}

#[tokio::test]
async fn a_layer_that_only_compares_lets_the_older_write_last() {
    let article = Article::trusting();
    let server = Server::that_only_compares(&article, MemoryGate::new()).await;
    let slow = tokio::spawn(write(server.address, 7, Some(of(5)), "slow 5"));
    article.begun(1).await;
    assert_eq!(write(server.address, 7, Some(of(6)), "6").await.status(), 200);
    assert_eq!(article.text(), "6");
    article.end_one();
    assert_eq!(slow.await.unwrap().status(), 200);
    assert_eq!(article.text(), "slow 5");
}

#[tokio::test]
async fn a_client_that_goes_away_frees_the_article() {
    let (article, layer) = (Article::trusting(), layer(MemoryGate::new()));
    let server = Server::start(&article, layer.clone()).await;
    let slow = tokio::spawn(try_write(server.address, 7, Some(of(5)), "slow 5"));
    article.begun(1).await;
    slow.abort();
    article.gone(1).await;
    assert_eq!(write(server.address, 7, Some(of(6)), "6").await.status(), 200);
    article.end_one();
    assert_eq!(article.text(), "6");
    soon("all resources are free", || layer.resources_in_use() == 0).await;
}

#[tokio::test]
async fn a_handler_that_panics_frees_the_article() {
    let (article, layer) = (Article::trusting(), layer(MemoryGate::new()));
    let server = Server::start(&article, layer.clone()).await;
    assert!(try_write(server.address, 7, Some(of(5)), "panic").await.is_err());
    assert_eq!(write(server.address, 7, Some(of(6)), "6").await.status(), 200);
    soon("all resources are free", || layer.resources_in_use() == 0).await;
}

#[tokio::test]
async fn refusals_are_problems_that_a_client_can_read() {
    let article = Article::trusting();
    let server = Server::start(&article, layer(MemoryGate::new())).await;
    write(server.address, 7, Some(of(6)), "6").await;
    let stale = write(server.address, 7, Some(of(5)), "late").await;
    let missing = write(server.address, 7, None, "nobody's").await;
    let malformed = hyper::Request::put("/articles/7")
        .header("leasehold-fence", "6.0")
        .header("leasehold-lease", of(6).lease.to_string());
    let malformed = send(server.address, malformed.body(String::new()).unwrap()).await.unwrap();
    for (answer, status, variant, words) in [
        (stale, 412, "StaleFence", "acquire the lock again"),
        (missing, 428, "FenceMissing", "send the fence"),
        (malformed, 400, "FenceMalformed", "\"6.0\""),
    ] {
        assert_eq!(answer.status(), status);
        assert_eq!(answer.response.headers()["content-type"], "application/problem+json");
        let problem: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(problem["status"], status);
        assert!(problem["type"].as_str().unwrap().ends_with(&format!("#variant.{variant}")));
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    assert_eq!(article.text(), "6");
    let read = hyper::Request::get("/articles/7").body(String::new()).unwrap();
    assert_eq!(send(server.address, read).await.unwrap().body, "6");
}

#[tokio::test]
async fn a_crowd_on_many_articles_leaves_nothing_behind() {
    let (article, layer) = (Article::trusting(), layer(MemoryGate::new()));
    let server = Server::start(&article, layer.clone()).await;
    let mut crowd = tokio::task::JoinSet::new();
    for n in 0..200_u32 {
        let stamp = of(u64::from(n) + 1);
        crowd.spawn(async move { write(server.address, n % 40, Some(stamp), "x").await.status() });
    }
    for status in crowd.join_all().await {
        assert!(status == 200 || status == 412, "{status}");
    }
    soon("all resources are free", || layer.resources_in_use() == 0).await;
}
