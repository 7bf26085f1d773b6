//! What the tests of the gate share.

use std::sync::Arc;

use leasehold::{
    AcquisitionId, Fence, RuntimeId, Stamp,
    fencing::{Admitted, GateError, ObjectGate},
};
use object_store::{
    Attribute, Attributes, GetOptions, ObjectStore, ObjectStoreExt, PutOptions, path::Path,
};
use uuid::Uuid;

/// The stamp of lease `lease` with a fence.
pub(crate) fn stamp(fence: u64, lease: u64) -> Stamp {
    let lease = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), lease);
    Stamp::new(Fence::try_from(fence).unwrap(), lease)
}

/// The stamp of the lease with the same number as its fence.
pub(crate) fn of(fence: u64) -> Stamp {
    stamp(fence, fence)
}

pub(crate) fn gate(store: &Arc<impl ObjectStore>) -> ObjectGate {
    ObjectGate::new(Arc::clone(store) as Arc<dyn ObjectStore>)
}

pub(crate) fn path() -> Path {
    Path::from("stock/7")
}

pub(crate) fn metadata(name: &'static str) -> Attribute {
    Attribute::Metadata(name.into())
}

/// Writes an object past the gate.
pub(crate) async fn write_past(
    store: &dyn ObjectStore,
    body: &'static str,
    attributes: Attributes,
) {
    let options = PutOptions { attributes, ..PutOptions::default() };
    store.put_opts(&path(), body.into(), options).await.unwrap();
}

/// The body and the attributes of the object.
pub(crate) async fn read(store: &dyn ObjectStore) -> (String, Attributes) {
    let found = store.get_opts(&path(), GetOptions::new()).await.unwrap();
    let attributes = found.attributes.clone();
    (String::from_utf8(found.bytes().await.unwrap().to_vec()).unwrap(), attributes)
}

/// What changes with every write to the object.
pub(crate) async fn version(store: &dyn ObjectStore) -> Option<String> {
    store.head(&path()).await.unwrap().e_tag
}

/// The watermark of the object.
pub(crate) async fn watermark(store: &dyn ObjectStore) -> Option<Stamp> {
    let (_, attributes) = read(store).await;
    attributes.get(&metadata("leasehold")).map(|value| value.parse().unwrap())
}

/// Whether a write was refused because of a stamp.
pub(crate) fn refused_by(result: &Result<Admitted, GateError>, highest: Stamp) -> bool {
    matches!(result, Err(GateError::Stale(stale)) if stale.highest == highest && &*stale.resource == "stock/7")
}
