//! Who may write, and what an object looks like afterwards.

use std::sync::Arc;

use leasehold::{
    error::StoreErrorKind,
    fencing::{Admitted, FenceGate, GateError, ObjectGate, ResourceError},
};
use object_store::{Attribute, Attributes, memory::InMemory, path::Path};

use super::words::{
    gate, metadata, of, path, read, refused_by, stamp, version, watermark, write_past,
};

#[tokio::test]
async fn only_a_newer_fence_or_the_same_lease_writes() {
    let store = Arc::new(InMemory::new());
    let gate = gate(&store);
    assert_eq!(gate.put(&path(), "a", stamp(9, 1)).await, Ok(Admitted::First));
    assert_eq!(gate.put(&path(), "b", stamp(10, 2)).await, Ok(Admitted::Newer));
    assert_eq!(gate.put(&path(), "c", stamp(10, 2)).await, Ok(Admitted::Again));
    let before = version(&*store).await;
    for stale in [stamp(9, 1), stamp(9, 2), stamp(10, 3)] {
        assert!(refused_by(&gate.put(&path(), "x", stale).await, stamp(10, 2)), "{stale}");
        assert!(refused_by(&gate.advance(&path(), stale).await, stamp(10, 2)), "{stale}");
    }
    assert_eq!(read(&*store).await.0, "c");
    assert_eq!(version(&*store).await, before);
    assert_eq!(gate.put(&Path::from("stock/8"), "d", stamp(1, 1)).await, Ok(Admitted::First));
}

#[tokio::test]
async fn an_object_without_metadata_was_never_fenced() {
    let store = Arc::new(InMemory::new());
    write_past(&*store, "from before", Attributes::new()).await;
    assert_eq!(gate(&store).put(&path(), "a", of(1)).await, Ok(Admitted::First));
    assert_eq!(watermark(&*store).await, Some(of(1)));
}

#[tokio::test]
async fn metadata_that_is_no_stamp_is_an_error_and_nothing_is_written() {
    let store = Arc::new(InMemory::new());
    let foreign = Attributes::from_iter([(metadata("leasehold"), "41")]);
    write_past(&*store, "as it was", foreign).await;
    let gate = gate(&store);
    for result in [gate.put(&path(), "a", of(42)).await, gate.advance(&path(), of(42)).await] {
        let Err(GateError::Store(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        let text = error.to_string();
        for words in ["\"stock/7\"", "\"41\"", "not the stamp of a lease", "while nobody writes"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
    assert_eq!(read(&*store).await.0, "as it was");
}

#[tokio::test]
async fn attributes_are_the_callers_but_for_those_of_the_gate() {
    let store = Arc::new(InMemory::new());
    let gate = gate(&store);
    let attributes = Attributes::from_iter([
        (Attribute::ContentType, "text/plain"),
        (metadata("owner"), "stock"),
        (metadata("leasehold"), "forged"),
        (metadata("leaseholdplaceholder"), "1"),
    ]);
    gate.put_with(&path(), "a", attributes, of(5)).await.unwrap();
    let (_, kept) = read(&*store).await;
    assert_eq!(&**kept.get(&Attribute::ContentType).unwrap(), "text/plain");
    assert_eq!(&**kept.get(&metadata("owner")).unwrap(), "stock");
    assert!(!ObjectGate::is_placeholder(&kept));
    assert_eq!(watermark(&*store).await, Some(of(5)));
}

#[tokio::test]
async fn a_resource_that_is_no_path_is_refused() {
    let store = Arc::new(InMemory::new());
    let gate = gate(&store);
    let empty = GateError::Resource(ResourceError::Empty);
    assert_eq!(FenceGate::advance(&gate, "", of(1)).await, Err(empty));
    for resource in ["a//b", "a/../b", "a/./b"] {
        let refused = GateError::Resource(ResourceError::NotAPath(resource.into()));
        assert_eq!(FenceGate::advance(&gate, resource, of(1)).await, Err(refused));
    }
}
