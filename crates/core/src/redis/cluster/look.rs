use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use redis::{AsyncConnectionConfig, ConnectionInfo, RedisError, Value, aio::MultiplexedConnection};
use tokio::{sync::Mutex, task::JoinSet};

use super::view::{Heard, View};
use crate::{
    clock::{Clock, within},
    redis::{
        classify::{NOT_THERE, NotDialed, classify_dial},
        config::RedisConfig,
        login::Login,
        place::{Place, open},
        preflight::not_greeted,
    },
    store::{StoreError, StoreErrorKind},
};

/// How many nodes are asked at once, and how many while the same thing lasts.
const MOST_ASKED: usize = 8;
const FEW_ASKED: usize = 2;

/// How long a node that was asked before may take, before others are asked.
const PATIENCE: Duration = Duration::from_millis(500);

/// For how long the others may still answer after the first, when all are to be heard.
const GATHER: Duration = Duration::from_millis(300);

/// Asks nodes of a Cluster for their view of it.
pub(super) struct Looker {
    config: RedisConfig,
    login: Login,
    template: ConnectionInfo,
    clock: Arc<dyn Clock>,
    /// The node that answered last.
    kept: Mutex<Option<Asked>>,
    /// How many looks in a row found nothing that was to be believed.
    in_vain: AtomicU32,
}

/// Whose view a look takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// That of the node that answered last, or of the first of several that takes commands.
    First,
    /// The best of several nodes.
    All,
    /// The best of a few nodes, which are others each time.
    Few,
}

/// A node that has answered.
struct Asked {
    place: Place,
    connection: MultiplexedConnection,
}

impl Looker {
    pub(super) fn new(config: &RedisConfig, clock: Arc<dyn Clock>) -> Self {
        let (login, template) = Login::split_off(config);
        Self {
            config: config.clone(),
            login,
            template,
            clock,
            kept: Mutex::default(),
            in_vain: AtomicU32::new(0),
        }
    }

    /// The view of the node that answered last, if it is not behind a known one. Otherwise, and
    /// where several are to be heard, the best of these.
    ///
    /// It fails when that one is [not to be believed](View::replaces).
    pub(super) async fn look(
        self: &Arc<Self>,
        places: Vec<Place>,
        known: Option<&View>,
        wanted: Wanted,
    ) -> Result<View, StoreError> {
        let is_behind = |view: &View| known.is_some_and(|known| known.is_better_than(view));
        let asked = self.kept.lock().await.take();
        if let Some(Asked { place, mut connection }) = asked.filter(|_| wanted == Wanted::First) {
            let until = self.clock.now() + PATIENCE;
            let viewing = view_of(&mut connection, &place);
            if let Some(Ok(view)) = within(&*self.clock, until, viewing).await
                && !is_behind(&view)
            {
                *self.kept.lock().await = Some(Asked { place, connection });
                self.in_vain.store(0, Ordering::Relaxed);
                return Ok(view);
            }
        }
        let (view, asked) = self.ask_several(places, known, wanted).await?;
        *self.kept.lock().await = Some(asked);
        Ok(view)
    }

    async fn ask_several(
        self: &Arc<Self>,
        places: Vec<Place>,
        known: Option<&View>,
        wanted: Wanted,
    ) -> Result<(View, Asked), StoreError> {
        let clock = &*self.clock;
        let mut until = clock.now() + self.config.connect_timeout;
        let mut asking = JoinSet::new();
        let most = if wanted == Wanted::Few { FEW_ASKED } else { MOST_ASKED };
        for place in places.into_iter().take(most) {
            let looker = Arc::clone(self);
            asking.spawn(async move { looker.ask(place).await });
        }
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        let mut heard = Heard { asked: asking.len(), told: 0, in_vain };
        let (mut best, mut failed) = (None::<(View, Asked)>, None::<StoreError>);
        while let Some(Some(asked)) = within(clock, until, asking.join_next()).await {
            let (view, asked) = match asked {
                Ok(Ok(answer)) => answer,
                Ok(Err(NotDialed { error, .. })) => {
                    // One that is out of reach may be back soon, whatever the others say.
                    if failed.as_ref().is_none_or(|_| error.kind().is_transient()) {
                        failed = Some(error);
                    }
                    continue;
                }
                Err(_) => continue,
            };
            heard.told += 1;
            let is_enough = view.is_ok && !known.is_some_and(|known| known.is_better_than(&view));
            if best.as_ref().is_none_or(|(best, _)| view.is_better_than(best)) {
                best = Some((view, asked));
            }
            if is_enough && wanted == Wanted::First {
                break;
            }
            until = until.min(clock.now() + GATHER);
        }
        match best {
            Some((view, _)) if !view.replaces(known, heard) => {
                self.in_vain.fetch_add(1, Ordering::Relaxed);
                Err(outdated(heard))
            }
            Some(best) => {
                self.in_vain.store(0, Ordering::Relaxed);
                Ok(best)
            }
            None => Err(failed.unwrap_or_else(|| NotDialed::in_time().error)),
        }
    }

    async fn ask(&self, place: Place) -> Result<(View, Asked), NotDialed> {
        let deadline = self.clock.now() + self.config.connect_timeout;
        let client = place.info(&self.template).and_then(|info| open(&self.config, info));
        let client = client.map_err(|error| classify_dial(&error))?;
        let client = self.login.client(&client, &*self.clock, deadline).await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.config.connect_timeout))
            .set_response_timeout(None);
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = connecting.await.map_err(|error| {
            self.login.refused(&error).map_or_else(|| not_greeted(&error), NotDialed::from)
        })?;
        let set_up = self.login.set_up(&mut connection).await;
        set_up.map_err(|error| NotDialed::because(&error))?;
        let view = view_of(&mut connection, &place).await?;
        Ok((view, Asked { place, connection }))
    }
}

async fn view_of(connection: &mut MultiplexedConnection, place: &Place) -> Result<View, NotDialed> {
    let mut asked = redis::pipe();
    asked.cmd("CLUSTER").arg("INFO").cmd("CLUSTER").arg("SLOTS");
    let asked: Result<(Value, Value), RedisError> = asked.query_async(connection).await;
    let (info, slots) = asked.map_err(|error| no_view(&first_of(error)))?;
    View::read(&info, &slots, place).ok_or_else(|| {
        let what = format!("the server at {place} does not tell who owns the slots");
        StoreError::new(StoreErrorKind::Config, what, "use a server that imitates Redis fully")
            .as_answer()
            .into()
    })
}

/// Few nodes answered, and what these tell is older than what is known.
fn outdated(Heard { told, asked, .. }: Heard) -> StoreError {
    let what = format!(
        "{told} of {asked} nodes of the Cluster answered, and they know less than this process"
    );
    StoreError::new(StoreErrorKind::Definite, what, NOT_THERE)
}

/// What the server said of the first command of a pipeline that it refused, in its own words.
fn first_of(error: RedisError) -> RedisError {
    let refused = error.clone().into_server_errors();
    let first = refused.and_then(|refused| Some(refused.first()?.1.clone()));
    first.map_or(error, RedisError::from)
}

fn no_view(error: &RedisError) -> NotDialed {
    let words = error.to_string();
    let (what, remedy) = if words.contains("cluster support disabled") {
        ("the server is not a node of a Cluster", "write redis://host:port for a single server")
    } else if words.contains("unknown command") {
        ("what answers is not a node of a Cluster", "write the addresses of its nodes")
    } else {
        return NotDialed::because(error);
    };
    StoreError::new(StoreErrorKind::Config, what, remedy).as_answer().into()
}
