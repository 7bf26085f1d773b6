//! Sixteen workers do the 3000 orders of a shop, one order of an article at a time.
//!
//! `cargo run --example order_pipeline` needs nothing but Rust: locks and stock live in this
//! process. With `REDIS_URL` set they live on that server, or on the servers of that Sentinel group
//! or Cluster. Further copies of the program join the run there, and do the orders that a copy
//! leaves behind when it crashes. If a master fails, the work goes on at a replica: as many replicas
//! as `REPLICAS` says have every order that was told as done, by default one of a group or Cluster.
//! The stock lives on the server of `STORE_URL` instead, if that is set. A quorum of independent
//! servers, `redis+quorum://…`, keeps locks and no stock: there the stock stays in this process
//! unless `STORE_URL` is set.
//!
//! One worker stalls for longer than its lease, and writes too late: the program tells when it takes
//! the lock, who takes over, and whose write is refused. At the end each copy checks what all of them have written: each order once, in sequence, under fences that grow; and that
//! nothing is missing of what it has written itself.

mod rows;

use std::{
    env, fmt,
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold::{
    Guard, LockRuntime, ReentrantLock,
    error::AcquireError,
    fencing::{GateError, StaleFence},
    time::{Clock, Instant, SystemClock},
};
use rows::{Failure, Row, Rows};
use tokio::task::JoinSet;

const WORKERS: usize = 16;
const ORDERS: usize = 3000;
/// A few articles are ordered often, and many seldom.
const HOT: u16 = 6;
const COLD: u16 = 194;

/// How long a lease lives without renewal. The others wait for as long when a copy crashes.
const TTL: Duration = Duration::from_secs(2);
/// How long the servers may be away: a failover takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How soon something is tried again meanwhile.
const AGAIN: Duration = Duration::from_millis(50);
/// The lease of the worker that stalls ends after this time.
const STALL: Duration = Duration::from_millis(250);
/// The stock is counted for longer than this lease lives without renewal.
const COUNTING_TTL: Duration = Duration::from_millis(600);
const COUNTING: Duration = Duration::from_millis(900);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            // On one line, also where the text of a server has several.
            let words: Vec<_> = failure.to_string().split_whitespace().map(str::to_owned).collect();
            eprintln!("order_pipeline: {}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<Report, Failure> {
    let clock = SystemClock;
    let began = clock.now();
    let place = Place::read();
    let (shop, presence) = Shop::enter(&place).await?;
    let shop = Arc::new(shop);

    let mut tasks = JoinSet::new();
    let stalling = Arc::clone(&shop);
    tasks.spawn(async move { stalling.stall().await });
    for _ in 0..WORKERS {
        let shop = Arc::clone(&shop);
        tasks.spawn(async move { shop.work().await });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    shop.finish().await?;

    let (copies, gone) = shop.leave(presence).await?;
    let short = shop.audit().await?;
    let left = shop.locks.drain(TTL).await;
    if left.held > 0 || !left.unreleased.is_empty() {
        return Err(format!("broken: leases were left over: {left:?}").into());
    }
    Ok(Report {
        place: place.name(),
        took: clock.now().saturating_since(began),
        short,
        copies,
        gone,
    })
}

/// Where locks and stock are; in this process, unless an address says otherwise.
struct Place {
    locks: Option<String>,
    stock: Option<String>,
}

impl Place {
    fn read() -> Self {
        let read = |key| env::var(key).ok().filter(|url| !url.is_empty());
        let locks = read("REDIS_URL");
        // What is on one server of a quorum is not on the others.
        let keeps_stock = |url: &String| !url.to_lowercase().contains("+quorum://");
        let stock = read("STORE_URL").or_else(|| locks.clone().filter(keeps_stock));
        Self { locks, stock }
    }

    fn name(&self) -> &'static str {
        match (&self.locks, &self.stock) {
            (None, None) => "in this process",
            (Some(_), None) => "on Redis, with the stock in this process",
            (None, Some(_)) => "in this process, with the stock on Redis",
            (Some(_), Some(_)) => "on Redis",
        }
    }
}

/// The orders, and what the workers need for them.
struct Shop {
    locks: LockRuntime,
    articles: Vec<Article>,
    /// For each order, in the sequence of their arrival, the index of its article.
    line: Vec<usize>,
    /// The next in this line.
    next: AtomicUsize,
    /// Which copies of the program have begun, joined and done a run.
    log: Rows,
    /// When the workers began.
    began: Instant,
}

struct Article {
    name: String,
    orders: Vec<Order>,
    /// A row for each order that is done: the order, the stock afterwards, and the fence.
    shelf: Rows,
    /// The rows that this copy has written, and where they stand on the shelf.
    written: Mutex<Vec<(usize, String)>>,
}

#[derive(Clone, Copy)]
struct Order {
    number: usize,
    /// Pieces that are delivered, or less than zero: that are sold.
    pieces: i64,
}

impl Order {
    /// A sale that finds too little in stock takes nothing.
    fn stock_after(self, stock: i64) -> i64 {
        if stock + self.pieces < 0 { stock } else { stock + self.pieces }
    }
}

impl Shop {
    /// Joins the run that is open on the server, or begins one.
    ///
    /// The guard shows others that this copy is alive: a crash frees its lock after the ttl.
    async fn enter(place: &Place) -> Result<(Self, Guard), Failure> {
        let builder = LockRuntime::builder().service("order_pipeline").ttl(TTL);
        let builder = builder.outage_patience(PATIENCE);
        let locks = match &place.locks {
            None => builder.embedded()?,
            Some(url) => {
                let locks = builder.connect(url.as_str()).await;
                locks.map_err(|error| format!("REDIS_URL: {error}"))?
            }
        };
        let gate = place.stock.as_deref().map(rows::gate).transpose()?;
        let rows = |key: String| match &gate {
            None => Rows::here(),
            Some(gate) => Rows::on_redis(gate, key),
        };
        let log = rows("order_pipeline:{log}".into());
        let presence = locks.lock(presence(&locks.id().to_string()))?.acquire().await?;

        let joined = format!("joined {}", locks.id());
        let lock = locks.lock("order_pipeline/log")?;
        let run = read(&lock, &log, |log| {
            let run = last_run(log);
            let is_open = !run.is_empty() && !run.iter().any(|row| row.text.starts_with("done "));
            let begin = (!is_open).then(|| "begin".to_owned());
            let run = if is_open { run } else { &[] };
            begin.into_iter().chain(unless_in(run, &joined)).collect()
        });
        let run = last_run(&run.await?).first().map_or(0, |begin| begin.fence);

        let (articles, line) =
            make_orders(|article| rows(format!("order_pipeline:{{{run}/{article}}}")));
        let next = AtomicUsize::new(0);
        let began = SystemClock.now();
        Ok((Self { locks, articles, line, next, log, began }, presence))
    }

    /// Tells what happens, and when.
    fn tell(&self, what: &str) {
        let since = SystemClock.now().saturating_since(self.began).as_secs_f64();
        println!("  {since:5.2} s  {what}");
    }

    fn lock(&self, article: &Article) -> Result<ReentrantLock, Failure> {
        let name = format!("order_pipeline/article/{}", article.name);
        Ok(self.locks.lock(name)?.class("article"))
    }

    /// Works until the line is empty.
    ///
    /// A worker does the *next* order of an article, not the one that it drew. So no order is ever
    /// assigned to a worker, and a worker that dies leaves none undone.
    async fn work(&self) -> Result<(), Failure> {
        while let Some(&article) = self.line.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.serve(&self.articles[article]).await?;
        }
        Ok(())
    }

    /// Does the orders that are left, because their worker lost its lease or its copy has crashed.
    async fn finish(&self) -> Result<(), Failure> {
        for article in &self.articles {
            while self.serve(article).await? == Served::Order {}
        }
        Ok(())
    }

    /// Does the next order of an article. What it acquires belongs to one owner.
    async fn serve(&self, article: &Article) -> Result<Served, Failure> {
        let mut outage = Outage::none();
        loop {
            let owner = self.locks.owner();
            match owner.scope(self.serve_as_owner(article)).await {
                // Nothing was written: the new holder of the lock does the order.
                Err(failure) if is_lost(&failure) => return Ok(Served::Order),
                // It may be done: who opens the shelf next sees it.
                Err(failure) if outage.lasts(&failure) => pause(AGAIN).await,
                served => return served,
            }
        }
    }

    async fn serve_as_owner(&self, article: &Article) -> Result<Served, Failure> {
        let guard = self.lock(article)?.acquire().await?;
        // From here on the shelf refuses all earlier holders of the lock.
        let done = article.shelf.open(guard.stamp()).await?;
        let Some(order) = article.orders.get(done.len()) else { return Ok(Served::Nothing) };
        let stock = order.stock_after(stock_in(done.last())?);
        pause(Duration::from_millis(3 + order.pieces.unsigned_abs() % 4)).await; // packs a parcel
        let row = format!("{} {stock} {}", order.number, guard.fence());
        self.book(article, &row).await?;
        article.written.lock().unwrap_or_else(PoisonError::into_inner).push((done.len(), row));
        Ok(Served::Order)
    }

    /// Writes a row under the lock of its article.
    ///
    /// It does not know that its caller has this lock already. In the scope of an owner the second
    /// acquire re-enters: it gets the same lease with the same fence.
    async fn book(&self, article: &Article, row: &str) -> Result<(), Failure> {
        let guard = self.lock(article)?.acquire().await?;
        article.shelf.append(guard.stamp(), row).await
    }

    /// A worker stalls until its lease is over, and then writes what it was about to write.
    async fn stall(&self) -> Result<(), Failure> {
        let Some(article) = self.articles.last() else { return Ok(()) };
        let (lock, name) = (self.lock(article)?, &article.name);
        let stalled = lock.acquire().max_hold(STALL).await?;
        let old = stalled.fence();
        self.tell(&format!("worker A takes the lock of {name}, fence {old}, and stalls"));
        // A worker that waits for this beside its work stops in time. This one does not.
        stalled.lost().await;
        self.tell("the lease of A is over; A does not look");
        let mut outage = Outage::none();
        let new = loop {
            // Another takes the lock, and counts the stock for longer than the ttl of its lease.
            let counting = lock.acquire().ttl(COUNTING_TTL).await?;
            let new = counting.fence();
            match article.shelf.open(counting.stamp()).await {
                Err(failure) if outage.lasts(&failure) => {
                    pause(AGAIN).await;
                    continue;
                }
                Err(failure) if !is_lost(&failure) => return Err(failure),
                _ => {}
            }
            self.tell(&format!("worker B takes over, fence {new}, and counts the stock"));
            pause(COUNTING).await;
            if counting.is_held() {
                break new;
            }
            // It was not renewed in time: this machine is very busy. Again.
        };
        self.tell(&format!("A goes on, and writes under fence {old}"));
        loop {
            match article.shelf.append(stalled.stamp(), "late").await {
                Err(failure) if is_lost(&failure) => break,
                Err(failure) if outage.lasts(&failure) => pause(AGAIN).await,
                Err(failure) => return Err(failure),
                Ok(()) => return Err("broken: the shelf has accepted a late write".into()),
            }
        }
        self.tell(&format!("the storage refuses it: it has seen fence {new}"));
        Ok(())
    }

    /// Ends the run for this copy, and waits for the others: how many took part, how many crashed.
    async fn leave(&self, guard: Guard) -> Result<(usize, usize), Failure> {
        let lock = self.locks.lock("order_pipeline/log")?;
        let done = format!("done {}", self.locks.id());
        let log = read(&lock, &self.log, |log| unless_in(last_run(log), &done).collect()).await?;
        drop(guard);
        let joined = last_run(&log).iter().filter_map(|row| row.text.strip_prefix("joined "));
        let joined: Vec<_> = joined.collect();
        for copy in &joined {
            // The copy holds this lock for as long as it works.
            drop(self.locks.lock(presence(copy))?.acquire().await?);
        }
        let log = read(&lock, &self.log, |_| vec![]).await?;
        let done = last_run(&log).iter().filter(|row| row.text.starts_with("done ")).count();
        Ok((joined.len(), joined.len().saturating_sub(done)))
    }

    /// Does all orders again, in mind, and compares: how many sales found too little in stock.
    async fn audit(&self) -> Result<usize, Failure> {
        let mut short = 0;
        for article in &self.articles {
            let Article { name, orders, shelf, written } = article;
            let rows = read(&self.lock(article)?, shelf, |_| vec![]).await?;
            let (done, all) = (rows.len(), orders.len());
            if done != all {
                return Err(format!("broken: {name}: {done} rows for {all} orders").into());
            }
            for (at, row) in written.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                if rows[*at].text != *row {
                    let broken = format!("broken: {name}: {:?} replaced {row:?}", rows[*at]);
                    return Err(broken.into());
                }
            }
            let (mut stock, mut fence) = (0, 0);
            for (order, row) in orders.iter().zip(rows) {
                let before = stock;
                stock = order.stock_after(before);
                short += usize::from(stock == before);
                // The row names the fence of the outer lease, and was written under the inner one.
                let right = format!("{} {stock} {}", order.number, row.fence);
                if row.text != right || row.fence <= fence {
                    let broken = format!("broken: {name}: {row:?} after {fence}, not {right}");
                    return Err(broken.into());
                }
                fence = row.fence;
            }
        }
        Ok(short)
    }
}

