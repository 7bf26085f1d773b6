//! Random commands, one after another beside the rule, and at the same time.

use std::sync::Arc;

use leasehold::{Stamp, fencing::GateError};
use leasehold_fencing::{Verdict, judge};
use object_store::memory::InMemory;
use proptest::prelude::*;

use super::{
    steered::Steered,
    words::{gate, metadata, path, read, stamp, watermark},
};

#[derive(Debug, Clone, Copy)]
struct Command {
    advance: bool,
    stamp: Stamp,
}

fn command() -> impl Strategy<Value = Command> {
    (any::<bool>(), 1..12_u64, 1..3_u64)
        .prop_map(|(advance, fence, lease)| Command { advance, stamp: stamp(fence, lease) })
}

fn run(test: impl Future<Output = Result<(), TestCaseError>>) -> Result<(), TestCaseError> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(4).enable_all().build().unwrap().block_on(test)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_after_another_the_gate_does_as_the_rule_says(commands in prop::collection::vec(command(), 1..24)) {
        run(async {
            let store = Arc::new(InMemory::new());
            let (gate, mut highest, mut body) = (gate(&store), None, String::new());
            for Command { advance, stamp } in commands {
                let text = stamp.to_string();
                let result = if advance {
                    gate.advance(&path(), stamp).await
                } else {
                    gate.put(&path(), text.clone(), stamp).await
                };
                match judge(highest, stamp) {
                    Verdict::Admit(admitted) => {
                        prop_assert_eq!(result, Ok(admitted));
                        highest = Some(stamp);
                        if !advance {
                            body = text;
                        }
                    }
                    Verdict::Refuse { highest } => {
                        prop_assert!(matches!(result, Err(GateError::Stale(stale)) if stale.highest == highest));
                    }
                }
                prop_assert_eq!(watermark(&*store).await, highest);
                prop_assert_eq!(&read(&*store).await.0, &body);
            }
            Ok(())
        })?;
    }

    #[test]
    fn at_the_same_time_the_watermark_only_rises(commands in prop::collection::vec(command(), 2..16)) {
        run(async {
            let store = Steered::sound();
            let mut tasks = tokio::task::JoinSet::new();
            let greatest = commands.iter().map(|command| command.stamp.fence).max();
            for Command { advance, stamp } in commands {
                let gate = gate(&store).max_attempts(100).unwrap();
                tasks.spawn(async move {
                    if advance {
                        gate.advance(&path(), stamp).await
                    } else {
                        gate.put(&path(), stamp.to_string(), stamp).await
                    }
                });
            }
            for result in tasks.join_all().await {
                prop_assert!(matches!(result, Ok(_) | Err(GateError::Stale(_))), "{:?}", result);
            }
            let written: Vec<Stamp> = store.written().iter()
                .map(|attributes| attributes.get(&metadata("leasehold")).unwrap().parse().unwrap())
                .collect();
            let rises = |a: &Stamp, b: &Stamp| a == b || a.fence < b.fence;
            prop_assert!(written.is_sorted_by(rises), "{:?}", written);
            prop_assert_eq!(written.last().map(|stamp| stamp.fence), greatest);
            Ok(())
        })?;
    }
}
