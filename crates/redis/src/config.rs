use std::{ops::RangeFrom, sync::Arc, time::Duration};

use leasehold_core::{
    FenceSettings, Namespace, QuorumSettings, Replication, SettingError, StoreError,
    StoreErrorKind, store::KeyScheme,
};

use super::{
    address::{AddressError, RedisAddress},
    channel::ChannelTag,
    classify::classify_dial,
    cluster::KnownNodes,
    credentials::CredentialsProvider,
    endpoint::Endpoint,
    liveness::Epochs,
    tls::TlsSettings,
};

pub(super) const TIMEOUTS: RangeFrom<Duration> = Duration::from_millis(10)..;

/// How to reach a Redis server, a Sentinel group or a Cluster, and what to keep there.
#[derive(Debug, Clone)]
#[must_use = "a configuration does nothing itself, give it to RedisStore::connect"]
pub struct RedisConfig {
    /// Where the server is.
    #[doc(hidden)]
    pub address: RedisAddress,
    pub(super) credentials: Option<Arc<dyn CredentialsProvider>>,
    /// Where the keys of a lock are.
    #[doc(hidden)]
    pub keys: KeyScheme,
    /// How fences are made.
    #[doc(hidden)]
    pub fencing: FenceSettings,
    /// How many connections carry commands.
    #[doc(hidden)]
    pub connections: usize,
    pub(super) pool_size: usize,
    /// How long a connection may take to be made.
    #[doc(hidden)]
    pub connect_timeout: Duration,
    /// How long a command outside of any lease may take.
    #[doc(hidden)]
    pub command_timeout: Duration,
    pub(super) client_name: String,
    /// Which acknowledgements the check at connect tries to wait for.
    #[doc(hidden)]
    pub acks: Replication,
    /// Set for a node of a Cluster.
    pub(super) node: Option<NodeSettings>,
    /// How the nodes of a quorum are used.
    #[doc(hidden)]
    pub quorum: QuorumSettings,
    pub(super) tls: TlsSettings,
}

/// What is different for a node of a Cluster.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeSettings {
    pub(super) mastership: Arc<Epochs>,
    pub(super) tag: Arc<ChannelTag>,
    pub(super) members: Arc<KnownNodes>,
    /// Which node has told its address; `None` for one that the user wrote, or that a redirection named.
    pub(super) announced_to: Option<Arc<str>>,
    /// Whether each command goes behind `ASKING`: the node does not own the slot yet.
    pub(super) is_asking: bool,
}

impl RedisConfig {
    /// The default configuration for an address: a text, a `redis::Client`, a
    /// `redis::ConnectionInfo`, or a [`RedisAddress`].
    ///
    /// # Errors
    ///
    /// [`AddressError`] when the address is not understood.
    pub fn new<A>(address: A) -> Result<Self, AddressError>
    where
        A: TryInto<RedisAddress, Error: Into<AddressError>>,
    {
        Ok(Self {
            address: address.try_into().map_err(Into::into)?,
            credentials: None,
            keys: KeyScheme::default(),
            fencing: FenceSettings::default(),
            connections: 1,
            pool_size: 4,
            connect_timeout: Duration::from_secs(2),
            command_timeout: Duration::from_secs(2),
            client_name: "leasehold".into(),
            acks: Replication::NONE,
            node: None,
            quorum: QuorumSettings::default(),
            tls: TlsSettings::default(),
        })
    }

    /// A provider of credentials for each new connection, in place of user and password of the
    /// address. Default: those of the address.
    pub fn credentials(self, provider: impl CredentialsProvider) -> Self {
        self.shared_credentials(Arc::new(provider))
    }

    /// Like [`credentials`](Self::credentials), with a provider that others use too.
    #[doc(hidden)]
    pub fn shared_credentials(self, provider: Arc<dyn CredentialsProvider>) -> Self {
        Self { credentials: Some(provider), ..self }
    }

    /// The prefix of all keys and channels. Default: `leasehold`.
    #[doc(hidden)]
    pub fn namespace(self, namespace: Namespace) -> Self {
        Self { keys: KeyScheme::new(namespace), ..self }
    }

    /// How fence tokens are minted. Default: [`FenceSettings::default`].
    #[doc(hidden)]
    pub fn fencing(self, fencing: FenceSettings) -> Self {
        Self { fencing, ..self }
    }

    /// How many multiplexed connections carry acquires and releases, 1 to 16. Default: 1, because
    /// commands of one moment share a call, and more connections make smaller calls.
    #[doc(hidden)]
    pub fn connections(self, connections: usize) -> Self {
        Self { connections, ..self }
    }

