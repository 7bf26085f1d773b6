use std::time::Duration;

use leasehold::fencing::GateError;
use leasehold_core::metric::names;
use leasehold_testkit::{ClockShim, RedisServer};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use super::scene;
use crate::support::{matrix::row, storage, wait};

row! {
    server_clock_back_after_loss: protected, control;
    fault: "the server loses its data (FLUSHALL), and its clock steps back by an hour",
    right: "fences continue above the highest that the runtime has seen; the regression is reported",
    control: "a runtime that has seen no fence before",
}

const TTL: Duration = Duration::from_secs(5);

fn protected() -> String {
    let recorder = DebuggingRecorder::new();
    // Of this thread, on which all tasks of the runtime run.
    let listening = metrics::set_default_local_recorder(&recorder);
    let grown = wait::on_one_thread(async {
        let shim = ClockShim::build();
        let (server, storage) = (scene::server_with(&shim), RedisServer::start());
        let gate = storage::gate_at(&storage.url());
        let locks = scene::runtime_at(&server.url(), TTL).await;
        let old = scene::take(&locks).await;
        gate.set("{v}", "old", old.stamp()).await.expect("the holder writes");
        lose(&server, &shim);
        let new = scene::take(&scene::runtime_at(&server.url(), TTL).await).await;
        let stale = gate.set("{v}", "blind", new.stamp()).await;
        assert!(matches!(stale, Err(GateError::Stale(_))), "{stale:?}");
        new.release().await.expect("a lease that was held to the end");

        wait::soon("the loss", old.lost()).await;
        let next = scene::take(&locks).await;
        assert!(next.fence() > old.fence());
        gate.set("{v}", "new", next.stamp()).await.expect("the newest holder writes");
        let late = gate.set("{v}", "late", old.stamp()).await;
        assert!(matches!(late, Err(GateError::Stale(_))), "{late:?}");
        let grown = next.fence().get() - old.fence().get();
        next.release().await.expect("a lease that was held to the end");
        let _ = locks.shutdown(wait::CEILING).await;
        scene::assert_clean(&server);
        grown
    });
    drop(listening);
    let reported = regressions(&recorder);
    assert_eq!(reported, 1);
    format!("fence + {grown}; {reported} regression reported; the late write refused")
}

/// Loses all data, and an hour.
fn lose(server: &RedisServer, shim: &ClockShim) {
    server.flush_all();
    let before = scene::time(server);
    shim.back(scene::HOUR);
    assert!(scene::time(server) < before, "the clock did not step");
}

/// How many regressions were reported.
fn regressions(recorder: &DebuggingRecorder) -> u64 {
    let series = recorder.snapshotter().snapshot().into_vec().into_iter();
    let values = series.filter(|(key, ..)| key.key().name() == names::FENCE_REGRESSION_TOTAL);
    let counts = values.map(|(.., value)| match value {
        DebugValue::Counter(count) => count,
        other => panic!("{other:?}"),
    });
    counts.sum()
}

fn control() -> String {
    wait::on_one_thread(async {
        let shim = ClockShim::build();
        let (server, storage) = (scene::server_with(&shim), RedisServer::start());
        let gate = storage::gate_at(&storage.url());
        let old = scene::take(&scene::runtime_at(&server.url(), TTL).await).await;
        gate.set("{v}", "old", old.stamp()).await.expect("the holder writes");
        lose(&server, &shim);
        let new = scene::take(&scene::runtime_at(&server.url(), TTL).await).await;
        assert!(new.fence() < old.fence(), "the control's fences grew");
        let refused = gate.set("{v}", "new", new.stamp()).await;
        assert!(matches!(refused, Err(GateError::Stale(_))), "{refused:?}");
        gate.set("{v}", "late", old.stamp()).await.expect("the control's storage takes it");
        "the fence fell: the holder is refused, the last one's late write taken".into()
    })
}
