use crate::{
    article::Article,
    crew::HandedIn,
    orders::OrderFile,
    shelf::{Record, Shelf},
    tally::Tally,
};

/// What the audit of a whole run found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) orders_done: usize,
    /// Sales that found too little in stock.
    pub(crate) short: usize,
    /// The lowest stock that any shelf ever had.
    pub(crate) lowest_stock: i64,
    /// The broken invariants, in words.
    pub(crate) broken: Vec<String>,
}

impl Findings {
    fn check(&mut self, holds: bool, broken: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(broken());
        }
    }
}

/// Checks what all copies did together.
pub(crate) fn audit(file: &OrderFile, records: &[Record], handed_in: &HandedIn) -> Findings {
    let mut findings = Findings::default();
    for (article, record) in file.articles.iter().zip(records) {
        audit_article(article, record, &mut findings);
    }
    let (orders, done) = (file.line.len(), findings.orders_done);
    findings.check(done == orders, || format!("{done} of {orders} orders are done"));
    audit_tally(handed_in, &mut findings);
    findings
}

/// Replays the orders of an article one by one: the shelf must show exactly that.
fn audit_article(article: &Article, record: &Record, findings: &mut Findings) {
    let (name, mut shelf, mut fence) = (&article.name, Shelf::default(), 0);
    for (at, booking) in record.bookings.iter().enumerate() {
        let order = article.orders.get(at).copied();
        findings.check(order.map(|order| order.number) == Some(booking.order), || {
            format!("{name}: order {} is done as number {at} of its article", booking.order)
        });
        findings.check(booking.fence > fence, || {
            format!("{name}: fence {} came after fence {fence}", booking.fence)
        });
        findings.check(booking.stock >= 0, || {
            format!("{name}: the stock is {} after order {}", booking.stock, booking.order)
        });
        let replayed = order.map(|order| shelf.apply(order, booking.fence));
        findings.check(replayed.as_ref() == Some(booking), || {
            format!("{name}: {booking:?} came after {shelf:?}")
        });
        findings.short += usize::from(!booking.delivered);
        findings.lowest_stock = findings.lowest_stock.min(booking.stock);
        (shelf, fence) = (Shelf { next: at + 1, stock: booking.stock }, booking.fence);
    }
    findings.orders_done += record.bookings.len();
    findings.check(record.twice == 0, || format!("{name}: {} orders done twice", record.twice));
    findings.check(record.shelf == shelf, || {
        format!("{name}: the shelf shows {:?} after {shelf:?}", record.shelf)
    });
}

fn audit_tally(handed_in: &HandedIn, findings: &mut Findings) {
    let HandedIn { tally, gone, .. } = handed_in;
    // What a copy that is gone had counted is not known.
    let complete = *gone == 0;
    let Tally { stalls, late_refused, told, other_fence, .. } = tally;
    findings.check(*stalls > 0 || !complete, || "no worker stalled past its lease".into());
    findings.check(stalls == late_refused, || {
        format!("{} of {stalls} late writes were accepted", stalls - late_refused)
    });
    findings.check(stalls == told, || {
        format!("{} of {stalls} stalled workers still believed in their lease", stalls - told)
    });
    findings.check(*other_fence == 0, || {
        format!("{other_fence} re-entries had another fence than their caller")
    });
    findings.check(tally.sum(|class| class.renewals) > 0 || !complete, || {
        "no lease was renewed".into()
    });
    let (issued, done) = (tally.fences(), findings.orders_done as u64);
    findings.check(issued >= done || !complete, || format!("{issued} fences for {done} orders"));
}
