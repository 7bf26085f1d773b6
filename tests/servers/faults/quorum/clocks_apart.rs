use std::time::Duration;

use leasehold::{AcquisitionId, Fence, Stamp, fencing::GateError};
use leasehold_core::{Entropy, SystemEntropy};
use leasehold_testkit::{QuorumGroup, RedisServer};

use super::scene::strictly_right;
use crate::{
    faults::server::scene::run,
    support::{
        crew::{Crew, Plan},
        matrix::row,
        storage,
    },
};

row! {
    clocks_apart: protected, control;
    fault: "one server's clock is a minute ahead, another one's a minute behind; then they change places",
    right: "processes at work go on under growing fences, which cost a second round trip",
    control: "fences that are the time of the first server that answers",
}

const MINUTE: Duration = Duration::from_secs(60);

fn apart() -> QuorumGroup {
    let group = QuorumGroup::builder(3).clocks().start();
    group.let_vote();
    group.clock(1).forward(MINUTE);
    group.clock(2).back(MINUTE);
    group
}

fn protected() -> String {
    let group = apart();
    let crew = Crew::start(&Plan::PROTECTED, &group.url());
    crew.work(100);
    let first = crew.finish();
    let seen = strictly_right(&first);
    // Nobody steps a clock while a lease is held: that ends it there.
    group.clock(1).back(2 * MINUTE);
    group.clock(2).forward(2 * MINUTE);
    let crew = Crew::start(&Plan::PROTECTED, &group.url());
    crew.work(100);
    let second = crew.finish();
    strictly_right(&second);
    let fences = |finished: &crate::support::crew::Finished| -> Vec<Fence> {
        let fence = |event| match event {
            leasehold_testkit::Event::Granted { fence, .. } => Some(fence),
            _ => None,
        };
        finished.history.events().into_iter().filter_map(fence).collect()
    };
    let (last, next) = (fences(&first).into_iter().max(), fences(&second).into_iter().min());
    assert!(next > last, "{next:?} was granted after {last:?}");
    format!("{seen}, and no fence repeated or fell when the clocks changed places")
}

fn control() -> String {
    run(async {
        let (group, storage) = (apart(), RedisServer::start());
        let gate = storage::gate_at(&storage.url());
        let take = |number: usize| {
            let [seconds, micros]: [u64; 2] = group.server(number).query(&["TIME"]);
            let fence = Fence::try_from(seconds * 1_000_000 + micros).expect("a time");
            Stamp::new(fence, AcquisitionId::new(SystemEntropy.runtime_id(), 1))
        };
        let old = take(1);
        gate.set("{v}", "old", old).await.expect("the only holder writes");
        let new = take(2);
        assert!(new.fence < old.fence, "the control's fences grew");
        let refused = gate.set("{v}", "new", new).await;
        assert!(matches!(refused, Err(GateError::Stale(_))), "{refused:?}");
        gate.set("{v}", "late", old).await.expect("the control's storage takes the old one");
        "the fence fell: the holder is refused, the last one's late write taken".into()
    })
}
