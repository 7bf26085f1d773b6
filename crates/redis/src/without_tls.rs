//! What stands for `tls` where the feature is off: addresses with TLS are refused earlier.

use leasehold_core::StoreError;
use redis::{Client, ConnectionInfo, RedisError};

use crate::{address::RedisAddress, classify::classify_dial, not_dialed::NotDialed};

#[derive(Debug, Clone, Default)]
pub(crate) struct TlsSettings {
    _none: (),
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TlsGiven {
    _none: (),
}

pub(crate) fn told(_: TlsGiven, _: bool, _: &RedisError) -> Option<NotDialed> {
    None
}

pub(crate) fn is_foreign(_: &StoreError) -> bool {
    false
}

#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "with TLS there are settings")]
impl TlsSettings {
    pub(crate) fn check(&self, _: &RedisAddress) -> Result<(), StoreError> {
        Ok(())
    }

    pub(crate) async fn client(&self, info: ConnectionInfo) -> Result<Client, StoreError> {
        std::future::ready(Client::open(info)).await.map_err(|error| classify_dial(&error))
    }

    pub(crate) fn given(&self) -> TlsGiven {
        TlsGiven::default()
    }

    pub(crate) async fn answered_without(_: &ConnectionInfo) -> NotDialed {
        std::future::pending().await
    }
}