    /// How many pooled connections inspections and gates may use, 1 to 256. Default: 4.
    pub fn pool_size(self, size: usize) -> Self {
        Self { pool_size: size, ..self }
    }

    /// How long a connection may take to be made, at least 10 ms. Default: 2 s.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        Self { connect_timeout: timeout, ..self }
    }

    /// How long a command outside of any lease may take, at least 10 ms. Default: 2 s.
    ///
    /// Commands of a lease have deadlines of their own, derived from its ttl.
    pub fn command_timeout(self, timeout: Duration) -> Self {
        Self { command_timeout: timeout, ..self }
    }

    /// The name under which the server lists the connections. Default: `leasehold`.
    ///
    /// Characters that the server refuses are replaced by `-`.
    pub fn client_name(self, name: &str) -> Self {
        let printable = |c: char| if c.is_ascii_graphic() { c } else { '-' };
        Self { client_name: name.chars().map(printable).collect(), ..self }
    }

    /// Lets the check at connect find out whether the server can wait for these acknowledgements.
    /// Default: none.
    #[doc(hidden)]
    pub fn acks(self, acks: Replication) -> Self {
        Self { acks, ..self }
    }

    /// How the nodes of a quorum are used; other addresses do not need it. Default:
    /// [`QuorumSettings::default`].
    #[doc(hidden)]
    pub fn quorum(self, quorum: QuorumSettings) -> Self {
        Self { quorum, ..self }
    }

    /// Checks the settings against their ranges, as every function does that connects with them.
    ///
    /// # Errors
    ///
    /// [`SettingError`] for the first setting that is out of range.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), SettingError> {
        SettingError::check("number of connections", self.connections, 1..=16)?;
        SettingError::check("pool size", self.pool_size, 1..=256)?;
        SettingError::check("connect timeout", self.connect_timeout, TIMEOUTS)?;
        SettingError::check("command timeout", self.command_timeout, TIMEOUTS)?;
        Ok(())
    }

    /// The same for one of the servers of the address.
    ///
    /// # Errors
    ///
    /// [`StoreError`] for a place that is no address.
    #[doc(hidden)]
    pub fn at(&self, place: &Endpoint) -> Result<Self, StoreError> {
        let info = place.info(self.address.info()).map_err(|error| classify_dial(&error))?;
        Ok(Self { address: RedisAddress::of_node(info), ..self.clone() })
    }

    /// The same for a node of a Cluster; `announced_to` has told its address.
    #[doc(hidden)]
    pub fn of_cluster(self, announced_to: Option<Arc<str>>) -> Self {
        Self { node: Some(NodeSettings { announced_to, ..NodeSettings::default() }), ..self }
    }

    /// Whether the server is a node of a Cluster.
    #[doc(hidden)]
    pub fn is_of_cluster(&self) -> bool {
        self.node.is_some()
    }

    /// As [`check`](Self::check), with an error of a store. Certificates are read and checked, too, and whether
    /// the address uses them; but not for a node of a Cluster: it is opened later, and they have been fit before.
    pub(super) fn checked(&self) -> Result<(), StoreError> {
        self.check().map_err(|error| {
            StoreError::new(StoreErrorKind::Config, error.to_string(), "correct the setting")
        })?;
        if self.node.is_none() { self.tls.check(&self.address) } else { Ok(()) }
    }

    /// The certificate authority to trust for `rediss://`, in PEM. Default: the system's.
    ///
    /// [`Pem::file`](super::Pem::file) is read for each connection.
    #[cfg(feature = "tls")]
    pub fn tls_root_ca(mut self, pem: impl Into<super::Pem>) -> Self {
        self.tls.root_ca = Some(pem.into());
        self
    }

    /// The certificate and key to show to the server, in PEM. Default: none.
    ///
    /// [`Pem::file`](super::Pem::file) is read for each connection.
    #[cfg(feature = "tls")]
    pub fn tls_client_certificate(
        mut self,
        certificate: impl Into<super::Pem>,
        key: impl Into<super::Pem>,
    ) -> Self {
        self.tls.client = Some((certificate.into(), key.into()));
        self
    }

    /// What errors call these settings. Default: the functions.
    #[cfg(feature = "tls")]
    #[doc(hidden)]
    pub fn tls_names(
        mut self,
        ca: &'static str,
        certificate: &'static str,
        key: &'static str,
    ) -> Self {
        self.tls.names = super::tls::TlsNames { ca, certificate, key };
        self
    }
}
