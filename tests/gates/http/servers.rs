//! Two server processes before one storage, with one gate that they share.

use std::sync::Arc;

use leasehold::fencing::MemoryGate;

use super::{
    client::{of, write},
    server::{Article, Server, layer},
};

/// 5 is slow at one server while 6 writes at the other; what the article holds in the end.
async fn slow_here_and_newer_there(article: Article) -> String {
    let gate = Arc::new(MemoryGate::new());
    let here = Server::start(&article, layer(Arc::clone(&gate))).await;
    let there = Server::start(&article, layer(gate)).await;
    let slow = tokio::spawn(write(here.address, 7, Some(of(5)), "slow 5"));
    article.begun(1).await;
    assert_eq!(write(there.address, 7, Some(of(6)), "6").await.body, "written");
    article.end_one();
    slow.await.unwrap();
    article.text()
}

#[tokio::test]
async fn a_storage_that_looks_as_well_refuses_the_slow_one() {
    assert_eq!(slow_here_and_newer_there(Article::looking()).await, "6");
}

#[tokio::test]
async fn a_storage_that_trusts_the_layers_takes_the_slow_one() {
    assert_eq!(slow_here_and_newer_there(Article::trusting()).await, "slow 5");
}
