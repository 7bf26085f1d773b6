//! A lease that is taken shuts out the holder before, before its first write.

use std::sync::Arc;

use leasehold::{
    error::StoreErrorKind,
    fencing::{Admitted, GateError, ObjectGate},
};
use object_store::{Attribute, Attributes, memory::InMemory};

use super::{
    steered::Steered,
    words::{gate, metadata, of, path, read, refused_by, version, watermark, write_past},
};

#[tokio::test]
async fn the_object_stays_as_it_was_but_for_its_watermark() {
    let store = Arc::new(InMemory::new());
    let gate = gate(&store);
    let attributes = Attributes::from_iter([
        (Attribute::ContentType, "text/plain"),
        (metadata("owner"), "stock"),
    ]);
    gate.put_with(&path(), "9 left", attributes, of(41)).await.unwrap();
    assert_eq!(gate.advance(&path(), of(42)).await, Ok(Admitted::Newer));
    assert!(refused_by(&gate.put(&path(), "late", of(41)).await, of(42)));

    let (body, attributes) = read(&*store).await;
    assert_eq!(body, "9 left");
    assert_eq!(&**attributes.get(&Attribute::ContentType).unwrap(), "text/plain");
    assert_eq!(&**attributes.get(&metadata("owner")).unwrap(), "stock");
    assert_eq!(watermark(&*store).await, Some(of(42)));
    assert!(!ObjectGate::is_placeholder(&attributes));
}

#[tokio::test]
async fn a_repeat_writes_nothing() {
    let store = Arc::new(InMemory::new());
    let gate = gate(&store);
    gate.advance(&path(), of(42)).await.unwrap();
    let before = version(&*store).await;
    assert_eq!(gate.advance(&path(), of(42)).await, Ok(Admitted::Again));
    assert_eq!(version(&*store).await, before);
}

#[tokio::test]
async fn where_nothing_is_there_is_a_placeholder_until_the_first_write() {
    let store = Arc::new(InMemory::new());
    let gate = gate(&store);
    assert_eq!(gate.advance(&path(), of(42)).await, Ok(Admitted::First));
    assert!(refused_by(&gate.put(&path(), "late", of(41)).await, of(42)));
    for newer in [43, 44] {
        assert_eq!(gate.advance(&path(), of(newer)).await, Ok(Admitted::Newer));
        let (body, attributes) = read(&*store).await;
        assert!(body.is_empty() && ObjectGate::is_placeholder(&attributes));
    }
    gate.put(&path(), "", of(44)).await.unwrap();
    assert!(!ObjectGate::is_placeholder(&read(&*store).await.1));
}

#[tokio::test]
async fn a_holder_that_has_looked_already_is_shut_out_too() {
    for exists in [true, false] {
        let store = Steered::sound();
        let gate = gate(&store);
        if exists {
            gate.put(&path(), "9 left", of(40)).await.unwrap();
        }
        let pause = store.pause_next();
        let paused = gate.clone();
        let late = tokio::spawn(async move { paused.put(&path(), "late", of(41)).await });
        pause.reached().await;
        gate.advance(&path(), of(42)).await.unwrap();
        pause.end();
        assert!(refused_by(&late.await.unwrap(), of(42)));
        assert_eq!(read(&*store).await.0, if exists { "9 left" } else { "" });
    }
}

#[tokio::test]
async fn a_write_that_comes_between_is_kept() {
    let store = Steered::sound();
    let gate = gate(&store);
    gate.put(&path(), "9 left", of(40)).await.unwrap();
    let pause = store.pause_next();
    let newer = gate.clone();
    let advance = tokio::spawn(async move { newer.advance(&path(), of(42)).await });
    pause.reached().await;
    gate.put(&path(), "8 left", of(41)).await.unwrap();
    pause.end();
    assert_eq!(advance.await.unwrap(), Ok(Admitted::Newer));
    assert_eq!(read(&*store).await.0, "8 left");
}

#[tokio::test]
async fn an_object_that_is_too_large_is_left_alone() {
    let store = Arc::new(InMemory::new());
    write_past(&*store, "123456", Attributes::new()).await;
    let gate = gate(&store).max_rewritten(5);
    let result = gate.advance(&path(), of(1)).await;
    let Err(GateError::Store(error)) = result else { panic!("{result:?}") };
    assert_eq!(error.kind(), StoreErrorKind::Config);
    assert!(error.to_string().contains("all 6 bytes"), "{error}");
    assert_eq!(watermark(&*store).await, None);
    assert_eq!(gate.max_rewritten(6).advance(&path(), of(1)).await, Ok(Admitted::First));
}
