use std::sync::Arc;

use tokio::task::JoinSet;

use crate::{
    audit, crew::Crew, desk::Desk, failure::Failure, orders::OrderFile, pause::Stopwatch,
    recorder::Recorder, report::Report, stall::Stall, storage::Storage, tally::Tally,
};

/// What a copy of the program needs to take part in a run.
pub(crate) struct Run {
    pub(crate) crew: Crew,
    pub(crate) file: Arc<OrderFile>,
    pub(crate) recorder: Recorder,
    pub(crate) place: &'static str,
}

impl Run {
    const WORKERS: usize = 16;

    /// Does all orders, waits for the other copies, and checks what they did together.
    pub(crate) async fn work_off(self, storage: impl Storage) -> Result<Report, Failure> {
        let Self { crew, file, recorder, place } = self;
        let watch = Stopwatch::start();
        let desk = Arc::new(Desk::new(crew.locks().clone(), Arc::clone(&file), storage));
        let mut tally = Self::all_workers(&desk).await?;
        desk.finish().await?;
        desk.count(&mut tally);
        recorder.take(&mut tally);
        crew.hand_in(&desk.storage, &tally).await?;
        let handed_in = crew.wait_for_all(&desk.storage).await?;
        let records = desk.storage.records(&file.articles).await?;
        crew.leave().await?;
        let findings = audit::audit(&file, &records, &handed_in);
        Ok(Report::new(&file, findings, &handed_in, place, watch.time()))
    }

    async fn all_workers<S: Storage>(desk: &Arc<Desk<S>>) -> Result<Tally, Failure> {
        let mut workers = JoinSet::new();
        let (staller, (begun, has_begun)) = (Arc::clone(desk), tokio::sync::oneshot::channel());
        workers.spawn(async move {
            let mut tally = Tally::default();
            let stall = Stall::begin(&staller, &mut tally).await?;
            // Nobody waits any more if this program is about to end.
            let _ = begun.send(());
            if let Some(stall) = stall {
                stall.run(&staller, &mut tally).await?;
            }
            staller.work().await.map(|()| tally)
        });
        // The stalled worker gets its article first, or a small run might be over before it does.
        let _ = has_begun.await;
        for _ in 1..Self::WORKERS {
            let desk = Arc::clone(desk);
            workers.spawn(async move { desk.work().await.map(|()| Tally::default()) });
        }
        let mut sum = Tally::default();
        while let Some(worker) = workers.join_next().await {
            sum.add(worker??);
        }
        Ok(sum)
    }
}
