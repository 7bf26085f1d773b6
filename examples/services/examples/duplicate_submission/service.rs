use std::{
    future::pending,
    net,
    sync::{Arc, atomic::Ordering},
};

use axum::{
    Extension, Router,
    extract::{Path, State},
    http::StatusCode,
    middleware,
    routing::post,
};
use leasehold::{LockRuntime, Stamp};
use leasehold_services::{Failure, Place, SHUTDOWN};
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    time::sleep,
};

use crate::{
    books::{Books, Entry, Shelf},
    door,
    form::{Fate, TTL, WORK},
    tally::{Tally, Writing},
};

/// An instance of the service.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) index: usize,
    pub(crate) place: Place,
    pub(crate) tally: Arc<Tally>,
}

/// What requests share.
#[derive(Debug)]
struct Desk {
    books: Books,
    tally: Arc<Tally>,
    dies: Notify,
}

impl Service {
    /// Serves until it is told to close, or dies; says how many leases were still held.
    pub(crate) async fn live(
        self,
        listener: net::TcpListener,
        books: Shelf,
        mut closed: watch::Receiver<bool>,
    ) -> Result<usize, Failure> {
        let builder = LockRuntime::builder().namespace("duplicate-submission").ttl(TTL);
        let locks = self.place.open(builder.service(format!("instance {}", self.index))).await?;
        let (tally, dies) = (self.tally, Notify::new());
        let desk = Arc::new(Desk { books: books.open(), tally, dies });
        let app = Router::new()
            .route("/forms/{form}", post(submit))
            .with_state(Arc::clone(&desk))
            .layer(middleware::from_fn_with_state(locks.clone(), door::once));

        listener.set_nonblocking(true)?;
        let serving = axum::serve(TcpListener::from_std(listener)?, app);
        let serving = serving.with_graceful_shutdown(async move {
            // An error does not matter: there is no client left to hear of it.
            let _ = closed.wait_for(|closed| *closed).await;
        });
        tokio::select! {
            served = serving => served?,
            () = desk.dies.notified() => {
                std::mem::forget(locks);
                return Ok(0);
            }
        }
        Ok(locks.drain(SHUTDOWN).await.held)
    }
}

/// Does what a form asks for.
async fn submit(
    State(desk): State<Arc<Desk>>,
    Path(form): Path<u64>,
    Extension(stamp): Extension<Stamp>,
) -> StatusCode {
    let is_first = desk.tally.run(form) == 1;
    let writing = Writing::begin(&desk.tally);
    sleep(WORK).await;
    match Fate::of(form) {
        Fate::Fails if is_first => return StatusCode::INTERNAL_SERVER_ERROR,
        Fate::Stalls => desk.tally.stall.once(),
        _ => {}
    }
    // A write that was sent goes on when this handler is dropped.
    let entry = tokio::spawn(Arc::clone(&desk).enter(form, stamp, writing)).await;
    if is_first && Fate::of(form) == Fate::Dies {
        desk.tally.died.store(true, Ordering::SeqCst);
        desk.dies.notify_one();
        pending::<()>().await;
    }
    match entry {
        Ok(Ok(Entry::New)) => StatusCode::CREATED,
        Ok(Ok(Entry::There)) => StatusCode::OK,
        Ok(Ok(Entry::Refused)) => StatusCode::SERVICE_UNAVAILABLE,
        Ok(Err(failure)) => {
            eprintln!("{failure}");
            StatusCode::INTERNAL_SERVER_ERROR
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl Desk {
    async fn enter(
        self: Arc<Self>,
        form: u64,
        stamp: Stamp,
        _writing: Writing,
    ) -> Result<Entry, Failure> {
        let entry = self.books.enter(form, stamp).await;
        if let Ok(Entry::Refused) = entry {
            self.tally.refused.up();
        }
        entry
    }
}
