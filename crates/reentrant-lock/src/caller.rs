use std::thread::{self, ThreadId};

use tokio::task;

use crate::error::SelfWait;

/// Who asks for a lock: in which task, and with which owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    task: Task,
    owned: Owned,
}

/// Where a call is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Spawned(task::Id),
    /// What `block_on` runs has no id, and stays on its thread.
    Blocks(ThreadId),
}

/// Where the owner of a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owned {
    /// It is a fresh one, which nothing else can have.
    Fresh,
    /// It was given to the acquire.
    Given,
    /// It is the owner of the scope that the call is in.
    Scoped,
}

impl Caller {
    /// The task that runs now.
    pub(crate) fn here(owned: Owned) -> Self {
        let task =
            task::try_id().map_or_else(|| Task::Blocks(thread::current().id()), Task::Spawned);
        Self { task, owned }
    }

    /// How this call may wait for itself, if `holder` acquired the lock for which it waits.
    ///
    /// Tasks of one process contend for a lock in the usual way, too. What is suspicious: the very
    /// task that acquired it waits, or a call outside of every scope waits for one inside.
    pub(crate) fn waits_for_itself(self, holder: Self) -> Option<SelfWait> {
        match (self.owned, holder.owned) {
            (Owned::Fresh, _) if self.task == holder.task => Some(SelfWait::WithoutOwner),
            (Owned::Given | Owned::Scoped, _) if self.task == holder.task => {
                Some(SelfWait::OtherOwner)
            }
            (Owned::Fresh, Owned::Scoped) => Some(SelfWait::OutsideScope),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_call_that_may_wait_for_itself_is_suspicious() {
        let caller = |owned| async move { Caller::here(owned) };
        let here = |owned| Caller::here(owned);
        let [fresh, scoped, given] = [Owned::Fresh, Owned::Scoped, Owned::Given];
        assert_eq!(here(fresh).waits_for_itself(here(fresh)), Some(SelfWait::WithoutOwner));
        assert_eq!(here(fresh).waits_for_itself(here(scoped)), Some(SelfWait::WithoutOwner));
        assert_eq!(here(scoped).waits_for_itself(here(fresh)), Some(SelfWait::OtherOwner));
        assert_eq!(here(given).waits_for_itself(here(given)), Some(SelfWait::OtherOwner));

        for (owned, suspicion) in
            [(fresh, Some(SelfWait::OutsideScope)), (scoped, None), (given, None)]
        {
            let other = tokio::spawn(caller(owned)).await.expect("a task");
            assert_eq!(other.waits_for_itself(here(scoped)), suspicion, "{owned:?}");
            // Tasks that contend for a lock without any scope are no news.
            assert_eq!(other.waits_for_itself(here(fresh)), None, "{owned:?}");
            assert_eq!(other.waits_for_itself(here(given)), None, "{owned:?}");
        }
    }
}
