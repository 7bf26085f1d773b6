//! A small server that speaks S3 over HTTP/1.1, and the S3 client of `object_store` before it.

mod connector;
mod server;

pub(crate) use server::{Manner, S3Server};

use std::sync::Arc;

use object_store::{
    RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
};

/// The S3 client for the server at a port of 127.0.0.1.
pub(crate) fn client(port: u16) -> Arc<AmazonS3> {
    built(builder(port))
}

/// The same, which sends each request once.
pub(crate) fn client_that_never_repeats(port: u16) -> Arc<AmazonS3> {
    built(builder(port).with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() }))
}

fn builder(port: u16) -> AmazonS3Builder {
    AmazonS3Builder::new()
        .with_endpoint(format!("http://127.0.0.1:{port}"))
        .with_allow_http(true)
        .with_bucket_name("shop")
        .with_region("here")
        .with_access_key_id("key")
        .with_secret_access_key("secret")
        .with_disable_bulk_delete(true)
        .with_http_connector(connector::Connector)
}

fn built(client: AmazonS3Builder) -> Arc<AmazonS3> {
    Arc::new(client.build().expect("the client has all that it needs"))
}
