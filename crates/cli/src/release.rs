//! `leasehold release`.

use leasehold::{
    Fence, ForceReleased, LockRuntime, printable,
    store::{Inspection, LeaseRecord},
};
use serde_json::json;

use crate::{
    args::{ReleaseArgs, ServerArgs},
    ending::CliError,
    json,
    output::{asked, tell, write_out},
    server,
    words::short,
};

pub(crate) async fn release(args: &ServerArgs, what: &ReleaseArgs) -> Result<u8, CliError> {
    let locks = server::connected(args).await?;
    match locks.inspect(&what.name).await? {
        Inspection::Held(lease) if what.yes || agreed(&what.name, &lease)? => {
            end(&locks, what, lease).await
        }
        Inspection::Held(_) => {
            tell("nothing was changed");
            Ok(0)
        }
        Inspection::Free { .. } => not_held(what),
    }
}

/// Asks on the terminal.
fn agreed(name: &str, lease: &LeaseRecord) -> Result<bool, CliError> {
    let name = printable(name);
    let held = if lease.kept { "was held, and is kept closed, by" } else { "is held by" };
    let question = format!(
        "{name} {held} {}, for {} until now (fence {}). End this lease?",
        lease.label,
        short(lease.held_for),
        lease.fence
    );
    asked(&question, &format!("add --yes to end the lease of {name} without a question"))
}

/// Ends the lease that was looked at, and no later one.
async fn end(locks: &LockRuntime, what: &ReleaseArgs, lease: LeaseRecord) -> Result<u8, CliError> {
    let ForceReleased::Ended { lease, fence } =
        locks.force_release_lease(&what.name, lease).await?
    else {
        return not_held(what);
    };
    if what.json {
        json::write(&json!({
            "name": what.name,
            "ended": json::holder(&lease),
            "fence": fence.map(Fence::get),
        }))?;
        return Ok(0);
    }
    tell(&format!("the lease of {} (fence {}) has ended", lease.label, lease.fence));
    let Some(fence) = fence else {
        tell("no greater fence is left to shut it out of the storage");
        return Ok(0);
    };
    tell("present this fence to the gate, to shut it out of the storage:");
    write_out(format!("{fence}\n").as_bytes())?;
    Ok(0)
}

fn not_held(what: &ReleaseArgs) -> Result<u8, CliError> {
    if what.json {
        json::write(&json!({ "name": what.name, "ended": null, "fence": null }))?;
    } else {
        tell(&format!("nobody holds {}: nothing was changed", printable(&what.name)));
    }
    Ok(0)
}
