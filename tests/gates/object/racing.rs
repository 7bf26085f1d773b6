//! Writers between whose look and write others come.

use std::sync::Arc;

use leasehold::{
    Stamp,
    error::StoreErrorKind,
    fencing::{Admitted, GateError},
};
use leasehold_fencing::{Verdict, judge};
use object_store::{ObjectStore, ObjectStoreExt, PutOptions};

use super::{
    steered::Steered,
    words::{gate, metadata, of, path, read, refused_by, watermark},
};

/// The trap: it looks, compares, and writes without a condition.
async fn read_then_put(store: &Steered, body: &'static str, presented: Stamp) -> bool {
    let highest = watermark(store).await;
    let Verdict::Admit(_) = judge(highest, presented) else { return false };
    let attributes = [(metadata("leasehold"), presented.to_string())].into_iter().collect();
    let options = PutOptions { attributes, ..PutOptions::default() };
    store.put_opts(&path(), body.into(), options).await.is_ok()
}

#[tokio::test]
async fn without_the_condition_the_newer_write_is_lost() {
    let store = Steered::sound();
    gate(&store).put(&path(), "9 left", of(40)).await.unwrap();
    let pause = store.pause_next();
    let paused = Arc::clone(&store);
    let late = tokio::spawn(async move { read_then_put(&paused, "late", of(41)).await });
    pause.reached().await;
    assert!(read_then_put(&store, "8 left", of(42)).await);
    pause.end();
    assert!(late.await.unwrap());
    assert_eq!(read(&*store).await.0, "late");
    assert_eq!(watermark(&*store).await, Some(of(41)));
}

#[tokio::test]
async fn a_create_that_lost_is_judged_anew() {
    for (late, admitted) in [(41, false), (43, true)] {
        let store = Steered::sound();
        let gate = gate(&store);
        let (pause, paused) = (store.pause_next(), gate.clone());
        let create = tokio::spawn(async move { paused.put(&path(), "late", of(late)).await });
        pause.reached().await;
        assert_eq!(gate.put(&path(), "first", of(42)).await, Ok(Admitted::First));
        pause.end();
        let result = create.await.unwrap();
        assert_eq!(result == Ok(Admitted::Newer), admitted, "{result:?}");
        assert_eq!(refused_by(&result, of(42)), !admitted);
        assert_eq!(read(&*store).await.0, if admitted { "late" } else { "first" });
    }
}

#[tokio::test]
async fn an_object_that_is_deleted_between_is_created() {
    let store = Steered::sound();
    let gate = gate(&store);
    gate.put(&path(), "9 left", of(40)).await.unwrap();
    let (pause, paused) = (store.pause_next(), gate.clone());
    let put = tokio::spawn(async move { paused.put(&path(), "8 left", of(41)).await });
    pause.reached().await;
    store.delete(&path()).await.unwrap();
    pause.end();
    assert_eq!(put.await.unwrap(), Ok(Admitted::First));
    assert_eq!(read(&*store).await.0, "8 left");
}

#[tokio::test]
async fn a_writer_that_always_loses_gives_up_and_says_so() {
    let store = Steered::sound();
    store.be_contended();
    let lost = gate(&store).max_attempts(3).unwrap().put(&path(), "a", of(41)).await;
    let Err(GateError::Store(error)) = lost else { panic!("{lost:?}") };
    assert_eq!(error.kind(), StoreErrorKind::Definite);
    assert!(error.to_string().contains("each of 3 attempts"), "{error}");
    assert_eq!(read(&*store).await.0, "somebody else's");
}

#[tokio::test]
async fn many_writers_leave_the_newest() {
    let store = Steered::sound();
    let mut writers = tokio::task::JoinSet::new();
    for fence in 1..=64 {
        let gate = gate(&store).max_attempts(100).unwrap();
        writers
            .spawn(async move { (fence, gate.put(&path(), fence.to_string(), of(fence)).await) });
    }
    for (fence, result) in writers.join_all().await {
        let refused =
            matches!(&result, Err(GateError::Stale(stale)) if stale.highest.fence.get() > fence);
        assert!(result.is_ok() || refused, "{fence}: {result:?}");
        assert!(fence < 64 || result.is_ok());
    }
    assert_eq!(read(&*store).await.0, "64");
    assert!(store.lost_races() > 0);
}
