//! What the tests of the promises share: a store that a test can disturb, under virtual time or on
//! a private server.

mod clocks;
mod futures;
mod processes;
mod seen;
mod spans;
mod waiters;
mod words;
mod world;

pub(crate) use leasehold_testkit::contract::{ClusterSubject, RedisSubject, SentinelSubject};

pub(crate) use clocks::{BrokenClock, TickingClock, TimerlessClock};
pub(crate) use futures::{at_most_polls, poll_once};
pub(crate) use processes::{Process, step};
pub(crate) use seen::{Seen, Value};
pub(crate) use spans::Spans;
pub(crate) use waiters::{Waiting, lock, warm_up};
pub(crate) use words::{
    config, definite, indeterminate, is_taken_away, just_before, millis, nanos, secs,
};
pub(crate) use world::World;

/// Makes a test of every function for each store: in virtual time over the embedded one, and over
/// a private Redis server, a Sentinel group and a Cluster.
macro_rules! on_every_store {
    ($($(#[$doc:meta])* async fn $name:ident($world:ident: World) $body:block)+) => {
        $($(#[$doc])*
        mod $name {
            use super::*;

            async fn scene($world: World) $body

            #[tokio::test]
            async fn memory() {
                scene(World::new()).await;
            }

            #[tokio::test]
            async fn redis() {
                scene(World::on::<crate::support::RedisSubject>().await).await;
            }

            #[tokio::test]
            async fn sentinel() {
                scene(World::on::<crate::support::SentinelSubject>().await).await;
            }

            #[tokio::test]
            async fn cluster() {
                scene(World::on::<crate::support::ClusterSubject>().await).await;
            }
        })+
    };
}
pub(crate) use on_every_store;
