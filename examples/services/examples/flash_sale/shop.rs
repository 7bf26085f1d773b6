use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold::{LockRuntime, ReentrantLock};
use leasehold_services::{Place, SHUTDOWN};
use tokio::{sync::Notify, task::JoinSet, time::sleep};

use crate::{
    Failure,
    fault::Fault,
    sale::{ARTICLES, BUYERS, Look, SALE, Sale, TTL, wish},
    shelf::Shelf,
};

/// One of the shops that sell from the same shelf.
#[derive(Debug)]
pub(crate) struct Shop {
    pub(crate) index: usize,
    pub(crate) place: Place,
    pub(crate) shelf: Shelf,
    pub(crate) fault: Fault,
}

/// What the buyers of a shop share.
#[derive(Debug)]
struct Counter {
    shop: usize,
    shelf: Shelf,
    fault: Fault,
    locks: Vec<ReentrantLock>,
    /// Articles that are sold out.
    sold_out: [AtomicBool; ARTICLES],
    sales: AtomicUsize,
    died: Notify,
}

impl Shop {
    /// Serves all buyers, unless the shop dies.
    pub(crate) async fn sell(&self) -> Result<(), Failure> {
        let builder = LockRuntime::builder().namespace("flash-sale").service("shop").ttl(TTL);
        let locks = self.place.open(builder.wait(Duration::from_secs(60))).await?;
        let named = |article: usize| locks.lock(format!("article/{article}"));
        let counter = Arc::new(Counter {
            shop: self.index,
            shelf: self.shelf.clone(),
            fault: self.fault,
            locks: (0..ARTICLES).map(named).collect::<Result<_, _>>()?,
            sold_out: Default::default(),
            sales: AtomicUsize::new(0),
            died: Notify::new(),
        });
        let mut buyers = JoinSet::new();
        for buyer in 0..BUYERS {
            buyers.spawn(Arc::clone(&counter).serve(buyer));
        }
        tokio::select! {
            () = counter.died.notified() => std::mem::forget(locks),
            served = all(&mut buyers) => {
                served?;
                let report = locks.shutdown(SHUTDOWN).await;
                assert_eq!(report.held, 0, "every buyer has given its lock back");
            }
        }
        Ok(())
    }
}

async fn all(buyers: &mut JoinSet<Result<(), Failure>>) -> Result<(), Failure> {
    while let Some(served) = buyers.join_next().await {
        served??;
    }
    Ok(())
}

impl Counter {
    /// Serves one buyer, again and again until it has a piece or there is none.
    async fn serve(self: Arc<Self>, buyer: usize) -> Result<(), Failure> {
        let article = wish(buyer);
        while !self.sold_out[article].load(Ordering::Relaxed) {
            let guard = self.locks[article].acquire().await?;
            // Shuts out the former holder: what is read now stays true until it is booked.
            let left = match self.shelf.look(article, guard.stamp()).await? {
                Look::Left(0) => {
                    self.sold_out[article].store(true, Ordering::Relaxed);
                    return Ok(());
                }
                Look::Left(left) => left,
                Look::ShutOut => continue,
            };
            sleep(SALE).await;
            if self.sales.fetch_add(1, Ordering::Relaxed) == Fault::AFTER {
                self.suffer().await;
            }
            let (shop, stamp) = (self.shop, guard.stamp());
            let sale = self.shelf.book(article, left - 1, (shop, buyer), stamp).await?;
            drop(guard);
            if sale == Sale::Booked {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn suffer(&self) {
        self.fault.stall();
        if self.fault == Fault::Dies {
            self.died.notify_one();
            pending::<()>().await;
        }
    }
}
