//! `leasehold ls`.

use leasehold::{ListedLock, printable};

use crate::{
    args::{ListArgs, ServerArgs},
    ending::CliError,
    json,
    output::{ReaderState, tell, write_out},
    server,
    words::{short, table},
};

/// Writes a line of JSON for each lock when it is found, or a table by names at the end.
pub(crate) async fn list(args: &ServerArgs, what: &ListArgs) -> Result<u8, CliError> {
    let locks = server::connected(args).await?;
    let mut list = locks.list(&what.pattern).map_err(CliError::usage)?;
    let (mut found, mut failed) = (Vec::new(), None::<CliError>);
    while let Some(item) = list.next().await {
        match item {
            Ok(ListedLock { name, lease, .. }) if what.json => {
                let document = json::of_lease(name.as_str(), &lease);
                if json::write(&document)? == ReaderState::IsGone {
                    return Ok(0);
                }
            }
            Ok(lock) => found.push(lock),
            // With the last one the program ends.
            Err(error) => {
                if let Some(before) = failed.replace(error.into()) {
                    tell(&before.text);
                }
            }
        }
    }
    if !what.json && found.is_empty() && failed.is_none() {
        tell(&nothing(&what.pattern, server::namespace(args)?.as_deref()));
    } else if !what.json {
        found.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        write_out(table(HEADS, found.iter().map(row)).as_bytes())?;
    }
    failed.map_or(Ok(0), Err)
}

/// What is said where no lock is found: perhaps the locks are elsewhere.
fn nothing(pattern: &str, namespace: Option<&str>) -> String {
    let namespace = namespace.unwrap_or("leasehold");
    let which = if pattern == "*" { "lock".into() } else { format!("lock that fits {pattern:?}") };
    format!(
        "no {which} is held or kept closed in the namespace {namespace:?}; --namespace names another one"
    )
}

const HEADS: [&str; 9] =
    ["LOCK", "STATE", "SINCE", "TTL LEFT", "FENCE", "HOLDS", "WAITING", "LONGEST", "HOLDER"];

fn row(lock: &ListedLock) -> [String; 9] {
    let lease = &lock.lease;
    let longest = lease.waiters.iter().map(|waiter| waiter.waiting_for).max();
    [
        printable(lock.name.as_str()).into(),
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
