//! `leasehold ls`.

use leasehold::{ListedLock, LockList};

use crate::{
    args::{ListArgs, ServerArgs},
    ending::Failure,
    json,
    output::{Reader, write_out},
    server,
    table::table,
    words::{printable, short},
};

pub(crate) fn list(
    args: &ServerArgs,
    ListArgs { pattern, json }: &ListArgs,
) -> Result<u8, Failure> {
    server::tokio()?.block_on(async {
        let locks = server::connected(args, "leasehold").await?;
        let list = locks.list(pattern).map_err(Failure::usage)?;
        if *json { lines(list).await } else { rows(list).await }
    })
}

/// Writes a line of JSON for each lock, when it is found.
async fn lines(mut list: LockList) -> Result<u8, Failure> {
    let mut failed = None;
    while let Some(item) = list.next().await {
        match item {
            Ok(lock) => {
                if json::write(&json::of_lease(lock.name.as_str(), &lock.lease))? == Reader::IsGone
                {
                    return Ok(0);
                }
            }
            Err(error) => told(&mut failed, error.into()),
        }
    }
    failed.map_or(Ok(0), Err)
}

/// Writes a table, by names.
async fn rows(mut list: LockList) -> Result<u8, Failure> {
    let (mut locks, mut failed) = (Vec::new(), None);
    while let Some(item) = list.next().await {
        match item {
            Ok(lock) => locks.push(lock),
            Err(error) => told(&mut failed, error.into()),
        }
    }
    locks.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
    let rows: Vec<_> = locks.iter().map(row).collect();
    let heads =
        ["LOCK", "STATE", "SINCE", "TTL LEFT", "FENCE", "HOLDS", "WAITING", "LONGEST", "HOLDER"];
    write_out(table(&heads, &rows).as_bytes())?;
    failed.map_or(Ok(0), Err)
}

/// Keeps the last failure, with which the program ends, and prints the one before.
fn told(last: &mut Option<Failure>, failure: Failure) {
    if let Some(before) = last.replace(failure) {
        before.tell();
    }
}

fn row(lock: &ListedLock) -> Vec<String> {
    let lease = &lock.lease;
    let longest = lease.waiters.iter().map(|waiter| waiter.waiting_for).max();
    vec![
        printable(lock.name.as_str()),
        json::state(lease).into(),
        short(lease.held_for),
        short(lease.remaining),
        lease.fence.to_string(),
        lease.holds.to_string(),
        lease.waiters.len().to_string(),
        longest.map_or_else(|| "-".into(), short),
        lease.label.clone(),
    ]
}
