use std::{sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Fence, RuntimeId,
    store::{AcquireAnswer, Granted, Heartbeat, Place, ReleaseAnswer, Waiter},
};

use super::{push_log::PushLog, scene::Scene, words::ttl};

/// The words of those who wait.
#[expect(clippy::missing_panics_doc, reason = "the type says it for all of them")]
impl Scene {
    /// The claim window of a scene's waiters.
    pub const WINDOW: Duration = Duration::from_secs(40);

    /// A sign of life with this number.
    pub fn beat(number: u64) -> Heartbeat {
        Heartbeat { number, claim_window: Self::WINDOW }
    }

    /// Listens for the runtime of an acquisition.
    pub async fn pushes(&self, id: AcquisitionId) -> Arc<PushLog> {
        let runtime: RuntimeId = id.runtime();
        let pushes = PushLog::listen(&*self.subject().store(), runtime).await;
        pushes.hears(self.subject().listened_to() - 1).await;
        pushes
    }

    /// Acquires for 60 s and waits, under the first sign of life.
    pub async fn wait(&self, id: AcquisitionId) -> AcquireAnswer {
        self.wait_with(id, Self::beat(1)).await
    }

    /// Acquires for 60 s and waits, under this sign of life.
    pub async fn wait_with(&self, id: AcquisitionId, heartbeat: Heartbeat) -> AcquireAnswer {
        self.calls().wait(id, ttl(60), None, heartbeat).await.expect("wait")
    }

    /// Waits and expects a place in the queue.
    pub async fn queued(&self, id: AcquisitionId) -> Place {
        self.queued_with(id, Self::beat(1)).await
    }

    /// Waits under this sign of life and expects a place in the queue.
    pub async fn queued_with(&self, id: AcquisitionId, heartbeat: Heartbeat) -> Place {
        match self.wait_with(id, heartbeat).await {
            AcquireAnswer::Queued(place) => place,
            other => panic!("{id} expected a place and got {other:?}"),
        }
    }

    /// Waits and expects a grant.
    pub async fn wait_granted(&self, id: AcquisitionId) -> Granted {
        match self.wait(id).await {
            AcquireAnswer::Granted(granted) => granted,
            other => panic!("{id} expected a grant and got {other:?}"),
        }
    }

    /// A waiter for the scene's name, under the first sign of life.
    pub fn waiter(&self, id: AcquisitionId) -> Waiter {
        self.calls().waiter(id, ttl(60), None, Self::beat(1))
    }

    /// Tells the signs of life of a batch.
    pub async fn heartbeat(&self, batch: &[Waiter]) -> Vec<AcquireAnswer> {
        let answers = self.calls().heartbeat(batch).await.expect("heartbeat");
        answers.into_iter().map(|answer| answer.expect("a waiter's answer")).collect()
    }

    /// Releases, and queues the next acquisition of the runtime under its 7th sign of life.
    pub async fn release_and_queue(
        &self,
        id: AcquisitionId,
        fence: Fence,
        next: AcquisitionId,
    ) -> ReleaseAnswer {
        let next = self.calls().waiter(next, ttl(60), None, Self::beat(7));
        self.calls().release_and_queue(id, fence, None, &next).await.expect("release and queue")
    }

    /// The acquisitions that wait, in order; somebody has to hold the lock.
    pub async fn waiting(&self) -> Vec<AcquisitionId> {
        self.holder().await.waiters.iter().map(|waiter| waiter.id).collect()
    }

    /// Lets the clock that makes tokens move on by this much, so that a block finds room before
    /// it; a real server's by waiting.
    pub async fn tokens_pass(&self, millis: u64) {
        let until = self.subject().server_micros().await + 1000 * millis;
        self.pass(Duration::from_millis(millis)).await;
        while self.subject().server_micros().await < until {}
    }
}
