//! `leasehold quorum`.

use crate::{
    args::{QuorumArgs, QuorumDeed, ServerArgs},
    ending::CliError,
    output::{asked, tell},
    server,
};

pub(crate) async fn quorum(args: &ServerArgs, what: &QuorumArgs) -> Result<u8, CliError> {
    let QuorumDeed::Init = what.what;
    let (builder, address) = server::settings(args, "leasehold quorum")?;
    let question = format!(
        "has no client used {address} for 70 s, or for the longest ttl of any client and twice the tolerance, if \
         that is longer?"
    );
    if !what.yes && !asked(&question, "add --yes to state that no client has used these servers")? {
        tell("nothing was changed");
        return Ok(0);
    }
    builder.init_quorum(address.clone()).await?;
    tell(&format!("all servers of {address} count from now on"));
    Ok(0)
}
