//! `leasehold show`.

use std::fmt::Write;

use leasehold::{
    printable,
    store::{Inspection, LeaseRecord},
};

use crate::{
    args::{ServerArgs, ShowArgs},
    ending::CliError,
    json,
    output::write_out,
    server,
    words::{short, table},
};

pub(crate) async fn show(args: &ServerArgs, what: &ShowArgs) -> Result<u8, CliError> {
    let locks = server::connected(args).await?;
    let seen = locks.inspect(&what.name).await?;
    if what.json {
        json::write(&json::of_lock(&what.name, &seen))?;
    } else {
        write_out(text(&what.name, &seen).as_bytes())?;
    }
    Ok(0)
}

/// A lock for people.
fn text(name: &str, seen: &Inspection) -> String {
    match seen {
        Inspection::Free { last_fence: None } => {
            format!("{} is free, and nobody has held it lately\n", printable(name))
        }
        Inspection::Free { last_fence: Some(fence) } => {
            format!("{} is free; its last fence is {fence}\n", printable(name))
        }
        Inspection::Held(lease) => held(name, lease),
    }
}

fn held(name: &str, lease: &LeaseRecord) -> String {
    let mut text = String::new();
    let end = if lease.kept { "opens in" } else { "ttl left" };
    let rows = [
        ("lock", printable(name).into()),
        ("state", json::state(lease).into()),
        ("holder", lease.label.clone()),
        ("since", format!("{} ago", short(lease.held_for))),
        (end, short(lease.remaining)),
        ("fence", lease.fence.to_string()),
        ("lease", lease.id.to_string()),
        ("holds", lease.holds.to_string()),
        ("kept idle", if lease.keeps { "yes" } else { "no" }.into()),
        ("waiting", lease.waiters.len().to_string()),
    ];
    for (head, cell) in rows {
        let _ = writeln!(text, "{head:<9}  {cell}");
    }
    if !lease.waiters.is_empty() {
        let waiters = lease.waiters.iter().enumerate().map(|(index, waiter)| {
            [
                (index + 1).to_string(),
                waiter.label.clone(),
                short(waiter.waiting_for),
                format!("{} ago", short(waiter.silent_for)),
                waiter.id.to_string(),
            ]
        });
        text.push('\n');
        let heads = ["PLACE", "WAITER", "WAITING", "LAST HEARD", "ACQUISITION"];
        text.push_str(&table(heads, waiters));
    }
    text
}
