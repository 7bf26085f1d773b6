use std::{fmt, sync::Arc};

use leasehold_core::runs;
use leasehold_doctor::{Diagnosis, Examiner};
use leasehold_reentrant_lock::Executor;

/// Examines the servers of a lock runtime, where its connections live.
#[derive(Clone)]
pub(super) struct Doctor {
    /// `None` if there is no server.
    pub(super) examiner: Option<Arc<Examiner>>,
    pub(super) executor: Executor,
}

impl Doctor {
    /// Examines nothing in a fork, because the connections live in another process. Dropping the
    /// future ends the examination.
    pub(super) async fn diagnose(&self, is_fork: bool) -> Diagnosis {
        let Some(examiner) = &self.examiner else { return Diagnosis::without_server() };
        if is_fork {
            return examiner.in_fork();
        }
        if !runs(self.executor.handle(), &*examiner.clock).await {
            return examiner.undriven();
        }
        let examining = Arc::clone(examiner).examine();
        // On the executor, because the caller may poll this future outside of a tokio runtime.
        self.executor.run(examining).await.unwrap_or_else(|_| examiner.without_tokio())
    }
}

/// Short: it is part of each lock runtime.
impl fmt::Debug for Doctor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doctor").finish_non_exhaustive()
    }
}
