use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::{OptionFuture, join_all};
use redis::PushInfo;

use super::{
    asker::Asker, cluster, examiner::Examiner, quorum, replication, scripts, settings, timing,
};
use crate::{
    diagnosis::facts::{ServerFacts, Told, Version},
    redis::{
        classify::{NOT_THERE, classify_dial},
        config::RedisConfig,
        decode::text,
        dialer::{Dialed, Dialer},
        one_master::Witness,
        preamble::Preamble,
        role::hello,
    },
    store::{StoreError, StoreErrorKind},
    types::LockName,
};

/// On how many connections the master of an address is looked at: a balancer spreads them.
const CONNECTIONS: usize = 4;

/// A look at one master.
pub(super) struct Visit<'a> {
    examiner: &'a Examiner,
    /// How to reach this server.
    config: RedisConfig,
    /// A lock that nobody uses, which lives there.
    probe: Option<LockName>,
}

impl<'a> Visit<'a> {
    pub(super) fn new(
        examiner: &'a Examiner,
        config: RedisConfig,
        probe: Option<LockName>,
    ) -> Self {
        Self { examiner, config, probe }
    }

    /// Makes a connection and asks for everything.
    pub(super) async fn facts(&self) -> ServerFacts {
        let place = self.config.address.info().addr().to_string();
        ServerFacts { place, told: self.told().await }
    }

    async fn told(&self) -> Result<Told, StoreError> {
        let Dialed { connection, witness, .. } = self.connect().await?;
        let clock = Arc::clone(&self.examiner.clock);
        let asker = Asker::new(connection, clock, self.config.command_timeout);
        let runs = OptionFuture::from(witness.map(|first| self.runs(first))).await;
        let version = version(&asker).await?;
        let (info, settings) = (settings::info(&asker).await, settings::settings(&asker).await);
        let role = OptionFuture::from(info.is_err().then(|| replication::role(&asker))).await;
        let of_node = self.config.node.is_some().then(|| cluster::node(&asker, &self.config));
        let node = OptionFuture::from(of_node).await;
        // One after the other from here on, so that each round trip is timed alone.
        let timing = timing::timing(&asker).await;
        let keys = self.config.keys.clone();
        let channel = keys.channel(self.examiner.runtime_id);
        let preamble = Preamble::new(keys, self.config.fencing);
        let scripts = match &self.probe {
            Some(probe) => scripts::run(&asker, &preamble, probe, &channel).await,
            None => Ok(()),
        };
        let subscribes = scripts::subscribe(&asker, &channel).await;
        let acks = self.examiner.expected.acks;
        let trial = acks.are_asked().then(|| replication::acks(&asker, acks));
        let acks = OptionFuture::from(trial).await;
        let is_of_quorum = self.examiner.config.address.quorum().is_some();
        let mark = is_of_quorum.then(|| quorum::mark(&asker, self.config.keys.boot()));
        let mark = OptionFuture::from(mark).await;
        let runs = runs.unwrap_or_default();
        Ok(Told {
            version,
            runs,
            info,
            settings,
            role,
            timing,
            scripts,
            subscribes,
            acks,
            node,
            mark,
        })
    }

    /// Makes a connection as those of locks are made: to a master, logged in.
    async fn connect(&self) -> Result<Dialed, StoreError> {
        let clock = Arc::clone(&self.examiner.clock);
        // Nobody watches the Sentinels: this address is a server's.
        let dialer = Dialer::new(&self.config, Arc::clone(&clock), None)?;
        let deadline = clock.now() + self.config.connect_timeout;
        let connecting = dialer.dial(&*clock, deadline, |_: PushInfo| Ok::<(), ()>(()));
        connecting.await.map_err(|not_dialed| not_dialed.error)
    }

    /// The runs of the masters to which several connections lead, all made at one time. One that cannot
    /// be made is left out.
    async fn runs(&self, first: Arc<Witness>) -> BTreeSet<String> {
        let others = join_all((1..CONNECTIONS).map(|_| self.connect())).await;
        let others = others.into_iter().flatten().filter_map(|other| other.witness);
        std::iter::once(first).chain(others).map(|witness| witness.run.clone()).collect()
    }
}

/// What the server tells of itself. `HELLO` is always allowed.
async fn version(asker: &Asker) -> Result<Version, StoreError> {
    let mut connection = asker.connection.clone();
    let told = asker.in_time(hello(&mut connection)).await;
    let told = told.map_err(|_| unanswered())?.map_err(|error| classify_dial(&error))?;
    let field = |name| told.get(name).and_then(text).unwrap_or_else(|| "unknown".into());
    Ok(Version { product: field("server"), number: field("version") })
}

/// A server that fell silent.
pub(super) fn unanswered() -> StoreError {
    let what = "the server did not answer in time";
    StoreError::new(StoreErrorKind::Definite, what, NOT_THERE)
}
