//! The names of the locks of one server, by `SCAN`.

use leasehold_core::{
    Instant, LockName, NamePattern, StoreError,
    store::{KeyScheme, Scan, ScanPage},
};

use super::{
    decode,
    pool::{Errand, RedisPool},
    store::RedisStore,
};

/// How many places of its table a server looks at in one step: some tens of microseconds.
const COUNT: u32 = 250;

impl RedisStore {
    /// One step on a server, or on the master of a group: another master has cursors of its own.
    pub(super) async fn scan(
        &self,
        Scan { pattern, cursor }: Scan,
        deadline: Instant,
    ) -> Result<ScanPage, StoreError> {
        let master = || self.pool.epoch().0.to_string();
        let part = master();
        let Some((_, at)) = cursor.next([&*part]) else { return Ok(ScanPage::end()) };
        let (names, at) = self.scan_step(&pattern, at, deadline).await?;
        let next = cursor.after(&part, at);
        let is_over = next.next([&*master()]).is_none();
        Ok(ScanPage { names, failed: None, next: (!is_over).then_some(next) })
    }

    /// One step from a cursor of the server: some names, and the next cursor unless it is the end.
    pub(super) async fn scan_step(
        &self,
        pattern: &NamePattern,
        at: u64,
        deadline: Instant,
    ) -> Result<(Vec<LockName>, Option<u64>), StoreError> {
        self.readiness.by(deadline).await?;
        scan_step(&self.pool, self.keys(), (pattern, at), deadline).await
    }
}

/// One step of a scan on a server that is ready.
///
/// # Errors
///
/// [`StoreError`] when the server does not answer, or refuses.
///
/// # Cancel safety
///
/// Dropping the future changes nothing.
pub async fn scan_step(
    pool: &RedisPool,
    keys: &KeyScheme,
    (pattern, at): (&NamePattern, u64),
    deadline: Instant,
) -> Result<(Vec<LockName>, Option<u64>), StoreError> {
    let mut command = redis::cmd("SCAN");
    command.arg(at).arg("MATCH").arg(keys.leases(pattern)).arg("COUNT").arg(COUNT);
    let answered = pool.run(Errand::Plain(command), deadline).await?;
    let (at, found) = decode::scan(answered.answer)?;
    let names = found.iter().filter_map(|key| keys.lock_of_lease(key));
    let names = names.filter(|name| pattern.matches(name)).collect();
    Ok((names, (at != 0).then_some(at)))
}