#[derive(PartialEq)]
enum Served {
    /// There may be more.
    Order,
    /// All orders of the article are done.
    Nothing,
}

/// Whether another holder has taken over.
fn is_lost(failure: &Failure) -> bool {
    failure.is::<StaleFence>()
        || matches!(failure.downcast_ref(), Some(GateError::Stale(_)))
        || matches!(failure.downcast_ref(), Some(AcquireError::Lost(_)))
}

/// Servers that did not answer, or not yet: what was asked of them may happen or not.
struct Outage {
    ends_at: Option<Instant>,
}

impl Outage {
    fn none() -> Self {
        Self { ends_at: None }
    }

    /// Whether a failure is one of an outage that has not lasted for too long.
    fn lasts(&mut self, failure: &Failure) -> bool {
        let Some(GateError::Store(error)) = failure.downcast_ref() else { return false };
        let now = SystemClock.now();
        error.kind().is_transient() && now < *self.ends_at.get_or_insert(now + PATIENCE)
    }
}

/// The lock that a copy of the program holds for as long as it works.
fn presence(copy: &str) -> String {
    format!("order_pipeline/copy/{copy}")
}

/// Reads all rows under their lock, and adds some of its own; again, if the lease was lost, or the
/// servers were away.
async fn read(
    lock: &ReentrantLock,
    rows: &Rows,
    more: impl Fn(&[Row]) -> Vec<String>,
) -> Result<Vec<Row>, Failure> {
    let mut outage = Outage::none();
    loop {
        let guard = lock.acquire().await?;
        match read_as(&guard, rows, &more).await {
            Err(failure) if is_lost(&failure) => {}
            Err(failure) if outage.lasts(&failure) => pause(AGAIN).await,
            read => return read,
        }
    }
}

