//! `leasehold doctor`.

use leasehold::{
    Diagnosis,
    diagnosis::{ExaminedServer, Finding, Severity},
};
use serde_json::{Value, json};

use crate::{
    args::{DoctorArgs, ServerArgs},
    ending::CliError,
    json,
    library::of_program,
    output::write_out,
    server,
};

/// Returns 0, 1 or 2 by the worst finding.
pub(crate) async fn doctor(args: &ServerArgs, what: &DoctorArgs) -> Result<u8, CliError> {
    // Lazily, because a server that cannot be reached is a finding, too.
    let diagnosis = server::lazily(args)?.diagnose().await;
    if what.json {
        json::write(&document(&diagnosis))?;
    } else {
        write_out(format!("{}\n", of_program(&diagnosis.to_string())).as_bytes())?;
    }
    Ok(match diagnosis.worst() {
        None | Some(Severity::Notice) => 0,
        Some(Severity::Warning) => 1,
        Some(_) => 2,
    })
}

fn document(diagnosis: &Diagnosis) -> Value {
    json!({
        "worst": diagnosis.worst().map(Severity::as_label),
        "findings": diagnosis.findings().iter().map(finding).collect::<Vec<_>>(),
        "servers": diagnosis.servers().iter().map(examined).collect::<Vec<_>>(),
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity.as_label(),
        "topic": finding.topic.as_label(),
        "promises": finding.promises.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "servers": finding.servers,
        "found": of_program(&finding.what),
        "cure": of_program(&finding.cure),
    })
}

fn examined(server: &ExaminedServer) -> Value {
    json!({
        "server": server.server,
        "version": server.version,
        "replicas": server.replicas,
        "round_trip_us": server.round_trip.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)),
        "clock": server.clock.map(|clock| clock.to_string()),
    })
}
