use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use leasehold_services::Failure;
use serde_json::Value;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    door::KEY,
    form::{CLICKS, FORMS, Fate},
    tally::Tally,
};

/// Users who click again and again, until the answer is that their form is done.
#[derive(Debug, Clone)]
pub(crate) struct Users {
    pub(crate) addresses: Arc<[SocketAddr]>,
    pub(crate) run: Arc<str>,
    /// Whether each request has a key of its own, so that no door is closed to another.
    pub(crate) ajar: bool,
    pub(crate) tally: Arc<Tally>,
}

/// The pause before a user clicks again.
const PAUSE: Duration = Duration::from_millis(50);
const MOST_BYTES: usize = 65_536;

impl Users {
    /// Submits every form many times at once.
    pub(crate) async fn submit_all(&self) -> Result<(), Failure> {
        for forms in FORMS {
            let client = Client::builder(TokioExecutor::new()).build_http();
            let mut clicks = JoinSet::new();
            for form in forms {
                for user in 0..CLICKS {
                    clicks.spawn(self.clone().submit(client.clone(), form, user));
                }
            }
            while let Some(clicked) = clicks.join_next().await {
                clicked??;
            }
            // The stalled run writes before its instance may die with the next forms.
            while self.tally.writing.get() > 0 {
                sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    async fn submit(
        self,
        client: Client<HttpConnector, Body>,
        form: u64,
        user: usize,
    ) -> Result<(), Failure> {
        let (tally, mut door) = (&self.tally, user);
        loop {
            let number = tally.requests.up();
            let has_died = tally.died.load(Ordering::SeqCst);
            let request =
                self.request(self.addresses[door % self.addresses.len()], form, number)?;
            let Ok(answer) = client.request(request).await else {
                // The instance is gone: to the next one.
                tally.failed.up();
                door += 1;
                continue;
            };
            let (answer, body) = answer.into_parts();
            let body = to_bytes(Body::new(body), MOST_BYTES).await?;
            match answer.status {
                StatusCode::CREATED | StatusCode::OK => {
                    tally.first.up();
                    self.is_done(form);
                    return Ok(());
                }
                StatusCode::CONFLICT => {
                    let first: Value = serde_json::from_slice(&body)?;
                    if first["progress"] == "done" {
                        tally.done.up();
                        self.is_done(form);
                        return Ok(());
                    }
                    tally.running.up();
                    if has_died {
                        tally.running_dead.up();
                    }
                    sleep(PAUSE).await;
                }
                StatusCode::INTERNAL_SERVER_ERROR | StatusCode::SERVICE_UNAVAILABLE => {
                    tally.failed.up();
                }
                status => return Err(format!("{status}: {}", body.escape_ascii()).into()),
            }
        }
    }

    /// The stalled run may go on; the first answer about its form may have been lost.
    fn is_done(&self, form: u64) {
        if Fate::of(form) == Fate::Stalls {
            self.tally.stall.end();
        }
    }

    fn request(
        &self,
        address: SocketAddr,
        form: u64,
        number: u64,
    ) -> Result<Request<Body>, Failure> {
        let request = Request::post(format!("http://{address}/forms/{form}"));
        let number = if self.ajar { number } else { 0 };
        let key = format!("{}/{form}/{number}", self.run);
        Ok(request.header(KEY, key).body(Body::empty())?)
    }
}
