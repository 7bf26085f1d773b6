use std::{
    array,
    sync::{Arc, Mutex, PoisonError},
};

use leasehold::fencing::MemoryGate;

use super::Subject;
use crate::{round::TASKS, stamps};

/// So many writes between two looks at the clock.
const BATCH: u64 = 1000;

/// A number behind a mutex of its own.
pub(super) fn subject() -> Subject {
    let (gate, names) =
        (MemoryGate::new(), array::from_fn::<_, TASKS, _>(|task| format!("article/{task}")));
    let values: Arc<[Mutex<u64>; TASKS]> = Arc::default();
    let plain = Arc::clone(&values);
    let shared = Arc::new((gate, names));
    Subject {
        name: "memory",
        plain: Arc::new(move |task| {
            let values = Arc::clone(&plain);
            Box::pin(async move {
                for n in 0..BATCH {
                    *values[task].lock().unwrap_or_else(PoisonError::into_inner) = n;
                }
                Ok(BATCH)
            })
        }),
        gated: Arc::new(move |task| {
            let (values, shared) = (Arc::clone(&values), Arc::clone(&shared));
            Box::pin(async move {
                let (gate, names) = &*shared;
                for n in 0..BATCH {
                    gate.write(&names[task], stamps::of(task), || {
                        *values[task].lock().unwrap_or_else(PoisonError::into_inner) = n;
                    })?;
                }
                Ok(BATCH)
            })
        }),
    }
}
