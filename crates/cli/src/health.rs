//! `leasehold health`.

use crate::{args::ServerArgs, ending::CliError, output::write_out, server};

/// To connect runs every kind of command once: more need not be asked.
pub(crate) async fn health(args: &ServerArgs) -> Result<u8, CliError> {
    server::connected(args).await?;
    write_out(b"the server answers\n")?;
    Ok(0)
}
