use std::sync::Arc;

use leasehold::fencing::ObjectGate;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};

use super::Subject;
use crate::stamps;

/// A small object in a store in memory.
pub(super) fn subject() -> Subject {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let gate = ObjectGate::new(Arc::clone(&store));
    Subject {
        name: "object, in memory",
        plain: Arc::new(move |task| {
            let store = Arc::clone(&store);
            Box::pin(async move {
                store.put(&Path::from(format!("plain/{task}")), "7 left".into()).await?;
                Ok(1)
            })
        }),
        gated: Arc::new(move |task| {
            let gate = gate.clone();
            Box::pin(async move {
                let path = Path::from(format!("gated/{task}"));
                gate.put(&path, "7 left", stamps::of(task)).await?;
                Ok(1)
            })
        }),
    }
}