async fn read_as(
    guard: &Guard,
    rows: &Rows,
    more: impl Fn(&[Row]) -> Vec<String>,
) -> Result<Vec<Row>, Failure> {
    let mut read = rows.open(guard.stamp()).await?;
    for text in more(&read) {
        rows.append(guard.stamp(), &text).await?;
        read.push(Row { fence: guard.fence().get(), text });
    }
    Ok(read)
}

/// A text that is not there yet.
fn unless_in(rows: &[Row], text: &str) -> impl Iterator<Item = String> + use<> {
    let is_there = rows.iter().any(|row| row.text == text);
    (!is_there).then(|| text.to_owned()).into_iter()
}

/// The rows of a log since the last run began.
fn last_run(log: &[Row]) -> &[Row] {
    let begin = log.iter().rposition(|row| row.text == "begin").unwrap_or(log.len());
    &log[begin..]
}

fn stock_in(row: Option<&Row>) -> Result<i64, Failure> {
    let Some(row) = row else { return Ok(0) };
    Ok(row.text.split(' ').nth(1).ok_or("a row without a stock")?.parse()?)
}

async fn pause(time: Duration) {
    SystemClock.sleep_until(SystemClock.now() + time).await;
}

/// The same orders in every copy. Each article is delivered once before it is sold.
fn make_orders(shelf: impl Fn(&str) -> Rows) -> (Vec<Article>, Vec<usize>) {
    let mut state = 20_240_229_u32;
    let mut below = |bound: u16| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [high, low, ..] = state.to_be_bytes();
        u16::from_be_bytes([high, low]) % bound
    };
    let hot = (1..=HOT).map(|number| format!("H{number:02}"));
    let names = hot.chain((1..=COLD).map(|number| format!("C{number:03}")));
    let article = |name: String| {
        let (shelf, written) = (shelf(&name), Mutex::default());
        Article { name, orders: Vec::new(), shelf, written }
    };
    let mut articles: Vec<Article> = names.map(article).collect();
    let mut line = Vec::new();
    for number in 0..ORDERS {
        let (article, pieces) = if number < articles.len() {
            (number, 20 + i64::from(below(21)))
        } else {
            let article = if below(100) < 45 { below(HOT) } else { HOT + below(COLD) };
            let is_delivery = below(100) < 12;
            let pieces = i64::from(below(10));
            (article.into(), if is_delivery { 10 + pieces } else { -1 - pieces / 3 })
        };
        articles[article].orders.push(Order { number, pieces });
        line.push(article);
    }
    (articles, line)
}

struct Report {
    place: &'static str,
    took: Duration,
    short: usize,
    copies: usize,
    gone: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, took, short, copies, gone } = self;
        writeln!(
            f,
            "\nOrder pipeline: {ORDERS} orders on {} articles, {place}, {took:.1?}\n",
            HOT + COLD
        )?;
        writeln!(
            f,
            "  orders done     {ORDERS} of {ORDERS}, each once, those of an article in sequence"
        )?;
        writeln!(
            f,
            "  stock           never negative; {short} sales found too little and took nothing"
        )?;
        writeln!(f, "  fences          growing with the orders of each article")?;
        writeln!(f, "  re-entries      {ORDERS}, all with the fence of their caller")?;
        writeln!(f, "  stale write     refused: its worker had stalled for longer than its lease")?;
        writeln!(f, "  renewal         a lease of {COUNTING_TTL:?} was held for {COUNTING:?}")?;
        match gone {
            0 => writeln!(f, "  copies          {copies} of this program shared the work")?,
            _ => writeln!(
                f,
                "  copies          {copies} shared the work, {gone} of them ended early"
            )?,
        }
        write!(f, "\n  All invariants hold.")
    }
}
