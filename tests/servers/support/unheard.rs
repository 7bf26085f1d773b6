//! Grants that no replica hears of, and that a failover loses.

use leasehold_testkit::{LockText, Patience, RedisServer};

use super::{crew::Crew, wait};

/// Halts a holder whose turn was granted after this call, and returns what it read.
///
/// The replicas of the master have been cut off before: they do not know of that turn.
pub(crate) fn halt(crew: &mut Crew, index: usize, master: &RedisServer, key: &str) -> u64 {
    let heard = LockText::of(master, key).last();
    let halted = Patience::of(wait::CEILING).until(|| {
        crew.work(1);
        let read = crew.halt(index);
        let is_new = LockText::of(master, key).lease().fence > heard;
        if !is_new {
            crew.resume(index);
        }
        is_new.then_some(read)
    });
    halted.expect("another turn begins")
}
