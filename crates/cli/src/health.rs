//! `leasehold health`.

use leasehold::error::InspectError;

use crate::{args::ServerArgs, ending::CliError, output::write_out, server};

/// A lock that nobody uses.
const PROBE: &str = "leasehold:probe/health";

/// To connect runs every kind of command once, and a write that a full server refuses; a look shows whether
/// enough nodes of a quorum count.
pub(crate) async fn health(args: &ServerArgs) -> Result<u8, CliError> {
    let looked = server::serving(args).await?.inspect(PROBE).await;
    looked.map_err(|error| match error {
        InspectError::Store(error) => InspectError::Store(error.for_no_lock()),
        other => other,
    })?;
    write_out(b"the server answers\n")?;
    Ok(0)
}
