//! `leasehold health`.

use crate::{args::ServerArgs, ending::CliError, output::write_out, server};

/// To connect runs every kind of command once, and a write that a full server refuses: more need not be asked.
pub(crate) async fn health(args: &ServerArgs) -> Result<u8, CliError> {
    server::serving(args).await?;
    write_out(b"the server answers\n")?;
    Ok(0)
}
