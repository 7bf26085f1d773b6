use std::{borrow::Cow, sync::Arc, time::Duration};

use leasehold_core::{Clock, StoreError, StoreErrorKind, within};
use leasehold_redis::{Endpoint, RedisConfig, classify::NOT_THERE, connect_to, unreachable_one};
use redis::{AsyncConnectionConfig, ConnectionInfo, cmd};

use super::client::ServerClient;
use crate::facts::{Fields, NamedMaster, NotRead, Reading, WatchedMaster};

/// The master of a name, as one Sentinel knows it; the error if that does not answer.
pub(super) async fn ask(
    config: &RedisConfig,
    clock: &Arc<dyn Clock>,
    info: &ConnectionInfo,
    name: &str,
) -> Result<Option<NamedMaster>, StoreError> {
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(config.connect_timeout))
        .set_response_timeout(None);
    let until = clock.now() + config.connect_timeout;
    let connecting = connect_to(config, &**clock, info, &settings);
    let connected = within(&**clock, until, connecting).await;
    let connected = connected.ok_or_else(|| unheard("it is silent", START))?;
    let connection = connected.map_err(|error| {
        let error = unreachable_one(config, &error);
        if error.remedy() == NOT_THERE { unheard(error.what().to_owned(), START) } else { error }
    })?;
    // It has the connect timeout for all its answers.
    let client = ServerClient::new(connection, Arc::clone(clock), config.connect_timeout / 2);
    let question = |what: &str| cmd("SENTINEL").arg(what).arg(name).take();
    let named: Reading<Option<(String, u16)>> =
        client.ask_for(&question("GET-MASTER-ADDR-BY-NAME")).await;
    let named = named.map_err(|why| {
        let cure = match why {
            NotRead::Missing => return unheard("what answers is no Sentinel", PORT),
            NotRead::Denied => "grant the user of the Sentinels +sentinel|get-master-addr-by-name",
            _ => START,
        };
        unheard(format!("SENTINEL GET-MASTER-ADDR-BY-NAME {why}"), cure)
    })?;
    let Some((host, port)) = named else { return Ok(None) };
    let watched = client.ask_for(&question("MASTER")).await.map(|told| watched(&Fields(told)));
    Ok(Some(NamedMaster { master: Endpoint { host, port }, watched }))
}

fn unheard(what: impl Into<Cow<'static, str>>, cure: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Definite, what, cure)
}

const START: &str = "start it again, or take it out of the address";
const PORT: &str = "write the port of the Sentinel, as a rule 26379";

/// Reads the answer to `SENTINEL MASTER`.
fn watched(told: &Fields) -> WatchedMaster {
    let is_down = |flags: &str| flags.split(',').any(|flag| matches!(flag, "s_down" | "o_down"));
    WatchedMaster {
        quorum: told.number("quorum"),
        replicas: told.number("num-slaves"),
        others: told.number("num-other-sentinels"),
        down_after: told.number("down-after-milliseconds").map(Duration::from_millis),
        is_down: told.get("flags").is_some_and(is_down),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sentinel_watches() {
        let told = [
            ("quorum", "2"),
            ("num-slaves", "1"),
            ("num-other-sentinels", "2"),
            ("down-after-milliseconds", "5000"),
            ("flags", "master,s_down"),
        ];
        let told = Fields(told.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let seen = WatchedMaster {
            quorum: Some(2),
            replicas: Some(1),
            others: Some(2),
            down_after: Some(Duration::from_secs(5)),
            is_down: true,
        };
        assert_eq!(watched(&told), seen);
        assert_eq!(watched(&Fields::default()), WatchedMaster::default());
    }
}
